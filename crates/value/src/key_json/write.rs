//! Writing of key values as JSON.

use std::borrow::Cow;
use std::fmt::Write;
use std::net::IpAddr;

use num_bigint::BigInt;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::calendar::{iso_date, iso_timestamp, time_text};
use crate::{CqlType, NANOSECONDS_PER_DAY};

/// The reason why a value can't be a key in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes are not a value of the type.
    #[error("malformed value")]
    Malformed,
    /// The number is NaN or infinite, which JSON can't show.
    #[error("not a finite number")]
    NotFinite,
    /// No key can have the type.
    #[error("a type that can't be a key")]
    Unsupported,
}

/// A value in its JSON form. The usual types of keys take no memory of their own.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyJson<'a> {
    /// A truth value.
    Boolean(bool),
    /// An integer of up to 64 bits.
    Integer(i64),
    /// A finite number.
    Float(f64),
    /// A UUID, shown in lower case with hyphens.
    Uuid(Uuid),
    /// A value of any other type, as text.
    Text(Cow<'a, str>),
}

impl Serialize for KeyJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            KeyJson::Boolean(truth) => serializer.serialize_bool(*truth),
            KeyJson::Integer(number) => serializer.serialize_i64(*number),
            KeyJson::Float(number) => serializer.serialize_f64(*number),
            KeyJson::Uuid(uuid) => {
                let mut text = Uuid::encode_buffer();
                serializer.serialize_str(uuid.hyphenated().encode_lower(&mut text))
            }
            KeyJson::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl From<String> for KeyJson<'_> {
    fn from(text: String) -> Self {
        KeyJson::Text(text.into())
    }
}

/// Converts a serialised value to its JSON form.
///
/// # Errors
/// If the bytes are not a value of the type, or JSON has no form for it.
pub fn to_key_json<'a>(cql_type: &CqlType, value: &'a [u8]) -> Result<KeyJson<'a>, KeyError> {
    Ok(match cql_type {
        CqlType::Ascii | CqlType::Text => {
            let text = std::str::from_utf8(value).map_err(|_| KeyError::Malformed)?;
            KeyJson::Text(text.into())
        }
        CqlType::Boolean => match value {
            [byte] => KeyJson::Boolean(*byte != 0),
            _ => return Err(KeyError::Malformed),
        },
        CqlType::Tinyint => KeyJson::Integer(i8::from_be_bytes(fixed(value)?).into()),
        CqlType::Smallint => KeyJson::Integer(i16::from_be_bytes(fixed(value)?).into()),
        CqlType::Int => KeyJson::Integer(i32::from_be_bytes(fixed(value)?).into()),
        CqlType::Bigint => KeyJson::Integer(i64::from_be_bytes(fixed(value)?)),
        CqlType::Float => float(f32::from_be_bytes(fixed(value)?))?,
        CqlType::Double => double(f64::from_be_bytes(fixed(value)?))?,
        CqlType::Varint if !value.is_empty() => {
            BigInt::from_signed_bytes_be(value).to_string().into()
        }
        CqlType::Decimal => decimal(value)?.into(),
        CqlType::Uuid | CqlType::Timeuuid => KeyJson::Uuid(Uuid::from_bytes(fixed(value)?)),
        CqlType::Date => iso_date(i64::from(u32::from_be_bytes(fixed(value)?)) - (1 << 31)).into(),
        CqlType::Time => time(i64::from_be_bytes(fixed(value)?))?.into(),
        CqlType::Timestamp => iso_timestamp(i64::from_be_bytes(fixed(value)?)).into(),
        CqlType::Blob => blob(value).into(),
        CqlType::Inet => inet(value)?.to_string().into(),
        CqlType::Varint => return Err(KeyError::Malformed),
        _ => return Err(KeyError::Unsupported),
    })
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], KeyError> {
    value.try_into().map_err(|_| KeyError::Malformed)
}

fn double(number: f64) -> Result<KeyJson<'static>, KeyError> {
    match number.is_finite() {
        true => Ok(KeyJson::Float(number)),
        false => Err(KeyError::NotFinite),
    }
}

