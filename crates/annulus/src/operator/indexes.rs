//! The indexes of a service, as people read them.

use store_api::types::{IndexInfo, IndexMemory, IndexState, IndexStatus};

use super::text_table::aligned;

const HEADING: [&str; 6] = ["INDEX", "STATE", "ROWS", "BUILT", "BEHIND", "WAITING"];

/// A line for each index: its state, its rows, how much of it is built, how far it lags the writes
/// of its table, and the changes that wait for its graph.
pub fn table(indexes: &[IndexInfo]) -> String {
    let lines: Vec<_> = indexes.iter().map(line).collect();
    aligned(HEADING, &lines)
}

const MEMORY_HEADING: [&str; 12] = [
    "INDEX", "GRAPH", "CODES", "VECTORS", "TEXT", "KEYS", "FILTERS", "OTHER", "MAPPED", "DEAD",
    "FRESH", "DEBT",
];

/// A line for each index whose memory is known: its memory by part, its dead and its fresh entries,
/// and those that work in the background has still to look at. Empty if there is none.
pub fn memory_table(indexes: &[IndexInfo]) -> String {
    let lines: Vec<_> = indexes.iter().filter_map(memory_line).collect();
    match lines.is_empty() {
        true => String::new(),
        false => aligned(MEMORY_HEADING, &lines),
    }
}

fn memory_line(info: &IndexInfo) -> Option<[String; 12]> {
    let status = info.status.as_ref()?;
    let IndexMemory {
        graph,
        codes,
        vectors,
        text,
        keys,
        filter_values,
        fresh,
        other,
        mapped,
    } = status.memory?;
    Some([
        format!("{}.{}", info.keyspace, info.index),
        in_units(graph),
        in_units(codes),
        in_units(vectors),
        in_units(text),
        in_units(keys),
        in_units(filter_values),
        in_units(other + fresh),
        in_units(mapped),
        status.dead_entries.to_string(),
        status.changes_waiting.to_string(),
        status.maintenance_debt.to_string(),
    ])
}

/// A number of bytes, in the largest unit of which there is one.
fn in_units(bytes: usize) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.iter().find(|(_, bits)| bytes >> bits > 0);
    match unit {
        Some((unit, bits)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << bits) as f64),
        None => format!("{bytes} B"),
    }
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

    fn info(index: &str, status: &str) -> IndexInfo {
        let json = format!(
            r#"{{"keyspace": "ks", "index": "{index}",
                "options": {{"type": "fulltext", "analyzer": "standard", "positions": true}}{status}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn memory_is_shown_by_part() {
        let here = r#", "status": "SERVING", "count": 12, "changes_waiting": 3, "dead_entries": 5,
            "maintenance_debt": 7, "memory": {"graph": 1536, "codes": 100, "text": 3145728,
            "fresh": 1, "other": 9, "mapped": 2147483648}"#;
        let unknown = r#", "status": "SERVING", "count": 12"#;
        assert_eq!(
            memory_table(&[info("i", here), info("old", unknown), info("theirs", "")]),
            "INDEX  GRAPH    CODES  VECTORS  TEXT     KEYS  FILTERS  OTHER  MAPPED   DEAD  FRESH  DEBT\n\
             ks.i   1.5 KiB  100 B  0 B      3.0 MiB  0 B   0 B      10 B   2.0 GiB  5     3      7\n"
        );
        assert_eq!(memory_table(&[info("theirs", "")]), "");
    }

    #[test]
    fn a_known_lag_is_shown() {
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
