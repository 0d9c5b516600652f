//! Constants as CQL writes them, and their serialisation as values of a type.

use std::net::IpAddr;

use bytes::Bytes;
use uuid::Uuid;

use crate::{CqlType, Value, ValueError, calendar, numeric};

/// A constant other than null.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// The text of a string, without its quotes.
    String(String),
    /// Digits with an optional minus sign, of any length.
    Integer(String),
    /// A number with a point or an exponent as written, or `NaN`, `Infinity` or `-Infinity`,
    /// spelt so.
    Float(String),
    /// `true` or `false`.
    Boolean(bool),
    /// A UUID.
    Uuid(Uuid),
    /// The bytes of `0x..`.
    Blob(Bytes),
    /// A duration. Its counts are all negative or zero if a minus sign is written before it.
    Duration {
        /// Months, years included.
        months: i32,
        /// Days, weeks included.
        days: i32,
        /// Nanoseconds: hours and everything shorter.
        nanoseconds: i64,
    },
}

/// Serialises a constant as a value of `cql_type`.
///
/// The constants allowed are Cassandra's:
/// - An integer can be any number, a date (its serialised day), a time (nanoseconds) or a timestamp
///   (milliseconds).
/// - A number with a point or an exponent can be a float, double or decimal.
/// - A string can be a text, ascii, inet, date, time or timestamp, but no uuid or number. An empty
///   one is the empty value of an inet or a timestamp.
///
/// # Errors
/// If the constant is of the wrong kind, malformed or out of range, with a sentence that names
/// the constant and the type.
pub fn from_literal(cql_type: &CqlType, literal: &Literal) -> Result<Bytes, ValueError> {
    let value = match literal {
        Literal::String(text)
            if text.is_empty() && matches!(cql_type, CqlType::Inet | CqlType::Timestamp) =>
        {
            Some(Value::Empty)
        }
        Literal::String(text) => from_string(cql_type, text)?,
        Literal::Integer(digits) => from_integer(cql_type, digits)?,
        Literal::Float(text) => from_float(cql_type, text)?,
        Literal::Boolean(truth) => match cql_type {
            CqlType::Boolean => Some(Value::Boolean(*truth)),
            _ => None,
        },
        Literal::Uuid(uuid) => match cql_type {
            CqlType::Uuid => Some(Value::Uuid(*uuid)),
            CqlType::Timeuuid if uuid.get_version_num() == 1 => Some(Value::Timeuuid(*uuid)),
            CqlType::Timeuuid => {
                return Err(ValueError(format!(
                    "{uuid} is no value of type timeuuid: its version is {}, not 1",
                    uuid.get_version_num()
                )));
            }
            _ => None,
        },
        Literal::Blob(bytes) => match cql_type {
            CqlType::Blob => Some(Value::Blob(bytes.clone())),
            _ => None,
        },
        Literal::Duration {
            months,
            days,
            nanoseconds,
        } => match cql_type {
            CqlType::Duration => Some(Value::Duration {
                months: *months,
                days: *days,
                nanoseconds: *nanoseconds,
            }),
            _ => None,
        },
    };
    match value {
        Some(value) => Ok(value.serialize()),
        None => Err(wrong_kind(cql_type, literal)),
    }
}

fn from_string(cql_type: &CqlType, text: &str) -> Result<Option<Value>, ValueError> {
    Ok(Some(match cql_type {
        CqlType::Text => Value::Text(text.to_owned()),
        CqlType::Ascii => match text.chars().find(|c| !c.is_ascii()) {
            None => Value::Ascii(text.to_owned()),
            Some(beyond) => {
                return Err(ValueError(format!(
                    "'{}' is no value of type ascii: it holds '{beyond}'",
                    excerpt(text)
                )));
            }
        },
        CqlType::Inet => match text.parse::<IpAddr>() {
            // An IPv4 address written as IPv6 (`::ffff:1.2.3.4`) becomes IPv4, so that each address
            // has one value.
            Ok(address) => Value::Inet(address.to_canonical()),
            Err(_) => {
                return Err(ValueError(format!(
                    "'{}' is no value of type inet: expected an IPv4 or IPv6 address",
                    excerpt(text)
                )));
            }
        },
        CqlType::Date => Value::Date(calendar::parse_date(bounded(cql_type, text)?)?),
        CqlType::Time => Value::Time(calendar::parse_time(bounded(cql_type, text)?)?),
        CqlType::Timestamp => {
            Value::Timestamp(calendar::parse_timestamp(bounded(cql_type, text)?)?)
        }
        _ => return Ok(None),
    }))
}