/// Converts to the shortest decimal that reads back as the same `f32`. The digits of the nearest
/// `f64` would be longer.
fn float(number: f32) -> Result<KeyJson<'static>, KeyError> {
    double(number.to_string().parse().unwrap_or(f64::from(number)))
}

/// Writes a decimal so that its scale can be read back, as partition keys with different scales are
/// different keys. The result is a plain number if the point is within six places of the digits.
/// Otherwise it has one digit before the point and an exponent.
fn decimal(value: &[u8]) -> Result<String, KeyError> {
    let (scale, unscaled) = value.split_first_chunk().ok_or(KeyError::Malformed)?;
    if unscaled.is_empty() {
        return Err(KeyError::Malformed);
    }
    let scale = i64::from(i32::from_be_bytes(*scale));
    let number = BigInt::from_signed_bytes_be(unscaled);
    let digits = number.magnitude().to_string();
    let sign = match number.sign() {
        num_bigint::Sign::Minus => "-",
        _ => "",
    };
    let exponent = digits.len() as i64 - 1 - scale;
    Ok(if scale == 0 {
        format!("{sign}{digits}")
    } else if scale > 0 && exponent >= -6 {
        let scale = scale as usize;
        // Zeros are added by hand, as the library pads to no more than 65,535 places, and a key may
        // have more digits.
        let padded = "0".repeat((scale + 1).saturating_sub(digits.len())) + &digits;
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        format!("{sign}{whole}.{fraction}")
    } else {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{sign}{first}{point}{rest}E{exponent:+}")
    })
}

/// Writes nanoseconds since midnight as `HH:MM:SS.nnnnnnnnn`.
fn time(nanoseconds: i64) -> Result<String, KeyError> {
    match (0..NANOSECONDS_PER_DAY).contains(&nanoseconds) {
        true => Ok(time_text(nanoseconds)),
        false => Err(KeyError::Malformed),
    }
}

fn blob(value: &[u8]) -> String {
    let mut out = String::with_capacity(2 + 2 * value.len());
    out.push_str("0x");
    for byte in value {
        write!(out, "{byte:02x}").expect("writing to a string never fails");
    }
    out
}

