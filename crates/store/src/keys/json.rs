//! Key values as JSON (contract, section 1.8).

use std::borrow::Cow;
use std::fmt::Write;
use std::net::IpAddr;

use num_bigint::BigInt;
use scylla::frame::response::result::NativeType;
use serde::{Serialize, Serializer};
use uuid::Uuid;

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
pub enum Shown<'a> {
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

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Shown::Boolean(truth) => serializer.serialize_bool(*truth),
            Shown::Integer(number) => serializer.serialize_i64(*number),
            Shown::Float(number) => serializer.serialize_f64(*number),
            Shown::Uuid(uuid) => {
                let mut text = Uuid::encode_buffer();
                serializer.serialize_str(uuid.hyphenated().encode_lower(&mut text))
            }
            Shown::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl From<String> for Shown<'_> {
    fn from(text: String) -> Self {
        Shown::Text(text.into())
    }
}

/// Converts a serialised value to its JSON form.
///
/// # Errors
/// If the bytes are not a value of the type, or JSON has no form for it.
pub fn shown<'a>(typ: &NativeType, value: &'a [u8]) -> Result<Shown<'a>, KeyError> {
    Ok(match typ {
        NativeType::Ascii | NativeType::Text => {
            let text = std::str::from_utf8(value).map_err(|_| KeyError::Malformed)?;
            Shown::Text(text.into())
        }
        NativeType::Boolean => match value {
            [byte] => Shown::Boolean(*byte != 0),
            _ => return Err(KeyError::Malformed),
        },
        NativeType::TinyInt => Shown::Integer(i8::from_be_bytes(fixed(value)?).into()),
        NativeType::SmallInt => Shown::Integer(i16::from_be_bytes(fixed(value)?).into()),
        NativeType::Int => Shown::Integer(i32::from_be_bytes(fixed(value)?).into()),
        NativeType::BigInt => Shown::Integer(i64::from_be_bytes(fixed(value)?)),
        NativeType::Float => float(f32::from_be_bytes(fixed(value)?))?,
        NativeType::Double => double(f64::from_be_bytes(fixed(value)?))?,
        NativeType::Varint if !value.is_empty() => {
            BigInt::from_signed_bytes_be(value).to_string().into()
        }
        NativeType::Decimal => decimal(value)?.into(),
        NativeType::Uuid | NativeType::Timeuuid => Shown::Uuid(Uuid::from_bytes(fixed(value)?)),
        NativeType::Date => date(i64::from(u32::from_be_bytes(fixed(value)?)) - (1 << 31)).into(),
        NativeType::Time => time(i64::from_be_bytes(fixed(value)?))?.into(),
        NativeType::Timestamp => timestamp(i64::from_be_bytes(fixed(value)?)).into(),
        NativeType::Blob => blob(value).into(),
        NativeType::Inet => inet(value)?.to_string().into(),
        NativeType::Varint => return Err(KeyError::Malformed),
        _ => return Err(KeyError::Unsupported),
    })
}

fn fixed<const N: usize>(value: &[u8]) -> Result<[u8; N], KeyError> {
    value.try_into().map_err(|_| KeyError::Malformed)
}

fn double(number: f64) -> Result<Shown<'static>, KeyError> {
    match number.is_finite() {
        true => Ok(Shown::Float(number)),
        false => Err(KeyError::NotFinite),
    }
}

/// Converts to the shortest decimal that reads back as the same `f32`. The digits of the nearest
/// `f64` would be longer.
fn float(number: f32) -> Result<Shown<'static>, KeyError> {
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

/// Writes days since 1970-01-01 as `YYYY-MM-DD`. Years outside 0 to 9999 keep their sign and
/// digits.
fn date(days: i64) -> String {
    let (year, month, day) = civil(days);
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}-{month:02}-{day:02}", year.abs())
}

/// Writes nanoseconds since midnight as `HH:MM:SS.nnnnnnnnn`.
fn time(nanoseconds: i64) -> Result<String, KeyError> {
    const SECOND: i64 = 1_000_000_000;
    if !(0..86_400 * SECOND).contains(&nanoseconds) {
        return Err(KeyError::Malformed);
    }
    let seconds = nanoseconds / SECOND;
    Ok(format!(
        "{:02}:{:02}:{:02}.{:09}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        nanoseconds % SECOND
    ))
}

