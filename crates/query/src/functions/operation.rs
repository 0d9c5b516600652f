//! Evaluation of operators: on numbers, texts that are put together, and times moved by durations.

use bytes::Bytes;
use cql::ast::ArithmeticOperation;
use cql::error::{CqlError, ErrorKind};
use value::{CqlType, Value, shift_date, shift_timestamp};

use super::numbers;

/// The longest text that `+` makes, in bytes. One statement can append a text to itself many times.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Computes the result of an operator on two values, which are valid for their types; `None` for
/// null.
///
/// # Errors
/// A [`ErrorKind::FunctionFailure`]: see [`numbers::compute`], and times that are out of range or
/// moved by less than they tell.
pub(super) fn operate(
    operation: ArithmeticOperation,
    types: &[CqlType],
    result: &CqlType,
    arguments: &[Option<Bytes>],
) -> Result<Option<Bytes>, CqlError> {
    let ([Some(left), Some(right)], [left_type, right_type]) = (arguments, types) else {
        return Ok(None);
    };
    let failed = |why: String| {
        let symbol = operation.symbol();
        CqlError::new(
            ErrorKind::FunctionFailure {
                keyspace: "system".to_owned(),
                function: operation.function().to_owned(),
                argument_types: types.iter().map(CqlType::to_string).collect(),
            },
            format!("the operation '{left_type} {symbol} {right_type}' failed: {why}"),
        )
    };
    if matches!(result, CqlType::Text | CqlType::Ascii) {
        return match left.len() + right.len() {
            0..=TEXT_BYTES_MAX => Ok(Some([&left[..], right].concat().into())),
            length => Err(failed(format!(
                "a text of {length} bytes is longer than the {TEXT_BYTES_MAX} allowed"
            ))),
        };
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
            let sign = if operation == ArithmeticOperation::Subtract {
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
        .map_err(failed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_refused() {
        let add = |left: usize, right: usize| {
            let texts = [left, right].map(|length| Some(Bytes::from(vec![b'x'; length])));
            operate(
                ArithmeticOperation::Add,
                &[CqlType::Text, CqlType::Text],
                &CqlType::Text,
                &texts,
            )
        };
        let longest = add(TEXT_BYTES_MAX - 1, 1).unwrap().unwrap();
        assert_eq!(longest.len(), TEXT_BYTES_MAX);
        let message = add(TEXT_BYTES_MAX, 1).unwrap_err().message;
        assert!(
            message.contains("is longer than the 16777216 allowed"),
            "{message}"
        );
    }
}
