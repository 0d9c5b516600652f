//! Numbers of any length: comparing varints and decimals, and reading and writing them as text.
//!
//! No function here expands an exponent: `1E+2147483647` stays one digit and a scale.

use std::cmp::Ordering;

use bigdecimal::BigDecimal;
use num_bigint::{BigInt, BigUint, Sign};

use crate::CqlType;
use crate::{ValueError, validate};

/// Compares two's complement integers of any length by value.
pub(crate) fn compare_varints(a: &[u8], b: &[u8]) -> Ordering {
    let (a_negative, a) = significant(a);
    let (b_negative, b) = significant(b);
    match (a_negative, b_negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (true, true) => b.len().cmp(&a.len()).then_with(|| a.cmp(b)),
    }
}

/// The sign (`true` for negative) and the bytes without the leading ones that only repeat the sign.
fn significant(bytes: &[u8]) -> (bool, &[u8]) {
    let negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
    let filler = if negative { 0xff } else { 0 };
    let start = bytes
        .iter()
        .position(|byte| *byte != filler)
        .unwrap_or(bytes.len());
    (negative, &bytes[start..])
}

/// Compares serialised decimals by value, whatever their scales. Both must have at least 5 bytes.
pub(crate) fn compare_decimals(a: &[u8], b: &[u8]) -> Ordering {
    let (Some((a_scale, a)), Some((b_scale, b))) =
        (a.split_first_chunk::<4>(), b.split_first_chunk::<4>())
    else {
        return a.cmp(b);
    };
    let (a_scale, b_scale) = (i32::from_be_bytes(*a_scale), i32::from_be_bytes(*b_scale));
    if a_scale == b_scale {
        return compare_varints(a, b);
    }
    let a = BigInt::from_signed_bytes_be(a);
    let b = BigInt::from_signed_bytes_be(b);
    match (a.sign(), b.sign()) {
        (Sign::NoSign, Sign::NoSign) => Ordering::Equal,
        (a_sign, b_sign) if a_sign != b_sign => a_sign.cmp(&b_sign),
        (Sign::Minus, _) => compare_magnitudes(b.magnitude(), b_scale, a.magnitude(), a_scale),
        _ => compare_magnitudes(a.magnitude(), a_scale, b.magnitude(), b_scale),
    }
}

/// Compares positive numbers `a * 10^-a_scale` and `b * 10^-b_scale`.
fn compare_magnitudes(a: &BigUint, a_scale: i32, b: &BigUint, b_scale: i32) -> Ordering {
    let (a_low, a_high) = decimal_exponent(a, a_scale);
    let (b_low, b_high) = decimal_exponent(b, b_scale);
    if a_low > b_high {
        return Ordering::Greater;
    }
    if b_low > a_high {
        return Ordering::Less;
    }
    // The numbers are close, so their scales differ by no more than the digits they have.
    let scale_difference = i64::from(b_scale) - i64::from(a_scale);
    let scale_up = |number: &BigUint| {
        number * BigUint::from(10_u8).pow(scale_difference.unsigned_abs() as u32)
    };
    if scale_difference >= 0 {
        scale_up(a).cmp(b)
    } else {
        a.cmp(&scale_up(b))
    }
}

/// A lower and an upper bound of the decimal logarithm of `unscaled * 10^-scale`. They are wide
/// enough for rounding errors.
fn decimal_exponent(unscaled: &BigUint, scale: i32) -> (f64, f64) {
    const MARGIN: f64 = 1e-3;
    let bits = unscaled.bits() as f64;
    let scale = f64::from(scale);
    (
        (bits - 1.0) * std::f64::consts::LOG10_2 - scale - MARGIN,
        bits * std::f64::consts::LOG10_2 - scale + MARGIN,
    )
}

/// The most digits that are read. [`super::MAX_NUMERIC_BYTES`] hold fewer.
const MAX_DIGITS: usize = super::MAX_NUMERIC_BYTES * 5 / 2;

/// Reads digits with an optional sign.
pub(crate) fn parse_varint(digits: &str) -> Result<BigInt, ValueError> {
    let number = parse_integer("varint", digits)?;
    validate::numeric_length("varint", number.to_signed_bytes_be().len())?;
    Ok(number)
}

fn parse_integer(what: &str, digits: &str) -> Result<BigInt, ValueError> {
    if digits.len() > MAX_DIGITS {
        return Err(ValueError(format!(
            "a {what} of {} digits is longer than the {MAX_DIGITS} digits allowed",
            digits.len()
        )));
    }
    digits
        .parse()
        .map_err(|_| ValueError(format!("'{digits}' is no number")))
}

