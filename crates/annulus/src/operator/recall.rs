//! The recall of an index, and whether it is tended, as people read them.

use std::fmt::Write as _;

use store_api::types::{IndexInfo, IndexRecall};

/// A line on the recall of an index and one on its tending, as far as there is anything to say.
pub fn notes(info: &IndexInfo) -> String {
    let mut notes = String::new();
    let Some(status) = &info.status else {
        return notes;
    };
    let name = format!("{}.{}", info.keyspace, info.index);
    if let Some(recall) = &status.recall {
        let _ = writeln!(notes, "{name}: {}", line(recall));
    }
    if status.tending {
        let _ = writeln!(notes, "{name}: its graph is brought up after changes");
    }
    notes
}

fn line(recall: &IndexRecall) -> String {
    let found = match (recall.estimate_at_10, recall.estimate_at_100) {
        (Some(ten), Some(hundred)) => {
            format!("about {ten:.3} of the 10 nearest, {hundred:.3} of the 100 (samples)")
        }
        (Some(ten), None) => format!("about {ten:.3} of the 10 nearest (samples)"),
        (None, Some(hundred)) => format!("about {hundred:.3} of the 100 nearest (samples)"),
        (None, None) => "not known yet".to_owned(),
    };
    let (few, many) = (recall.width_at_10, recall.width_at_100);
    let widths = match few == many {
        true => format!("{few}"),
        false => format!("{few} and {many}"),
    };
    let widths = match (few, many) {
        (1.0, 1.0) => "walks as wide as by default".to_owned(),
        _ => format!("walks {widths} times as wide as by default"),
    };
    let remedy = match recall.bounded {
        true => {
            "; the widest walks miss the aim of 0.99: search with `exact`, or give the index a \
             larger search_beam_width"
        }
        false => "",
    };
    format!("recall {found}; {widths}{remedy}")
}

#[cfg(test)]
mod tests {
    use store_api::types::IndexStatus;

    use super::*;

    fn notes_of(status: &str) -> String {
        let status = format!(r#"{{"status": "SERVING", "count": 1{status}}}"#);
        let status: IndexStatus = serde_json::from_str(&status).unwrap();
        let info = serde_json::json!({
            "keyspace": "ks",
            "index": "i",
            "options": {"type": "fulltext", "analyzer": "standard", "positions": true},
        });
        let info: IndexInfo = serde_json::from_value(info).unwrap();
        notes(&IndexInfo {
            status: Some(status),
            ..info
        })
    }

    #[test]
    fn recall_is_shown_as_far_as_it_is_known() {
        assert_eq!(notes_of(""), "");
        let good = r#", "recall": {"estimate_at_10": 0.998, "width_at_10": 1.5,
            "estimate_at_100": 0.9951, "width_at_100": 1.5, "bounded": false}"#;
        assert_eq!(
            notes_of(good),
            "ks.i: recall about 0.998 of the 10 nearest, 0.995 of the 100 (samples); \
             walks 1.5 times as wide as by default\n"
        );
        let opened = r#", "tending": true, "recall":
            {"width_at_10": 1, "width_at_100": 2, "bounded": false}"#;
        assert_eq!(
            notes_of(opened),
            "ks.i: recall not known yet; walks 1 and 2 times as wide as by default\n\
             ks.i: its graph is brought up after changes\n"
        );
    }

    #[test]
    fn a_bound_is_shown_with_its_remedy() {
        let bounded = r#", "recall": {"estimate_at_10": 0.81, "width_at_10": 12.0,
            "width_at_100": 12.0, "bounded": true}"#;
        assert_eq!(
            notes_of(bounded),
            "ks.i: recall about 0.810 of the 10 nearest (samples); walks 12 times as wide as by \
             default; the widest walks miss the aim of 0.99: search with `exact`, or give the \
             index a larger search_beam_width\n"
        );
    }
}
