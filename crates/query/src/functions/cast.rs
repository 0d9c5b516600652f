//! `CAST(x AS type)`: from number to number, from time to time, and from either to text.
//!
//! Numbers are narrowed as in Java, from which Cassandra has its rules. Integers keep their low
//! bits. Floating-point numbers out of range become the nearest bound.

use bigdecimal::{BigDecimal, ToPrimitive};
use bytes::Bytes;
use cql::error::CqlError;
use num_bigint::BigInt;
use uuid::Uuid;
use value::{CqlType, Value, json_text};

/// The most digits before the point with which a decimal is expanded into an integer. A decimal of
/// 10 bytes can mean a number of two billion digits.
const EXPANDED_DIGITS_MAX: i64 = 40_000;

/// Milliseconds of a day.
const MILLIS_PER_DAY: i64 = 86_400_000;
/// The serialised day of 1970-01-01.
const EPOCH_DAY: i64 = 1 << 31;

/// A cast between two types for which a cast exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeCast {
    from: CqlType,
    to: CqlType,
}

impl TypeCast {
    /// The cast between two types.
    ///
    /// # Errors
    /// If there is no cast between them.
    pub fn new(from: &CqlType, to: &CqlType) -> Result<TypeCast, CqlError> {
        let to_text = matches!(to, CqlType::Text | CqlType::Ascii);
        let allowed = from == to
            || is_number(from) && (is_number(to) && *to != CqlType::Counter || to_text)
            || to_text
                && matches!(
                    from,
                    CqlType::Boolean
                        | CqlType::Ascii
                        | CqlType::Date
                        | CqlType::Inet
                        | CqlType::Time
                        | CqlType::Timestamp
                        | CqlType::Timeuuid
                        | CqlType::Uuid
                )
            || matches!(
                (from, to),
                (CqlType::Timeuuid, CqlType::Date | CqlType::Timestamp)
                    | (CqlType::Date, CqlType::Timestamp)
                    | (CqlType::Timestamp, CqlType::Date)
            );
        if allowed {
            Ok(TypeCast {
                from: from.clone(),
                to: to.clone(),
            })
        } else {
            Err(CqlError::invalid(format!("{from} cannot be cast to {to}")))
        }
    }

    /// Whether every value is cast to itself.
    pub fn changes_nothing(&self) -> bool {
        self.from == self.to
    }

    /// Casts a serialised, non-null value. Returns `None` if it is the empty value.
    ///
    /// # Errors
    /// If the value has no counterpart in the target type.
    pub fn apply(&self, bytes: &Bytes) -> Result<Option<Bytes>, CqlError> {
        if self.changes_nothing() {
            return Ok(Some(bytes.clone()));
        }
        let value =
            Value::deserialize(&self.from, bytes).map_err(|error| CqlError::invalid(error.0))?;
        if value == Value::Empty {
            return Ok(None);
        }
        self.convert(&value).map(|value| Some(value.serialize()))
    }

    fn convert(&self, value: &Value) -> Result<Value, CqlError> {
        Ok(match self.to {
            CqlType::Text => Value::Text(plain_text(&self.from, value)),
            CqlType::Ascii => Value::Ascii(plain_text(&self.from, value)),
            CqlType::Timestamp => Value::Timestamp(millis(value).ok_or_else(|| self.refuse())?),
            CqlType::Date => {
                let days = millis(value)
                    .ok_or_else(|| self.refuse())?
                    .div_euclid(MILLIS_PER_DAY);
                Value::Date(u32::try_from(days + EPOCH_DAY).map_err(|_| self.refuse())?)
            }
            _ => self.number(value)?,
        })
    }

    fn number(&self, value: &Value) -> Result<Value, CqlError> {
        Ok(match self.to {
            CqlType::Tinyint => Value::Tinyint(self.low_bits(value)? as i8),
            CqlType::Smallint => Value::Smallint(self.low_bits(value)? as i16),
            CqlType::Int => match float_of(value) {
                Some(float) => Value::Int(float as i32),
                None => Value::Int(self.low_bits(value)? as i32),
            },
            CqlType::Bigint => Value::Bigint(self.low_bits(value)?),
            CqlType::Varint => Value::Varint(self.integer(value)?),
            CqlType::Float => Value::Float(match value {
                Value::Float(number) => *number,
                Value::Double(number) => *number as f32,
                _ => self.decimal(value)?.to_f32().unwrap_or(f32::NAN),
            }),
            CqlType::Double => Value::Double(match float_of(value) {
                Some(number) => number,
                None => self.decimal(value)?.to_f64().unwrap_or(f64::NAN),
            }),
            CqlType::Decimal => Value::Decimal(self.decimal(value)?),
            _ => return Err(self.refuse()),
        })
    }