/// Reads a decimal as written, keeping its scale: `1.50` is 150 with scale 2.
pub(crate) fn parse_decimal(text: &str) -> Result<BigDecimal, ValueError> {
    let no_number = || ValueError(format!("'{text}' is no value of type {}", CqlType::Decimal));
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()),
        None => (text, Some(0)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(no_number());
    }
    let unscaled = parse_integer("decimal", &[whole, fraction].concat())?;
    validate::numeric_length("decimal", unscaled.to_signed_bytes_be().len())?;
    let scale = exponent
        .and_then(|exponent| (fraction.len() as i64).checked_sub(exponent))
        .and_then(|scale| i32::try_from(scale).ok())
        .ok_or_else(|| {
            ValueError(format!(
                "the exponent of the decimal {text} is out of range, its scale must fit 32 bits"
            ))
        })?;
    Ok(BigDecimal::new(unscaled, i64::from(scale)))
}

/// Writes a decimal as text that reads back with the same scale: plain if that is short, else with
/// an exponent.
pub(crate) fn decimal_text(number: &BigDecimal) -> String {
    /// Numbers below this power of ten are written with an exponent.
    const SMALLEST_PLAIN_EXPONENT: i64 = -6;
    let (unscaled, scale) = number.as_bigint_and_exponent();
    let sign = if unscaled.sign() == Sign::Minus {
        "-"
    } else {
        ""
    };
    let digits = unscaled.magnitude().to_string();
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let exponent = digits.len() as i64 - 1 - scale;
    if scale > 0 && exponent >= SMALLEST_PLAIN_EXPONENT {
        let scale = scale as usize;
        // Padded here and not by `format!`, which pads to no more than 65,535 places. A value may
        // have more digits.
        let padded = "0".repeat((scale + 1).saturating_sub(digits.len())) + &digits;
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        return format!("{sign}{whole}.{fraction}");
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{rest}E{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn decimal(text: &str) -> Vec<u8> {
        Value::Decimal(parse_decimal(text).unwrap())
            .serialize()
            .to_vec()
    }

    #[test]
    fn varints_compare_by_value() {
        let order = [
            &[0xff, 0x00][..],
            &[0x80],
            &[0xff],
            &[0x00],
            &[0x01],
            &[0x7f],
            &[0x00, 0x80],
            &[0x01, 0x00],
        ];
        for pair in order.windows(2) {
            assert_eq!(
                compare_varints(pair[0], pair[1]),
                Ordering::Less,
                "{pair:?}"
            );
        }
        assert_eq!(compare_varints(&[0, 0, 5], &[5]), Ordering::Equal);
        assert_eq!(compare_varints(&[0xff, 0xff], &[0xff]), Ordering::Equal);
    }

    #[test]
    fn decimals_compare_by_value_at_any_scale() {
        let order = [
            "-1E+2147483647",
            "-10.5",
            "-10.49",
            "-1E-2147483647",
            "0E+2147483647",
            "1E-2147483647",
            "9.99E-7",
            "0.000001",
            "9.999999999999999999999999999",
            "10",
            "1.1E+1",
            "1E+2147483647",
        ];
        for pair in order.windows(2) {
            assert_eq!(
                compare_decimals(&decimal(pair[0]), &decimal(pair[1])),
                Ordering::Less,
                "{pair:?}"
            );
        }
        for (a, b) in [
            ("1.0", "1.00"),
            ("1E+3", "1000"),
            ("0", "0.000"),
            ("-5E+2", "-500.0"),
        ] {
            assert_eq!(
                compare_decimals(&decimal(a), &decimal(b)),
                Ordering::Equal,
                "{a} {b}"
            );
        }
    }

    #[test]
    fn decimals_keep_their_scale_as_text() {
        for text in [
            "0",
            "0.00",
            "1.50",
            "-1.50",
            "0.000001",
            "1E-7",
            "1.5E-8",
            "1E+3",
            "-1.23E+10",
            "123456789012345678901234567890.5",
            "1E+2147483648",
            "1E-2147483647",
        ] {
            assert_eq!(decimal_text(&parse_decimal(text).unwrap()), text);
        }
        // More digits than `format!` pads to. A serialised value may have them.
        let number = BigInt::from(7).pow(80_000);
        let digits = number.to_string();
        assert!(digits.len() > 1 << 16);
        let long = BigDecimal::new(number, digits.len() as i64 + 3);
        assert_eq!(decimal_text(&long), format!("0.000{digits}"));
    }

    #[test]
    fn numbers_beyond_the_bounds_are_refused() {
        assert!(parse_decimal("1E+2147483649").is_err());
        assert!(parse_decimal("1E-99999999999999999999").is_err());
        assert!(parse_decimal("1.-5").is_err());
        assert!(parse_varint(&"9".repeat(MAX_DIGITS)).is_err());
        assert!(parse_varint(&"9".repeat(10 * MAX_DIGITS)).is_err());
        assert!(parse_varint(&"9".repeat(39_000)).is_ok());
    }
}
