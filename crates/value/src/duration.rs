//! Durations: their bytes (three signed vints) and their literals.
//!
//! A duration has separate counts of months, days and nanoseconds, as a month has no fixed number
//! of days and a day no fixed number of hours. None is positive while another is negative.

use bytes::BufMut;

use crate::{ValueError, vint};

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Appends a serialised duration.
pub(crate) fn put(out: &mut impl BufMut, months: i32, days: i32, nanoseconds: i64) {
    vint::put_signed(out, i64::from(months));
    vint::put_signed(out, i64::from(days));
    vint::put_signed(out, nanoseconds);
}

/// Reads the months, days and nanoseconds of a serialised duration.
pub(crate) fn read(bytes: &[u8]) -> Result<(i32, i32, i64), ValueError> {
    let mut rest = bytes;
    let mut next = || vint::take_signed(&mut rest);
    let (Some(months), Some(days), Some(nanoseconds)) = (next(), next(), next()) else {
        return Err(ValueError::new(
            "a value of type duration is three variable-length integers, got fewer",
        ));
    };
    if !rest.is_empty() {
        return Err(ValueError(format!(
            "{} bytes are left over after the duration",
            rest.len()
        )));
    }
    let narrow = |number: i64, unit: &str| {
        i32::try_from(number).map_err(|_| {
            ValueError(format!(
                "the {unit} of a duration take 32 bits, got {number}"
            ))
        })
    };
    let (months, days) = (narrow(months, "months")?, narrow(days, "days")?);
    let signs = [i64::from(months), i64::from(days), nanoseconds].map(i64::signum);
    if signs.contains(&1) && signs.contains(&-1) {
        return Err(ValueError::new(
            "the months, days and nanoseconds of a duration must have the same sign",
        ));
    }
    Ok((months, days, nanoseconds))
}

/// A unit of a duration literal.
struct LiteralUnit {
    /// The name in the short form (`1h30m`).
    name: &'static str,
    /// The name in messages.
    plural: &'static str,
    /// The count that the unit adds to.
    count: UnitCount,
    /// The amount that one unit adds to its count.
    factor: i64,
}

/// One of the three counts of a duration.
#[derive(Clone, Copy)]
enum UnitCount {
    Months,
    Days,
    Nanoseconds,
}

impl UnitCount {
    fn name(self) -> &'static str {
        match self {
            UnitCount::Months => "months",
            UnitCount::Days => "days",
            UnitCount::Nanoseconds => "nanoseconds",
        }
    }

    fn max(self) -> i64 {
        match self {
            UnitCount::Months | UnitCount::Days => i64::from(i32::MAX),
            UnitCount::Nanoseconds => i64::MAX,
        }
    }
}

const fn unit(
    name: &'static str,
    plural: &'static str,
    count: UnitCount,
    factor: i64,
) -> LiteralUnit {
    LiteralUnit {
        name,
        plural,
        count,
        factor,
    }
}

/// All units from the largest to the smallest. They must be written in this order.
const UNITS: [LiteralUnit; 10] = [
    unit("y", "years", UnitCount::Months, 12),
    unit("mo", "months", UnitCount::Months, 1),
    unit("w", "weeks", UnitCount::Days, 7),
    unit("d", "days", UnitCount::Days, 1),
    unit(
        "h",
        "hours",
        UnitCount::Nanoseconds,
        3_600 * NANOSECONDS_PER_SECOND,
    ),
    unit(
        "m",
        "minutes",
        UnitCount::Nanoseconds,
        60 * NANOSECONDS_PER_SECOND,
    ),
    unit(
        "s",
        "seconds",
        UnitCount::Nanoseconds,
        NANOSECONDS_PER_SECOND,
    ),
    unit("ms", "milliseconds", UnitCount::Nanoseconds, 1_000_000),
    unit("us", "microseconds", UnitCount::Nanoseconds, 1_000),
    unit("ns", "nanoseconds", UnitCount::Nanoseconds, 1),
];

/// The reason why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoDuration {
    /// The text does not have the form of a duration.
    Form,
    /// The text has the form, but its units are in the wrong order or a count is too large. The
    /// string is the sentence for the user.
    Value(String),
}

/// The sum of the parts read so far.
#[derive(Default)]
struct CountSums {
    /// The months, days and nanoseconds.
    counts: [i64; 3],
    /// The unit read last, as a position in [`UNITS`].
    last: Option<usize>,
}