    /// The number as an integer of 64 bits. Of a longer integer only the low bits are used.
    fn low_bits(&self, value: &Value) -> Result<i64, CqlError> {
        match value {
            Value::Tinyint(number) => Ok(i64::from(*number)),
            Value::Smallint(number) => Ok(i64::from(*number)),
            Value::Int(number) => Ok(i64::from(*number)),
            Value::Bigint(number) | Value::Counter(number) => Ok(*number),
            _ => match (float_of(value), &self.to) {
                // Java first narrows to int, where numbers out of range become the nearest bound,
                // and then keeps the low bits.
                (Some(float), CqlType::Tinyint | CqlType::Smallint) => Ok(i64::from(float as i32)),
                (Some(float), _) => Ok(float as i64),
                (None, _) => Ok(low_64_bits(&self.integer(value)?)),
            },
        }
    }

    fn integer(&self, value: &Value) -> Result<BigInt, CqlError> {
        match value {
            Value::Varint(number) => Ok(number.clone()),
            Value::Decimal(number) => decimal_to_integer(number),
            _ => match float_of(value) {
                // On the way it is an integer of 64 bits.
                Some(float) => Ok(BigInt::from(float as i64)),
                None => self.low_bits(value).map(BigInt::from),
            },
        }
    }

    fn decimal(&self, value: &Value) -> Result<BigDecimal, CqlError> {
        match value {
            Value::Decimal(number) => Ok(number.clone()),
            Value::Float(_) | Value::Double(_) => java_text(&self.from, value)
                .parse()
                .map_err(|_| self.refuse()),
            _ => self.integer(value).map(BigDecimal::from),
        }
    }

    fn refuse(&self) -> CqlError {
        CqlError::invalid(format!(
            "the value of type {} has no counterpart of type {}",
            self.from, self.to
        ))
    }
}

/// The digits before the point, as an integer.
///
/// # Errors
/// If there are more than [`EXPANDED_DIGITS_MAX`] of them.
fn decimal_to_integer(number: &BigDecimal) -> Result<BigInt, CqlError> {
    let (digits, scale) = number.as_bigint_and_exponent();
    let digits_before_point = decimal_digits_at_most(&digits) - scale;
    if digits_before_point <= 0 {
        return Ok(BigInt::ZERO);
    }
    if digits_before_point > EXPANDED_DIGITS_MAX {
        return Err(CqlError::invalid(format!(
            "a decimal of more than {EXPANDED_DIGITS_MAX} digits before its point is not made an integer"
        )));
    }
    Ok(number.with_scale(0).as_bigint_and_exponent().0)
}

/// An upper bound of the number of decimal digits. It is at most one too large.
fn decimal_digits_at_most(number: &BigInt) -> i64 {
    let bits = i64::try_from(number.bits()).unwrap_or(i64::MAX / 2);
    // log10(2) is a little less than 30103 / 100000.
    bits.saturating_mul(30_103) / 100_000 + 1
}

fn is_number(cql_type: &CqlType) -> bool {
    matches!(
        cql_type,
        CqlType::Bigint
            | CqlType::Counter
            | CqlType::Decimal
            | CqlType::Double
            | CqlType::Float
            | CqlType::Int
            | CqlType::Smallint
            | CqlType::Tinyint
            | CqlType::Varint
    )
}

