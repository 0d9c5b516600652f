//! Which types a column may have.

use cql::error::CqlError;
use cql::types::{CqlType, MAX_VECTOR_DIMENSIONS};

/// Checks the type of a new column.
pub(super) fn check_column_type(name: &str, cql_type: &CqlType) -> Result<(), CqlError> {
    if *cql_type == CqlType::Counter {
        return Err(CqlError::invalid(format!(
            "Counter columns are not supported yet (column {name})"
        )));
    }
    check_nested(cql_type)
}

/// Checks the type of a column of the primary key.
pub(super) fn check_key_type(name: &str, cql_type: &CqlType) -> Result<(), CqlError> {
    if cql_type.is_multi_cell() {
        return Err(CqlError::invalid(format!(
            "Invalid non-frozen collection type {cql_type} for PRIMARY KEY column '{name}'"
        )));
    }
    if holds(cql_type, &CqlType::Duration) {
        return Err(CqlError::invalid(format!(
            "duration type is not supported for PRIMARY KEY column '{name}'"
        )));
    }
    Ok(())
}

/// The types that a type is made of.
fn parts(cql_type: &CqlType) -> Vec<&CqlType> {
    match cql_type {
        CqlType::List { element, .. }
        | CqlType::Set { element, .. }
        | CqlType::Vector { element, .. } => vec![element],
        CqlType::Map { key, value, .. } => vec![key, value],
        CqlType::Tuple(types) => types.iter().collect(),
        _ => Vec::new(),
    }
}

fn holds(cql_type: &CqlType, wanted: &CqlType) -> bool {
    cql_type == wanted || parts(cql_type).into_iter().any(|part| holds(part, wanted))
}

fn check_nested(cql_type: &CqlType) -> Result<(), CqlError> {
    if let CqlType::Vector { dimensions, .. } = cql_type {
        if *dimensions == 0 {
            return Err(CqlError::invalid(
                "Vectors must have a dimension greater than 0",
            ));
        }
        if *dimensions > MAX_VECTOR_DIMENSIONS {
            return Err(CqlError::invalid(format!(
                "Vectors must have a dimension less than or equal to {MAX_VECTOR_DIMENSIONS}"
            )));
        }
    }
    match cql_type {
        CqlType::Set { element, .. } if holds(element, &CqlType::Duration) => {
            return Err(CqlError::invalid(format!(
                "Durations are not allowed inside sets: {cql_type}"
            )));
        }
        CqlType::Map { key, .. } if holds(key, &CqlType::Duration) => {
            return Err(CqlError::invalid(format!(
                "Durations are not allowed as map keys: {cql_type}"
            )));
        }
        _ => {}
    }
    for part in parts(cql_type) {
        if *part == CqlType::Counter {
            return Err(CqlError::invalid(format!(
                "Counters are not allowed inside collections: {cql_type}"
            )));
        }
        if part.is_multi_cell() {
            return Err(CqlError::invalid(format!(
                "Non-frozen collections are not allowed inside collections: {cql_type}"
            )));
        }
        check_nested(part)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(element: CqlType) -> CqlType {
        CqlType::Set {
            element: Box::new(element),
            frozen: false,
        }
    }

    fn vector(dimensions: u16) -> CqlType {
        CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions,
        }
    }

    #[test]
    fn impossible_types_are_refused() {
        let refused = |cql_type: CqlType| check_column_type("c", &cql_type).unwrap_err().message;
        assert_eq!(
            refused(set(CqlType::Duration)),
            "Durations are not allowed inside sets: set<duration>"
        );
        assert_eq!(
            refused(set(CqlType::Counter)),
            "Counters are not allowed inside collections: set<counter>"
        );
        assert_eq!(
            refused(set(set(CqlType::Int))),
            "Non-frozen collections are not allowed inside collections: set<set<int>>"
        );
        assert_eq!(
            refused(vector(0)),
            "Vectors must have a dimension greater than 0"
        );
        assert_eq!(
            refused(vector(16_001)),
            "Vectors must have a dimension less than or equal to 16000"
        );
        assert_eq!(
            refused(CqlType::Counter),
            "Counter columns are not supported yet (column c)"
        );
        assert_eq!(check_column_type("c", &vector(16_000)), Ok(()));
        assert_eq!(
            check_column_type("c", &set(set(CqlType::Int).frozen())),
            Ok(())
        );
    }

    #[test]
    fn keys_are_of_one_cell_and_can_be_ordered() {
        let refused = |cql_type: CqlType| check_key_type("k", &cql_type).unwrap_err().message;
        assert_eq!(
            refused(set(CqlType::Int)),
            "Invalid non-frozen collection type set<int> for PRIMARY KEY column 'k'"
        );
        assert_eq!(
            refused(CqlType::Tuple(vec![CqlType::Duration])),
            "duration type is not supported for PRIMARY KEY column 'k'"
        );
        assert_eq!(check_key_type("k", &set(CqlType::Int).frozen()), Ok(()));
    }
}