fn from_integer(cql_type: &CqlType, digits: &str) -> Result<Option<Value>, ValueError> {
    let range = |min: i64, max: i64| {
        ValueError(format!(
            "{} is out of range of type {cql_type}, {min} to {max}",
            excerpt(digits)
        ))
    };
    let wide = |_| range(i64::MIN, i64::MAX);
    Ok(Some(match cql_type {
        CqlType::Tinyint => Value::Tinyint(
            digits
                .parse()
                .map_err(|_| range(i8::MIN.into(), i8::MAX.into()))?,
        ),
        CqlType::Smallint => Value::Smallint(
            digits
                .parse()
                .map_err(|_| range(i16::MIN.into(), i16::MAX.into()))?,
        ),
        CqlType::Int => Value::Int(
            digits
                .parse()
                .map_err(|_| range(i32::MIN.into(), i32::MAX.into()))?,
        ),
        CqlType::Bigint => Value::Bigint(digits.parse().map_err(wide)?),
        CqlType::Counter => Value::Counter(digits.parse().map_err(wide)?),
        CqlType::Timestamp => Value::Timestamp(digits.parse().map_err(wide)?),
        CqlType::Date => Value::Date(calendar::parse_date(bounded(cql_type, digits)?)?),
        CqlType::Time => Value::Time(calendar::parse_time(bounded(cql_type, digits)?)?),
        CqlType::Varint => Value::Varint(numeric::parse_varint(digits)?),
        CqlType::Decimal | CqlType::Float | CqlType::Double => return from_float(cql_type, digits),
        _ => return Ok(None),
    }))
}

fn from_float(cql_type: &CqlType, text: &str) -> Result<Option<Value>, ValueError> {
    let out_of_range = || {
        ValueError(format!(
            "{} is out of range of type {cql_type}",
            excerpt(text)
        ))
    };
    // True for `NaN` and the infinities. A number that is too large for a double must not become
    // infinite by itself; as in Cassandra, one that is too large for a float does.
    let named = text.ends_with(|last: char| last.is_ascii_alphabetic());
    Ok(Some(match cql_type {
        CqlType::Decimal if named => {
            return Err(ValueError(format!("{text} is no value of type decimal")));
        }
        CqlType::Decimal => Value::Decimal(numeric::parse_decimal(text)?),
        CqlType::Float | CqlType::Double => {
            let number = text.parse::<f64>().map_err(|_| out_of_range())?;
            if number.is_infinite() && !named {
                return Err(out_of_range());
            }
            match cql_type {
                // Not by way of the double, which would be rounded twice.
                CqlType::Float => Value::Float(text.parse().map_err(|_| out_of_range())?),
                _ => Value::Double(number),
            }
        }
        _ => return Ok(None),
    }))
}

/// Refuses texts longer than any date or time. Later errors quote the whole text, so it must be
/// short.
fn bounded<'a>(cql_type: &CqlType, text: &'a str) -> Result<&'a str, ValueError> {
    const MAX_LENGTH: usize = 64;
    if text.len() <= MAX_LENGTH {
        Ok(text)
    } else {
        Err(ValueError(format!(
            "'{}' is no value of type {cql_type}",
            excerpt(text)
        )))
    }
}

