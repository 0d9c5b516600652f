//! The way in which a search was done.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The plan of a search. Metrics have the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchPlan {
    /// A walk of the graph among all rows.
    Walk,
    /// A scan of all rows.
    Scan,
    /// A walk of the graph that keeps the rows which satisfy the filter.
    FilteredWalk,
    /// A scan of the rows that satisfy the filter.
    FilteredScan,
    /// A search for the true nearest rows, as the request has `exact`, with a filter or without.
    Exact,
    /// The database has read rows and ranked them by their vectors, as no index could name enough.
    RankedRows,
}

impl SearchPlan {
    /// All plans.
    pub const ALL: [SearchPlan; 6] = [
        SearchPlan::Walk,
        SearchPlan::Scan,
        SearchPlan::FilteredWalk,
        SearchPlan::FilteredScan,
        SearchPlan::Exact,
        SearchPlan::RankedRows,
    ];

    /// The word for the plan on the wire and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            SearchPlan::Walk => "walk",
            SearchPlan::Scan => "scan",
            SearchPlan::FilteredWalk => "filtered_walk",
            SearchPlan::FilteredScan => "filtered_scan",
            SearchPlan::Exact => "exact",
            SearchPlan::RankedRows => "ranked_rows",
        }
    }
}

/// The way in which a search was done, for a request with `debug`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchDebug {
    /// The name of the index that answered, in the keyspace of the request.
    pub index: String,
    /// The plan.
    pub plan: SearchPlan,
    /// The rows that the filter admitted, if they were found before the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<usize>,
    /// The rows that were merged into the answer's candidates because the graph did not have their
    /// newest vector yet.
    pub fresh: usize,
    /// Whether a walk was begun and given up for a scan.
    pub walk_given_up: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_have_the_same_names_everywhere() {
        for plan in SearchPlan::ALL {
            assert_eq!(serde_json::to_value(plan).unwrap(), plan.name());
        }
    }
}
