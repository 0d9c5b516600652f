//! Durations: their bytes (three signed vints) and their literals.
//!
//! A duration counts months, days and nanoseconds apart, as a month has no fixed number of days
//! and a day no fixed number of hours. All three have the same sign.

use bytes::BufMut;

use super::{ValueError, vint};

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

pub(super) fn put(out: &mut impl BufMut, months: i32, days: i32, nanoseconds: i64) {
    vint::put_signed(out, i64::from(months));
    vint::put_signed(out, i64::from(days));
    vint::put_signed(out, nanoseconds);
}

/// Months, days and nanoseconds of a serialised duration.
pub(super) fn read(bytes: &[u8]) -> Result<(i32, i32, i64), ValueError> {
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

/// A unit of the short form (`1h30m`), and which of the three counts it adds to.
struct Unit {
    name: &'static str,
    count: Count,
    factor: i64,
}

#[derive(Clone, Copy)]
enum Count {
    Months,
    Days,
    Nanoseconds,
}

const fn unit(name: &'static str, count: Count, factor: i64) -> Unit {
    Unit {
        name,
        count,
        factor,
    }
}

/// From the largest to the smallest, which is the order they must be written in.
const UNITS: [Unit; 11] = [
    unit("y", Count::Months, 12),
    unit("mo", Count::Months, 1),
    unit("w", Count::Days, 7),
    unit("d", Count::Days, 1),
    unit("h", Count::Nanoseconds, 3_600 * NANOSECONDS_PER_SECOND),
    unit("m", Count::Nanoseconds, 60 * NANOSECONDS_PER_SECOND),
    unit("s", Count::Nanoseconds, NANOSECONDS_PER_SECOND),
    unit("ms", Count::Nanoseconds, 1_000_000),
    unit("us", Count::Nanoseconds, 1_000),
    unit("\u{b5}s", Count::Nanoseconds, 1_000),
    unit("ns", Count::Nanoseconds, 1),
];

/// The sum of the parts read so far.
#[derive(Default)]
struct Sum {
    months: i32,
    days: i32,
    nanoseconds: i64,
    /// The unit read last, as a position in [`UNITS`].
    last: Option<usize>,
}

impl Sum {
    /// Adds `digits` times the unit at `position`. `None` if the count overflows or the units are
    /// out of order or repeated.
    fn add(&mut self, digits: &str, position: usize) -> Option<()> {
        if self.last.is_some_and(|last| last >= position) {
            return None;
        }
        self.last = Some(position);
        let amount = digits
            .parse::<i64>()
            .ok()?
            .checked_mul(UNITS[position].factor)?;
        match UNITS[position].count {
            Count::Months => {
                self.months = self.months.checked_add(i32::try_from(amount).ok()?)?;
            }
            Count::Days => self.days = self.days.checked_add(i32::try_from(amount).ok()?)?,
            Count::Nanoseconds => self.nanoseconds = self.nanoseconds.checked_add(amount)?,
        }
        Some(())
    }
}

fn position(name: &str) -> Option<usize> {
    UNITS
        .iter()
        .position(|unit| unit.name.eq_ignore_ascii_case(name))
}

/// Months, days and nanoseconds of a duration literal without its sign: `1h30m`, `P1Y2DT3H`,
/// `P4W` or `P0001-02-03T04:05:06`. `None` if `text` is none of these, if its units are not in
/// decreasing order, or if a count overflows.
pub(crate) fn parse_duration(text: &str) -> Option<(i32, i32, i64)> {
    let mut sum = Sum::default();
    match text.strip_prefix('P') {
        None => short_form(text, &mut sum)?,
        Some(rest) if rest.contains('-') => alternative_form(rest, &mut sum)?,
        Some(rest) => {
            let (date, time) = match rest.split_once('T') {
                Some((_, "")) => return None,
                Some((date, time)) => (date, time),
                None => (rest, ""),
            };
            if rest.is_empty() {
                return None;
            }
            designators(
                date,
                &[("Y", "y"), ("M", "mo"), ("W", "w"), ("D", "d")],
                &mut sum,
            )?;
            designators(time, &[("H", "h"), ("M", "m"), ("S", "s")], &mut sum)?;
        }
    }
    sum.last?;
    Some((sum.months, sum.days, sum.nanoseconds))
}

/// Splits `12abc..` into its digits and what follows; `None` without digits.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn short_form(mut text: &str, sum: &mut Sum) -> Option<()> {
    while !text.is_empty() {
        let (digits, rest) = split_digits(text)?;
        let end = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        sum.add(digits, position(name)?)?;
        text = rest;
    }
    Some(())
}

/// Whether `text` is made of digits and units as the short form is, however large and in whatever
/// order.
pub(crate) fn resembles_duration(mut text: &str) -> bool {
    let mut parts = 0;
    while let Some((_, rest)) = split_digits(text) {
        let end = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        if position(name).is_none() {
            return false;
        }
        parts += 1;
        text = rest;
    }
    parts > 0 && text.is_empty()
}

fn designators(mut text: &str, names: &[(&str, &str)], sum: &mut Sum) -> Option<()> {
    while !text.is_empty() {
        let (digits, rest) = split_digits(text)?;
        let (written, name) = names
            .iter()
            .find(|(written, _)| rest.starts_with(written))?;
        sum.add(digits, position(name)?)?;
        text = &rest[written.len()..];
    }
    Some(())
}

/// `0001-02-03T04:05:06`: years to seconds, all of them.
fn alternative_form(text: &str, sum: &mut Sum) -> Option<()> {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let fits = text.len() == SHAPE.len()
        && text.bytes().zip(SHAPE).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            separator => byte == *separator,
        });
    if !fits {
        return None;
    }
    let names = ["y", "mo", "d", "h", "m", "s"];
    for (digits, name) in text.split(['-', 'T', ':']).zip(names) {
        sum.add(digits, position(name)?)?;
    }
    Some(())
}

/// The short form, with its sign: `-1mo2d3ns`, and `0s` for nothing at all.
pub(super) fn to_literal(months: i32, days: i32, nanoseconds: i64) -> String {
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
        assert_eq!(parse_duration("1h30m"), Some((0, 0, HOUR + 30 * MINUTE)));
        assert_eq!(
            parse_duration("1Y2MO3W4D5H6M7S8MS9US10NS"),
            Some((14, 25, 5 * HOUR + 6 * MINUTE + 7_008_009_010))
        );
        assert_eq!(parse_duration("3\u{b5}s"), Some((0, 0, 3_000)));
        assert_eq!(
            parse_duration("P1Y2M3DT4H5M6S"),
            Some((14, 3, 4 * HOUR + 5 * MINUTE + 6 * NANOSECONDS_PER_SECOND))
        );
        assert_eq!(parse_duration("P4W"), Some((0, 28, 0)));
        assert_eq!(parse_duration("PT5M"), Some((0, 0, 5 * MINUTE)));
        assert_eq!(
            parse_duration("P0001-02-03T04:05:06"),
            Some((14, 3, 4 * HOUR + 5 * MINUTE + 6 * NANOSECONDS_PER_SECOND))
        );
    }

    #[test]
    fn other_texts_are_no_durations() {
        for text in [
            "",
            "1",
            "h",
            "1x",
            "1h1h",
            "1s1h",
            "P",
            "PT",
            "P1",
            "P1H",
            "PT1D",
            "P1DT",
            "1h 2m",
            "P0001-02-03",
            "P01-02-03T04:05:06",
            "99999999999999999999h",
            "9999999999h",
            "200000000y",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
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