impl CountSums {
    /// Adds `digits` times the unit at `position` in [`UNITS`], which must come after the last one.
    fn add(&mut self, digits: &str, position: usize) -> Result<(), NoDuration> {
        let unit = &UNITS[position];
        let invalid = |what: String| NoDuration::Value(format!("Invalid duration. The {what}"));
        match self.last {
            Some(last) if last == position => {
                return Err(invalid(format!(
                    "{} are specified multiple times",
                    unit.plural
                )));
            }
            Some(last) if last > position => {
                let last = UNITS[last].plural;
                return Err(invalid(format!("{last} should be after {}", unit.plural)));
            }
            _ => self.last = Some(position),
        }
        let count = &mut self.counts[unit.count as usize];
        let sum = (digits.parse::<i64>().ok())
            .and_then(|amount| amount.checked_mul(unit.factor))
            .and_then(|amount| count.checked_add(amount))
            .filter(|sum| *sum <= unit.count.max());
        *count = sum.ok_or_else(|| {
            invalid(format!(
                "total number of {} must be less or equal to {}",
                unit.count.name(),
                unit.count.max()
            ))
        })?;
        Ok(())
    }
}

fn position(name: &str) -> Option<usize> {
    // Microseconds are written with `u` or the micro sign.
    let name = match name.strip_prefix('\u{b5}') {
        Some("s" | "S") => "us",
        _ => name,
    };
    UNITS
        .iter()
        .position(|unit| unit.name.eq_ignore_ascii_case(name))
}

/// Reads the months, days and nanoseconds of a duration literal without its sign: `1h30m`,
/// `P1Y2DT3H`, `P4W` or `P0001-02-03T04:05:06`.
///
/// # Errors
/// If `text` is none of these, if its units are not in decreasing order, or if a count overflows.
pub fn parse_duration(text: &str) -> Result<(i32, i32, i64), NoDuration> {
    let mut sum = CountSums::default();
    match text.strip_prefix('P') {
        None => short_form(text, &mut sum)?,
        Some(rest) if rest.contains('-') => alternative_form(rest, &mut sum)?,
        Some(rest) => standard_form(rest, &mut sum)?,
    }
    let [months, days, nanoseconds] = sum.counts;
    match (sum.last, i32::try_from(months), i32::try_from(days)) {
        (Some(_), Ok(months), Ok(days)) => Ok((months, days, nanoseconds)),
        _ => Err(NoDuration::Form),
    }
}

/// Splits `12abc..` into its digits and what follows; `None` without digits.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Splits `12ab34..` into its digits, the unit as a position in [`UNITS`], and what follows. `None`
/// without digits and a unit.
fn split_part(text: &str) -> Option<(&str, usize, &str)> {
    let (digits, rest) = split_digits(text)?;
    let end = rest
        .find(|c: char| c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    Some((digits, position(name)?, rest))
}

fn short_form(mut text: &str, sum: &mut CountSums) -> Result<(), NoDuration> {
    while !text.is_empty() {
        let (digits, position, rest) = split_part(text).ok_or(NoDuration::Form)?;
        sum.add(digits, position)?;
        text = rest;
    }
    Ok(())
}

/// Whether `text` consists of digits and units as the short form does. The size of the numbers and
/// the order of the units don't matter.
pub fn resembles_duration(mut text: &str) -> bool {
    while let Some((_, _, rest)) = split_part(text) {
        if rest.is_empty() {
            return true;
        }
        text = rest;
    }
    false
}

/// Reads the part after the `P` of `P1Y2M3DT4H5M6S` or `P4W`. Weeks come without other units.
fn standard_form(text: &str, sum: &mut CountSums) -> Result<(), NoDuration> {
    let (date, time) = match text.split_once('T') {
        Some((_, "")) => return Err(NoDuration::Form),
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    if let (Some(weeks), None) = (date.strip_suffix('W'), time) {
        return designators(weeks, &[("", "w")], sum);
    }
    designators(date, &[("Y", "y"), ("M", "mo"), ("D", "d")], sum)?;
    designators(
        time.unwrap_or_default(),
        &[("H", "h"), ("M", "m"), ("S", "s")],
        sum,
    )
}

/// Reads numbers that are each followed by one of these letters. A letter comes at most once, and
/// the letters come in this order.
fn designators(
    mut text: &str,
    mut names: &[(&str, &str)],
    sum: &mut CountSums,
) -> Result<(), NoDuration> {
    while !text.is_empty() {
        let (digits, rest) = split_digits(text).ok_or(NoDuration::Form)?;
        let at = names
            .iter()
            .position(|(written, _)| rest.starts_with(written))
            .ok_or(NoDuration::Form)?;
        let (written, name) = names[at];
        sum.add(digits, position(name).ok_or(NoDuration::Form)?)?;
        names = &names[at + 1..];
        text = &rest[written.len()..];
    }
    Ok(())
}

/// Reads `0001-02-03T04:05:06`: years, months, days, hours, minutes and seconds.
fn alternative_form(text: &str, sum: &mut CountSums) -> Result<(), NoDuration> {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let fits = text.len() == SHAPE.len()
        && text.bytes().zip(SHAPE).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            separator => byte == *separator,
        });
    if !fits {
        return Err(NoDuration::Form);
    }
    let names = ["y", "mo", "d", "h", "m", "s"];
    for (digits, name) in text.split(['-', 'T', ':']).zip(names) {
        sum.add(digits, position(name).ok_or(NoDuration::Form)?)?;
    }
    Ok(())
}

