//! What a search is asked, and what it says of its work.

use std::fmt;

use crate::IdSet;

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions<'a> {
    /// Neighbours wanted.
    pub k: usize,
    /// Candidates kept on the way, about: more find better and take longer. A query whose neighbours
    /// stand out takes fewer, a hard one up to a quarter more. At least `k` are kept. None for as
    /// many as good recall needs, or [`crate::Options::search_beam_width`] if that is more.
    pub beam: Option<usize>,
    /// Candidates measured exactly, of which the `k` nearest are the answer; at least `k`. None for
    /// those that may be in the answer, as far as the codes' precision tells.
    pub rescored: Option<usize>,
    /// Which ids may be in the answer; None for all.
    pub filter: Option<Filter<'a>>,
}

impl SearchOptions<'_> {
    /// The defaults for `k` neighbours.
    pub fn new(k: usize) -> Self {
        SearchOptions {
            k,
            beam: None,
            rescored: None,
            filter: None,
        }
    }
}

/// Which ids a search may answer with.
#[derive(Clone, Copy)]
pub enum Filter<'a> {
    /// Those of a set. The way to search is chosen by how many there are.
    Ids(&'a IdSet),
    /// Those that a function returns true for. How many there are is estimated by trying some. It
    /// is called with locks held: it must not use the index, nor wait for anybody who does.
    Predicate(&'a (dyn Fn(u32) -> bool + Sync)),
}

impl Filter<'_> {
    pub(crate) fn admits(&self, id: u32) -> bool {
        match self {
            Filter::Ids(ids) => ids.contains(id),
            Filter::Predicate(admits) => admits(id),
        }
    }
}

impl fmt::Debug for Filter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Filter::Ids(ids) => write!(f, "Ids({} of them)", ids.len()),
            Filter::Predicate(_) => write!(f, "Predicate"),
        }
    }
}

/// What a search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The way it went.
    pub way: Way,
    /// Slots whose links were followed.
    pub hops: u64,
    /// Distances estimated from codes.
    pub distances: u64,
    /// Distances measured from full vectors.
    pub rescored: u64,
    /// Bytes of codes, headers, links and full vectors that were read.
    pub bytes: u64,
}

/// A way to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// From link to link, the nearest first.
    Walk,
    /// All codes, the nearest rescored.
    ScanOfCodes,
    /// All full vectors: exact.
    #[default]
    Scan,
}
