//! Arithmetic on numbers, with Java's rules: integers wrap around, and decimals are divided to 32
//! digits at least.

use bigdecimal::BigDecimal;
use cql::ast::ArithmeticOperation;
use num_bigint::{BigInt, Sign};
use value::{CqlType, MAX_NUMERIC_BYTES, Value};

/// The most digits by which a decimal is expanded, so that a few bytes can't fill the memory.
const EXPANDED_DIGITS_MAX: i64 = 40_000;

/// The least digits that a quotient of decimals has, before zeros at its end are cut.
const QUOTIENT_DIGITS: i64 = 32;

/// The most digits after the point of a quotient.
const QUOTIENT_SCALE_MAX: i64 = 1_000;

/// The numbers from narrow to wide, as far as the result of an operation depends on it.
fn width(cql_type: &CqlType) -> u8 {
    match cql_type {
        CqlType::Tinyint => 1,
        CqlType::Smallint => 2,
        CqlType::Int | CqlType::Float => 4,
        CqlType::Bigint | CqlType::Counter | CqlType::Double => 8,
        _ => u8::MAX,
    }
}

/// The type of the result of an operation on two numbers.
pub(super) fn result_type(left: &CqlType, right: &CqlType) -> CqlType {
    let is_floating = |cql_type: &CqlType| {
        matches!(
            cql_type,
            CqlType::Float | CqlType::Double | CqlType::Decimal
        )
    };
    let width = width(left).max(width(right));
    match (is_floating(left) || is_floating(right), width) {
        (false, 1) => CqlType::Tinyint,
        (false, 2) => CqlType::Smallint,
        (false, 4) => CqlType::Int,
        (false, 8) => CqlType::Bigint,
        (false, _) => CqlType::Varint,
        (true, 4) => CqlType::Float,
        (true, 8) => CqlType::Double,
        (true, _) => CqlType::Decimal,
    }
}

/// Computes `left operation right`, which is of the type `result`.
///
/// # Errors
/// The reason: a division of integers or decimals by zero, and numbers that are too long.
pub(super) fn compute(
    operation: ArithmeticOperation,
    result: &CqlType,
    left: &Value,
    right: &Value,
) -> Result<Value, String> {
    match result {
        CqlType::Tinyint => whole(operation, left, right).map(|n| Value::Tinyint(n as i8)),
        CqlType::Smallint => whole(operation, left, right).map(|n| Value::Smallint(n as i16)),
        CqlType::Int => whole(operation, left, right).map(|n| Value::Int(n as i32)),
        CqlType::Bigint => whole(operation, left, right).map(Value::Bigint),
        CqlType::Float => {
            let (left, right) = (float(left), float(right));
            Ok(Value::Float(match operation {
                ArithmeticOperation::Add => left + right,
                ArithmeticOperation::Subtract => left - right,
                ArithmeticOperation::Multiply => left * right,
                ArithmeticOperation::Divide => left / right,
                ArithmeticOperation::Modulo => left % right,
            }))
        }
        CqlType::Double => {
            let (left, right) = (double(left), double(right));
            Ok(Value::Double(match operation {
                ArithmeticOperation::Add => left + right,
                ArithmeticOperation::Subtract => left - right,
                ArithmeticOperation::Multiply => left * right,
                ArithmeticOperation::Divide => left / right,
                ArithmeticOperation::Modulo => left % right,
            }))
        }
        CqlType::Varint => varint(operation, &big(left), &big(right)).map(Value::Varint),
        _ => decimal(operation, left, right).map(Value::Decimal),
    }
}

/// The number with the other sign.
pub(super) fn negate(value: Value) -> Value {
    match value {
        Value::Tinyint(number) => Value::Tinyint(number.wrapping_neg()),
        Value::Smallint(number) => Value::Smallint(number.wrapping_neg()),
        Value::Int(number) => Value::Int(number.wrapping_neg()),
        Value::Bigint(number) => Value::Bigint(number.wrapping_neg()),
        Value::Counter(number) => Value::Counter(number.wrapping_neg()),
        Value::Float(number) => Value::Float(-number),
        Value::Double(number) => Value::Double(-number),
        Value::Varint(number) => Value::Varint(-number),
        Value::Decimal(number) => Value::Decimal(-number),
        other => other,
    }
}

