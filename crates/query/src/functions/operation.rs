//! Evaluation of operators: on numbers, texts that are put together, and times moved by durations.

use bytes::Bytes;
use cql::ast::Operation;
use cql::error::{CqlError, ErrorKind};
use value::{CqlType, Value, shift_date, shift_timestamp};

use super::numbers;

/// Computes the result of an operator on two values, which are valid for their types; `None` for
/// null.
///
/// # Errors
/// A [`ErrorKind::FunctionFailure`]: see [`numbers::compute`], and times that are out of range or
/// moved by less than they tell.
pub(super) fn operate(
    operation: Operation,
    types: &[CqlType],
    result: &CqlType,
    arguments: &[Option<Bytes>],
) -> Result<Option<Bytes>, CqlError> {
    let ([Some(left), Some(right)], [left_type, right_type]) = (arguments, types) else {
        return Ok(None);
    };
    let is_text = matches!(result, CqlType::Text | CqlType::Ascii);
    if is_text {
        return Ok(Some([&left[..], right].concat().into()));
    }
    let read = |cql_type: &CqlType, bytes: &Bytes| {
        Value::deserialize(cql_type, bytes).map_err(|error| CqlError::invalid(error.0))
    };
    let (left, right) = (read(left_type, left)?, read(right_type, right)?);
    if left == Value::Empty || right == Value::Empty {
        return Ok(None);
    }
    let computed = match &right {
        Value::Duration {
            months,
            days,
            nanoseconds,
        } => {
            let sign = if operation == Operation::Subtract {
                -1
            } else {
                1
            };
            let moves = [i64::from(*months), i64::from(*days), *nanoseconds];
            shifted(&left, moves, sign, &right)
        }
        _ => numbers::compute(operation, result, &left, &right),
    };
    computed
        .map(|value| Some(value.serialize()))
        .map_err(|why| {
            let symbol = operation.symbol();
            CqlError::new(
                ErrorKind::FunctionFailure {
                    keyspace: "system".to_owned(),
                    function: operation.function().to_owned(),
                    argument_types: types.iter().map(CqlType::to_string).collect(),
                },
                format!("the operation '{left_type} {symbol} {right_type}' failed: {why}"),
            )
        })
}

/// A time moved by months, days and nanoseconds, forwards or backwards.
fn shifted(
    time: &Value,
    [months, days, nanoseconds]: [i64; 3],
    sign: i64,
    duration: &Value,
) -> Result<Value, String> {
    let (months, days) = (sign * months, sign * days);
    let too_fine = |precision: &str| {
        format!(
            "The duration must have a {precision} precision. Was: {}",
            duration.to_literal()
        )
    };
    let moved = match time {
        Value::Date(_) if nanoseconds != 0 => return Err(too_fine("day")),
        Value::Date(day) => shift_date(*day, months, days).map(Value::Date),
        Value::Timestamp(_) if nanoseconds % 1_000_000 != 0 => {
            return Err(too_fine("millisecond"));
        }
        Value::Timestamp(millis) => nanoseconds
            .checked_mul(sign)
            .and_then(|nanoseconds| shift_timestamp(*millis, months, days, nanoseconds))
            .map(Value::Timestamp),
        _ => None,
    };
    moved.ok_or_else(|| "the result is out of range".to_owned())
}

/// The number with the other sign; `None` for null.
///
/// # Errors
/// Bytes that are no number, which no valid value has.
pub(super) fn negate(
    cql_type: &CqlType,
    argument: Option<&Bytes>,
) -> Result<Option<Bytes>, CqlError> {
    let Some(bytes) = argument else {
        return Ok(None);
    };
    let value = Value::deserialize(cql_type, bytes).map_err(|error| CqlError::invalid(error.0))?;
    Ok(match value {
        Value::Empty => None,
        number => Some(numbers::negate(number).serialize()),
    })
}
