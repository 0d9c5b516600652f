//! Times moved by durations: months by the calendar, then days and nanoseconds.

use crate::calendar::{civil_from_days, days_from_civil};

const MILLIS_PER_DAY: i64 = 86_400_000;
const NANOSECONDS_PER_MILLI: i64 = 1_000_000;

/// The serialised day of 1970-01-01.
const EPOCH_DAY: i64 = 1 << 31;

/// Months beyond which no timestamp or date is reached any more: twice the range of a `timestamp`.
const MONTHS_MAX: i64 = 12 * 600_000_000;

/// A timestamp, in milliseconds since the epoch, that is moved by a duration. If a month is too
/// short for the day, its last day is meant. `None` if the result is no timestamp.
#[must_use]
pub fn shift_timestamp(millis: i64, months: i64, days: i64, nanoseconds: i64) -> Option<i64> {
    let moved = match months {
        0 => millis,
        _ => {
            let day = shift_months(millis.div_euclid(MILLIS_PER_DAY), months)?;
            day.checked_mul(MILLIS_PER_DAY)?
                .checked_add(millis.rem_euclid(MILLIS_PER_DAY))?
        }
    };
    moved
        .checked_add(days.checked_mul(MILLIS_PER_DAY)?)?
        .checked_add(nanoseconds / NANOSECONDS_PER_MILLI)
}

/// A date, as it is serialised, that is moved by months and days. `None` if the result is no date.
#[must_use]
pub fn shift_date(day: u32, months: i64, days: i64) -> Option<u32> {
    let moved = shift_months(i64::from(day) - EPOCH_DAY, months)?.checked_add(days)?;
    u32::try_from(moved.checked_add(EPOCH_DAY)?).ok()
}

/// Days since the epoch moved by months.
fn shift_months(day: i64, months: i64) -> Option<i64> {
    if months == 0 {
        return Some(day);
    }
    let (year, month, day_of_month) = civil_from_days(day);
    let month_of_all = year
        .checked_mul(12)?
        .checked_add(month - 1)?
        .checked_add(months)?;
    if month_of_all.abs() > MONTHS_MAX {
        return None;
    }
    let (year, month) = (month_of_all.div_euclid(12), month_of_all.rem_euclid(12) + 1);
    let first = days_from_civil(year, month, 1);
    let next = match month {
        12 => days_from_civil(year + 1, 1, 1),
        _ => days_from_civil(year, month + 1, 1),
    };
    Some(first + (day_of_month - 1).min(next - first - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i64, month: i64, day: i64) -> u32 {
        (days_from_civil(year, month, day) + EPOCH_DAY) as u32
    }

    #[test]
    fn months_end_on_their_last_day() {
        assert_eq!(shift_date(date(2024, 1, 31), 1, 0), Some(date(2024, 2, 29)));
        assert_eq!(
            shift_date(date(2024, 1, 31), -2, 1),
            Some(date(2023, 12, 1))
        );
        assert_eq!(
            shift_date(date(2024, 2, 29), 12, 0),
            Some(date(2025, 2, 28))
        );
        let noon = MILLIS_PER_DAY / 2;
        let before = days_from_civil(1970, 2, 28) * MILLIS_PER_DAY + noon;
        assert_eq!(
            shift_timestamp(before, 12, 1, -1_999_999),
            Some(days_from_civil(1971, 3, 1) * MILLIS_PER_DAY + noon - 1)
        );
    }

    #[test]
    fn a_shift_out_of_range_is_none() {
        assert_eq!(shift_date(0, 0, -1), None);
        assert_eq!(shift_date(0, i64::MAX, 0), None);
        assert_eq!(shift_date(u32::MAX, 1, 0), None);
        assert_eq!(shift_timestamp(i64::MAX, 0, 0, 1_000_000), None);
        assert_eq!(shift_timestamp(i64::MAX, 1, 0, 0), None);
    }
}