/// The result in 64 bits, whose low bits are those of a result in fewer bits.
fn whole(operation: ArithmeticOperation, left: &Value, right: &Value) -> Result<i64, String> {
    let (left, right) = (long(left), long(right));
    Ok(match operation {
        ArithmeticOperation::Add => left.wrapping_add(right),
        ArithmeticOperation::Subtract => left.wrapping_sub(right),
        ArithmeticOperation::Multiply => left.wrapping_mul(right),
        ArithmeticOperation::Divide | ArithmeticOperation::Modulo if right == 0 => {
            return Err("/ by zero".to_owned());
        }
        ArithmeticOperation::Divide => left.wrapping_div(right),
        ArithmeticOperation::Modulo => left.wrapping_rem(right),
    })
}

fn varint(operation: ArithmeticOperation, left: &BigInt, right: &BigInt) -> Result<BigInt, String> {
    let result = match operation {
        ArithmeticOperation::Add => left + right,
        ArithmeticOperation::Subtract => left - right,
        ArithmeticOperation::Multiply => left * right,
        ArithmeticOperation::Divide | ArithmeticOperation::Modulo
            if right.sign() == Sign::NoSign =>
        {
            return Err("BigInteger divide by zero".to_owned());
        }
        ArithmeticOperation::Divide => left / right,
        ArithmeticOperation::Modulo => left % right,
    };
    short_enough(result)
}

/// The number if it is short enough for a value.
fn short_enough(number: BigInt) -> Result<BigInt, String> {
    // A sign bit is added to the bits of the magnitude.
    match number.bits() / 8 < MAX_NUMERIC_BYTES as u64 {
        true => Ok(number),
        false => Err(format!(
            "the result is longer than the {MAX_NUMERIC_BYTES} bytes allowed"
        )),
    }
}

fn decimal(
    operation: ArithmeticOperation,
    left: &Value,
    right: &Value,
) -> Result<BigDecimal, String> {
    let (left, left_scale) = parts(left)?;
    let (right, right_scale) = parts(right)?;
    let (unscaled, scale) = match operation {
        ArithmeticOperation::Multiply => (left * right, left_scale + right_scale),
        ArithmeticOperation::Divide => quotient(&left, left_scale, &right, right_scale)?,
        ArithmeticOperation::Modulo => remainder(&left, left_scale, &right, right_scale)?,
        ArithmeticOperation::Add | ArithmeticOperation::Subtract => {
            let scale = left_scale.max(right_scale);
            let left = expanded(&left, scale - left_scale)?;
            let right = expanded(&right, scale - right_scale)?;
            (varint(operation, &left, &right)?, scale)
        }
    };
    let unscaled = short_enough(unscaled)?;
    if i32::try_from(scale).is_err() {
        return Err("the scale of the result does not fit 32 bits".to_owned());
    }
    Ok(BigDecimal::new(unscaled, scale))
}

/// The digits and the scale of a number as a decimal.
fn parts(number: &Value) -> Result<(BigInt, i64), String> {
    match number {
        Value::Decimal(number) => Ok(number.as_bigint_and_exponent()),
        Value::Float(_) | Value::Double(_) => {
            // Java prints at least one digit after the point.
            let text = format!("{:?}", double(number));
            let number: BigDecimal = text
                .parse()
                .map_err(|_| format!("{text} is no decimal number"))?;
            Ok(number.as_bigint_and_exponent())
        }
        // Cassandra makes a double of these on the way.
        Value::Tinyint(_) | Value::Smallint(_) | Value::Int(_) => Ok((big(number) * 10, 1)),
        other => Ok((big(other), 0)),
    }
}

/// The remainder of a division of which the quotient is a whole number, with the scale that Java
/// gives it.
fn remainder(
    left: &BigInt,
    left_scale: i64,
    right: &BigInt,
    right_scale: i64,
) -> Result<(BigInt, i64), String> {
    if right.sign() == Sign::NoSign {
        return Err("BigInteger divide by zero".to_owned());
    }
    if left.sign() == Sign::NoSign {
        return Ok((BigInt::ZERO, left_scale));
    }
    let scale = left_scale.max(right_scale);
    let wide_left = expanded(left, scale - left_scale)?;
    let wide_right = expanded(right, scale - right_scale)?;
    let rest = varint(ArithmeticOperation::Modulo, &wide_left, &wide_right)?;
    let preferred_scale = left_scale - right_scale;
    let quotient = &wide_left / &wide_right;
    let quotient_scale = match quotient.sign() {
        Sign::NoSign => preferred_scale,
        _ => preferred_scale.max(without_zeros(quotient, 0).1.min(0)),
    };
    let rest_scale = left_scale.max(quotient_scale + right_scale);
    // The difference of two numbers has no digits beyond their scales.
    let shorter = expanded(&BigInt::from(1), (scale - rest_scale).max(0))?;
    Ok((rest / shorter, rest_scale.min(scale)))
}