/// Writes milliseconds since the epoch as ISO 8601 in UTC.
pub fn timestamp(milliseconds: i64) -> String {
    let days = milliseconds.div_euclid(86_400_000);
    let rest = milliseconds.rem_euclid(86_400_000);
    format!(
        "{}T{:02}:{:02}:{:02}.{:03}Z",
        date(days),
        rest / 3_600_000,
        rest / 60_000 % 60,
        rest / 1000 % 60,
        rest % 1000
    )
}

/// Converts days since 1970-01-01 to year, month and day in the proleptic Gregorian calendar, by
/// the algorithm `civil_from_days` of Howard Hinnant's "chrono-Compatible Low-Level Date
/// Algorithms".
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
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
    use serde_json::{Value, json as value};

    use super::*;

    fn json(typ: &NativeType, bytes: &[u8]) -> Result<Value, KeyError> {
        shown(typ, bytes).map(|shown| serde_json::to_value(shown).unwrap())
    }

    fn dec(scale: i32, unscaled: i64) -> Value {
        let mut bytes = scale.to_be_bytes().to_vec();
        bytes.extend(BigInt::from(unscaled).to_signed_bytes_be());
        json(&NativeType::Decimal, &bytes).unwrap()
    }

    #[test]
    fn every_key_type() {
        use NativeType::*;
        let uuid = uuid::Uuid::from_u128(0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF);
        let cases: Vec<(NativeType, Vec<u8>, Value)> = vec![
            (Ascii, b"abc".into(), value!("abc")),
            (Text, "zażółć".as_bytes().into(), value!("zażółć")),
            (Text, vec![], value!("")),
            (Boolean, vec![1], value!(true)),
            (Boolean, vec![0], value!(false)),
            (TinyInt, vec![0x80], value!(-128)),
            (SmallInt, (-2i16).to_be_bytes().into(), value!(-2)),
            (Int, i32::MIN.to_be_bytes().into(), value!(i32::MIN)),
            (BigInt, i64::MIN.to_be_bytes().into(), value!(i64::MIN)),
            (Double, 0.1f64.to_be_bytes().into(), value!(0.1)),
            (Float, 0.1f32.to_be_bytes().into(), value!(0.1)),
            (Varint, vec![0xff], value!("-1")),
            (
                Varint,
                vec![0x01, 0, 0, 0, 0, 0, 0, 0, 0],
                value!("18446744073709551616"),
            ),
            (
                Uuid,
                uuid.as_bytes().to_vec(),
                value!("01234567-89ab-cdef-0123-456789abcdef"),
            ),
            (
                Timeuuid,
                uuid.as_bytes().to_vec(),
                value!("01234567-89ab-cdef-0123-456789abcdef"),
            ),
            (
                Date,
                (1u32 << 31).to_be_bytes().into(),
                value!("1970-01-01"),
            ),
            (
                Time,
                (((13 * 60 + 4) * 60 + 5) * 1_000_000_000i64 + 6)
                    .to_be_bytes()
                    .into(),
                value!("13:04:05.000000006"),
            ),
            (
                Timestamp,
                1_700_000_000_123i64.to_be_bytes().into(),
                value!("2023-11-14T22:13:20.123Z"),
            ),
            (Blob, vec![0xde, 0xad, 0x00], value!("0xdead00")),
            (Blob, vec![], value!("0x")),
            (Inet, vec![127, 0, 0, 1], value!("127.0.0.1")),
            (
                Inet,
                [0; 15].into_iter().chain([1]).collect(),
                value!("::1"),
            ),
        ];
        for (typ, bytes, expected) in cases {
            assert_eq!(json(&typ, &bytes), Ok(expected), "{typ:?}");
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
        let shown = json(&NativeType::Decimal, &bytes).unwrap();
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
        assert_eq!(timestamp(-1), "1969-12-31T23:59:59.999Z");
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
            let Shown::Float(shown) = float(number).unwrap() else {
                panic!("a number");
            };
            assert_eq!(shown as f32, number);
        }
        assert_eq!(float(f32::NAN), Err(KeyError::NotFinite));
        assert_eq!(double(f64::INFINITY), Err(KeyError::NotFinite));
    }

    #[test]
    fn malformed_values_are_refused() {
        use NativeType::*;
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
            assert_eq!(json(&typ, &bytes), Err(KeyError::Malformed), "{typ:?}");
        }
        assert_eq!(json(&Duration, &[0, 0, 0]), Err(KeyError::Unsupported));
    }
}
