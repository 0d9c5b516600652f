//! Decodes the columns that an index is on from `options['target']` (contract, section 3.2).

use serde::Deserialize;

/// The columns that an index is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The vector column.
    pub column: String,
    /// The partition key of a local index; empty for a global one.
    pub local_key: Vec<String>,
    /// Further columns by which a search may be filtered.
    pub filter_columns: Vec<String>,
}

#[derive(Deserialize)]
struct Json {
    tc: String,
    /// The partition key of a local index; before ScyllaDB 2026.1.1 the partition key of the table.
    /// Without it the index is global.
    #[serde(default)]
    pk: Vec<String>,
    #[serde(default)]
    fc: Vec<String>,
    /// The former name of `fc`.
    #[serde(default)]
    ck: Vec<String>,
}

impl Target {
    /// Decodes a target: the name of the vector column, or a JSON object.
    pub fn decode(target: &str) -> Target {
        match serde_json::from_str::<Json>(target) {
            Ok(json) => Target {
                column: json.tc,
                local_key: json.pk,
                filter_columns: [json.fc, json.ck].concat(),
            },
            // A name may look like anything, even like JSON.
            Err(_) => Target {
                column: target.to_owned(),
                local_key: Vec::new(),
                filter_columns: Vec::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(column: &str, local_key: &[&str], filter_columns: &[&str]) -> Target {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Target {
            column: column.to_owned(),
            local_key: owned(local_key),
            filter_columns: owned(filter_columns),
        }
    }

    #[test]
    fn every_form() {
        assert_eq!(Target::decode("v"), target("v", &[], &[]));
        assert_eq!(
            Target::decode(r#"{"tc":"v","fc":["f1","f2"]}"#),
            target("v", &[], &["f1", "f2"])
        );
        assert_eq!(
            Target::decode(r#"{"tc":"v","pk":["p1","p2"]}"#),
            target("v", &["p1", "p2"], &[])
        );
        assert_eq!(
            Target::decode(r#"{"tc":"v","pk":["p"],"fc":["f"]}"#),
            target("v", &["p"], &["f"])
        );
        assert_eq!(
            Target::decode(r#"{"tc":"v","pk":["p"],"ck":["f"]}"#),
            target("v", &["p"], &["f"])
        );
        assert_eq!(Target::decode("{odd name}"), target("{odd name}", &[], &[]));
    }
}
