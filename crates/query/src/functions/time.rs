//! Functions of the present time, and conversions between timeuuid, timestamp and date.

use bytes::Bytes;
use cql::error::CqlError;
use uuid::Uuid;
use value::{ValueError, timeuuid};

use crate::statement_clock::StatementClock;

const MILLIS_PER_DAY: i64 = 86_400_000;
const MICROS_PER_DAY: i64 = MILLIS_PER_DAY * 1_000;
/// The serialised day of 1970-01-01.
const EPOCH_DAY: i64 = 1 << 31;

pub(super) fn now(_: &[&[u8]], clock: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(uuid_bytes(clock.timeuuid()))
}

pub(super) fn random_uuid(_: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(uuid_bytes(Uuid::new_v4()))
}

pub(super) fn current_timestamp(_: &[&[u8]], clock: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(bigint(clock.micros().div_euclid(1_000)))
}

pub(super) fn current_date(_: &[&[u8]], clock: &StatementClock) -> Result<Bytes, CqlError> {
    date(clock.micros().div_euclid(MICROS_PER_DAY))
}

pub(super) fn current_time(_: &[&[u8]], clock: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(bigint(clock.micros().rem_euclid(MICROS_PER_DAY) * 1_000))
}

pub(super) fn min_timeuuid(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    let millis = integer(arguments[0])?;
    timeuuid::min_for_millis(millis)
        .map(uuid_bytes)
        .map_err(invalid)
}

pub(super) fn max_timeuuid(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    let millis = integer(arguments[0])?;
    timeuuid::max_for_millis(millis)
        .map(uuid_bytes)
        .map_err(invalid)
}

/// Converts a timeuuid to a timestamp. `toUnixTimestamp` uses it, too, since a timestamp and its
/// milliseconds have the same bytes.
pub(super) fn timeuuid_to_timestamp(
    arguments: &[&[u8]],
    _: &StatementClock,
) -> Result<Bytes, CqlError> {
    timeuuid_millis(arguments[0]).map(bigint)
}

pub(super) fn timeuuid_to_date(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    date(timeuuid_millis(arguments[0])?.div_euclid(MILLIS_PER_DAY))
}

pub(super) fn timestamp_to_date(
    arguments: &[&[u8]],
    _: &StatementClock,
) -> Result<Bytes, CqlError> {
    date(integer(arguments[0])?.div_euclid(MILLIS_PER_DAY))
}

/// Converts a date to a timestamp. `toUnixTimestamp` uses it, too.
pub(super) fn date_to_timestamp(
    arguments: &[&[u8]],
    _: &StatementClock,
) -> Result<Bytes, CqlError> {
    let day = u32::from_be_bytes(array(arguments[0])?);
    Ok(bigint((i64::from(day) - EPOCH_DAY) * MILLIS_PER_DAY))
}

fn timeuuid_millis(bytes: &[u8]) -> Result<i64, CqlError> {
    Ok(timeuuid::unix_millis(&Uuid::from_bytes(array(bytes)?)))
}

/// The serialised date that is `days` after 1970-01-01.
fn date(days: i64) -> Result<Bytes, CqlError> {
    match u32::try_from(days + EPOCH_DAY) {
        Ok(day) => Ok(Bytes::copy_from_slice(&day.to_be_bytes())),
        Err(_) => Err(CqlError::invalid(
            "the time lies outside of what a date can hold",
        )),
    }
}

fn integer(bytes: &[u8]) -> Result<i64, CqlError> {
    array(bytes).map(i64::from_be_bytes)
}

/// The bytes as an array; an error for the empty value, which is no time.
fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], CqlError> {
    bytes
        .try_into()
        .map_err(|_| CqlError::invalid("an empty value is no time"))
}

fn bigint(number: i64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

fn uuid_bytes(uuid: Uuid) -> Bytes {
    Bytes::copy_from_slice(uuid.as_bytes())
}

fn invalid(error: ValueError) -> CqlError {
    CqlError::invalid(error.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> StatementClock {
        StatementClock::of_none()
    }

    #[test]
    fn conversions_go_there_and_back() {
        let day = 20_000 * MILLIS_PER_DAY;
        let noon = bigint(day + MILLIS_PER_DAY / 2);
        let of_day = timestamp_to_date(&[&noon], &clock()).unwrap();
        assert_eq!(of_day.as_ref(), (EPOCH_DAY as u32 + 20_000).to_be_bytes());
        assert_eq!(
            date_to_timestamp(&[&of_day], &clock()).unwrap(),
            bigint(day)
        );

        let least = min_timeuuid(&[&noon], &clock()).unwrap();
        assert_eq!(timeuuid_to_timestamp(&[&least], &clock()).unwrap(), noon);
        let most = max_timeuuid(&[&noon], &clock()).unwrap();
        assert_eq!(timeuuid_to_timestamp(&[&most], &clock()).unwrap(), noon);
        assert_eq!(timeuuid_to_date(&[&most], &clock()).unwrap(), of_day);
    }

    #[test]
    fn days_before_1970_round_down() {
        let before = bigint(-1);
        let day = timestamp_to_date(&[&before], &clock()).unwrap();
        assert_eq!(day.as_ref(), (EPOCH_DAY as u32 - 1).to_be_bytes());
    }

    #[test]
    fn times_out_of_range_are_refused() {
        let far = bigint(i64::MAX);
        assert!(min_timeuuid(&[&far], &clock()).is_err());
        assert!(timestamp_to_date(&[&far], &clock()).is_err());
        assert!(min_timeuuid(&[b""], &clock()).is_err());
    }

    #[test]
    fn the_present_agrees_with_itself() {
        let clock = clock();
        let millis = current_timestamp(&[], &clock).unwrap();
        assert_eq!(
            timestamp_to_date(&[&millis], &clock).unwrap(),
            current_date(&[], &clock).unwrap()
        );
        let nanoseconds = integer(&current_time(&[], &clock).unwrap()).unwrap();
        assert_eq!(
            integer(&millis).unwrap().rem_euclid(MILLIS_PER_DAY),
            nanoseconds / 1_000_000
        );
        assert_ne!(now(&[], &clock).unwrap(), now(&[], &clock).unwrap());
    }
}
