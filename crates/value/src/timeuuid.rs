//! Timeuuids, which are UUIDs of version 1. Each holds a time in steps of 100 ns since 1582-10-15,
//! a clock sequence and a node.

use uuid::Uuid;

use crate::ValueError;

/// The steps of 100 ns from 1582-10-15 to 1970-01-01.
const EPOCH_STEPS: i128 = 122_192_928_000_000_000;
const STEPS_PER_MICROSECOND: i128 = 10;
const STEPS_PER_MILLISECOND: i128 = 10_000;
const MAX_STEPS: i128 = (1 << 60) - 1;

/// The lower half that sorts before every other. Timeuuids compare it by signed bytes.
const LOWER_MIN: u64 = 0x8080_8080_8080_8080;
/// The lower half that sorts after every other.
const LOWER_MAX: u64 = 0x7f7f_7f7f_7f7f_7f7f;

fn from_steps(unix_steps: i128, lower: u64) -> Result<Uuid, ValueError> {
    let steps = unix_steps + EPOCH_STEPS;
    if !(0..=MAX_STEPS).contains(&steps) {
        return Err(ValueError::new(
            "the time lies outside of what a timeuuid can hold, the years 1582 to 5236",
        ));
    }
    let steps = steps as u64;
    let upper = steps << 32 | (steps >> 16 & 0xffff_0000) | 0x1000 | steps >> 48;
    Ok(Uuid::from_u64_pair(upper, lower))
}

/// Makes a timeuuid of the time `unix_micros`, in microseconds since 1970. The low 62 bits of
/// `clock_and_node` become its clock sequence (14 bits) and node (48 bits). The upper two bits are
/// replaced by the variant.
///
/// # Errors
/// If the time is out of range.
pub fn from_micros(unix_micros: i64, clock_and_node: u64) -> Result<Uuid, ValueError> {
    let lower = clock_and_node & (u64::MAX >> 2) | 1 << 63;
    from_steps(i128::from(unix_micros) * STEPS_PER_MICROSECOND, lower)
}

/// The first timeuuid of a microsecond since 1970. Every timeuuid of that time sorts at or after
/// it.
///
/// # Errors
/// If the time is out of range.
pub fn min_for_micros(unix_micros: i64) -> Result<Uuid, ValueError> {
    from_steps(i128::from(unix_micros) * STEPS_PER_MICROSECOND, LOWER_MIN)
}

/// The last timeuuid of a microsecond since 1970. Every timeuuid of that time sorts at or before
/// it.
///
/// # Errors
/// If the time is out of range.
pub fn max_for_micros(unix_micros: i64) -> Result<Uuid, ValueError> {
    let next = (i128::from(unix_micros) + 1) * STEPS_PER_MICROSECOND;
    from_steps(next - 1, LOWER_MAX)
}

/// The first timeuuid of a millisecond since 1970: CQL's `minTimeuuid`.
///
/// # Errors
/// If the time is out of range.
pub fn min_for_millis(unix_millis: i64) -> Result<Uuid, ValueError> {
    from_steps(i128::from(unix_millis) * STEPS_PER_MILLISECOND, LOWER_MIN)
}

/// The last timeuuid of a millisecond since 1970: CQL's `maxTimeuuid`.
///
/// # Errors
/// If the time is out of range.
pub fn max_for_millis(unix_millis: i64) -> Result<Uuid, ValueError> {
    let next = (i128::from(unix_millis) + 1) * STEPS_PER_MILLISECOND;
    from_steps(next - 1, LOWER_MAX)
}

fn unix_steps(uuid: &Uuid) -> i128 {
    let (upper, _) = uuid.as_u64_pair();
    let steps = (upper & 0xfff) << 48 | (upper & 0xffff_0000) << 16 | upper >> 32;
    i128::from(steps) - EPOCH_STEPS
}

/// The time of a version 1 UUID in microseconds since 1970, rounded down.
pub fn unix_micros(uuid: &Uuid) -> i64 {
    unix_steps(uuid).div_euclid(STEPS_PER_MICROSECOND) as i64
}

/// The time of a version 1 UUID in milliseconds since 1970, rounded down.
pub fn unix_millis(uuid: &Uuid) -> i64 {
    unix_steps(uuid).div_euclid(STEPS_PER_MILLISECOND) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::CqlType;
    use crate::{compare, validate};

    #[test]
    fn the_bounds_have_the_layout_of_the_database() {
        let text = |uuid: Result<Uuid, ValueError>| uuid.unwrap().to_string();
        assert_eq!(
            text(min_for_millis(0)),
            "13814000-1dd2-11b2-8080-808080808080"
        );
        assert_eq!(
            text(max_for_millis(0)),
            "1381670f-1dd2-11b2-7f7f-7f7f7f7f7f7f"
        );
        assert_eq!(
            text(max_for_micros(0)),
            "13814009-1dd2-11b2-7f7f-7f7f7f7f7f7f"
        );
    }

    #[test]
    fn times_out_of_range_are_refused() {
        assert!(min_for_millis(i64::MIN).is_err());
        assert!(max_for_millis(i64::MAX).is_err());
        assert!(from_micros(-12_219_292_800_000_001, 0).is_err());
        assert!(from_micros(-12_219_292_800_000_000, 0).is_ok());
    }

    proptest! {
        #[test]
        fn a_timeuuid_keeps_its_time_and_lies_between_the_bounds(
            micros in -12_219_292_800_000_000_i64..103_072_857_660_684_697,
            bits: u64,
        ) {
            let uuid = from_micros(micros, bits).unwrap();
            prop_assert_eq!(uuid.get_version_num(), 1);
            prop_assert_eq!(uuid.get_variant(), uuid::Variant::RFC4122);
            prop_assert_eq!(unix_micros(&uuid), micros);
            prop_assert_eq!(unix_millis(&uuid), micros.div_euclid(1_000));
            prop_assert!(validate(&CqlType::Timeuuid, uuid.as_bytes()).is_ok());

            let at_most = |a: &Uuid, b: &Uuid| {
                compare(&CqlType::Timeuuid, a.as_bytes(), b.as_bytes()).is_le()
            };
            prop_assert!(at_most(&min_for_micros(micros).unwrap(), &uuid));
            prop_assert!(at_most(&uuid, &max_for_micros(micros).unwrap()));
            prop_assert!(!at_most(&uuid, &max_for_micros(micros - 1).unwrap_or(Uuid::nil())));
        }
    }
}
