//! The plan of a search: how it was done, for metrics, the log and those who ask.

use ann::{Explanation, Way};
use store_api::types::SearchPlan;

/// The plan of a search of one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The kind of the plan.
    pub kind: SearchPlan,
    /// The number of rows that the filter admitted, if they were found before the search.
    pub admitted: Option<usize>,
    /// The number of fresh vectors among the candidates of the answer.
    pub fresh: usize,
    /// Whether a walk was begun and given up for a scan.
    pub walk_given_up: bool,
}

impl Plan {
    /// The plan of a search of the graph that went so: with a filter or without, exact or not.
    pub fn of(is_filtered: bool, is_exact: bool, explanation: &Explanation) -> Plan {
        let walked = explanation.way == Way::Walk;
        Plan {
            kind: match (is_filtered, walked) {
                _ if is_exact => SearchPlan::Exact,
                (false, true) => SearchPlan::Walk,
                (false, false) => SearchPlan::Scan,
                (true, true) => SearchPlan::FilteredWalk,
                (true, false) => SearchPlan::FilteredScan,
            },
            admitted: None,
            fresh: 0,
            walk_given_up: explanation.walk_given_up,
        }
    }
}
