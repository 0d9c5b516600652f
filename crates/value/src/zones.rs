//! Time zones by name, as Cassandra reads them after a timestamp: ids of the tz database
//! (`Europe/Berlin`), offsets from Greenwich (`GMT+02:00`) and common abbreviations (`PST`).
//!
//! The tz database is part of the program, so that every machine reads a text alike.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// The zones that abbreviations mean, as in Cassandra. An abbreviation names the zone and not its
/// time in winter or summer: the date decides that. Those that mean several zones (`IST`, `BST`)
/// are no names here.
#[rustfmt::skip]
const ABBREVIATIONS: [(&str, &str); 43] = [
    ("ADT", "America/Halifax"),
    ("AEDT", "Australia/Sydney"),
    ("AEST", "Australia/Sydney"),
    ("AKDT", "America/Juneau"),
    ("AKST", "America/Juneau"),
    ("ART", "America/Argentina/Buenos_Aires"),
    ("AST", "America/Halifax"),
    ("AWST", "Australia/Perth"),
    ("BRT", "America/Sao_Paulo"),
    ("CAT", "Africa/Maputo"),
    ("CDT", "America/Chicago"),
    ("CEST", "Europe/Paris"),
    ("CET", "Europe/Paris"),
    ("COT", "America/Bogota"),
    ("CST", "America/Chicago"),
    ("EAT", "Africa/Nairobi"),
    ("EDT", "America/New_York"),
    ("EEST", "Europe/Bucharest"),
    ("EET", "Europe/Bucharest"),
    ("EST", "America/New_York"),
    ("HKT", "Asia/Hong_Kong"),
    ("HST", "Pacific/Honolulu"),
    ("ICT", "Asia/Bangkok"),
    ("JST", "Asia/Tokyo"),
    ("KST", "Asia/Seoul"),
    ("MDT", "America/Denver"),
    ("MSK", "Europe/Moscow"),
    ("MST", "America/Denver"),
    ("NDT", "America/St_Johns"),
    ("NPT", "Asia/Kathmandu"),
    ("NST", "America/St_Johns"),
    ("NZDT", "Pacific/Auckland"),
    ("NZST", "Pacific/Auckland"),
    ("PDT", "America/Los_Angeles"),
    ("PET", "America/Lima"),
    ("PKT", "Asia/Karachi"),
    ("PST", "America/Los_Angeles"),
    ("SAST", "Africa/Johannesburg"),
    ("SGT", "Asia/Singapore"),
    ("WAT", "Africa/Lagos"),
    ("WEST", "Atlantic/Canary"),
    ("WET", "Atlantic/Canary"),
    ("WIB", "Asia/Jakarta"),
];

/// The most seconds that an offset may have, as in Java: 18 hours.
const OFFSET_S_MAX: i64 = 18 * 3_600;

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The moment at which clocks of a zone show a time; both in milliseconds since the epoch. `None`
/// if there is no such zone.
///
/// Of two moments that show the same time, as clocks are put back, it is the earlier one. A time
/// that clocks pass over as they are put forward counts from the moment before.
pub(crate) fn moment(zone: &str, shown_ms: i64) -> Option<i64> {
    if let Some(offset_s) = offset(zone) {
        return Some(shown_ms - offset_s * 1_000);
    }
    let known = ABBREVIATIONS.binary_search_by_key(&zone, |(abbreviation, _)| abbreviation);
    let id = known.map_or(zone, |at| ABBREVIATIONS[at].1);
    let found = DATABASE.get(id).ok()?;
    // The database heeds no case, but Cassandra does.
    if found.iana_name() != Some(id) {
        return None;
    }
    let shown = Timestamp::from_millisecond(shown_ms).ok()?;
    let shown = TimeZone::UTC.to_datetime(shown);
    let moment = found.to_ambiguous_timestamp(shown).compatible().ok()?;
    Some(moment.as_millisecond())
}

/// The seconds east of Greenwich in `GMT`, `UTC` or `UT`, with or without `+hh:mm[:ss]` after it.
fn offset(zone: &str) -> Option<i64> {
    let mut prefixes = ["UTC", "GMT", "UT"].into_iter();
    let behind = prefixes.find_map(|prefix| zone.strip_prefix(prefix))?;
    if behind.is_empty() {
        return Some(0);
    }
    let (sign, digits) = match behind.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let parts: Vec<&str> = digits.split(':').collect();
    let is_number = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !matches!(parts.len(), 2 | 3) || !parts.iter().all(is_number) {
        return None;
    }
    let mut seconds = 0;
    for (position, part) in parts.iter().enumerate() {
        let number: i64 = part.parse().ok()?;
        if position > 0 && number > 59 {
            return None;
        }
        seconds = seconds * 60 + number;
    }
    if parts.len() == 2 {
        seconds *= 60;
    }
    (seconds <= OFFSET_S_MAX).then_some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_in_order_and_stand_for_zones() {
        assert!(ABBREVIATIONS.is_sorted());
        for (abbreviation, id) in ABBREVIATIONS {
            assert!(moment(abbreviation, 0).is_some(), "{abbreviation}");
            assert_eq!(moment(abbreviation, 0), moment(id, 0), "{abbreviation}");
        }
    }
}
