//! Builds and searches an index in this process, to measure what a search itself costs.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use annulus_bench::data::VectorRows;
use anyhow::{Context, bail, ensure};
use index::{Quantization, SimilarityFunction};
use store_api::types::IndexOptions;

use super::SearchQueries;
use crate::load::thread_cpu_time;

/// An index of the base of a data set.
pub struct InProcess {
    index: ann::NeighbourIndex,
    /// The id of each position. The index answers with positions.
    ids: Vec<i64>,
}

/// The results of searches.
#[derive(Clone, Copy, Debug)]
pub struct SearchTotals {
    /// The number of searches.
    pub searches: u64,
    /// The processor time that the searching threads took for them.
    pub cpu: Duration,
    /// The mean share of the true neighbours that were found.
    pub recall: Option<f64>,
}

impl InProcess {
    /// Builds an index with the options that a server reported, on all cores.
    pub fn build(options: &IndexOptions, base: &VectorRows) -> anyhow::Result<InProcess> {
        let index = ann::NeighbourIndex::new(ann_options(options, base.dimensions)?)?;
        let next = AtomicUsize::new(0);
        let cores = std::thread::available_parallelism()?.get();
        std::thread::scope(|scope| {
            let build = || -> anyhow::Result<()> {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    if position >= base.len() {
                        return Ok(());
                    }
                    index.insert(u32::try_from(position)?, base.row(position))?;
                }
            };
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(build)).collect();
            let mut built = threads.into_iter().map(|thread| match thread.join() {
                Ok(built) => built,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            built.try_for_each(|built| built)
        })
        .context("building the index in this process")?;
        Ok(InProcess {
            index,
            ids: (0..base.len()).map(|position| base.id(position)).collect(),
        })
    }

    /// Searches for a time, on some threads.
    pub fn search(
        &self,
        questions: &SearchQueries,
        threads: usize,
        duration: Duration,
    ) -> anyhow::Result<SearchTotals> {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let search = || -> anyhow::Result<(u64, Duration, f64)> {
            let (mut searches, mut cpu, mut recall) = (0, Duration::ZERO, 0.0);
            while !stop.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let query = questions.query(number);
                let begin = thread_cpu_time();
                let found = self
                    .index
                    .search(questions.queries.row(query), questions.k)?;
                cpu += thread_cpu_time() - begin;
                let ids = found.iter().map(|found| self.ids[found.id as usize]);
                let mut ids: Vec<i64> = ids.collect();
                recall += questions.judge.recall(query, &mut ids).unwrap_or(f64::NAN);
                searches += 1;
            }
            Ok((searches, cpu, recall))
        };
        let mut total = (0, Duration::ZERO, 0.0);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(search)).collect();
            std::thread::sleep(duration);
            stop.store(true, Ordering::Relaxed);
            for thread in threads {
                let (searches, cpu, recall) = match thread.join() {
                    Ok(searched) => searched?,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                total = (total.0 + searches, total.1 + cpu, total.2 + recall);
            }
            anyhow::Ok(())
        })?;
        let (searches, cpu, recall) = total;
        ensure!(searches > 0, "no search ended in time");
        let recall = recall / searches as f64;
        Ok(SearchTotals {
            searches,
            cpu,
            recall: recall.is_finite().then_some(recall),
        })
    }
}

/// Turns options that the server reported into those of an index.
fn ann_options(
    options: &IndexOptions,
    dimensions: usize,
) -> anyhow::Result<ann::NeighbourIndexOptions> {
    let IndexOptions::Vector {
        dimensions: of_server,
        maximum_node_connections,
        construction_beam_width,
        search_beam_width,
        similarity_function,
        quantization,
    } = options
    else {
        bail!("it is a full-text index, not a vector index");
    };
    ensure!(
        *of_server == dimensions,
        "the index has {of_server} dimensions, and the data {dimensions}"
    );
    Ok(ann::NeighbourIndexOptions {
        metric: match similarity_function {
            SimilarityFunction::Cosine => ann::DistanceMetric::Cosine,
            SimilarityFunction::Euclidean => ann::DistanceMetric::Euclidean,
            SimilarityFunction::DotProduct => ann::DistanceMetric::DotProduct,
            SimilarityFunction::Hamming => ann::DistanceMetric::Hamming,
        },
        quantization: match quantization {
            Quantization::F32 => ann::VectorQuantization::F32,
            Quantization::F16 => ann::VectorQuantization::F16,
            Quantization::Bf16 => ann::VectorQuantization::Bf16,
            Quantization::I8 => ann::VectorQuantization::I8,
            Quantization::B1 => ann::VectorQuantization::B1,
        },
        max_connections: *maximum_node_connections,
        build_beam_width: *construction_beam_width,
        search_beam_width: *search_beam_width,
        ..ann::NeighbourIndexOptions::new(dimensions)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use annulus_bench::data::TrueNeighbours;

    use super::*;
    use crate::load::AnswerJudge;

    fn options(quantization: Quantization) -> IndexOptions {
        IndexOptions::Vector {
            dimensions: 2,
            maximum_node_connections: 8,
            construction_beam_width: 32,
            search_beam_width: 16,
            similarity_function: SimilarityFunction::Euclidean,
            quantization,
        }
    }

    #[test]
    fn answers_are_judged_and_time_is_counted() {
        let base = VectorRows {
            dimensions: 2,
            values: (0..200).map(|x| x as f32).collect(),
            ids: Some((0..100).map(|id| id + 1000).collect()),
        };
        let index = InProcess::build(&options(Quantization::F32), &base).unwrap();
        let neighbours = TrueNeighbours {
            per_query: 1,
            ids: vec![1007, 3],
        };
        let questions = SearchQueries {
            queries: Arc::new(VectorRows {
                dimensions: 2,
                values: vec![14.1, 15.1, 14.1, 15.1],
                ids: None,
            }),
            judge: Arc::new(AnswerJudge::new(&neighbours, 1, &HashSet::new())),
            k: 1,
            metric: None,
        };
        let searched = index
            .search(&questions, 1, Duration::from_millis(20))
            .unwrap();
        assert!(searched.searches > 0 && searched.cpu > Duration::ZERO);
        // Every other query is judged by a neighbour that its answer can't have.
        let recall = searched.recall.unwrap();
        assert!(
            (recall - 0.5).abs() < 0.5 / searched.searches as f64 + 1e-9,
            "{recall}"
        );
    }

    #[test]
    fn another_index_than_that_of_the_data_is_refused() {
        assert!(ann_options(&options(Quantization::F16), 3).is_err());
        let text = IndexOptions::FullText {
            analyzer: String::new(),
            positions: true,
        };
        assert!(ann_options(&text, 2).is_err());
        let half = ann_options(&options(Quantization::F16), 2).unwrap();
        assert_eq!(
            (half.quantization, half.search_beam_width),
            (ann::VectorQuantization::F16, 16)
        );
    }
}
