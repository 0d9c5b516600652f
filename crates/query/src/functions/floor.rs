//! `floor(time, duration)`: the beginning of the span of time, as long as the duration, that
//! contains a time.

use bytes::Bytes;
use cql::error::CqlError;
use value::{CqlType, Value, shift_date, shift_timestamp, timeuuid};

use crate::statement_clock::StatementClock;

const MILLIS_PER_DAY: i64 = 86_400_000;
const NANOSECONDS_PER_DAY: i64 = 86_400_000_000_000;

/// The serialised day of 1970-01-01.
const EPOCH_DAY: u32 = 1 << 31;

/// The least days of a month.
const LEAST_MONTH: i64 = 28;

/// The parts of a duration, which are not negative.
struct DurationParts {
    months: i64,
    days: i64,
    nanoseconds: i64,
    /// The duration as text.
    text: String,
}

pub(super) fn of_timestamp(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    timestamp(millis(arguments[0])?, arguments)
}

/// The floor of a timeuuid is a timestamp.
pub(super) fn of_timeuuid(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    match read(&CqlType::Timeuuid, arguments[0])? {
        Value::Timeuuid(uuid) => timestamp(timeuuid::unix_millis(&uuid), arguments),
        other => Err(no_value(&other)),
    }
}

pub(super) fn of_date(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    let day = day(arguments[0])?;
    let span = DurationParts::read(arguments[1])?;
    if span.nanoseconds != 0 {
        return Err(CqlError::invalid(format!(
            "The floor on date values cannot be computed for the {} duration as precision is below \
             1 day",
            span.text
        )));
    }
    let start = match arguments.get(2) {
        None => EPOCH_DAY,
        Some(bytes) => self::day(bytes)?,
    };
    let (from, to) = (i64::from(start), i64::from(day));
    let floor = span.last_before(from, to, LEAST_MONTH * span.months + span.days, |count| {
        let day = shift_date(start, span.months * count, span.days * count)?;
        Some(i64::from(day))
    })?;
    Ok(Value::Date(floor as u32).serialize())
}

pub(super) fn of_time(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    let time = match read(&CqlType::Time, arguments[0])? {
        Value::Time(time) => time,
        other => return Err(no_value(&other)),
    };
    let span = DurationParts::read(arguments[1])?;
    if span.months != 0 || span.days != 0 || span.nanoseconds > NANOSECONDS_PER_DAY {
        return Err(CqlError::invalid(
            "For time values, the floor can only be computed for durations smaller that a day",
        ));
    }
    if span.nanoseconds == 0 {
        return Err(empty_span());
    }
    Ok(Value::Time(time - time % span.nanoseconds).serialize())
}

fn timestamp(millis: i64, arguments: &[&[u8]]) -> Result<Bytes, CqlError> {
    let span = DurationParts::read(arguments[1])?;
    if span.nanoseconds % 1_000_000 != 0 {
        return Err(CqlError::invalid(format!(
            "The floor cannot be computed for the {} duration as precision is below 1 millisecond",
            span.text
        )));
    }
    let start = match arguments.get(2) {
        None => 0,
        Some(bytes) => self::millis(bytes)?,
    };
    let least = (LEAST_MONTH * span.months + span.days)
        .saturating_mul(MILLIS_PER_DAY)
        .saturating_add(span.nanoseconds / 1_000_000);
    let floor = span.last_before(start, millis, least, |count| {
        let nanoseconds = span.nanoseconds.checked_mul(count)?;
        shift_timestamp(start, span.months * count, span.days * count, nanoseconds)
    })?;
    Ok(Value::Timestamp(floor).serialize())
}

impl DurationParts {
    fn read(bytes: &[u8]) -> Result<DurationParts, CqlError> {
        let value = read(&CqlType::Duration, bytes)?;
        let Value::Duration {
            months,
            days,
            nanoseconds,
        } = value
        else {
            return Err(empty_span());
        };
        if months < 0 || days < 0 || nanoseconds < 0 {
            return Err(CqlError::invalid(
                "Negative durations are not supported by the floor function",
            ));
        }
        Ok(DurationParts {
            months: i64::from(months),
            days: i64::from(days),
            nanoseconds,
            text: value.to_literal(),
        })
    }

    /// The last beginning of a span that is not after `to`. `begin` gives the beginning of the span
    /// after so many others, if there is one, and `least` is the least length of a span.
    fn last_before(
        &self,
        from: i64,
        to: i64,
        least: i64,
        begin: impl Fn(i64) -> Option<i64>,
    ) -> Result<i64, CqlError> {
        if least == 0 {
            return Err(empty_span());
        }
        if from > to {
            return Err(CqlError::invalid(
                "The floor function starting time is greater than the provided time",
            ));
        }
        if self.months == 0 {
            return Ok(to - to.saturating_sub(from) % least);
        }
        // Months differ in length, so the span is searched for. So many spans end after `to`.
        let (mut first, mut behind) = (0, to.saturating_sub(from) / least + 1);
        while first + 1 < behind {
            let middle = first + (behind - first) / 2;
            match begin(middle).is_some_and(|begin| begin <= to) {
                true => first = middle,
                false => behind = middle,
            }
        }
        Ok(begin(first).unwrap_or(from))
    }
}

fn empty_span() -> CqlError {
    CqlError::invalid("The floor function needs a duration that is longer than nothing")
}

fn millis(bytes: &[u8]) -> Result<i64, CqlError> {
    match read(&CqlType::Timestamp, bytes)? {
        Value::Timestamp(millis) => Ok(millis),
        other => Err(no_value(&other)),
    }
}

fn day(bytes: &[u8]) -> Result<u32, CqlError> {
    match read(&CqlType::Date, bytes)? {
        Value::Date(day) => Ok(day),
        other => Err(no_value(&other)),
    }
}

/// The error for bytes that are no time. The empty value does not come here.
fn no_value(value: &Value) -> CqlError {
    CqlError::invalid(format!("{} is no time", value.to_literal()))
}

fn read(cql_type: &CqlType, bytes: &[u8]) -> Result<Value, CqlError> {
    Value::deserialize(cql_type, bytes).map_err(|error| CqlError::invalid(error.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_on_the_day_of_the_first() {
        let month = Value::Duration {
            months: 1,
            days: 0,
            nanoseconds: 0,
        };
        let floor = |day: u32, start: u32| {
            let arguments = [
                Value::Date(day).serialize(),
                month.serialize(),
                Value::Date(start).serialize(),
            ];
            let arguments: Vec<&[u8]> = arguments.iter().map(|bytes| &bytes[..]).collect();
            of_date(&arguments, &StatementClock::of_none())
        };
        // 1970-01-31 and its spans, which begin on the last day of February, and so on.
        let start = EPOCH_DAY + 30;
        for (day, expected) in [(30, 30), (57, 30), (58, 58), (88, 58), (89, 89)] {
            let expected = Value::Date(EPOCH_DAY + expected).serialize();
            assert_eq!(floor(EPOCH_DAY + day, start).unwrap(), expected, "{day}");
        }
        assert!(floor(EPOCH_DAY, start).is_err());
    }
}
