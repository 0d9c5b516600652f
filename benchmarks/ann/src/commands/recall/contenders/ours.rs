//! Annulus' engine in this process, with the default options of an index.

use std::fs;
use std::path::Path;

use ann::{NeighbourIndex, NeighbourIndexOptions, VectorQuantization, SearchOptions, AccessPath};
use anyhow::Context;
use contender::Stopwatch;
use vector_sets::{VectorChange, NeighbourMetric};

use super::{BUILD_BEAM, Results, Searched, Task, Work};

/// Builds an index, searches it, and for each wider beam a snapshot of it that is opened with that
/// beam. Snapshots are kept in `folder` meanwhile.
pub fn run(task: &Task<'_>, folder: &Path) -> anyhow::Result<Results> {
    let stopwatch = Stopwatch::of_thread();
    let index = build(task)?;
    let build_seconds = stopwatch.elapsed().cpu_seconds;
    let bytes = index.memory().anonymous() as f64 / index.len() as f64;
    let default = index.options().search_beam_width;
    let snapshot = folder.join(format!("{}-m{}", task.name, task.m));
    if task.searches.iter().any(|(ef, _)| *ef != default) {
        fs::create_dir_all(&snapshot).with_context(|| snapshot.display().to_string())?;
        index.save(&snapshot)?;
    }
    let mut searches = Vec::new();
    let mut reopened: Option<NeighbourIndex> = None;
    for &(ef, k) in &task.searches {
        let index = match &reopened {
            _ if ef == default => &index,
            Some(index) if index.options().search_beam_width == ef => index,
            _ => reopened.insert(NeighbourIndex::open(&snapshot, options(task, ef))?),
        };
        searches.push(search(task, index, (ef, k))?);
    }
    if snapshot.exists() {
        fs::remove_dir_all(&snapshot).with_context(|| snapshot.display().to_string())?;
    }
    Ok(Results {
        version: format!("this tree, {}", ann::kernels_name()),
        build_seconds,
        bytes: Some(bytes),
        searches,
    })
}

fn options(task: &Task<'_>, ef: usize) -> NeighbourIndexOptions {
    let defaults = NeighbourIndexOptions::new(task.made.dimensions);
    NeighbourIndexOptions {
        metric: match task.metric {
            NeighbourMetric::Cosine => ann::DistanceMetric::Cosine,
            NeighbourMetric::Euclidean => ann::DistanceMetric::Euclidean,
            NeighbourMetric::DotProduct => ann::DistanceMetric::DotProduct,
            NeighbourMetric::Hamming => ann::DistanceMetric::Hamming,
        },
        quantization: match task.metric {
            NeighbourMetric::Hamming => VectorQuantization::B1,
            _ => defaults.quantization,
        },
        max_connections: task.m,
        build_beam_width: BUILD_BEAM,
        search_beam_width: ef,
        ..defaults
    }
}

fn build(task: &Task<'_>) -> anyhow::Result<NeighbourIndex> {
    let default = NeighbourIndexOptions::new(task.made.dimensions).search_beam_width;
    let index = NeighbourIndex::new(options(task, default))?;
    for (id, vector) in (0..).zip(task.made.vectors()) {
        index.insert(id, vector)?;
    }
    for change in &task.made.changes {
        match change {
            VectorChange::Replace(id, vector) => index.replace(*id, vector)?,
            VectorChange::Remove(id) => index.remove(*id)?,
        }
    }
    Ok(index)
}

/// Searches for every query twice: to learn what it does, and to time it.
fn search(task: &Task<'_>, index: &NeighbourIndex, (ef, k): (usize, usize)) -> anyhow::Result<Searched> {
    let options = SearchOptions::new(k);
    let mut work = Work::default();
    for query in task.made.each_query() {
        let (_, explanation) = index.explain(query, &options)?;
        work.hops += explanation.hops as f64;
        work.distances += explanation.distances as f64;
        work.rescored += explanation.rescored as f64;
        match explanation.way {
            AccessPath::Walk => work.walks += 1.0,
            AccessPath::ScanOfCodes => work.scans_of_codes += 1.0,
            AccessPath::Scan => {}
        }
    }
    let queries = task.made.each_query().len();
    let sums = [
        &mut work.hops,
        &mut work.distances,
        &mut work.rescored,
        &mut work.walks,
        &mut work.scans_of_codes,
    ];
    sums.into_iter().for_each(|sum| *sum /= queries as f64);
    let mut answers = Vec::with_capacity(queries);
    let stopwatch = Stopwatch::of_thread();
    for query in task.made.each_query() {
        answers.push(index.search_with(query, &options)?);
    }
    let seconds = stopwatch.elapsed().cpu_seconds;
    let judged = answers.iter().enumerate().map(|(query, answer)| {
        let ids: Vec<u32> = answer.iter().map(|neighbour| neighbour.id).collect();
        task.judge.found(query, k, &ids)
    });
    Ok(Searched {
        ef,
        k,
        seconds,
        found: judged.collect(),
        work: Some(work),
    })
}