/// The number with so many zeros after it.
fn expanded(number: &BigInt, zeros: i64) -> Result<BigInt, String> {
    match u32::try_from(zeros) {
        Ok(zeros) if i64::from(zeros) <= EXPANDED_DIGITS_MAX => {
            Ok(number * BigInt::from(10).pow(zeros))
        }
        _ if number.sign() == Sign::NoSign => Ok(BigInt::ZERO),
        _ => Err(format!(
            "the scales of the decimals differ by more than {EXPANDED_DIGITS_MAX}"
        )),
    }
}

/// The quotient, rounded half up, without zeros at its end, and its scale.
fn quotient(
    left: &BigInt,
    left_scale: i64,
    right: &BigInt,
    right_scale: i64,
) -> Result<(BigInt, i64), String> {
    if right.sign() == Sign::NoSign {
        return Err("BigInteger divide by zero".to_owned());
    }
    let first_digit = (digits(left) - left_scale) - (digits(right) - right_scale);
    let least = QUOTIENT_DIGITS.max(left_scale).max(right_scale);
    let scale = QUOTIENT_SCALE_MAX.min(least.max(QUOTIENT_DIGITS - first_digit));
    let zeros = scale - left_scale + right_scale;
    let left = expanded(left, zeros.max(0))?;
    let right = expanded(right, (-zeros).max(0))?;
    let mut result = &left / &right;
    let rest: BigInt = (&left % &right) * 2;
    if rest.magnitude() >= right.magnitude() {
        match (left.sign() == Sign::Minus) == (right.sign() == Sign::Minus) {
            true => result += 1,
            false => result -= 1,
        }
    }
    Ok(without_zeros(result, scale))
}

/// The number without the zeros at its end, of which each lowers the scale.
fn without_zeros(number: BigInt, scale: i64) -> (BigInt, i64) {
    if number.sign() == Sign::NoSign {
        return (number, 0);
    }
    let text = number.to_string();
    let kept = text.trim_end_matches('0');
    let zeros = (text.len() - kept.len()) as i64;
    (kept.parse().unwrap_or(number), scale - zeros)
}

fn digits(number: &BigInt) -> i64 {
    number.magnitude().to_string().len() as i64
}

pub(super) fn long(number: &Value) -> i64 {
    match number {
        Value::Tinyint(number) => i64::from(*number),
        Value::Smallint(number) => i64::from(*number),
        Value::Int(number) => i64::from(*number),
        Value::Bigint(number) | Value::Counter(number) => *number,
        _ => 0,
    }
}

pub(super) fn big(number: &Value) -> BigInt {
    match number {
        Value::Varint(number) => number.clone(),
        other => BigInt::from(long(other)),
    }
}

fn float(number: &Value) -> f32 {
    match number {
        Value::Float(number) => *number,
        other => long(other) as f32,
    }
}

pub(super) fn double(number: &Value) -> f64 {
    match number {
        Value::Double(number) => *number,
        Value::Float(number) => f64::from(*number),
        other => long(other) as f64,
    }
}

/// The zero of a type of numbers; `None` for other types.
pub(super) fn zero(cql_type: &CqlType) -> Option<Value> {
    narrowed(&Value::Varint(BigInt::ZERO), cql_type)
}

