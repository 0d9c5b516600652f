//! The options of a search, and the explanation of its work.

use std::fmt;

use crate::IdSet;

/// The options of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions<'a> {
    /// Number of neighbours wanted.
    pub k: usize,
    /// About how many candidates are retained on the way: more find better and take longer. A query
    /// whose neighbours are much nearer than all others takes fewer, a hard one up to a quarter
    /// more. At least `k` are retained. None keeps as many as good recall needs, or
    /// [`crate::NeighbourIndexOptions::search_beam_width`] if that is more.
    pub beam: Option<usize>,
    /// Number of candidates measured exactly, of which the `k` nearest are the answer; at least
    /// `k`. None measures those that may be in the answer, as far as the codes' precision allows.
    pub rescored: Option<usize>,
    /// Whether the answer is to be the true `k` nearest for sure, whatever it takes: every vector
    /// that may be among them, for all that the codes tell, is measured. The width and the number
    /// of candidates have no meaning then.
    pub exact: bool,
    /// The ids that may be in the answer; None for all.
    pub filter: Option<IdFilter<'a>>,
}

impl SearchOptions<'_> {
    /// The defaults for `k` neighbours.
    pub fn new(k: usize) -> Self {
        SearchOptions {
            k,
            beam: None,
            rescored: None,
            exact: false,
            filter: None,
        }
    }
}

/// A restriction of the ids that a search may answer with.
#[derive(Clone, Copy)]
pub enum IdFilter<'a> {
    /// The ids of a set. The way to search is chosen by their number.
    Ids(&'a IdSet),
    /// The ids that a function returns true for. Their number is estimated by trying some. The
    /// function is called with locks held: it must not use the index, nor wait for anybody who
    /// does.
    Predicate(&'a dyn Fn(u32) -> bool),
}

impl IdFilter<'_> {
    pub(crate) fn admits(&self, id: u32) -> bool {
        match self {
            IdFilter::Ids(ids) => ids.contains(id),
            IdFilter::Predicate(admits) => admits(id),
        }
    }
}

impl fmt::Debug for IdFilter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdFilter::Ids(ids) => write!(f, "Ids({} of them)", ids.len()),
            IdFilter::Predicate(_) => write!(f, "Predicate"),
        }
    }
}

/// The work that a search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The way that the search took.
    pub way: AccessPath,
    /// Whether a walk was begun and given up for that way.
    pub walk_given_up: bool,
    /// Number of slots whose links were followed.
    pub hops: u64,
    /// Number of distances estimated from codes.
    pub distances: u64,
    /// Number of distances measured from full vectors.
    pub rescored: u64,
    /// Bytes of codes, headers, links and full vectors that were read.
    pub bytes: u64,
}

/// A way to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessPath {
    /// A walk of the graph from link to link, the nearest first.
    Walk,
    /// A scan of all codes. The nearest are measured again from full vectors.
    ScanOfCodes,
    /// A scan of all full vectors, which is exact.
    #[default]
    Scan,
}
