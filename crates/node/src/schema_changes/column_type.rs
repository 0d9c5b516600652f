//! Checks of the types of columns. Which types another type may contain has been checked when the
//! type was resolved ([`cql::ast::data_type`]).

use cql::error::CqlError;
use value::CqlType;

/// Checks the type of a new column.
pub(super) fn check_column_type(name: &str, cql_type: &CqlType) -> Result<(), CqlError> {
    if let CqlType::UserType {
        definition,
        frozen: false,
    } = cql_type
        && definition.field_types.iter().any(CqlType::is_multi_cell)
    {
        return Err(CqlError::invalid(format!(
            "Non-frozen UDTs with nested non-frozen collections are not supported for column {name}"
        )));
    }
    let size = cql_type.check_size(None);
    size.map_err(|error| CqlError::invalid(format!("Type of column {name}: {}", error.0)))
}

/// Checks the type of a column of the primary key.
pub(super) fn check_key_type(name: &str, cql_type: &CqlType) -> Result<(), CqlError> {
    if let CqlType::UserType {
        definition,
        frozen: false,
    } = cql_type
    {
        return Err(CqlError::invalid(format!(
            "Invalid non-frozen user-defined type \"{}.{}\" for PRIMARY KEY column '{name}'",
            definition.keyspace, definition.name
        )));
    }
    if *cql_type == CqlType::Counter {
        return Err(CqlError::invalid(format!(
            "counter type is not supported for PRIMARY KEY column '{name}'"
        )));
    }
    if cql_type.is_multi_cell() {
        return Err(CqlError::invalid(format!(
            "Invalid non-frozen collection type {cql_type} for PRIMARY KEY column '{name}'"
        )));
    }
    if cql_type.holds_durations_even_in_vectors() {
        return Err(CqlError::invalid(format!(
            "duration type is not supported for PRIMARY KEY column '{name}'"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_one_cell_and_can_be_ordered() {
        let refused = |cql_type: CqlType| check_key_type("k", &cql_type).unwrap_err().message;
        let set = CqlType::Set {
            element: Box::new(CqlType::Int),
            frozen: false,
        };
        assert_eq!(
            refused(set.clone()),
            "Invalid non-frozen collection type set<int> for PRIMARY KEY column 'k'"
        );
        assert_eq!(
            refused(CqlType::Tuple(vec![CqlType::Duration])),
            "duration type is not supported for PRIMARY KEY column 'k'"
        );
        assert_eq!(check_key_type("k", &set.frozen()), Ok(()));
    }
}
