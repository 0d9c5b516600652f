//! Indexes and their state, as a service describes them.

use index::{Quantization, SimilarityFunction};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// An index, the options in effect, and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IndexInfo {
    /// The keyspace, case preserved.
    pub keyspace: String,
    /// The name of the index, case preserved.
    pub index: String,
    /// The options that the index was made with.
    pub options: IndexOptions,
    /// The state of the index, its rows and its lag. Absent in answers of ScyllaDB's service.
    #[serde(flatten)]
    pub status: Option<IndexStatus>,
}

/// Options by the kind of index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum IndexOptions {
    /// An index over a vector column.
    Vector {
        /// Elements of a vector.
        dimensions: usize,
        /// The `m` of HNSW.
        maximum_node_connections: usize,
        /// The `ef_construction` of HNSW.
        construction_beam_width: usize,
        /// The `ef` of HNSW.
        search_beam_width: usize,
        /// The function as configured, even if the quantization forces another one.
        similarity_function: SimilarityFunction,
        /// The form in which the elements of a vector are stored.
        quantization: Quantization,
    },
    /// An index over a text column.
    FullText {
        /// The analyzer that turns text into terms.
        analyzer: String,
        /// Whether the positions of terms are stored, which phrases need.
        positions: bool,
    },
}

/// The state of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum IndexState {
    /// The index was discovered.
    Initializing,
    /// The table is being scanned.
    Bootstrapping,
    /// The index is complete and follows the table's changes.
    Serving,
}

/// `GET /api/v1/indexes/{keyspace}/{index}/status`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IndexStatus {
    /// The state of the index, which clients go by.
    pub status: IndexState,
    /// Live rows in the index.
    pub count: usize,
    /// Per cent of the scan that are done, 0 to 100. It is only for people.
    #[serde(default = "complete")]
    pub build_progress: f64,
    /// Rows that wait for room in memory or on the disk; left out when there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_without_room: usize,
    /// Changes that searches see, but that wait to be linked into the graph; left out when there
    /// are none. Each search measures them all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes_waiting: usize,
    /// Seconds by which the index lags the writes of its table: the age of the oldest write that
    /// searches don't see. Absent while that is not known, and in answers of ScyllaDB's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_seconds: Option<f64>,
    /// The recall that samples of the data have shown. Absent while there are none, and in answers
    /// of ScyllaDB's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<IndexRecall>,
    /// Whether the graph is being mended and renewed after changes; left out when it is not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tending: bool,
    /// Which index of that name it is: the `index_version` of its definition, a timeuuid of which
    /// every CREATE INDEX makes a new one. Absent in answers of ScyllaDB's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub version: Option<Uuid>,
    /// The memory of the index by part. Absent in answers of ScyllaDB's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<IndexMemory>,
    /// Entries of rows that were removed or changed and still take room; left out when there are
    /// none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dead_entries: usize,
    /// Entries that the work in the background has still to look at; left out when there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub maintenance_debt: usize,
}

/// The memory of an index by part, in bytes. A part that takes none is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct IndexMemory {
    /// Links between vectors.
    #[serde(skip_serializing_if = "is_zero")]
    pub graph: usize,
    /// Codes, by which distances are estimated; where they are the vectors, these.
    #[serde(skip_serializing_if = "is_zero")]
    pub codes: usize,
    /// Full vectors that have to stay in memory.
    #[serde(skip_serializing_if = "is_zero")]
    pub vectors: usize,
    /// Words of texts.
    #[serde(skip_serializing_if = "is_zero")]
    pub text: usize,
    /// Primary keys.
    #[serde(skip_serializing_if = "is_zero")]
    pub keys: usize,
    /// Values of filter columns.
    #[serde(skip_serializing_if = "is_zero")]
    pub filter_values: usize,
    /// Changes that searches see and the structure does not have yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub fresh: usize,
    /// All else that has to stay in memory: ids, states of rows, working memory.
    #[serde(skip_serializing_if = "is_zero")]
    pub other: usize,
    /// Full vectors or words in mapped files, which the system may take out of memory.
    #[serde(skip_serializing_if = "is_zero")]
    pub mapped: usize,
}

/// The recall of an index, as samples of its data have shown it: walks were compared with the true
/// nearest rows. A search that scans finds no less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IndexRecall {
    /// The share of the 10 nearest rows that was found in the mean. Absent while there are too few
    /// samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_at_10: Option<f64>,
    /// The width of walks for few rows, as a multiple of the default one.
    pub width_at_10: f64,
    /// The share of the 100 nearest rows that was found in the mean. Absent while there are too few
    /// samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_at_100: Option<f64>,
    /// The width of walks for many rows, as a multiple of the default one.
    pub width_at_100: f64,
    /// Whether the widest walk finds less than the index aims at, 0.99.
    pub bounded: bool,
}

