//! Exponents and logarithms of varints and decimals, to as many digits as Cassandra gives.
//!
//! A result has as many significant digits as the number, but 32 at least, and is rounded half to
//! even. The time that a logarithm takes grows with the cube of the digits, so they are bounded.

use std::str::FromStr;

use bigdecimal::BigDecimal;
use cql::error::CqlError;
use dashu_float::round::mode::HalfEven;
use dashu_float::{Context, FBig, Repr};
use num_bigint::{BigInt, Sign};

use crate::statement_clock::StatementClock;

const DIGITS_MIN: usize = 32;
const DIGITS_MAX: usize = 500;

/// The digits that a quotient of two logarithms is computed with beyond those of the result.
const DIGITS_SPARE: usize = 10;

/// The numbers farther from zero have an exponent that is too long for a varint.
const EXPONENT_MAX: i32 = 89_000;

/// A function that is computed to many digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TranscendentalFunction {
    Exp,
    Log,
    Log10,
}

/// Computes the exponential or a logarithm of a number.
///
/// # Errors
/// Logarithms of zero and of negative numbers, exponents of numbers beyond 89,000, and numbers of
/// more than 500 digits; and if the numbers of a row have too many digits together.
pub(super) fn of_decimal(
    function: TranscendentalFunction,
    number: &BigDecimal,
    clock: &StatementClock,
) -> Result<BigDecimal, CqlError> {
    let (unscaled, scale) = number.as_bigint_and_exponent();
    if unscaled.bits() > 4 * DIGITS_MAX as u64 {
        return Err(too_large(function, "has too many digits"));
    }
    let digits = unscaled.magnitude().to_string().len();
    if digits > DIGITS_MAX {
        return Err(too_large(function, "has too many digits"));
    }
    let precision = digits.max(DIGITS_MIN);
    let name = match function {
        TranscendentalFunction::Log10 => "Log10",
        TranscendentalFunction::Exp | TranscendentalFunction::Log => "Natural log",
    };
    // The digits before the point; below zero there are as many zeros after it.
    let whole = digits as i64 - scale;
    if function == TranscendentalFunction::Exp {
        if unscaled.sign() == Sign::NoSign || whole < -(DIGITS_MAX as i64) {
            return Ok(BigDecimal::from(1));
        }
        if whole > 6 || number.abs() > EXPONENT_MAX {
            return Err(too_large(function, "is out of range"));
        }
    } else if unscaled.sign() != Sign::Plus {
        return Err(CqlError::invalid(format!("{name} of number zero or less")));
    } else if whole == 1 && unscaled == BigInt::from(10).pow(scale as u32) {
        return Ok(BigDecimal::from(0));
    }
    let repr = repr_of(&unscaled, scale).ok_or_else(|| too_large(function, "is out of range"))?;
    // A decimal logarithm is a quotient of two.
    let times = if function == TranscendentalFunction::Log10 {
        2
    } else {
        1
    };
    clock.take_work(precision, times)?;
    computed(function, &repr, precision).ok_or_else(|| too_large(function, "is out of range"))
}

/// Computes the same of a whole number, and cuts it after the point.
///
/// # Errors
/// As [`of_decimal`].
pub(super) fn of_varint(
    function: TranscendentalFunction,
    number: &BigInt,
    clock: &StatementClock,
) -> Result<BigInt, CqlError> {
    let result = of_decimal(function, &BigDecimal::new(number.clone(), 0), clock)?;
    let (whole, _) = result
        .with_scale_round(0, bigdecimal::RoundingMode::Down)
        .into_bigint_and_exponent();
    Ok(whole)
}

fn too_large(function: TranscendentalFunction, why: &str) -> CqlError {
    let name = match function {
        TranscendentalFunction::Exp => "exp",
        TranscendentalFunction::Log => "log",
        TranscendentalFunction::Log10 => "log10",
    };
    CqlError::invalid(format!("{name} of a number that {why}"))
}

fn repr_of(unscaled: &BigInt, scale: i64) -> Option<Repr<10>> {
    let exponent = isize::try_from(scale.checked_neg()?).ok()?;
    let significand = dashu_int::IBig::from_str(&unscaled.to_string()).ok()?;
    Some(Repr::new(significand, exponent))
}