/// The beginning of a constant, for an error message.
pub(crate) fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    match text.char_indices().nth(MAX_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

fn wrong_kind(cql_type: &CqlType, literal: &Literal) -> ValueError {
    let (kind, text) = match literal {
        Literal::String(text) => ("STRING", excerpt(text)),
        Literal::Integer(digits) => ("INTEGER", excerpt(digits)),
        Literal::Float(text) => ("FLOAT", excerpt(text)),
        Literal::Boolean(truth) => ("BOOLEAN", truth.to_string()),
        Literal::Uuid(uuid) => ("UUID", uuid.to_string()),
        Literal::Blob(bytes) => (
            "HEX",
            excerpt(&Value::Blob(bytes.slice(..bytes.len().min(40))).to_literal()),
        ),
        Literal::Duration {
            months,
            days,
            nanoseconds,
        } => (
            "DURATION",
            super::duration::to_literal(*months, *days, *nanoseconds),
        ),
    };
    ValueError(format!(
        "Invalid {kind} constant ({text}) for type {cql_type}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(cql_type: CqlType, text: &str) -> Result<Value, String> {
        read(cql_type, Literal::String(text.to_owned()))
    }

    fn integer(cql_type: CqlType, digits: &str) -> Result<Value, String> {
        read(cql_type, Literal::Integer(digits.to_owned()))
    }

    fn float(cql_type: CqlType, text: &str) -> Result<Value, String> {
        read(cql_type, Literal::Float(text.to_owned()))
    }

    fn read(cql_type: CqlType, literal: Literal) -> Result<Value, String> {
        let bytes = from_literal(&cql_type, &literal).map_err(|error| error.0)?;
        Ok(Value::deserialize(&cql_type, &bytes).unwrap())
    }

    #[test]
    fn an_integer_stands_for_any_number_and_time() {
        assert_eq!(integer(CqlType::Tinyint, "-128"), Ok(Value::Tinyint(-128)));
        assert_eq!(integer(CqlType::Smallint, "7"), Ok(Value::Smallint(7)));
        assert_eq!(integer(CqlType::Int, "007"), Ok(Value::Int(7)));
        assert_eq!(integer(CqlType::Bigint, "7"), Ok(Value::Bigint(7)));
        assert_eq!(integer(CqlType::Counter, "7"), Ok(Value::Counter(7)));
        assert_eq!(
            integer(CqlType::Varint, "-7"),
            Ok(Value::Varint((-7).into()))
        );
        assert_eq!(integer(CqlType::Decimal, "7"), Ok(Value::Decimal(7.into())));
        assert_eq!(integer(CqlType::Float, "7"), Ok(Value::Float(7.0)));
        assert_eq!(integer(CqlType::Double, "7"), Ok(Value::Double(7.0)));
        assert_eq!(integer(CqlType::Timestamp, "7"), Ok(Value::Timestamp(7)));
        assert_eq!(integer(CqlType::Time, "7"), Ok(Value::Time(7)));
        assert_eq!(integer(CqlType::Date, "7"), Ok(Value::Date(7)));
    }

    #[test]
    fn ranges_are_named() {
        assert_eq!(
            integer(CqlType::Tinyint, "128").unwrap_err(),
            "128 is out of range of type tinyint, -128 to 127"
        );
        assert_eq!(
            integer(CqlType::Int, "3000000000").unwrap_err(),
            "3000000000 is out of range of type int, -2147483648 to 2147483647"
        );
        assert_eq!(
            integer(CqlType::Bigint, &"9".repeat(100)).unwrap_err(),
            "9999999999999999999999999999999999999999... is out of range of type bigint, \
             -9223372036854775808 to 9223372036854775807"
        );
        assert_eq!(
            float(CqlType::Float, "1e309").unwrap_err(),
            "1e309 is out of range of type float"
        );
        assert_eq!(
            float(CqlType::Double, "1e309").unwrap_err(),
            "1e309 is out of range of type double"
        );
        assert_eq!(
            integer(CqlType::Date, "-1").unwrap_err(),
            "Unable to make unsigned int (for date) from: '-1'; a day is 0 to 4294967295, with 1970-01-01 at 2^31"
        );
    }

    #[test]
    fn a_string_stands_for_text_addresses_and_times() {
        assert_eq!(
            string(CqlType::Text, "\u{e9}"),
            Ok(Value::Text("\u{e9}".into()))
        );
        assert_eq!(string(CqlType::Ascii, "e"), Ok(Value::Ascii("e".into())));
        assert_eq!(
            string(CqlType::Inet, "::1"),
            Ok(Value::Inet("::1".parse().unwrap()))
        );
        assert_eq!(
            string(CqlType::Inet, "::ffff:1.2.3.4"),
            Ok(Value::Inet("1.2.3.4".parse().unwrap()))
        );
        assert_eq!(
            string(CqlType::Date, "1970-01-02"),
            Ok(Value::Date((1 << 31) + 1))
        );
        assert_eq!(
            string(CqlType::Time, "00:00:01"),
            Ok(Value::Time(1_000_000_000))
        );
        assert_eq!(
            string(CqlType::Timestamp, "1970-01-01 00:00:01+0000"),
            Ok(Value::Timestamp(1_000))
        );
        assert_eq!(
            string(CqlType::Ascii, "caf\u{e9}").unwrap_err(),
            "'caf\u{e9}' is no value of type ascii: it holds '\u{e9}'"
        );
        assert_eq!(
            string(CqlType::Inet, "localhost").unwrap_err(),
            "'localhost' is no value of type inet: expected an IPv4 or IPv6 address"
        );
        assert_eq!(
            string(CqlType::Date, "2023-02-29").unwrap_err(),
            "'2023-02-29' is no date: expected yyyy-mm-dd, a day that exists"
        );
    }

    #[test]
    fn constants_of_another_kind_are_refused() {
        assert_eq!(
            string(CqlType::Int, "1").unwrap_err(),
            "Invalid STRING constant (1) for type int"
        );
        assert_eq!(
            string(CqlType::Uuid, "550e8400-e29b-41d4-a716-446655440000").unwrap_err(),
            "Invalid STRING constant (550e8400-e29b-41d4-a716-446655440000) for type uuid"
        );
        assert_eq!(
            integer(CqlType::Text, "1").unwrap_err(),
            "Invalid INTEGER constant (1) for type text"
        );
        assert_eq!(
            float(CqlType::Int, "1.0").unwrap_err(),
            "Invalid FLOAT constant (1.0) for type int"
        );
        assert_eq!(
            read(CqlType::Int, Literal::Boolean(true)).unwrap_err(),
            "Invalid BOOLEAN constant (true) for type int"
        );
        assert_eq!(
            read(CqlType::Text, Literal::Blob(Bytes::from_static(&[0xca]))).unwrap_err(),
            "Invalid HEX constant (0xca) for type text"
        );
        let nil = Literal::Uuid(uuid::Uuid::nil());
        assert_eq!(
            read(CqlType::Timeuuid, nil).unwrap_err(),
            "00000000-0000-0000-0000-000000000000 is no value of type timeuuid: its version is 0, \
             not 1"
        );
    }

    #[test]
    fn floats_may_be_named() {
        assert_eq!(float(CqlType::Float, "1."), Ok(Value::Float(1.0)));
        let infinite = Ok(Value::Float(f32::INFINITY));
        assert_eq!(float(CqlType::Float, "1e39"), infinite);
        assert_eq!(integer(CqlType::Float, &format!("1{:039}", 0)), infinite);
        assert_eq!(
            float(CqlType::Float, "-3.5e38"),
            Ok(Value::Float(f32::NEG_INFINITY))
        );
        assert_eq!(float(CqlType::Double, "1.5e-3"), Ok(Value::Double(0.0015)));
        assert_eq!(
            float(CqlType::Double, "-Infinity"),
            Ok(Value::Double(f64::NEG_INFINITY))
        );
        assert!(matches!(float(CqlType::Float, "NaN"), Ok(Value::Float(n)) if n.is_nan()));
        assert!(float(CqlType::Decimal, "NaN").is_err());
        assert_eq!(
            float(CqlType::Decimal, "1.").unwrap(),
            Value::Decimal(1.into())
        );
    }
}
