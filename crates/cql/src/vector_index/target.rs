//! The target of a vector index: the list in parentheses of `ON t (v)`.

use std::collections::HashSet;

use value::CqlType;

use crate::ast::IndexTarget;
use crate::error::CqlError;

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
