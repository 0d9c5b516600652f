//! The plan of a search: how it was done, for metrics, the log and clients that request it.

use store_api::types::SearchPlan;

/// The plan of a search of one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutedPlan {
    /// The kind of the plan.
    pub kind: SearchPlan,
    /// The number of rows that the filter admitted, if they were found before the search.
    pub admitted: Option<usize>,
    /// The number of fresh vectors among the candidates of the answer.
    pub fresh: usize,
    /// Whether a walk was begun and given up for a scan.
    pub walk_given_up: bool,
}
