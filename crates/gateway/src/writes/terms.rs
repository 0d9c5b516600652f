//! The values of terms in a key.

use bytes::Bytes;
use cql::ast::data_type::no_user_types;
use cql::ast::{FunctionCall, Term};
use cql::error::CqlError;
use cql::wire::BoundValue;
use value::{CqlType, Literal, Value, from_literal, timeuuid};

use super::plan::UnplannableWrite;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// The value of a `date` that represents 1970-01-01.
const EPOCH_DAY: i64 = 1 << 31;

/// The serialised value of a term for a key column of type `cql_type`. `bound` are the values of
/// the bind markers.
///
/// # Errors
/// [`UnplannableWrite::Refused`] if Cassandra refuses such a key (null, or no value), and
/// [`UnplannableWrite::Unreadable`] if the gateway cannot know the value.
pub(super) fn evaluate(
    term: &Term,
    cql_type: &CqlType,
    bound: &[BoundValue],
) -> Result<Bytes, UnplannableWrite> {
    match term {
        Term::Marker(marker) => marker_value(usize::from(marker.index), bound),
        Term::Null => Err(UnplannableWrite::Refused),
        Term::Literal(literal) => from_literal(cql_type, literal)
            .map_err(|error| UnplannableWrite::Unreadable(CqlError::invalid(error.0))),
        Term::TypeHint { data_type, term } => match data_type.resolve(&no_user_types) {
            Ok(cql_type) => evaluate(term, &cql_type, bound),
            Err(_) => Err(unreadable(format!(
                "a hint of a user type cannot be in a key of type {cql_type}"
            ))),
        },
        Term::Function(call) => converted(call).map(|value| value.serialize()),
        Term::Tuple(terms) if terms.len() == 1 && !matches!(cql_type, CqlType::Tuple(_)) => {
            evaluate(&terms[0], cql_type, bound)
        }
        Term::List(_) | Term::Set(_) | Term::Map(_) | Term::UserType(_) | Term::Tuple(_) => Err(
            unreadable(format!("a collection cannot be a key of type {cql_type}")),
        ),
    }
}

/// The value that is bound to a marker.
pub(super) fn marker_value(index: usize, bound: &[BoundValue]) -> Result<Bytes, UnplannableWrite> {
    match bound.get(index) {
        Some(BoundValue::Value(value)) => Ok(value.clone()),
        Some(BoundValue::Null | BoundValue::Unset) | None => Err(UnplannableWrite::Refused),
    }
}

/// The value of a function that converts one time into another. No other functions with arguments
/// are evaluated here.
fn converted(call: &FunctionCall<Term>) -> Result<Value, UnplannableWrite> {
    let unknown = || {
        unreadable(format!(
            "the function {} in a key of a table with a vector index is not supported: bind its value instead",
            call.name
        ))
    };
    let [argument] = call.arguments.as_slice() else {
        return Err(unknown());
    };
    let name = call.name.to_ascii_lowercase().replace('_', "");
    let millis = || match time(argument)? {
        Value::Timeuuid(uuid) => Some(timeuuid::unix_millis(&uuid)),
        Value::Timestamp(millis) => Some(millis),
        Value::Date(day) => Some((i64::from(day) - EPOCH_DAY) * MILLIS_PER_DAY),
        _ => None,
    };
    let value = match name.as_str() {
        "totimestamp" => millis().map(Value::Timestamp),
        "tounixtimestamp" => millis().map(Value::Bigint),
        "todate" => millis()
            .and_then(|millis| u32::try_from(millis.div_euclid(MILLIS_PER_DAY) + EPOCH_DAY).ok())
            .map(Value::Date),
        _ => None,
    };
    value.ok_or_else(unknown)
}

