//! The messages between the benchmark and a contender's process, a line of JSON each.

use serde::{Deserialize, Serialize};

use crate::{Effort, Elapsed, Memory, Width};

/// A request of the benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Make the index anew.
    Build {
        /// The number of threads that insert.
        threads: usize,
    },
    /// Search for every picked query, one after the other on one thread.
    Search {
        /// Neighbours asked for, at most [`crate::NEIGHBOURS`].
        k: usize,
        /// The width of the searches.
        width: Width,
        /// The queries to search for.
        pick: Pick,
    },
    /// Tell what the searches for the picked queries cost on average.
    Effort {
        /// Neighbours asked for.
        k: usize,
        /// The width of the searches.
        width: Width,
        /// The queries to search for.
        pick: Pick,
    },
}

/// Every `step`th query of each kind, from the one numbered `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    /// The number of the first query, counted from 0 within each kind.
    pub first: usize,
    /// The step from a query to the next one, at least 1.
    pub step: usize,
}

impl Pick {
    /// Every query.
    pub const ALL: Pick = Pick { first: 0, step: 1 };
}

/// The answer of a contender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The answer to [`Request::Build`].
    Built(Built),
    /// The answer to [`Request::Search`], with one value for each kind of queries.
    Searched(Vec<Searched>),
    /// The answer to [`Request::Effort`]; `None` if the contender does not tell.
    Effort(Option<Effort>),
    /// The request failed for this reason.
    Failed(String),
}

/// The results of a build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Built {
    /// The time of the build, with the processor time of all threads.
    pub elapsed: Elapsed,
    /// The bytes that the index says it takes, if it tells.
    pub memory: Option<Memory>,
    /// The parts of that memory with their bytes, if the index tells.
    pub components: Vec<(String, u64)>,
    /// The bytes by which the process' anonymous memory grew.
    pub anonymous_grown: u64,
    /// The name that the contender gives its kernels.
    pub kernels: String,
}

/// The searches for the queries of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// The number of searches.
    pub queries: usize,
    /// The number of true neighbours in the answers, out of `k` for each query.
    pub found: usize,
    /// The time of the searches, with the processor time of the searching thread.
    pub elapsed: Elapsed,
}
