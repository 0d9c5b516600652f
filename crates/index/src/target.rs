//! The columns that an index is on: the list in parentheses of `ON t (v)`, and the option `target`
//! by which `system_schema.indexes` keeps it (contract, section 3.2).

use std::collections::HashSet;

use cql::ast::IndexTarget;
use cql::error::CqlError;
use serde::Deserialize;
use value::CqlType;

/// Returns the one target of the list. The lists of local indexes and of indexes with filtering
/// columns are refused.
///
/// # Errors
/// If a column is named twice, or the list is not one target.
pub fn single_target(targets: &[IndexTarget]) -> Result<IndexTarget, CqlError> {
    check_duplicates(targets)?;
    match targets {
        [IndexTarget::LocalKey(_), ..] => Err(local_form()),
        [target] => Ok(target.clone()),
        [] => Err(CqlError::invalid("An index needs a column to index")),
        _ => Err(CqlError::invalid(
            "Vector indexes with filtering columns are not supported yet: name the vector column \
             alone",
        )),
    }
}

/// A column that is to be indexed, as the caller knows it.
#[derive(Clone, Debug)]
pub struct TargetColumn {
    /// The type as `system_schema` writes it.
    pub type_text: String,
    /// The type as [`CqlType`]; `None` for a type that [`CqlType`] doesn't have, such as a user
    /// type.
    pub cql_type: Option<CqlType>,
    /// The kind of a column that is not regular (`static`, `PRIMARY KEY`); `None` for a regular
    /// one.
    pub irregular: Option<&'static str>,
}

/// Checks that a target is a regular column of vectors of floats. Returns the column's name and the
/// number of dimensions.
///
/// `is_sai` says whether the index class is Cassandra's `StorageAttachedIndex`. `column` finds a
/// column of the table by its name.
///
/// # Errors
/// If the target is no such column.
pub fn check_column(
    target: &IndexTarget,
    is_sai: bool,
    column: impl FnOnce(&str) -> Option<TargetColumn>,
) -> Result<(&str, u16), CqlError> {
    let (IndexTarget::Column(name) | IndexTarget::Collection { column: name, .. }) = target else {
        return Err(local_form());
    };
    let TargetColumn {
        type_text,
        cql_type,
        irregular,
    } = column(name).ok_or_else(|| {
        CqlError::invalid(format!("No column definition found for column {name}"))
    })?;
    if is_sai && !matches!(cql_type, Some(CqlType::Vector { .. })) {
        return Err(CqlError::invalid(format!(
            "StorageAttachedIndex is only supported on columns of vectors: column {name} is \
             of type {type_text}"
        )));
    }
    let dimensions = cql_type.and_then(|cql_type| cql_type.float_vector_dimensions());
    let (IndexTarget::Column(_), Some(dimensions)) = (target, dimensions) else {
        return Err(CqlError::invalid(format!(
            "Vector indexes are only supported on columns of vectors of floats (column {name} \
             is of type {type_text})"
        )));
    };
    if let Some(kind) = irregular {
        return Err(CqlError::invalid(format!(
            "Vector indexes are not supported on {kind} columns (column {name})"
        )));
    }
    Ok((name, dimensions))
}

fn local_form() -> CqlError {
    CqlError::invalid(
        "Local vector indexes are not supported yet: name the vector column alone, without the \
         partition key before it",
    )
}

fn check_duplicates(targets: &[IndexTarget]) -> Result<(), CqlError> {
    let mut seen = HashSet::new();
    for target in targets {
        let columns = match target {
            IndexTarget::Column(column) | IndexTarget::Collection { column, .. } => {
                std::slice::from_ref(column)
            }
            IndexTarget::LocalKey(columns) => {
                let mut seen = HashSet::new();
                if let Some(column) = columns.iter().find(|column| !seen.insert(*column)) {
                    return Err(CqlError::invalid(format!(
                        "Duplicate column definition in local vector index: {column}"
                    )));
                }
                columns.as_slice()
            }
        };
        for column in columns {
            if !seen.insert(column) {
                return Err(CqlError::invalid(format!(
                    "Duplicate column {column} in index target list"
                )));
            }
        }
    }
    Ok(())
}

/// The columns that an index is on, as the schema keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTarget {
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

impl StoredTarget {
    /// Decodes a target: the name of the vector column, or a JSON object.
    pub fn decode(target: &str) -> StoredTarget {
        match serde_json::from_str::<Json>(target) {
            Ok(json) => StoredTarget {
                column: json.tc,
                local_key: json.pk,
                filter_columns: [json.fc, json.ck].concat(),
            },
            // A name may look like anything, even like JSON.
            Err(_) => StoredTarget {
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

    fn target(column: &str, local_key: &[&str], filter_columns: &[&str]) -> StoredTarget {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        StoredTarget {
            column: column.to_owned(),
            local_key: owned(local_key),
            filter_columns: owned(filter_columns),
        }
    }

    #[test]
    fn every_form() {
        assert_eq!(StoredTarget::decode("v"), target("v", &[], &[]));
        assert_eq!(
            StoredTarget::decode(r#"{"tc":"v","fc":["f1","f2"]}"#),
            target("v", &[], &["f1", "f2"])
        );
        assert_eq!(
            StoredTarget::decode(r#"{"tc":"v","pk":["p1","p2"]}"#),
            target("v", &["p1", "p2"], &[])
        );
        assert_eq!(
            StoredTarget::decode(r#"{"tc":"v","pk":["p"],"fc":["f"]}"#),
            target("v", &["p"], &["f"])
        );
        assert_eq!(
            StoredTarget::decode(r#"{"tc":"v","pk":["p"],"ck":["f"]}"#),
            target("v", &["p"], &["f"])
        );
        assert_eq!(
            StoredTarget::decode("{odd name}"),
            target("{odd name}", &[], &[])
        );
    }
}
