//! The violations that were seen, by their places.

use std::collections::BTreeMap;

use super::{Guardrail, ValueLocation};

/// The most places that are remembered. One that was not seen for the longest time makes room.
const PLACES_MAX: usize = 1_000;

/// The time between two lines of the log about one place and threshold, in microseconds.
const LOGGED_AFTER_MICROS: i64 = 600_000_000;
/// The most lines of the log in that time about all places.
const LOGGED_MAX: u32 = 100;

/// The place of violations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ViolationKey {
    pub keyspace: String,
    pub table: String,
    pub guardrail: Guardrail,
    pub column: String,
}

/// The violations of a guardrail at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViolationRecord {
    /// The number of warnings.
    pub warned: u64,
    /// The number of refusals.
    pub refused: u64,
    /// The largest value.
    pub largest: u64,
    /// The key of the partition that has the largest value, as text; empty for what is of no
    /// partition.
    pub partition: String,
    /// The time of the last violation. Microseconds since the epoch.
    pub last_micros: i64,
    /// The times of the last lines of the log: of values above the threshold for warnings, and of
    /// those above that for failures.
    logged_micros: [i64; 2],
}

/// A value above a threshold.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExceedingValue {
    pub value: u64,
    /// Whether it is above the threshold for failures.
    pub is_failure: bool,
    pub is_refused: bool,
}

#[derive(Debug, Default)]
pub(super) struct ViolationHistory {
    places: BTreeMap<ViolationKey, ViolationRecord>,
    /// The begin of the present span of time for the log, and the lines in it.
    logged: (i64, u32),
}

impl ViolationKey {
    pub(super) fn new(guardrail: Guardrail, place: ValueLocation<'_>) -> ViolationKey {
        ViolationKey {
            keyspace: place.keyspace.to_owned(),
            table: place.table.to_owned(),
            guardrail,
            column: place.column.to_owned(),
        }
    }
}

impl ViolationHistory {
    /// All places with their violations.
    pub fn all(&self) -> Vec<(ViolationKey, ViolationRecord)> {
        let places = self.places.iter();
        places
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect()
    }

    /// Notes a violation. Returns whether it is to be logged.
    pub fn note(
        &mut self,
        guardrail: Guardrail,
        place: ValueLocation<'_>,
        violated: ExceedingValue,
        now_micros: i64,
    ) -> bool {
        let ExceedingValue {
            value,
            is_failure,
            is_refused,
        } = violated;
        let key = ViolationKey::new(guardrail, place);
        if self.places.len() >= PLACES_MAX && !self.places.contains_key(&key) {
            let places = self.places.iter();
            let oldest = places.min_by_key(|(_, entry)| entry.last_micros);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.places.remove(&oldest);
            }
        }
        let entry = self.places.entry(key).or_insert(ViolationRecord {
            warned: 0,
            refused: 0,
            largest: 0,
            partition: String::new(),
            last_micros: now_micros,
            logged_micros: [i64::MIN / 2; 2],
        });
        match is_refused {
            true => entry.refused += 1,
            false => entry.warned += 1,
        }
        if value > entry.largest {
            entry.largest = value;
            place.partition.clone_into(&mut entry.partition);
        }
        entry.last_micros = now_micros;
        let logged_micros = &mut entry.logged_micros[usize::from(is_failure)];
        if now_micros - *logged_micros < LOGGED_AFTER_MICROS {
            return false;
        }
        let (begin, lines) = &mut self.logged;
        if now_micros - *begin >= LOGGED_AFTER_MICROS {
            (*begin, *lines) = (now_micros, 0);
        }
        if *lines >= LOGGED_MAX {
            return false;
        }
        *lines += 1;
        *logged_micros = now_micros;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(seen: &mut ViolationHistory, table: &str, now_micros: i64) -> bool {
        let place = ValueLocation {
            keyspace: "k",
            table,
            ..ValueLocation::default()
        };
        seen.note(Guardrail::RowSize, place, above(5, false), now_micros)
    }

    fn above(value: u64, is_failure: bool) -> ExceedingValue {
        ExceedingValue {
            value,
            is_failure,
            is_refused: false,
        }
    }

    #[test]
    fn a_place_is_logged_now_and_then() {
        let mut seen = ViolationHistory::default();
        let at = |minutes: i64| minutes * 60_000_000;
        assert!(warned(&mut seen, "a", at(0)));
        assert!(!warned(&mut seen, "a", at(9)));
        assert!(warned(&mut seen, "b", at(9)));
        assert!(warned(&mut seen, "a", at(10)));
        assert_eq!(seen.all()[0].1.warned, 3);
        // An error is logged even right after a warning.
        let place = ValueLocation {
            keyspace: "k",
            table: "a",
            ..ValueLocation::default()
        };
        for is_told in [true, false] {
            let noted = seen.note(Guardrail::RowSize, place, above(50, true), at(10));
            assert_eq!(noted, is_told);
        }
    }

    #[test]
    fn the_largest_partition_is_named() {
        let mut seen = ViolationHistory::default();
        for (partition, value) in [("1", 5), ("2", 9), ("3", 7)] {
            let place = ValueLocation {
                keyspace: "k",
                table: "t",
                partition,
                ..ValueLocation::default()
            };
            seen.note(Guardrail::PartitionRows, place, above(value, false), 0);
        }
        let [(_, entry)] = &seen.all()[..] else {
            panic!("one place");
        };
        assert_eq!((entry.largest, &*entry.partition), (9, "2"));
    }

    #[test]
    fn the_places_and_the_lines_of_the_log_have_a_bound() {
        let mut seen = ViolationHistory::default();
        let mut logged = 0;
        for n in 0..2 * PLACES_MAX {
            logged += u32::from(warned(&mut seen, &n.to_string(), n as i64));
        }
        let all = seen.all();
        assert_eq!(all.len(), PLACES_MAX);
        assert!(
            all.iter()
                .all(|(_, entry)| entry.last_micros >= PLACES_MAX as i64)
        );
        assert_eq!(logged, LOGGED_MAX);
    }
}
