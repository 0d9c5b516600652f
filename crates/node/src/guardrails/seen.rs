//! The violations that were seen, by their places.

use std::collections::BTreeMap;

use super::{Guardrail, Place, Violation};

/// The most places that are kept. One that was not seen for the longest time makes room.
const PLACES_MAX: usize = 1_000;

/// The time between two lines of the log about one place, in microseconds.
const LOGGED_AFTER_MICROS: i64 = 600_000_000;
/// The most lines of the log in that time about all places.
const LOGGED_MAX: u32 = 100;

/// The place of violations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub keyspace: String,
    pub table: String,
    pub guardrail: Guardrail,
    pub column: String,
}

/// The violations of a guardrail at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The number of warnings.
    pub warned: u64,
    /// The number of refusals.
    pub refused: u64,
    /// The largest value.
    pub largest: u64,
    /// The time of the last violation. Microseconds since the epoch.
    pub last_micros: i64,
    /// The time of the last line of the log.
    logged_micros: i64,
}

#[derive(Debug, Default)]
pub(super) struct Seen {
    places: BTreeMap<Key, Entry>,
    /// The begin of the present span of time for the log, and the lines in it.
    logged: (i64, u32),
}

impl Key {
    pub(super) fn new(guardrail: Guardrail, place: Place<'_>) -> Key {
        Key {
            keyspace: place.keyspace.to_owned(),
            table: place.table.to_owned(),
            guardrail,
            column: place.column.to_owned(),
        }
    }
}

impl Seen {
    /// All places with their violations.
    pub fn all(&self) -> Vec<(Key, Entry)> {
        let places = self.places.iter();
        places
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect()
    }

    /// Notes a violation. Returns whether it is to be logged.
    pub fn note(&mut self, key: Key, value: u64, violation: Violation, now_micros: i64) -> bool {
        if self.places.len() >= PLACES_MAX && !self.places.contains_key(&key) {
            let places = self.places.iter();
            let oldest = places.min_by_key(|(_, entry)| entry.last_micros);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.places.remove(&oldest);
            }
        }
        let entry = self.places.entry(key).or_insert(Entry {
            warned: 0,
            refused: 0,
            largest: 0,
            last_micros: now_micros,
            logged_micros: i64::MIN / 2,
        });
        match violation.is_failure {
            true => entry.refused += 1,
            false => entry.warned += 1,
        }
        entry.largest = entry.largest.max(value);
        entry.last_micros = now_micros;
        if now_micros - entry.logged_micros < LOGGED_AFTER_MICROS {
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
        entry.logged_micros = now_micros;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARNING: Violation = Violation {
        is_failure: false,
        threshold: 1,
    };

    fn key(table: &str) -> Key {
        let place = Place {
            keyspace: "k",
            table,
            column: "",
        };
        Key::new(Guardrail::RowSize, place)
    }

    #[test]
    fn a_place_is_logged_now_and_then() {
        let mut seen = Seen::default();
        let at = |minutes: i64| minutes * 60_000_000;
        assert!(seen.note(key("a"), 5, WARNING, at(0)));
        assert!(!seen.note(key("a"), 5, WARNING, at(9)));
        assert!(seen.note(key("b"), 5, WARNING, at(9)));
        assert!(seen.note(key("a"), 5, WARNING, at(10)));
        assert_eq!(seen.all()[0].1.warned, 3);
    }

    #[test]
    fn the_places_and_the_lines_of_the_log_have_a_bound() {
        let mut seen = Seen::default();
        let mut logged = 0;
        for n in 0..2 * PLACES_MAX {
            logged += u32::from(seen.note(key(&n.to_string()), 5, WARNING, n as i64));
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