/// The value of a constant whose type is certain, or of a conversion of one; `None` for any other
/// term.
fn time(term: &Term) -> Option<Value> {
    match term.without_parentheses() {
        Term::Literal(Literal::Uuid(uuid)) => Some(Value::Timeuuid(*uuid)),
        Term::TypeHint { data_type, term } => {
            let cql_type = data_type.resolve(&no_user_types).ok()?;
            let value = evaluate(term, &cql_type, &[]).ok()?;
            Value::deserialize(&cql_type, &value).ok()
        }
        Term::Function(call) => converted(call).ok(),
        _ => None,
    }
}

/// The error for a key that the gateway cannot know, with its reason.
pub(super) fn unreadable(message: impl Into<String>) -> UnplannableWrite {
    UnplannableWrite::Unreadable(CqlError::invalid(message))
}

#[cfg(test)]
mod tests {
    use cql::ast::{InsertValues, Statement};
    use cql::parser::parse_statement;

    use super::*;

    fn value(
        term: &str,
        cql_type: &CqlType,
        bound: &[BoundValue],
    ) -> Result<Bytes, UnplannableWrite> {
        let text = format!("INSERT INTO t (a) VALUES ({term})");
        let Statement::Insert(insert) = parse_statement(&text).unwrap().statement else {
            panic!("{text}");
        };
        let InsertValues::Columns { terms, .. } = insert.values else {
            panic!("{text}");
        };
        evaluate(&terms[0], cql_type, bound)
    }

    fn int(number: i32) -> Bytes {
        Value::Int(number).serialize()
    }

    #[test]
    fn literals_markers_and_hints_have_their_values() {
        let bound = [BoundValue::Value(int(5))];
        assert_eq!(value("7", &CqlType::Int, &bound), Ok(int(7)));
        assert_eq!(value("?", &CqlType::Int, &bound), Ok(int(5)));
        assert_eq!(value("(int)9", &CqlType::Int, &bound), Ok(int(9)));
        assert_eq!(value("((9))", &CqlType::Int, &bound), Ok(int(9)));
        assert_eq!(value("(?)", &CqlType::Int, &bound), Ok(int(5)));
        assert_eq!(
            value("'x'", &CqlType::Text, &bound),
            Ok(Bytes::from_static(b"x"))
        );
    }

    #[test]
    fn conversions_of_times_are_known() {
        let uuid = "(timeuuid)d2177dd0-eaa2-11de-a572-001b779c76e3";
        for (term, expected) in [
            ("toTimestamp(U)", Value::Timestamp(1_261_009_589_805)),
            ("to_timestamp(U)", Value::Timestamp(1_261_009_589_805)),
            (
                "toUnixTimestamp(toTimestamp(U))",
                Value::Bigint(1_261_009_589_805),
            ),
            ("toDate(U)", Value::Date((1 << 31) + 14_595)),
            (
                "toTimestamp(toDate(U))",
                Value::Timestamp(14_595 * MILLIS_PER_DAY),
            ),
            ("toDate((timestamp)-1)", Value::Date((1 << 31) - 1)),
        ] {
            let term = term.replace('U', uuid);
            // `toUnixTimestamp` contains the letter too.
            let term = term.replace(&format!("to{uuid}nix"), "toUnix");
            assert_eq!(
                value(&term, &CqlType::Timestamp, &[]),
                Ok(expected.serialize()),
                "{term}"
            );
        }
    }

    #[test]
    fn a_missing_value_differs_from_an_unreadable_one() {
        for bound in [vec![], vec![BoundValue::Null], vec![BoundValue::Unset]] {
            assert_eq!(
                value("?", &CqlType::Int, &bound),
                Err(UnplannableWrite::Refused)
            );
        }
        assert_eq!(
            value("null", &CqlType::Int, &[]),
            Err(UnplannableWrite::Refused)
        );
        for term in ["f(1)", "toDate()", "toDate(1)", "'x'", "[1]", "toDate(?)"] {
            let bound = [BoundValue::Value(int(1))];
            assert!(
                matches!(
                    value(term, &CqlType::Int, &bound),
                    Err(UnplannableWrite::Unreadable(_))
                ),
                "{term}"
            );
        }
    }
}
