//! The words between the benchmark and a contender's process: a line of JSON for each.

use serde::{Deserialize, Serialize};

use crate::{Effort, Elapsed, Memory, Width};

/// What the benchmark asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Make the index anew.
    Build {
        /// That insert side by side.
        threads: usize,
    },
    /// Search for every picked query, one after the other on one thread.
    Search {
        /// Neighbours asked for, at most [`crate::NEIGHBOURS`].
        k: usize,
        /// How widely.
        width: Width,
        /// Which queries.
        pick: Pick,
    },
    /// Tell what the searches for the picked queries cost on average.
    Effort {
        /// Neighbours asked for.
        k: usize,
        /// How widely.
        width: Width,
        /// Which queries.
        pick: Pick,
    },
}

/// Every `step`th query of each kind, from the one numbered `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    /// Counted from 0 within each kind.
    pub first: usize,
    /// At least 1.
    pub step: usize,
}

impl Pick {
    /// Every query.
    pub const ALL: Pick = Pick { first: 0, step: 1 };
}

/// What a contender answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Build`].
    Built(Built),
    /// To [`Request::Search`]: one for each kind of queries.
    Searched(Vec<Searched>),
    /// To [`Request::Effort`]; none where the contender cannot tell.
    Effort(Option<Effort>),
    /// Why it could not.
    Failed(String),
}

/// An index was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Built {
    /// Of all its threads.
    pub elapsed: Elapsed,
    /// What the index says that it takes, where it can tell.
    pub memory: Option<Memory>,
    /// Bytes by what the memory is made of, where the index can tell.
    pub components: Vec<(String, u64)>,
    /// By how much the process' anonymous memory grew.
    pub anonymous_grown: u64,
    /// As the contender names them.
    pub kernels: String,
}

/// The searches for the queries of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// Searches.
    pub queries: usize,
    /// True neighbours among the answers, of `k` for each query.
    pub found: usize,
    /// Of the thread that searched.
    pub elapsed: Elapsed,
}