impl IndexStatus {
    /// Whether searches are answered by the index of that version, or by a later one of its name. A
    /// service that reports no version is believed.
    pub fn serves(&self, version: Uuid) -> bool {
        let time = |version: Uuid| version.get_timestamp().map(|time| time.to_gregorian().0);
        self.status == IndexState::Serving
            && self
                .version
                .is_none_or(|served| served == version || time(served) > time(version))
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The progress that clients assume if none is given.
fn complete() -> f64 {
    100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_wire() {
        let info = IndexInfo {
            keyspace: "ks".into(),
            index: "idx".into(),
            options: IndexOptions::Vector {
                dimensions: 3,
                maximum_node_connections: 16,
                construction_beam_width: 128,
                search_beam_width: 64,
                similarity_function: SimilarityFunction::DotProduct,
                quantization: Quantization::Bf16,
            },
            status: None,
        };
        assert_eq!(
            serde_json::to_value(&info).unwrap(),
            serde_json::json!({
                "keyspace": "ks",
                "index": "idx",
                "options": {
                    "type": "vector",
                    "dimensions": 3,
                    "maximum_node_connections": 16,
                    "construction_beam_width": 128,
                    "search_beam_width": 64,
                    "similarity_function": "DOT_PRODUCT",
                    "quantization": "BF16",
                },
            })
        );
        let text = IndexOptions::FullText {
            analyzer: "standard".into(),
            positions: true,
        };
        assert_eq!(serde_json::to_value(&text).unwrap()["type"], "fulltext");
        let status: IndexStatus =
            serde_json::from_str(r#"{"status":"SERVING","count":4}"#).unwrap();
        assert_eq!(status.build_progress, 100.0);
        assert_eq!((status.lag_seconds, status.recall), (None, None));
        assert!(!status.tending);
        let listed = IndexInfo {
            status: Some(status),
            ..info
        };
        let json = serde_json::to_value(&listed).unwrap();
        assert_eq!(
            (&json["status"], &json["count"]),
            (&"SERVING".into(), &4.into())
        );
        assert_eq!(serde_json::from_value::<IndexInfo>(json).unwrap(), listed);
        let of_scylla = serde_json::json!({"keyspace": "ks", "index": "i", "options": text});
        let of_scylla: IndexInfo = serde_json::from_value(of_scylla).unwrap();
        assert_eq!(of_scylla.status, None);
    }

    #[test]
    fn recall_has_no_more_fields_than_are_known() {
        let json = serde_json::json!({
            "status": "SERVING",
            "count": 4,
            "build_progress": 100.0,
            "recall": {"estimate_at_10": 0.998, "width_at_10": 1.5, "width_at_100": 1.0, "bounded": false},
            "tending": true,
        });
        let status: IndexStatus = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(status.recall.unwrap().estimate_at_100, None);
        assert_eq!(serde_json::to_value(status).unwrap(), json);
    }

    #[test]
    fn memory_has_the_parts_that_take_any() {
        let json = serde_json::json!({
            "status": "SERVING",
            "count": 4,
            "build_progress": 100.0,
            "memory": {"graph": 10, "codes": 20, "filter_values": 3, "mapped": 40},
            "dead_entries": 2,
            "maintenance_debt": 7,
        });
        let status: IndexStatus = serde_json::from_value(json.clone()).unwrap();
        let memory = status.memory.unwrap();
        assert_eq!((memory.codes, memory.vectors, memory.mapped), (20, 0, 40));
        assert_eq!(serde_json::to_value(status).unwrap(), json);
    }

    #[test]
    fn an_earlier_index_of_the_name_is_not_the_one_that_was_made() {
        let version = |second| {
            let time = uuid::Timestamp::from_unix(uuid::NoContext, second, 0);
            Uuid::new_v1(time, &[1; 6])
        };
        let status = |served, status| IndexStatus {
            status,
            count: 0,
            build_progress: 100.0,
            rows_without_room: 0,
            changes_waiting: 0,
            lag_seconds: None,
            recall: None,
            tending: false,
            version: served,
            memory: None,
            dead_entries: 0,
            maintenance_debt: 0,
        };
        for (served, serves) in [(1, false), (2, true), (3, true)] {
            let status = status(Some(version(served)), IndexState::Serving);
            assert_eq!(status.serves(version(2)), serves, "{served}");
        }
        assert!(status(None, IndexState::Serving).serves(version(2)));
        assert!(!status(Some(version(2)), IndexState::Bootstrapping).serves(version(2)));
    }
}
