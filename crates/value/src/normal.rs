//! The normal form of serialised clustering values.
//!
//! The database orders clustering values by their meaning. Two types have more than one form of the
//! same value: a varint may have needless sign bytes, and a decimal trailing zeros.

use std::borrow::Cow;

use num_bigint::BigInt;

use crate::CqlType;

/// Converts a serialised value to its normal form, the only one that keys use.
pub fn clustering_form<'a>(cql_type: &CqlType, value: &'a [u8]) -> Cow<'a, [u8]> {
    match cql_type {
        CqlType::Varint if !value.is_empty() => Cow::Borrowed(minimal(value)),
        CqlType::Decimal => match value.split_first_chunk() {
            Some((scale, unscaled)) if !unscaled.is_empty() => {
                Cow::Owned(decimal(i32::from_be_bytes(*scale), unscaled))
            }
            _ => Cow::Borrowed(value),
        },
        _ => Cow::Borrowed(value),
    }
}

/// Removes the leading bytes of a two's complement number that only repeat its sign.
fn minimal(mut bytes: &[u8]) -> &[u8] {
    while let [first, second, ..] = bytes {
        let repeats = match first {
            0x00 => second & 0x80 == 0,
            0xff => second & 0x80 != 0,
            _ => false,
        };
        if !repeats {
            break;
        }
        bytes = &bytes[1..];
    }
    bytes
}

/// Writes a decimal with the fewest digits. Zero has scale 0.
fn decimal(scale: i32, unscaled: &[u8]) -> Vec<u8> {
    let number = BigInt::from_signed_bytes_be(unscaled);
    let ten = BigInt::from(10);
    let zero = BigInt::ZERO;
    let (number, scale) = if number == zero {
        (number, 0)
    } else if &number % &ten != zero {
        (number, scale)
    } else {
        let digits = number.to_string();
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        // A scale that would leave its range keeps as many zeros as it needs.
        let zeros = (zeros as i64).min(i64::from(scale) - i64::from(i32::MIN)) as u32;
        (number / ten.pow(zeros), scale - zeros as i32)
    };
    let mut out = scale.to_be_bytes().to_vec();
    out.extend(number.to_signed_bytes_be());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal_decimal(scale: i32, unscaled: i64) -> (i32, BigInt) {
        let mut bytes = scale.to_be_bytes().to_vec();
        bytes.extend(unscaled.to_be_bytes());
        let out = clustering_form(&CqlType::Decimal, &bytes).into_owned();
        let (scale, unscaled) = out.split_first_chunk().unwrap();
        (
            i32::from_be_bytes(*scale),
            BigInt::from_signed_bytes_be(unscaled),
        )
    }

    #[test]
    fn decimals_lose_trailing_zeros() {
        assert_eq!(normal_decimal(2, 100), (0, 1.into()));
        assert_eq!(normal_decimal(0, 12_000), (-3, 12.into()));
        assert_eq!(normal_decimal(5, 0), (0, 0.into()));
        assert_eq!(normal_decimal(1, -105), (1, (-105).into()));
        assert_eq!(normal_decimal(1, -1050), (0, (-105).into()));
        assert_eq!(normal_decimal(i32::MIN + 1, 100), (i32::MIN, 10.into()));
    }

    #[test]
    fn varints_lose_needless_sign_bytes() {
        let normal = |bytes: &'static [u8]| clustering_form(&CqlType::Varint, bytes).into_owned();
        assert_eq!(normal(&[0, 0, 1]), [1]);
        assert_eq!(normal(&[0, 0x80]), [0, 0x80]);
        assert_eq!(normal(&[0xff, 0xff, 0x80]), [0x80]);
        assert_eq!(normal(&[0xff, 0x7f]), [0xff, 0x7f]);
        assert_eq!(normal(&[0, 0]), [0]);
        assert_eq!(normal(&[]), [0u8; 0]);
    }

    #[test]
    fn other_types_are_left_alone() {
        assert_eq!(&*clustering_form(&CqlType::Blob, &[0, 0, 1]), [0, 0, 1]);
    }
}