fn float_of(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(f64::from(*number)),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

fn low_64_bits(number: &BigInt) -> i64 {
    let bytes = number.to_signed_bytes_le();
    let sign = if bytes.last().is_some_and(|last| *last >= 0x80) {
        0xff
    } else {
        0
    };
    let mut low = [sign; 8];
    for (slot, byte) in low.iter_mut().zip(bytes) {
        *slot = byte;
    }
    i64::from_le_bytes(low)
}

fn millis(value: &Value) -> Option<i64> {
    match value {
        Value::Timestamp(millis) => Some(*millis),
        Value::Date(day) => Some((i64::from(*day) - EPOCH_DAY) * MILLIS_PER_DAY),
        Value::Timeuuid(uuid) => Some(uuid_millis(uuid)),
        _ => None,
    }
}

fn uuid_millis(uuid: &Uuid) -> i64 {
    value::timeuuid::unix_millis(uuid)
}

/// The text of a value without the quotes of a literal. Dates, addresses and finite numbers have
/// the form that they have in JSON.
fn plain_text(cql_type: &CqlType, value: &Value) -> String {
    match value {
        Value::Ascii(text) | Value::Text(text) => text.clone(),
        Value::Date(_) | Value::Inet(_) => java_text(cql_type, value),
        Value::Float(number) if number.is_finite() => java_text(cql_type, value),
        Value::Double(number) if number.is_finite() => java_text(cql_type, value),
        _ => value.to_literal().trim_matches('\'').to_owned(),
    }
}

/// The text that Java gives a value, which is used in JSON, too.
fn java_text(cql_type: &CqlType, value: &Value) -> String {
    json_text(cql_type, Some(&value.serialize())).map_or_else(
        |_| value.to_literal(),
        |text| text.trim_matches('"').to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(value: &Value, from: &CqlType, to: &CqlType) -> Value {
        let bytes = TypeCast::new(from, to)
            .unwrap()
            .apply(&value.serialize())
            .unwrap()
            .unwrap();
        Value::deserialize(to, &bytes).unwrap()
    }

    fn decimal(text: &str) -> BigDecimal {
        text.parse().unwrap()
    }

    #[test]
    fn numbers_are_cast_as_in_java() {
        use CqlType::*;
        let cases = [
            (Value::Int(300), Int, Tinyint, Value::Tinyint(44)),
            (Value::Bigint(-1), Bigint, Smallint, Value::Smallint(-1)),
            (Value::Double(1e20), Double, Int, Value::Int(i32::MAX)),
            (Value::Double(f64::NAN), Double, Bigint, Value::Bigint(0)),
            (Value::Double(-2.9), Double, Int, Value::Int(-2)),
            (
                Value::Double(70_000.0),
                Double,
                Smallint,
                Value::Smallint(4464),
            ),
            (
                Value::Float(0.1),
                Float,
                Decimal,
                Value::Decimal(decimal("0.1")),
            ),
            (Value::Int(7), Int, Decimal, Value::Decimal(decimal("7"))),
            (
                Value::Decimal(decimal("-7.9")),
                Decimal,
                Varint,
                Value::Varint((-7).into()),
            ),
            (
                Value::Decimal(decimal("0.0007")),
                Decimal,
                Int,
                Value::Int(0),
            ),
            (
                Value::Decimal(decimal("99.5")),
                Decimal,
                Int,
                Value::Int(99),
            ),
            (
                Value::Varint(BigInt::from(1_u64 << 32) + 5),
                Varint,
                Int,
                Value::Int(5),
            ),
            (
                Value::Varint((-5).into()),
                Varint,
                Bigint,
                Value::Bigint(-5),
            ),
        ];
        for (value, from, to, expected) in cases {
            assert_eq!(cast(&value, &from, &to), expected, "{value:?} as {to}");
        }
    }

    #[test]
    fn numbers_beyond_all_bounds_are_cast_as_in_java() {
        use CqlType::*;
        let cases = [
            (Value::Bigint(3), Bigint, Double, Value::Double(3.0)),
            (
                Value::Float(1e30),
                Float,
                Varint,
                Value::Varint(i64::MAX.into()),
            ),
            (
                Value::Double(f64::NEG_INFINITY),
                Double,
                Varint,
                Value::Varint(i64::MIN.into()),
            ),
            (
                Value::Double(1e30),
                Double,
                Decimal,
                Value::Decimal(decimal("1.0E+30")),
            ),
            (
                Value::Double(1e300),
                Double,
                Text,
                Value::Text("1.0E300".to_owned()),
            ),
        ];
        for (value, from, to, expected) in cases {
            assert_eq!(cast(&value, &from, &to), expected, "{value:?} as {to}");
        }
    }

    #[test]
    fn times_and_texts() {
        use CqlType::*;
        assert_eq!(
            cast(&Value::Timestamp(-1), &Timestamp, &Date),
            Value::Date((1 << 31) - 1)
        );
        assert_eq!(
            cast(&Value::Date(1 << 31), &Date, &Timestamp),
            Value::Timestamp(0)
        );
        assert_eq!(
            cast(&Value::Int(-12), &Int, &Text),
            Value::Text("-12".to_owned())
        );
        assert_eq!(
            cast(&Value::Date(1 << 31), &Date, &Text),
            Value::Text("1970-01-01".to_owned())
        );
        assert_eq!(
            cast(&Value::Date(0), &Date, &Text),
            Value::Text("-5877641-06-23".to_owned())
        );
        assert_eq!(
            cast(&Value::Inet("::1".parse().unwrap()), &Inet, &Text),
            Value::Text("0:0:0:0:0:0:0:1".to_owned())
        );
        assert_eq!(
            cast(&Value::Ascii("it's".to_owned()), &Ascii, &Text),
            Value::Text("it's".to_owned())
        );
    }

    #[test]
    fn types_without_a_cast_are_refused() {
        let refused = TypeCast::new(&CqlType::Text, &CqlType::Int).unwrap_err();
        assert_eq!(refused.message, "text cannot be cast to int");
        assert!(TypeCast::new(&CqlType::Blob, &CqlType::Text).is_err());
    }

    #[test]
    fn a_huge_decimal_is_refused_quickly() {
        let huge = Value::Decimal(BigDecimal::new(BigInt::from(1), -2_000_000_000));
        let cast = TypeCast::new(&CqlType::Decimal, &CqlType::Varint).unwrap();
        assert!(cast.apply(&huge.serialize()).is_err());
        let to_double = TypeCast::new(&CqlType::Decimal, &CqlType::Double).unwrap();
        assert_eq!(
            to_double.apply(&huge.serialize()).unwrap().unwrap(),
            Value::Double(f64::INFINITY).serialize()
        );
        let tiny = Value::Decimal(BigDecimal::new(BigInt::from(1), 2_000_000_000));
        assert_eq!(
            cast.apply(&tiny.serialize()).unwrap().unwrap(),
            Value::Varint(BigInt::ZERO).serialize()
        );
    }

    #[test]
    fn an_empty_value_becomes_null() {
        let cast = TypeCast::new(&CqlType::Int, &CqlType::Text).unwrap();
        assert_eq!(cast.apply(&Bytes::new()).unwrap(), None);
    }
}
