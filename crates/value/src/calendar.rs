//! Dates and times as text. All forms that Cassandra reads are read; one form is written.
//!
//! The calendar is the proleptic Gregorian one. Times without a zone are UTC.

use clock::{Clock, SystemClock};

use crate::{NANOSECONDS_PER_DAY, ValueError, zones};

const MILLISECONDS_PER_DAY: i64 = 86_400_000;

/// The serialised day of 1970-01-01.
const EPOCH_DAY: i64 = 1 << 31;

/// The days from 1970-01-01 to a date. The algorithm is Howard Hinnant's ("chrono-compatible
/// low-level date algorithms"): years begin in March, so a leap day is the last of its year.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date (year, month, day) that is `days` after 1970-01-01: the inverse of [`days_from_civil`].
pub(crate) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The rest of a text that is being read.
struct TextScanner<'a>(&'a str);

impl TextScanner<'_> {
    /// Takes a number of `min` to `max` digits.
    fn number(&mut self, min: usize, max: usize) -> Option<i64> {
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        if !(min..=max).contains(&digits) {
            return None;
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        number.parse().ok()
    }

    /// Takes a number of one or two digits, which must be within the bounds.
    fn field(&mut self, bounds: std::ops::RangeInclusive<i64>) -> Option<i64> {
        self.number(1, 2).filter(|number| bounds.contains(number))
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.0.strip_prefix(text) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.eat(text).then_some(())
    }

    /// Takes a year: four digits, or a sign and at least five, or four after a minus.
    fn year(&mut self) -> Option<i64> {
        const DIGITS_MAX: usize = 9;
        if self.eat("-") {
            return self
                .number(4, DIGITS_MAX)
                .filter(|year| *year != 0)
                .map(|year| -year);
        }
        match self.eat("+") {
            true => self.number(5, DIGITS_MAX),
            false => self.number(4, 4),
        }
    }

    /// Takes `-mm-dd` after a year, and gives the days from 1970-01-01 to the date.
    fn month_and_day(&mut self, year: i64) -> Option<i64> {
        self.expect("-")?;
        let month = self.field(1..=12)?;
        self.expect("-")?;
        let day = self.field(1..=31)?;
        let days = days_from_civil(year, month, day);
        // A day beyond the end of its month comes back as a day of the next month.
        (civil_from_days(days) == (year, month, day)).then_some(days)
    }

    /// Takes one to nine digits after a point, and gives them as nanoseconds.
    fn fraction(&mut self) -> Option<i64> {
        let before = self.0.len();
        let number = self.number(1, 9)?;
        Some(number * 10_i64.pow(9 - (before - self.0.len()) as u32))
    }

    /// Takes `hh:mm:ss[.fffffffff]`, and gives it as nanoseconds since midnight. After a date the
    /// seconds may be left out, and `24:00:00` is the midnight at the end of the day.
    fn time_of_day(&mut self, behind_date: bool) -> Option<i64> {
        let hour = self.field(0..=24)?;
        self.expect(":")?;
        let minute = self.field(0..=59)?;
        let mut nanoseconds = (hour * 60 + minute) * 60_000_000_000;
        if self.eat(":") {
            nanoseconds += self.field(0..=59)? * 1_000_000_000;
            if self.eat(".") {
                nanoseconds += self.fraction()?;
            }
        } else if !behind_date {
            return None;
        }
        let is_of_day =
            nanoseconds < NANOSECONDS_PER_DAY || behind_date && nanoseconds == NANOSECONDS_PER_DAY;
        is_of_day.then_some(nanoseconds)
    }

    /// Takes a zone up to the end of the text, and gives the moment at which its clocks show a
    /// time; both in milliseconds since the epoch. The zone is `Z`, `+hh`, `+hhmm`, `+hh:mm`, a
    /// name, or nothing for UTC. As in Cassandra, a name must follow a blank, and `z` must follow a
    /// date without a time of day.
    fn moment(&mut self, shown_ms: i64, is_date: bool) -> Option<i64> {
        let spaced = self.eat(" ");
        if self.0.is_empty() {
            return (!spaced).then_some(shown_ms);
        }
        if self.0 == "Z" || is_date && !spaced && self.0 == "z" {
            return Some(shown_ms);
        }
        if spaced && self.0.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return zones::moment(self.0, shown_ms);
        }
        let minutes = self.offset_minutes()?;
        self.0.is_empty().then(|| shown_ms - minutes * 60_000)
    }

    /// Takes `+hh`, `+hhmm` or `+hh:mm`, and gives it in minutes.
    fn offset_minutes(&mut self) -> Option<i64> {
        let sign = if self.eat("+") {
            1
        } else {
            self.expect("-")?;
            -1
        };
        let hours = self.number(2, 4)?;
        let (hours, minutes) = match (hours, self.eat(":")) {
            (hours, true) => (hours, self.number(2, 2)?),
            (hours, false) if hours > 99 => (hours / 100, hours % 100),
            (hours, false) => (hours, 0),
        };
        let offset = hours * 60 + minutes;
        (offset <= 18 * 60 && minutes <= 59).then_some(sign * offset)
    }
}

