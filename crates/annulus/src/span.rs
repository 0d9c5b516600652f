//! Durations in settings.

use std::str::FromStr;
use std::time::Duration;

use jiff::SpanRelativeTo;
use serde::Deserialize;

use crate::exit::ProcessFailure;

/// The bounds of intervals.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A duration as people write it: `10s`, `1m 30s`, `500ms`, `7d`, `2w`. A day has 24 hours.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct HumanDuration(pub Duration);

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<HumanDuration, String> {
        let span: jiff::Span = text.trim().parse().map_err(|_| unreadable(text))?;
        if span.get_months() != 0 || span.get_years() != 0 {
            return Err(format!(
                "{text} has months or years, which differ in length: write days or weeks"
            ));
        }
        let duration = span.to_duration(SpanRelativeTo::days_are_24_hours());
        let duration = duration.ok().and_then(|span| Duration::try_from(span).ok());
        duration.map(HumanDuration).ok_or_else(|| unreadable(text))
    }
}

fn unreadable(text: &str) -> String {
    format!("'{text}' is no duration: write a number with ms, s, m, h, d or w, such as 10s or 7d")
}

impl TryFrom<String> for HumanDuration {
    type Error = String;

    fn try_from(text: String) -> Result<HumanDuration, String> {
        text.parse()
    }
}

/// The value of an interval setting, or its default.
///
/// # Errors
/// If it is out of the bounds of intervals.
pub fn interval(
    name: &str,
    span: Option<HumanDuration>,
    default: Duration,
) -> Result<Duration, ProcessFailure> {
    Ok(bounded(name, span)?.unwrap_or(default))
}

/// Checks an interval or a timeout. Without a pause nothing else would happen, and beyond the upper
/// bound sums of times overflow.
///
/// # Errors
/// If it is out of the bounds of intervals.
pub fn bounded(
    name: &str,
    span: Option<HumanDuration>,
) -> Result<Option<Duration>, ProcessFailure> {
    match span {
        Some(HumanDuration(span)) if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&span) => {
            Err(ProcessFailure::Configuration(format!(
                "{name} must be at least {INTERVAL_MIN:?} and at most {INTERVAL_MAX:?}"
            )))
        }
        span => Ok(span.map(|span| span.0)),
    }
}

/// Checks the distance that a reader keeps from the present. It may be zero.
///
/// # Errors
/// If it is beyond the longest interval.
pub fn distance(
    name: &str,
    span: Option<HumanDuration>,
) -> Result<Option<Duration>, ProcessFailure> {
    match span {
        Some(HumanDuration(span)) if span > INTERVAL_MAX => Err(ProcessFailure::Configuration(
            format!("{name} must be at most {INTERVAL_MAX:?}"),
        )),
        span => Ok(span.map(|span| span.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_do() {
        let parsed = |text: &str| text.parse::<HumanDuration>().map(|span| span.0.as_millis());
        assert_eq!(parsed("100ms"), Ok(100));
        assert_eq!(parsed("1s"), Ok(1000));
        assert_eq!(parsed("1m 30s"), Ok(90_000));
        assert_eq!(parsed("2 min"), Ok(120_000));
        assert_eq!(parsed("7d"), Ok(7 * 86_400_000));
        assert_eq!(parsed("1 day"), Ok(86_400_000));
        assert_eq!(parsed("2w"), Ok(14 * 86_400_000));
        assert_eq!(parsed("1w 2d 3h 4m 5s 6ms"), Ok(788_645_006));
        for text in ["", "10", "-1s", "-7d", "soon", "7 dogs"] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains("such as 10s or 7d"), "{text}: {error}");
        }
        for text in ["1mo", "1y 2d"] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains("write days or weeks"), "{text}: {error}");
        }
    }
}
