//! The indexes of a service, as people read them.

use store_api::types::{IndexInfo, IndexState, IndexStatus};

use super::text_table::aligned;

const HEADING: [&str; 6] = ["INDEX", "STATE", "ROWS", "BUILT", "BEHIND", "WAITING"];

/// A line for each index: its state, its rows, how much of it is built, how far it lags the writes
/// of its table, and the changes that wait for its graph.
pub fn table(indexes: &[IndexInfo]) -> String {
    let lines: Vec<_> = indexes.iter().map(line).collect();
    aligned(HEADING, &lines)
}

fn line(info: &IndexInfo) -> [String; 6] {
    let name = format!("{}.{}", info.keyspace, info.index);
    let unknown = || "-".to_owned();
    let Some(status) = &info.status else {
        return [name, unknown(), unknown(), unknown(), unknown(), unknown()];
    };
    let IndexStatus {
        status,
        count,
        build_progress,
        changes_waiting,
        lag_seconds,
        ..
    } = status;
    let state = match status {
        IndexState::Initializing => "initializing",
        IndexState::Bootstrapping => "building",
        IndexState::Serving => "serving",
    };
    let behind = lag_seconds.map(|seconds| format!("{seconds:.1} s"));
    [
        name,
        state.to_owned(),
        count.to_string(),
        format!("{build_progress:.0} %"),
        behind.unwrap_or_else(unknown),
        changes_waiting.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_lag_is_shown() {
        let info = |index: &str, status: &str| {
            let json = format!(
                r#"{{"keyspace": "ks", "index": "{index}",
                    "options": {{"type": "fulltext", "analyzer": "standard", "positions": true}}{status}}}"#
            );
            serde_json::from_str::<IndexInfo>(&json).unwrap()
        };
        let here = r#", "status": "SERVING", "count": 12, "build_progress": 100.0,
            "lag_seconds": 1.26, "changes_waiting": 3"#;
        assert_eq!(
            table(&[info("i", here), info("theirs", "")]),
            "INDEX      STATE    ROWS  BUILT  BEHIND  WAITING\n\
             ks.i       serving  12    100 %  1.3 s   3\n\
             ks.theirs  -        -     -      -       -\n"
        );
    }
}