fn all_digits(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads `yyyy-mm-dd`, or digits as the serialised day (1970-01-01 is 2^31). A year beyond four
/// digits has a sign, as [`date_text`] writes it.
pub(crate) fn parse_date(text: &str) -> Result<u32, ValueError> {
    if all_digits(text) {
        return text.parse().map_err(|_| {
            ValueError(format!(
                "Unable to make unsigned int (for date) from: '{text}'; a day is 0 to {}, with 1970-01-01 at 2^31",
                u32::MAX
            ))
        });
    }
    let mut scan = TextScanner(text);
    let days = (|| {
        let year = scan.year()?;
        let days = scan.month_and_day(year)?;
        scan.0.is_empty().then_some(days)
    })();
    let days = days.ok_or_else(|| {
        ValueError(format!(
            "'{text}' is no date: expected yyyy-mm-dd, a day that exists"
        ))
    })?;
    u32::try_from(days + EPOCH_DAY).map_err(|_| {
        ValueError(format!(
            "'{text}' is out of range of type date, -5877641-06-23 to 5881580-07-11"
        ))
    })
}

/// Reads `hh:mm:ss[.fffffffff]`, or digits as nanoseconds since midnight.
pub(crate) fn parse_time(text: &str) -> Result<i64, ValueError> {
    let mut scan = TextScanner(text);
    let nanoseconds = if all_digits(text) {
        text.parse()
            .ok()
            .filter(|nanoseconds| (0..NANOSECONDS_PER_DAY).contains(nanoseconds))
    } else {
        scan.time_of_day(false).filter(|_| scan.0.is_empty())
    };
    nanoseconds.ok_or_else(|| {
        ValueError(format!(
            "'{text}' is no time: expected hh:mm:ss[.fffffffff], or nanoseconds since midnight"
        ))
    })
}

/// Reads `yyyy-mm-dd[(T| )hh:mm[:ss[.fff]]][zone]`, `now`, or digits as milliseconds since 1970. A
/// finer fraction, such as `cqlsh` prints, is cut to milliseconds.
pub(crate) fn parse_timestamp(text: &str) -> Result<i64, ValueError> {
    if text.eq_ignore_ascii_case("now") {
        return Ok(SystemClock.now_micros() / 1_000);
    }
    if all_digits(text) {
        return text.parse().map_err(|_| {
            ValueError(format!(
                "{text} milliseconds are out of range of type timestamp"
            ))
        });
    }
    let mut scan = TextScanner(text);
    let millis = (|| {
        let year = scan.number(4, 4)?;
        let mut millis = scan.month_and_day(year)? * MILLISECONDS_PER_DAY;
        let time = ["T", " "].iter().find_map(|mark| {
            scan.0
                .strip_prefix(mark)
                .filter(|time| time.starts_with(|c: char| c.is_ascii_digit()))
        });
        if let Some(time) = time {
            scan.0 = time;
            millis += scan.time_of_day(true)? / 1_000_000;
        }
        scan.moment(millis, time.is_none())
    })();
    millis.ok_or_else(|| {
        ValueError(format!(
            "'{text}' is no timestamp: expected yyyy-mm-dd[ hh:mm[:ss[.fff]]][+hhmm], a time that \
             exists, a zone such as ' Europe/Berlin' behind it, 'now', or milliseconds since 1970"
        ))
    })
}

/// Whether a year has four digits, so that every reader of dates takes it.
fn is_common_year(year: i64) -> bool {
    (0..=9999).contains(&year)
}

/// A date as a CQL literal: `'yyyy-mm-dd'`, or the serialised day if the year has not four digits.
pub(crate) fn date_literal(days: u32) -> String {
    let (year, month, day) = civil_from_days(i64::from(days) - EPOCH_DAY);
    if is_common_year(year) {
        format!("'{year:04}-{month:02}-{day:02}'")
    } else {
        days.to_string()
    }
}

/// A date as `yyyy-mm-dd`. As in ISO 8601, a year that has not four digits gets a sign.
pub(crate) fn date_text(days: u32) -> String {
    let (year, month, day) = civil_from_days(i64::from(days) - EPOCH_DAY);
    format!("{}-{month:02}-{day:02}", year_text(year))
}

/// A timestamp as `yyyy-mm-dd hh:mm:ss.fffZ`. A year that has not four digits gets a sign.
pub(crate) fn timestamp_text(millis: i64) -> String {
    let (year, month, day) = civil_from_days(millis.div_euclid(MILLISECONDS_PER_DAY));
    let time = time_text(millis.rem_euclid(MILLISECONDS_PER_DAY) * 1_000_000);
    let to_milliseconds = &time[.."hh:mm:ss.fff".len()];
    format!("{}-{month:02}-{day:02} {to_milliseconds}Z", year_text(year))
}

/// A time as ISO 8601 in UTC, `yyyy-mm-ddThh:mm:ss.fffZ`, given as milliseconds since the epoch. A
/// year beyond four digits has no sign unless it is negative.
pub fn iso_timestamp(millis: i64) -> String {
    let time = time_text(millis.rem_euclid(MILLISECONDS_PER_DAY) * 1_000_000);
    let to_milliseconds = &time[.."hh:mm:ss.fff".len()];
    let date = iso_date(millis.div_euclid(MILLISECONDS_PER_DAY));
    format!("{date}T{to_milliseconds}Z")
}

/// Days since 1970-01-01 as `yyyy-mm-dd`. A year beyond four digits has no sign unless it is
/// negative.
pub(crate) fn iso_date(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}-{month:02}-{day:02}", year.abs())
}

