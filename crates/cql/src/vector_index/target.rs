//! What is indexed: `ON t (v)`.

use std::collections::HashSet;

use crate::ast::IndexTarget;
use crate::error::CqlError;
use crate::types::CqlType;

/// The one target of a global index without columns to filter by.
///
/// # Errors
/// If a column is named twice, or the list is of another form.
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

/// What is known of a column that is to be indexed.
#[derive(Clone, Debug)]
pub struct TargetColumn {
    /// Its type, as `system_schema` writes it.
    pub type_text: String,
    /// Its type; `None` if it is not known here, such as a user-defined one.
    pub cql_type: Option<CqlType>,
    /// What the column is if it is no regular one: `static`, `PRIMARY KEY`.
    pub irregular: Option<&'static str>,
}

/// Checks that a target is a column of vectors of floats; gives the column's name and the number of dimensions.
///
/// `column` tells of a column by its name.
///
/// # Errors
/// If it is no such column.
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
