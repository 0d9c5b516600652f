//! The map of an index: a sample of its vectors in two dimensions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{PrimaryKeys, TaskStatus};

/// `POST .../map`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MapRequest {
    /// The most rows of the map, drawn by chance: 500 to 20,000. 5,000 if it is not given. There
    /// are fewer if the index has fewer, or if so many vectors would take more than 256 MiB.
    #[schema(minimum = 500, maximum = 20_000)]
    pub points: usize,
    /// The number from which rows and their first places are drawn. Without a change of the index
    /// one number leads to one map.
    pub seed: u32,
    /// Whether the map is made although there is one of the same index, points and seed.
    pub fresh: bool,
}

impl Default for MapRequest {
    fn default() -> MapRequest {
        MapRequest {
            points: 5000,
            seed: 0,
            fresh: false,
        }
    }
}

/// The answer of `POST .../map`, and that of `GET .../map` while the first map is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MapProgress {
    /// The task that makes the map, or has made it; null if it ended so long ago that it is not
    /// listed any more.
    pub task: Option<TaskStatus>,
    /// Whether the map is there.
    pub ready: bool,
}

/// The answer of `GET .../map`: element `i` of every array belongs to row `i`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IndexMap {
    /// How the map was made, in a sentence.
    pub method: String,
    /// The number of rows on the map.
    pub points: usize,
    /// The number of rows of the index when they were drawn.
    pub rows: usize,
    /// The number from which they were drawn.
    pub seed: u32,
    /// The time at which rows were drawn, RFC 3339. Rows that have changed since are on the map as
    /// they were.
    pub made_at: String,
    /// The seconds since then.
    pub age_s: u64,
    /// The seconds that it took to make the map.
    pub seconds: f64,
    /// The number of nearest rows of a row that are compared with its nearest on the map.
    pub neighbours: usize,
    /// The mean share of these that are among the nearest on the map, of up to 1,000 drawn rows;
    /// null for a map with fewer than two rows.
    pub neighbours_kept: Option<f64>,
    /// This share on a map of the two principal components of the vectors, for comparison.
    pub neighbours_kept_by_pca: Option<f64>,
    /// The horizontal position of each row, from -1 to 1.
    pub x: Vec<f32>,
    /// The vertical position of each row, from -1 to 1, in the same unit.
    pub y: Vec<f32>,
    /// An array of values for each column of the primary key.
    #[schema(value_type = BTreeMap<String, Vec<Value>>)]
    pub primary_keys: PrimaryKeys,
    /// An array of values for each filter column of the index; null where a row has none.
    pub column_values: BTreeMap<String, Vec<Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_a_map_needs_no_field_and_takes_no_other() {
        let read = serde_json::from_str::<MapRequest>;
        assert_eq!(read("{}").unwrap(), MapRequest::default());
        let whole = r#"{"points": 600, "seed": 7, "fresh": true}"#;
        let wanted = MapRequest {
            points: 600,
            seed: 7,
            fresh: true,
        };
        assert_eq!(read(whole).unwrap(), wanted);
        assert!(read(r#"{"rows": 600}"#).is_err());
    }
}