/// A whole number as a value of another type of numbers; `None` if it is out of range, or if the
/// type is none of numbers.
pub(super) fn narrowed(number: &Value, cql_type: &CqlType) -> Option<Value> {
    let number = big(number);
    Some(match cql_type {
        CqlType::Tinyint => Value::Tinyint(i8::try_from(&number).ok()?),
        CqlType::Smallint => Value::Smallint(i16::try_from(&number).ok()?),
        CqlType::Int => Value::Int(i32::try_from(&number).ok()?),
        CqlType::Bigint => Value::Bigint(i64::try_from(&number).ok()?),
        CqlType::Counter => Value::Counter(i64::try_from(&number).ok()?),
        CqlType::Float => Value::Float(i32::try_from(&number).ok()? as f32),
        CqlType::Double => Value::Double(f64::from(i32::try_from(&number).ok()?)),
        CqlType::Decimal => Value::Decimal(BigDecimal::new(number, 0)),
        CqlType::Varint => Value::Varint(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal_of(text: &str) -> Value {
        Value::Decimal(text.parse().unwrap())
    }

    #[test]
    fn integers_wrap_around() {
        let add = |left, right, result| {
            compute(ArithmeticOperation::Add, &result, &left, &right).unwrap()
        };
        assert_eq!(
            add(Value::Tinyint(100), Value::Tinyint(100), CqlType::Tinyint),
            Value::Tinyint(-56)
        );
        assert_eq!(
            add(Value::Int(i32::MAX), Value::Int(1), CqlType::Int),
            Value::Int(i32::MIN)
        );
        let least = Value::Bigint(i64::MIN);
        let by = Value::Bigint(-1);
        let quotient = compute(ArithmeticOperation::Divide, &CqlType::Bigint, &least, &by);
        assert_eq!(quotient.unwrap(), least);
        assert_eq!(negate(least.clone()), least);
    }

    #[test]
    fn decimals_are_divided_to_32_digits() {
        let divide = |left: &str, right: &str| {
            let (left, right) = (decimal_of(left), decimal_of(right));
            compute(
                ArithmeticOperation::Divide,
                &CqlType::Decimal,
                &left,
                &right,
            )
        };
        assert_eq!(divide("10.20", "3").unwrap(), decimal_of("3.4"));
        assert_eq!(
            divide("-2", "3").unwrap(),
            decimal_of("-0.66666666666666666666666666666667")
        );
        assert!(divide("1", "0").is_err());
        assert!(divide("1E+2000000000", "3").is_err());
    }

    #[test]
    fn decimals_have_the_scales_of_cassandra() {
        let cases = [
            (ArithmeticOperation::Add, "1", Value::Int(1), "2.0"),
            (
                ArithmeticOperation::Add,
                "2E+10",
                Value::Tinyint(1),
                "20000000001.0",
            ),
            (ArithmeticOperation::Add, "1", Value::Bigint(1), "2"),
            (
                ArithmeticOperation::Multiply,
                "2E+10",
                Value::Smallint(1),
                "2.0E+10",
            ),
            (ArithmeticOperation::Modulo, "1", Value::Int(1), "0.0"),
            (ArithmeticOperation::Modulo, "2E+10", Value::Int(1), "0E+9"),
            (ArithmeticOperation::Modulo, "10", Value::Int(3), "1.0"),
            (ArithmeticOperation::Modulo, "0.01", Value::Int(3), "0.01"),
            (
                ArithmeticOperation::Modulo,
                "0.000",
                decimal_of("1E-50000"),
                "0.000",
            ),
            (
                ArithmeticOperation::Modulo,
                "0E+20",
                decimal_of("1E-5"),
                "0E+20",
            ),
        ];
        for (operation, left, right, expected) in cases {
            let computed = compute(operation, &CqlType::Decimal, &decimal_of(left), &right);
            let Value::Decimal(computed) = computed.unwrap() else {
                panic!("no decimal");
            };
            let expected: BigDecimal = expected.parse().unwrap();
            let (computed, expected) = (
                computed.as_bigint_and_exponent(),
                expected.as_bigint_and_exponent(),
            );
            assert_eq!(computed, expected, "{left} {operation:?} {right:?}");
        }
    }

    #[test]
    fn long_results_are_refused() {
        let wide = Value::Varint(BigInt::from(1) << (8 * MAX_NUMERIC_BYTES - 9));
        let squared = compute(
            ArithmeticOperation::Multiply,
            &CqlType::Varint,
            &wide,
            &wide,
        );
        assert!(squared.is_err());
        let (huge, one) = (decimal_of("1E+2000000000"), decimal_of("1"));
        assert!(compute(ArithmeticOperation::Add, &CqlType::Decimal, &huge, &one).is_err());
        assert!(
            compute(
                ArithmeticOperation::Multiply,
                &CqlType::Decimal,
                &huge,
                &huge
            )
            .is_err()
        );
    }
}
