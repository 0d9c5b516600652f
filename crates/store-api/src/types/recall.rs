//! The check of an index's recall, which compares searches with a scan of all vectors.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST .../recall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecallRequest {
    /// The most rows to take as queries, drawn by chance: 1 to 10,000. 100 if it is not given. An
    /// index with fewer rows takes all of them.
    #[schema(minimum = 1, maximum = 10_000)]
    pub queries: usize,
}

impl Default for RecallRequest {
    fn default() -> RecallRequest {
        RecallRequest { queries: 100 }
    }
}

/// The answer of `POST .../recall`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MeasuredRecall {
    /// The share of the ten nearest rows that searches found, in the mean of all queries; null if
    /// the index has no rows.
    pub recall: Option<f64>,
    /// The lower end of the interval that has the recall of all rows with 95 % confidence.
    pub low: Option<f64>,
    /// The upper end of that interval.
    pub high: Option<f64>,
    /// The share of the rows that a search for their own vector answers first, or whose answer
    /// begins with a row as near.
    pub self_recall: Option<f64>,
    /// The number of rows that were queries.
    pub queries: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_needs_no_number_and_takes_no_other_key() {
        let read = serde_json::from_str::<RecallRequest>;
        assert_eq!(read("{}").unwrap().queries, 100);
        assert_eq!(read(r#"{"queries": 7}"#).unwrap().queries, 7);
        assert!(read(r#"{"querys": 7}"#).is_err());
    }

    #[test]
    fn an_index_without_rows_has_no_recall() {
        assert_eq!(
            serde_json::to_string(&MeasuredRecall::default()).unwrap(),
            r#"{"recall":null,"low":null,"high":null,"self_recall":null,"queries":0}"#
        );
    }
}
