//! Functions of one number, which give a number of the same type, with Java's rules.

use bigdecimal::BigDecimal;
use bytes::Bytes;
use cql::error::CqlError;
use num_bigint::{BigInt, Sign};
use value::{CqlType, Value};

use super::exponent::TranscendentalFunction;
use super::{exponent, numbers};
use crate::statement_clock::StatementClock;

/// The most digits after the decimal point of which a decimal is rounded, and the most zeros that
/// are written out before it.
const ROUNDED_DIGITS_MAX: i64 = 40_000;

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumericFunction {
    Abs,
    Exp,
    Log,
    Log10,
    Round,
}

/// Computes a function of a serialised number, which is not empty.
///
/// # Errors
/// As [`exponent`], and decimals that are too long to be rounded.
pub(super) fn apply(
    function: NumericFunction,
    cql_type: &CqlType,
    arguments: &[&[u8]],
    clock: &StatementClock,
) -> Result<Bytes, CqlError> {
    let value =
        Value::deserialize(cql_type, arguments[0]).map_err(|error| CqlError::invalid(error.0))?;
    let computed = match function {
        NumericFunction::Abs if is_negative(&value) => numbers::negate(value),
        NumericFunction::Abs => value,
        NumericFunction::Round => round(value)?,
        NumericFunction::Exp => exponential(TranscendentalFunction::Exp, value, f64::exp, clock)?,
        NumericFunction::Log => exponential(TranscendentalFunction::Log, value, f64::ln, clock)?,
        NumericFunction::Log10 => {
            exponential(TranscendentalFunction::Log10, value, f64::log10, clock)?
        }
    };
    Ok(computed.serialize())
}

fn is_negative(value: &Value) -> bool {
    match value {
        Value::Float(number) => number.is_sign_negative(),
        Value::Double(number) => number.is_sign_negative(),
        Value::Varint(number) => number.sign() == Sign::Minus,
        Value::Decimal(number) => number.sign() == Sign::Minus,
        other => numbers::long(other) < 0,
    }
}

/// The function of the number as a double, or of a varint or decimal as it is. Integers are cut
/// after the point and become the nearest bound if they are out of range.
fn exponential(
    curve: TranscendentalFunction,
    value: Value,
    function: fn(f64) -> f64,
    clock: &StatementClock,
) -> Result<Value, CqlError> {
    let result = function(numbers::double(&value));
    Ok(match value {
        Value::Varint(number) => Value::Varint(exponent::of_varint(curve, &number, clock)?),
        Value::Decimal(number) => Value::Decimal(exponent::of_decimal(curve, &number, clock)?),
        Value::Tinyint(_) => Value::Tinyint(result as i32 as i8),
        Value::Smallint(_) => Value::Smallint(result as i32 as i16),
        Value::Int(_) => Value::Int(result as i32),
        Value::Bigint(_) => Value::Bigint(result as i64),
        Value::Counter(_) => Value::Counter(result as i64),
        Value::Float(_) => Value::Float(result as f32),
        Value::Double(_) => Value::Double(result),
        other => other,
    })
}

/// The nearest whole number; of two equally near ones the greater of floats and doubles, and the
/// one farther from zero of decimals.
fn round(value: Value) -> Result<Value, CqlError> {
    let half_up = |number: f64| {
        let floor = number.floor();
        if number - floor >= 0.5 {
            floor + 1.0
        } else {
            floor
        }
    };
    Ok(match value {
        Value::Float(number) => Value::Float(half_up(f64::from(number)) as i32 as f32),
        Value::Double(number) => Value::Double(half_up(number) as i64 as f64),
        Value::Decimal(number) => Value::Decimal(rounded(&number)?),
        whole => whole,
    })
}

fn rounded(number: &BigDecimal) -> Result<BigDecimal, CqlError> {
    let (unscaled, scale) = number.as_bigint_and_exponent();
    if unscaled.sign() == Sign::NoSign {
        return Ok(BigDecimal::new(unscaled, 0));
    }
    let digits = unscaled.magnitude().to_string().len() as i64;
    if scale > digits {
        return Ok(BigDecimal::new(BigInt::ZERO, 0));
    }
    if scale < -ROUNDED_DIGITS_MAX {
        return Err(CqlError::invalid(format!(
            "a decimal with more than {ROUNDED_DIGITS_MAX} zeros before its point is not rounded"
        )));
    }
    let power = BigInt::from(10).pow(scale.unsigned_abs() as u32);
    if scale <= 0 {
        return Ok(BigDecimal::new(unscaled * power, 0));
    }
    let rest: BigInt = (&unscaled % &power) * 2;
    let mut whole = &unscaled / &power;
    if rest.magnitude() >= power.magnitude() {
        match unscaled.sign() {
            Sign::Minus => whole -= 1,
            _ => whole += 1,
        }
    }
    Ok(BigDecimal::new(whole, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: NumericFunction, cql_type: &CqlType, value: &Value) -> Value {
        let clock = StatementClock::of_none();
        let bytes = apply(function, cql_type, &[&value.serialize()], &clock).unwrap();
        Value::deserialize(cql_type, &bytes).unwrap()
    }

    #[test]
    fn numbers_are_rounded_half_up() {
        for (number, rounded) in [(2.5, 3.0), (-3.5, -3.0), (0.499_999_999_999_999_94, 0.0)] {
            let (number, rounded) = (Value::Double(number), Value::Double(rounded));
            assert_eq!(
                of(NumericFunction::Round, &CqlType::Double, &number),
                rounded
            );
        }
        for (number, rounded) in [
            ("10.25", "10"),
            ("-0.5", "-1"),
            ("1E+3", "1000"),
            ("1E-9", "0"),
        ] {
            let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
            assert_eq!(
                of(NumericFunction::Round, &CqlType::Decimal, &decimal(number)),
                decimal(rounded)
            );
        }
        let huge = Value::Decimal("1E+2000000000".parse().unwrap()).serialize();
        let clock = StatementClock::of_none();
        assert!(apply(NumericFunction::Round, &CqlType::Decimal, &[&huge], &clock).is_err());
    }

    #[test]
    fn integers_are_cut() {
        assert_eq!(
            of(NumericFunction::Log, &CqlType::Bigint, &Value::Bigint(1000)),
            Value::Bigint(6)
        );
        assert_eq!(
            of(NumericFunction::Log, &CqlType::Int, &Value::Int(-7)),
            Value::Int(0)
        );
        assert_eq!(
            of(NumericFunction::Abs, &CqlType::Int, &Value::Int(i32::MIN)),
            Value::Int(i32::MIN)
        );
    }
}