fn inet(value: &[u8]) -> Result<IpAddr, KeyError> {
    if let Ok(octets) = <[u8; 4]>::try_from(value) {
        Ok(octets.into())
    } else {
        Ok(IpAddr::from(fixed::<16>(value)?))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::calendar::iso_date as date;

    fn key_json_value(cql_type: &CqlType, bytes: &[u8]) -> Result<Json, KeyError> {
        to_key_json(cql_type, bytes).map(|shown| serde_json::to_value(shown).unwrap())
    }

    fn dec(scale: i32, unscaled: i64) -> Json {
        let mut bytes = scale.to_be_bytes().to_vec();
        bytes.extend(BigInt::from(unscaled).to_signed_bytes_be());
        key_json_value(&CqlType::Decimal, &bytes).unwrap()
    }

    #[test]
    fn every_key_type() {
        use CqlType::*;
        let uuid = uuid::Uuid::from_u128(0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF);
        let cases: Vec<(CqlType, Vec<u8>, Json)> = vec![
            (Ascii, b"abc".into(), json!("abc")),
            (Text, "zażółć".as_bytes().into(), json!("zażółć")),
            (Text, vec![], json!("")),
            (Boolean, vec![1], json!(true)),
            (Boolean, vec![0], json!(false)),
            (Tinyint, vec![0x80], json!(-128)),
            (Smallint, (-2i16).to_be_bytes().into(), json!(-2)),
            (Int, i32::MIN.to_be_bytes().into(), json!(i32::MIN)),
            (Bigint, i64::MIN.to_be_bytes().into(), json!(i64::MIN)),
            (Double, 0.1f64.to_be_bytes().into(), json!(0.1)),
            (Float, 0.1f32.to_be_bytes().into(), json!(0.1)),
            (Varint, vec![0xff], json!("-1")),
            (
                Varint,
                vec![0x01, 0, 0, 0, 0, 0, 0, 0, 0],
                json!("18446744073709551616"),
            ),
            (
                Uuid,
                uuid.as_bytes().to_vec(),
                json!("01234567-89ab-cdef-0123-456789abcdef"),
            ),
            (
                Timeuuid,
                uuid.as_bytes().to_vec(),
                json!("01234567-89ab-cdef-0123-456789abcdef"),
            ),
            (Date, (1u32 << 31).to_be_bytes().into(), json!("1970-01-01")),
            (
                Time,
                (((13 * 60 + 4) * 60 + 5) * 1_000_000_000i64 + 6)
                    .to_be_bytes()
                    .into(),
                json!("13:04:05.000000006"),
            ),
            (
                Timestamp,
                1_700_000_000_123i64.to_be_bytes().into(),
                json!("2023-11-14T22:13:20.123Z"),
            ),
            (Blob, vec![0xde, 0xad, 0x00], json!("0xdead00")),
            (Blob, vec![], json!("0x")),
            (Inet, vec![127, 0, 0, 1], json!("127.0.0.1")),
            (Inet, [0; 15].into_iter().chain([1]).collect(), json!("::1")),
        ];
        for (typ, bytes, expected) in cases {
            assert_eq!(key_json_value(&typ, &bytes), Ok(expected), "{typ:?}");
        }
    }

    #[test]
    fn decimals_show_their_scale() {
        assert_eq!(dec(0, 12), "12");
        assert_eq!(dec(1, 10), "1.0");
        assert_eq!(dec(2, 100), "1.00");
        assert_eq!(dec(2, -5), "-0.05");
        assert_eq!(dec(3, 0), "0.000");
        assert_eq!(dec(-3, 12), "1.2E+4");
        assert_eq!(dec(-1, 5), "5E+1");
        assert_eq!(dec(7, 5), "5E-7");
        assert_eq!(dec(i32::MAX, 15), "1.5E-2147483646");
        // The number has more digits than the library pads to, in a key that is not too long.
        let digits = BigInt::from(7).pow(80_000).to_string();
        let number = BigInt::from(7).pow(80_000).to_signed_bytes_be();
        let scale = digits.len() as i32 + 3;
        let bytes = [&scale.to_be_bytes()[..], &number].concat();
        assert!(digits.len() > 1 << 16 && bytes.len() < 1 << 16);
        let shown = key_json_value(&CqlType::Decimal, &bytes).unwrap();
        assert_eq!(shown, format!("0.000{digits}"));
    }

    #[test]
    fn days_before_and_after_the_epoch() {
        assert_eq!(date(-1), "1969-12-31");
        assert_eq!(date(59), "1970-03-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(-719_528), "0000-01-01");
        assert_eq!(date(-719_529), "-0001-12-31");
        assert_eq!(date(2_932_897), "10000-01-01");
        assert_eq!(iso_timestamp(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn floats_read_back_as_they_were() {
        for number in [
            0.1f32,
            1.0 / 3.0,
            f32::MIN_POSITIVE,
            f32::MAX,
            16_777_217.0,
            -0.0,
        ] {
            let KeyJson::Float(shown) = float(number).unwrap() else {
                panic!("a number");
            };
            assert_eq!(shown as f32, number);
        }
        assert_eq!(float(f32::NAN), Err(KeyError::NotFinite));
        assert_eq!(double(f64::INFINITY), Err(KeyError::NotFinite));
    }

    #[test]
    fn malformed_values_are_refused() {
        use CqlType::*;
        for (typ, bytes) in [
            (Int, vec![]),
            (Int, vec![0; 5]),
            (Boolean, vec![]),
            (Text, vec![0xff]),
            (Varint, vec![]),
            (Decimal, vec![0, 0, 0]),
            (Decimal, vec![0, 0, 0, 0]),
            (Time, (-1i64).to_be_bytes().to_vec()),
            (Inet, vec![1, 2, 3]),
            (Uuid, vec![0; 15]),
        ] {
            assert_eq!(
                key_json_value(&typ, &bytes),
                Err(KeyError::Malformed),
                "{typ:?}"
            );
        }
        assert_eq!(
            key_json_value(&Duration, &[0, 0, 0]),
            Err(KeyError::Unsupported)
        );
    }
}
