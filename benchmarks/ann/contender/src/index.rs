//! The interface of an index that takes part.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::{Deserialize, Serialize};

use crate::Vectors;

/// An index under measurement.
pub trait Contender {
    /// Fills the empty index with all rows, whose ids are their numbers, on `threads` threads.
    fn build(&mut self, base: Vectors<'_>, threads: usize) -> anyhow::Result<()>;

    /// Writes the ids of the `k` nearest vectors it finds into `found`, which it empties first.
    fn search(
        &self,
        query: &[f32],
        k: usize,
        width: Width,
        found: &mut Vec<u32>,
    ) -> anyhow::Result<()>;

    /// The effort of a search, if the index tells it.
    fn effort(&self, _query: &[f32], _k: usize, _width: Width) -> anyhow::Result<Option<Effort>> {
        Ok(None)
    }

    /// The bytes that the index says it takes, if it tells.
    fn memory(&self) -> Option<Memory>;

    /// The parts of that memory with their bytes, if the index tells.
    fn components(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The instructions that its kernels use, in its own words.
    fn kernels(&self) -> String;
}

/// The width of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Width {
    /// The beam of the walk (`ef`, `L`).
    pub beam: usize,
    /// The number of candidates measured again exactly; without it the contender chooses.
    pub rescored: Option<usize>,
}

/// The effort of a search, or of an average one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// The number of vectors whose neighbours were looked at.
    pub hops: f64,
    /// The number of distances computed on codes, or on vectors if there are no codes.
    pub distances: f64,
    /// The number of distances that 99 of 100 searches do not exceed, which tells how slow the slow
    /// ones are. `None` for a single search.
    pub distances_p99: Option<f64>,
    /// The number of distances computed again on full vectors, if the index tells.
    pub rescored: Option<f64>,
    /// The bytes of the index that were read, if the index tells.
    pub bytes: Option<f64>,
}

impl Effort {
    /// The effort of an average search; `None` if there is no search.
    pub fn mean(all: &[Effort]) -> Option<Effort> {
        let mean = |of: fn(&Effort) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let first = all.first()?;
        let mut distances: Vec<f64> = all.iter().map(|effort| effort.distances).collect();
        distances.sort_by(f64::total_cmp);
        Some(Effort {
            hops: mean(|effort| effort.hops),
            distances: mean(|effort| effort.distances),
            distances_p99: Some(distances[(all.len() * 99).div_ceil(100) - 1]),
            rescored: first
                .rescored
                .map(|_| mean(|effort| effort.rescored.unwrap_or(0.0))),
            bytes: first
                .bytes
                .map(|_| mean(|effort| effort.bytes.unwrap_or(0.0))),
        })
    }
}

/// The bytes that an index says it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes that must stay in RAM, ids and tables included.
    pub anonymous: u64,
    /// Bytes that are mapped from a file and may leave RAM.
    pub mapped: u64,
}

/// Inserts all rows, each thread taking the next one.
pub fn insert_all(
    base: Vectors<'_>,
    threads: usize,
    insert: impl Fn(usize, &[f32]) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<()> {
        loop {
            let row = next.fetch_add(1, Ordering::Relaxed);
            if row >= base.count() {
                return Ok(());
            }
            insert(row, base.row(row))?;
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("an insert does not panic"))
    })
}