fn year_text(year: i64) -> String {
    match year {
        0..=9_999 => format!("{year:04}"),
        ..0 => format!("{year:05}"),
        _ => format!("+{year}"),
    }
}

/// A time as `hh:mm:ss.fffffffff`.
pub(crate) fn time_text(nanoseconds: i64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    format!(
        "{:02}:{:02}:{:02}.{:09}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        nanoseconds % 1_000_000_000
    )
}

/// A time as a CQL literal: `'hh:mm:ss.fffffffff'`.
pub(crate) fn time_literal(nanoseconds: i64) -> String {
    format!("'{}'", time_text(nanoseconds))
}

/// A timestamp as a CQL literal: `'yyyy-mm-ddThh:mm:ss.fffZ'`, or the milliseconds since 1970 if
/// the year has not four digits.
pub(crate) fn timestamp_literal(millis: i64) -> String {
    let (year, month, day) = civil_from_days(millis.div_euclid(MILLISECONDS_PER_DAY));
    if !is_common_year(year) {
        return millis.to_string();
    }
    let time = time_text(millis.rem_euclid(MILLISECONDS_PER_DAY) * 1_000_000);
    let to_milliseconds = &time[.."hh:mm:ss.fff".len()];
    format!("'{year:04}-{month:02}-{day:02}T{to_milliseconds}Z'")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_read_in_every_form() {
        assert_eq!(parse_date("1970-01-01"), Ok(1 << 31));
        assert_eq!(parse_date("1969-12-31"), Ok((1 << 31) - 1));
        assert_eq!(parse_date("2024-2-29"), Ok((1 << 31) + 19_782));
        assert_eq!(parse_date("-5877641-06-23"), Ok(0));
        assert_eq!(parse_date("+5881580-07-11"), Ok(u32::MAX));
        assert_eq!(parse_date("-0001-01-01"), Ok((1 << 31) - 719_893));
        assert_eq!(parse_date("2147483648"), Ok(1 << 31));
        for text in [
            "",
            "2023-02-29",
            "2023-13-01",
            "2023-00-01",
            "2023-01-00",
            "20230101x",
            "2023-01-01 ",
            "-1",
            "4294967296",
            "+5881580-07-12",
            "5881580-07-11",
            "10000-01-01",
            "+2020-01-01",
            "20-01-01",
            "-20-01-01",
            "-0000-01-01",
            "2023-1-1-1",
            "2023-001-01",
        ] {
            assert!(parse_date(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_in_every_form() {
        assert_eq!(parse_time("00:00:00"), Ok(0));
        assert_eq!(
            parse_time("23:59:59.999999999"),
            Ok(NANOSECONDS_PER_DAY - 1)
        );
        assert_eq!(parse_time("8:12:54.1"), Ok(29_574_100_000_000));
        assert_eq!(parse_time("1000"), Ok(1_000));
        for text in [
            "",
            "24:00:00",
            "1:60:00",
            "1:00:60",
            "1:00",
            "1:00:00.",
            "-1",
            "86400000000000",
            "1:00:00.0000000001",
            "1:00:00Z",
        ] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn timestamps_are_read_in_every_form() {
        for text in [
            "2011-02-03 08:00",
            "2011-02-03T08:00Z",
            "2011-02-03 08:00:00",
            "2011-02-03T08:00:00.0",
            "2011-02-03 08:00:00.000000+0000",
            "2011-02-03T10:30:00+02:30",
            "2011-02-03T00:00:00-08",
            "2011-02-03 08:00 UTC",
            "2011-02-03 08:00:00.000 GMT",
        ] {
            assert_eq!(parse_timestamp(text), Ok(1_296_720_000_000), "{text}");
        }
        for text in ["2011-02-03", "2011-02-03Z", "2011-02-03z", "2011-02-03 UTC"] {
            assert_eq!(parse_timestamp(text), Ok(1_296_691_200_000), "{text}");
        }
        assert_eq!(parse_timestamp("2011-02-03+0100"), Ok(1_296_687_600_000));
        assert_eq!(parse_timestamp("1969-12-31 23:59:59.999"), Ok(-1));
        assert_eq!(parse_timestamp("-5"), Ok(-5));
        for text in [
            "",
            "2011-02-30",
            "2011-02-03 25:00",
            "2011-02-03 08:00 Mars",
            "2011-02-03 08",
            "2011-02-03T08:00z",
            "2011-02-03 z",
            "2011-02-03UTC",
            "2011-02-03TZ",
            "2011-02-03 08:00+19",
            "2011-02-03T08:00+1",
            "9223372036854775808",
            "2011-02-03 08:00:00.0000000001",
        ] {
            assert!(parse_timestamp(text).is_err(), "{text}");
        }
    }

    #[test]
    fn zones_have_names_as_in_cassandra() {
        // The times of Cassandra 5.0.9.
        for (text, millis) in [
            ("2011-02-03 08:00 Europe/Berlin", 1_296_716_400_000),
            ("2011-02-03 Europe/Berlin", 1_296_687_600_000),
            ("2011-02-03T08:00:00 America/New_York", 1_296_738_000_000),
            (
                "2011-02-03 08:00:00 America/Argentina/Buenos_Aires",
                1_296_730_800_000,
            ),
            ("2011-02-03 08:00:00 US/Pacific", 1_296_748_800_000),
            ("2011-02-03 08:00:00.25 Asia/Kolkata", 1_296_700_200_250),
            ("2011-02-03 EST5EDT", 1_296_709_200_000),
            ("2011-02-03 08:00 Zulu", 1_296_720_000_000),
            ("2011-02-03 08:00 Z", 1_296_720_000_000),
            ("2011-02-03 08:00 UT", 1_296_720_000_000),
            ("2011-02-03 08:00:00 GMT0", 1_296_720_000_000),
            ("2011-02-03 08:00 GMT+02:00", 1_296_712_800_000),
            ("2011-02-03 08:00 GMT-02:30", 1_296_729_000_000),
            ("2011-02-03 08:00 UTC+02:00", 1_296_712_800_000),
            ("2011-02-03 08:00 UT+02:00", 1_296_712_800_000),
            ("2011-02-03 08:00:00 UTC+05:30:15", 1_296_700_185_000),
            ("2011-02-03 08:00 +02:00", 1_296_712_800_000),
            ("2011-02-03 +02:00", 1_296_684_000_000),
            // Clocks are put forward and back.
            ("2011-03-27 02:30 Europe/Berlin", 1_301_189_400_000),
            ("2011-10-30 02:30 Europe/Berlin", 1_319_934_600_000),
            ("2011-10-30 02:30 CET", 1_319_934_600_000),
            ("2011-02-03 24:00:00", 1_296_777_600_000),
            ("2011-02-03 24:00", 1_296_777_600_000),
            ("2011-02-03T24:00:00.000Z", 1_296_777_600_000),
            ("2011-12-31 24:00:00+0100", 1_325_372_400_000),
        ] {
            assert_eq!(parse_timestamp(text), Ok(millis), "{text}");
        }
    }

    #[test]
    fn abbreviations_stand_for_the_zones_of_cassandra() {
        // The abbreviation, the moment of 08:00 on 3 February 2011, and that of 0:00 on 3 July.
        #[rustfmt::skip]
        let abbreviations = [
            ("ADT", 1_296_734_400_000, 1_309_662_000_000),
            ("AEDT", 1_296_680_400_000, 1_309_615_200_000),
            ("AEST", 1_296_680_400_000, 1_309_615_200_000),
            ("AKDT", 1_296_752_400_000, 1_309_680_000_000),
            ("AKST", 1_296_752_400_000, 1_309_680_000_000),
            ("ART", 1_296_730_800_000, 1_309_662_000_000),
            ("AST", 1_296_734_400_000, 1_309_662_000_000),
            ("AWST", 1_296_691_200_000, 1_309_622_400_000),
            ("BRT", 1_296_727_200_000, 1_309_662_000_000),
            ("CAT", 1_296_712_800_000, 1_309_644_000_000),
            ("CDT", 1_296_741_600_000, 1_309_669_200_000),
            ("CEST", 1_296_716_400_000, 1_309_644_000_000),
            ("CET", 1_296_716_400_000, 1_309_644_000_000),
            ("COT", 1_296_738_000_000, 1_309_669_200_000),
            ("CST", 1_296_741_600_000, 1_309_669_200_000),
            ("EAT", 1_296_709_200_000, 1_309_640_400_000),
            ("EDT", 1_296_738_000_000, 1_309_665_600_000),
            ("EEST", 1_296_712_800_000, 1_309_640_400_000),
            ("EET", 1_296_712_800_000, 1_309_640_400_000),
            ("EST", 1_296_738_000_000, 1_309_665_600_000),
            ("HKT", 1_296_691_200_000, 1_309_622_400_000),
            ("HST", 1_296_756_000_000, 1_309_687_200_000),
            ("ICT", 1_296_694_800_000, 1_309_626_000_000),
            ("JST", 1_296_687_600_000, 1_309_618_800_000),
            ("KST", 1_296_687_600_000, 1_309_618_800_000),
            ("MDT", 1_296_745_200_000, 1_309_672_800_000),
            ("MSK", 1_296_709_200_000, 1_309_636_800_000),
            ("MST", 1_296_745_200_000, 1_309_672_800_000),
            ("NDT", 1_296_732_600_000, 1_309_660_200_000),
            ("NPT", 1_296_699_300_000, 1_309_630_500_000),
            ("NST", 1_296_732_600_000, 1_309_660_200_000),
            ("NZDT", 1_296_673_200_000, 1_309_608_000_000),
            ("NZST", 1_296_673_200_000, 1_309_608_000_000),
            ("PDT", 1_296_748_800_000, 1_309_676_400_000),
            ("PET", 1_296_738_000_000, 1_309_669_200_000),
            ("PKT", 1_296_702_000_000, 1_309_633_200_000),
            ("PST", 1_296_748_800_000, 1_309_676_400_000),
            ("SAST", 1_296_712_800_000, 1_309_644_000_000),
            ("SGT", 1_296_691_200_000, 1_309_622_400_000),
            ("WAT", 1_296_716_400_000, 1_309_647_600_000),
            ("WEST", 1_296_720_000_000, 1_309_647_600_000),
            ("WET", 1_296_720_000_000, 1_309_647_600_000),
            ("WIB", 1_296_694_800_000, 1_309_626_000_000),
        ];
        for (name, winter, summer) in abbreviations {
            let winter_text = format!("2011-02-03 08:00:00 {name}");
            assert_eq!(parse_timestamp(&winter_text), Ok(winter), "{name}");
            let summer_text = format!("2011-07-03 {name}");
            assert_eq!(parse_timestamp(&summer_text), Ok(summer), "{name}");
        }
    }

    #[test]
    fn invalid_zones_are_refused() {
        for text in [
            "2011-02-03 08:00 pst",
            "2011-02-03 08:00 europe/berlin",
            "2011-02-03 08:00 Europe/Atlantis",
            "2011-02-03 08:00 GMT+2",
            "2011-02-03 08:00 GMT+0200",
            "2011-02-03 08:00 GMT+02:60",
            "2011-02-03 08:00 GMT+18:01",
            "2011-02-03 08:00 GMT+02:00:00:00",
            "2011-02-03 08:00 GMT2:00",
            "2011-02-03 08:00:00 utc",
            "2011-02-03 08:00 UTC Europe/Berlin",
            "2011-02-03T08:00:00PST",
            "2011-02-03 08:00+18:30",
            "2011-02-03 24:00:01",
            "2011-02-03 24:01",
            "2011-02-03 24:00:00.000000001",
        ] {
            assert!(parse_timestamp(text).is_err(), "{text}");
        }
    }

    #[test]
    fn now_is_the_present() {
        let before = SystemClock.now_micros() / 1_000;
        for text in ["now", "NOW", "Now"] {
            let now = parse_timestamp(text).unwrap();
            assert!((before..before + 60_000).contains(&now), "{text}: {now}");
        }
    }

    proptest! {
        #[test]
        fn the_calendar_is_its_own_inverse(days in -200_000_000_000_i64..200_000_000_000) {
            let (year, month, day) = civil_from_days(days);
            prop_assert_eq!(days_from_civil(year, month, day), days);
        }

        #[test]
        fn written_dates_and_times_are_read(
            days: u32,
            nanoseconds in 0..NANOSECONDS_PER_DAY,
            millis in prop_oneof![any::<i64>(), -62_167_219_200_000..253_402_300_800_000_i64],
        ) {
            prop_assert_eq!(parse_date(date_literal(days).trim_matches('\'')), Ok(days));
            prop_assert_eq!(parse_date(&date_text(days)), Ok(days));
            prop_assert_eq!(parse_time(time_literal(nanoseconds).trim_matches('\'')), Ok(nanoseconds));
            prop_assert_eq!(parse_timestamp(timestamp_literal(millis).trim_matches('\'')), Ok(millis));
        }
    }
}
