//! The values of a request, in the order of the statement's bind markers.

use cql::error::CqlError;
use cql::wire::MarkerValues;

use crate::statement::{BoundValue, ColumnSpec};

/// Puts the values in the order of the markers. `markers` are the names as written (`None` for
/// `?`), and `variables` are the plan's columns for them. A `?` has the name of its column.
///
/// # Errors
/// If there are more or fewer values than markers, or if a name has no value.
pub(super) fn in_order(
    markers: &[Option<String>],
    variables: &[ColumnSpec],
    values: MarkerValues,
) -> Result<Vec<BoundValue>, CqlError> {
    let name = |position: usize| {
        let written = markers.get(position)?.as_deref();
        written.or_else(|| Some(variables.get(position)?.name.as_ref()))
    };
    values.in_order(markers.len(), name)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use value::CqlType;

    use super::*;

    fn variable(name: &str) -> ColumnSpec {
        ColumnSpec {
            keyspace: "k".into(),
            table: "t".into(),
            name: name.into(),
            cql_type: CqlType::Int,
        }
    }

    fn value(byte: u8) -> BoundValue {
        BoundValue::Value(Bytes::copy_from_slice(&[byte]))
    }

    #[test]
    fn positional_values_must_be_as_many_as_markers() {
        let markers = [None, None];
        let variables = [variable("a"), variable("b")];
        let two = MarkerValues::Positional(vec![BoundValue::Null, BoundValue::Unset]);
        assert_eq!(
            in_order(&markers, &variables, two),
            Ok(vec![BoundValue::Null, BoundValue::Unset])
        );
        for count in [0, 1, 3] {
            let values = MarkerValues::Positional(vec![value(1); count]);
            let error = in_order(&markers, &variables, values).unwrap_err();
            assert!(error.message.contains("Invalid amount of bind variables"));
        }
    }

    #[test]
    fn named_values_find_markers_and_columns() {
        let markers = [Some("x".into()), None, Some("x".into())];
        let variables = [variable("x"), variable("b"), variable("x")];
        let values = MarkerValues::Named(vec![("b".into(), value(1)), ("x".into(), value(2))]);
        assert_eq!(
            in_order(&markers, &variables, values),
            Ok(vec![value(2), value(1), value(2)])
        );
        let values = MarkerValues::Named(vec![("x".into(), value(2))]);
        let error = in_order(&markers, &variables, values).unwrap_err();
        assert!(error.message.contains("'b'"), "{error}");
    }
}
