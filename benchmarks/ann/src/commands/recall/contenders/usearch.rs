//! HNSW by the `usearch` crate, on full floats.

use anyhow::Context;
use contender::Stopwatch;
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};
use vector_sets::{VectorChange, NeighbourMetric};

use super::{BUILD_BEAM, Results, Searched, Task};

/// The version by which results are kept: a newer one is measured again.
pub const VERSION: &str = "usearch 2.26";

/// Builds an index and searches it.
pub fn run(task: &Task<'_>) -> anyhow::Result<Results> {
    let stopwatch = Stopwatch::of_thread();
    let index = build(task)?;
    let build_seconds = stopwatch.elapsed().cpu_seconds;
    let searches = task.searches.iter();
    Ok(Results {
        version: VERSION.into(),
        build_seconds,
        bytes: None,
        searches: searches
            .map(|search| searched(task, &index, *search))
            .collect::<anyhow::Result<_>>()?,
    })
}

fn build(task: &Task<'_>) -> anyhow::Result<Index> {
    let options = IndexOptions {
        dimensions: task.made.dimensions,
        metric: match task.metric {
            NeighbourMetric::Cosine => MetricKind::Cos,
            // The squared distance of zeros and ones is the Hamming distance.
            NeighbourMetric::Euclidean | NeighbourMetric::Hamming => MetricKind::L2sq,
            NeighbourMetric::DotProduct => MetricKind::IP,
        },
        quantization: ScalarKind::F32,
        connectivity: task.m,
        expansion_add: BUILD_BEAM,
        expansion_search: 0,
        multi: false,
    };
    let index = Index::new(&options).context("usearch")?;
    index
        .reserve_capacity_and_threads(task.made.rows() + 1, 1)
        .context("usearch")?;
    for (id, vector) in (0..).zip(task.made.vectors()) {
        index.add(id, vector).context("usearch")?;
    }
    for change in &task.made.changes {
        let (VectorChange::Replace(id, _) | VectorChange::Remove(id)) = change;
        index.remove(u64::from(*id)).context("usearch")?;
        if let VectorChange::Replace(id, vector) = change {
            index.add(u64::from(*id), vector).context("usearch")?;
        }
    }
    Ok(index)
}

fn searched(task: &Task<'_>, index: &Index, (ef, k): (usize, usize)) -> anyhow::Result<Searched> {
    index.change_expansion_search(ef);
    let mut answers = Vec::with_capacity(task.made.each_query().len());
    let stopwatch = Stopwatch::of_thread();
    for query in task.made.each_query() {
        answers.push(index.search(query, k).context("usearch")?.keys);
    }
    let seconds = stopwatch.elapsed().cpu_seconds;
    let judged = answers.iter().enumerate().map(|(query, keys)| {
        let ids: Vec<u32> = keys.iter().map(|key| *key as u32).collect();
        task.judge.found(query, k, &ids)
    });
    Ok(Searched {
        ef,
        k,
        seconds,
        found: judged.collect(),
        work: None,
    })
}
