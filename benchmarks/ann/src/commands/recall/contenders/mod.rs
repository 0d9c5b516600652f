//! The contenders, a file for each.

pub mod hnswlib;
pub mod ours;
pub mod usearch;

use serde::{Deserialize, Serialize};
use vector_sets::{RemainingVectors, GeneratedSet, NeighbourMetric};

use super::judge::Judge;

/// The width of the beam of builds.
pub const BUILD_BEAM: usize = 128;

/// A set with all that contenders need of it.
pub struct Task<'a> {
    /// The name of the set.
    pub name: &'a str,
    /// The measure of distances.
    pub metric: NeighbourMetric,
    /// The vectors, changes and queries.
    pub made: &'a GeneratedSet,
    /// The vectors that are left after all changes.
    pub left: &'a RemainingVectors,
    /// The judge of answers.
    pub judge: Judge<'a>,
    /// Links of a vector, as HNSW counts them.
    pub m: usize,
    /// The searches: beam (`ef`) and neighbours wanted (`k`).
    pub searches: Vec<(usize, usize)>,
}

/// The results of one contender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The version of the contender.
    pub version: String,
    /// Processor seconds of the build, changes included, on one thread.
    pub build_seconds: f64,
    /// Bytes of memory that a vector takes, if the contender tells.
    pub bytes: Option<f64>,
    /// The results of each search.
    pub searches: Vec<Searched>,
}

/// The results of all queries with one beam.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Searched {
    /// The beam (`ef`).
    pub ef: usize,
    /// Neighbours wanted.
    pub k: usize,
    /// Processor seconds of all queries.
    pub seconds: f64,
    /// The number of true neighbours found for each query.
    pub found: Vec<u8>,
    /// The work of a search in the mean, if the contender tells.
    pub work: Option<Work>,
}

/// The work of a search in the mean.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Work {
    /// Vectors whose links were followed.
    pub hops: f64,
    /// Distances estimated from codes.
    pub distances: f64,
    /// Distances measured from full vectors.
    pub rescored: f64,
    /// The share of searches that walked the graph to the end.
    pub walks: f64,
    /// The share of searches that scanned all codes.
    pub scans_of_codes: f64,
}

impl Searched {
    /// The mean share of the true neighbours that were found.
    pub fn recall(&self) -> f64 {
        let found: f64 = self.found.iter().map(|found| f64::from(*found)).sum();
        found / (self.found.len() * self.k) as f64
    }

    /// Queries a second of processor time.
    pub fn rate(&self) -> f64 {
        self.found.len() as f64 / self.seconds
    }
}

impl Results {
    /// The results of one search; `None` if it was not asked for.
    pub fn of(&self, ef: usize, k: usize) -> Option<&Searched> {
        let mut searches = self.searches.iter();
        searches.find(|searched| (searched.ef, searched.k) == (ef, k))
    }
}