/// Writes a duration in the short form, with its sign: `-1mo2d3ns`, or `0s` for zero.
pub(crate) fn to_literal(months: i32, days: i32, nanoseconds: i64) -> String {
    let mut text = String::new();
    if months < 0 || days < 0 || nanoseconds < 0 {
        text.push('-');
    }
    let mut left = [
        u64::from(months.unsigned_abs()),
        u64::from(days.unsigned_abs()),
        nanoseconds.unsigned_abs(),
    ];
    for unit in &UNITS {
        let count = &mut left[unit.count as usize];
        let amount = *count / unit.factor.unsigned_abs();
        *count %= unit.factor.unsigned_abs();
        if amount > 0 {
            text.push_str(&format!("{amount}{}", unit.name));
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600 * NANOSECONDS_PER_SECOND;
    const MINUTE: i64 = 60 * NANOSECONDS_PER_SECOND;

    #[test]
    fn every_form_of_the_literal_is_read() {
        assert_eq!(parse_duration("1h30m"), Ok((0, 0, HOUR + 30 * MINUTE)));
        assert_eq!(
            parse_duration("1Y2MO3W4D5H6M7S8MS9US10NS"),
            Ok((14, 25, 5 * HOUR + 6 * MINUTE + 7_008_009_010))
        );
        assert_eq!(parse_duration("3\u{b5}s"), Ok((0, 0, 3_000)));
        assert_eq!(
            parse_duration("P1Y2M3DT4H5M6S"),
            Ok((14, 3, 4 * HOUR + 5 * MINUTE + 6 * NANOSECONDS_PER_SECOND))
        );
        assert_eq!(parse_duration("P4W"), Ok((0, 28, 0)));
        assert_eq!(parse_duration("PT5M"), Ok((0, 0, 5 * MINUTE)));
        assert_eq!(
            parse_duration("P0001-02-03T04:05:06"),
            Ok((14, 3, 4 * HOUR + 5 * MINUTE + 6 * NANOSECONDS_PER_SECOND))
        );
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "",
            "1",
            "h",
            "1x",
            "P",
            "PT",
            "PW",
            "P1",
            "P1H",
            "PT1D",
            "P1DT",
            "P1Y1W",
            "P1W1D",
            "P1WT1H",
            "P1D1Y",
            "PT1M1M",
            "1h 2m",
            "P0001-02-03",
            "P01-02-03T04:05:06",
        ] {
            assert_eq!(parse_duration(text), Err(NoDuration::Form), "{text}");
        }
    }

    #[test]
    fn order_and_range_are_explained() {
        for (text, what) in [
            ("1h1h", "The hours are specified multiple times"),
            (
                "2us3\u{b5}s",
                "The microseconds are specified multiple times",
            ),
            ("1s1h", "The seconds should be after hours"),
            (
                "178956970y8mo",
                "The total number of months must be less or equal to 2147483647",
            ),
            (
                "P306783379W",
                "The total number of days must be less or equal to 2147483647",
            ),
            (
                "99999999999999999999h",
                "The total number of nanoseconds must be less or equal to 9223372036854775807",
            ),
        ] {
            let value = NoDuration::Value(format!("Invalid duration. {what}"));
            assert_eq!(parse_duration(text), Err(value), "{text}");
        }
    }

    #[test]
    fn mixed_signs_and_wide_counts_are_refused() {
        let refused = |months: i64, days: i64, nanoseconds: i64| {
            let mut bytes = Vec::new();
            for number in [months, days, nanoseconds] {
                vint::put_signed(&mut bytes, number);
            }
            read(&bytes).unwrap_err().0
        };
        assert_eq!(
            refused(1, -1, 0),
            "the months, days and nanoseconds of a duration must have the same sign"
        );
        assert_eq!(
            refused(1 << 31, 0, 0),
            "the months of a duration take 32 bits, got 2147483648"
        );
        assert!(read(&[0, 0]).is_err());
        assert!(read(&[0, 0, 0, 0]).is_err());
    }

    #[test]
    fn the_literal_names_each_unit_once() {
        assert_eq!(to_literal(0, 0, 0), "0s");
        assert_eq!(to_literal(-14, -10, -1_000_000_001), "-1y2mo1w3d1s1ns");
        assert_eq!(
            to_literal(i32::MIN, i32::MIN, i64::MIN),
            "-178956970y8mo306783378w2d2562047h47m16s854ms775us808ns"
        );
    }
}