fn computed(
    function: TranscendentalFunction,
    number: &Repr<10>,
    precision: usize,
) -> Option<BigDecimal> {
    let context = Context::<HalfEven>::new(precision);
    let result: FBig<HalfEven, 10> = match function {
        TranscendentalFunction::Exp => context.exp(number, None).ok()?.value(),
        TranscendentalFunction::Log10 => {
            let wider = Context::<HalfEven>::new(precision + DIGITS_SPARE);
            let of_number = wider.ln(number, None).ok()?.value();
            let of_ten = wider.ln(&Repr::new(10.into(), 0), None).ok()?.value();
            let quotient = context.div(of_number.repr(), of_ten.repr());
            quotient.ok()?.value()
        }
        TranscendentalFunction::Log => context.ln(number, None).ok()?.value(),
    };
    let (significand, exponent) = result.into_repr().into_parts();
    let unscaled = BigInt::from_str(&significand.to_string()).ok()?;
    // The zeros at the end count as digits of the result.
    let digits = unscaled.magnitude().to_string().len();
    let zeros = precision.saturating_sub(digits);
    let power = BigInt::from(10).pow(u32::try_from(zeros).ok()?);
    let scale = i64::try_from(zeros).ok()? - i64::try_from(exponent).ok()?;
    Some(BigDecimal::new(unscaled * power, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: TranscendentalFunction, number: &str) -> Result<String, String> {
        let number = BigDecimal::from_str(number).unwrap();
        let result = of_decimal(function, &number, &StatementClock::of_none());
        result
            .map(|result| result.to_plain_string())
            .map_err(|error| error.message)
    }

    /// The results are those of Cassandra 5.0.9.
    #[test]
    fn results_have_the_digits_of_cassandra() {
        for (function, number, result) in [
            (
                TranscendentalFunction::Exp,
                "1",
                "2.7182818284590452353602874713527",
            ),
            (
                TranscendentalFunction::Exp,
                "10.25",
                "28282.541920334979089893745772150",
            ),
            (TranscendentalFunction::Exp, "0", "1"),
            (
                TranscendentalFunction::Log,
                "0.5",
                "-0.69314718055994530941723212145818",
            ),
            (TranscendentalFunction::Log, "1", "0"),
            (
                TranscendentalFunction::Log10,
                "1000",
                "3.0000000000000000000000000000000",
            ),
            (
                TranscendentalFunction::Log10,
                "2",
                "0.30102999566398119521373889472449",
            ),
            (
                TranscendentalFunction::Log,
                "12345678901234567890.1234567890123456789012345",
                "43.9598377892025205573968393494915438266591565",
            ),
        ] {
            assert_eq!(of(function, number).as_deref(), Ok(result), "{number}");
        }
    }

    #[test]
    fn hostile_numbers_are_refused_at_once() {
        for (function, number) in [
            (TranscendentalFunction::Exp, "1E+2000000000"),
            (TranscendentalFunction::Exp, "-90000"),
            (TranscendentalFunction::Log, "0"),
            (TranscendentalFunction::Log10, "-1"),
        ] {
            assert!(of(function, number).is_err(), "{number}");
        }
        assert_eq!(
            of(TranscendentalFunction::Exp, "1E-2000000000").as_deref(),
            Ok("1")
        );
        assert!(of(TranscendentalFunction::Log, "1E+2000000000").is_ok());
        let long = format!("0.1{}", "9".repeat(DIGITS_MAX));
        for function in [
            TranscendentalFunction::Exp,
            TranscendentalFunction::Log,
            TranscendentalFunction::Log10,
        ] {
            assert!(of(function, &long).is_err());
        }
        assert!(of(TranscendentalFunction::Log10, &long[..DIGITS_MAX]).is_ok());
    }

    #[test]
    fn numbers_of_many_digits_are_refused_after_a_few() {
        let clock = StatementClock::of_none();
        let number = BigDecimal::from_str(&format!("0.1{}", "7".repeat(DIGITS_MAX - 1))).unwrap();
        for _ in 0..8 {
            of_decimal(TranscendentalFunction::Exp, &number, &clock).unwrap();
        }
        let message = of_decimal(TranscendentalFunction::Exp, &number, &clock)
            .unwrap_err()
            .message;
        assert!(message.contains("too many digits together"), "{message}");
    }

    #[test]
    fn varints_are_cut() {
        let clock = StatementClock::of_none();
        let of =
            |function, number: i64| of_varint(function, &BigInt::from(number), &clock).unwrap();
        assert_eq!(of(TranscendentalFunction::Exp, 3), BigInt::from(20));
        assert_eq!(of(TranscendentalFunction::Exp, -3), BigInt::ZERO);
        assert_eq!(of(TranscendentalFunction::Log10, 99), BigInt::from(1));
        let cut = "26881171418161354484126255515800000000000000";
        assert_eq!(
            of(TranscendentalFunction::Exp, 100),
            BigInt::from_str(cut).unwrap()
        );
    }
}
