//! What an index has to do to take part.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::{Deserialize, Serialize};

use crate::Vectors;

/// An index under measurement.
pub trait Contender {
    /// Fills the empty index with all rows, whose ids are their numbers, on so many threads.
    fn build(&mut self, base: Vectors<'_>, threads: usize) -> anyhow::Result<()>;

    /// Puts the ids of the `k` nearest vectors it finds into `found`, which it empties first.
    fn search(
        &self,
        query: &[f32],
        k: usize,
        width: Width,
        found: &mut Vec<u32>,
    ) -> anyhow::Result<()>;

    /// What a search costs, where the index can tell.
    fn effort(&self, _query: &[f32], _k: usize, _width: Width) -> anyhow::Result<Option<Effort>> {
        Ok(None)
    }

    /// What the index says that it takes, where it can tell.
    fn memory(&self) -> Option<Memory>;

    /// What that memory is made of, where it can tell.
    fn components(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Which instructions its kernels use, in its own words.
    fn kernels(&self) -> String;
}

/// How widely a search looks around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Width {
    /// The beam of the walk (`ef`, `L`).
    pub beam: usize,
    /// Candidates measured again exactly; the contender's own choice where not given.
    pub rescored: Option<usize>,
}

/// What a search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Vectors whose neighbours were looked at.
    pub hops: f64,
    /// Distances computed on codes, or on vectors where there are no codes.
    pub distances: f64,
    /// As many as 99 of 100 searches compute at most: how much longer than most the slow ones take. None of one search.
    pub distances_p99: Option<f64>,
    /// Distances computed again on full vectors, where the index can tell.
    pub rescored: Option<f64>,
    /// Bytes of the index read, where the index can tell.
    pub bytes: Option<f64>,
}

impl Effort {
    /// Of an average search; none of no search.
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

/// Bytes an index says it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// That must stay in RAM, ids and tables included.
    pub anonymous: u64,
    /// Mapped from a file, and free to leave RAM.
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
