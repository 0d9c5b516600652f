//! Durations in settings.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use crate::exit::Failure;

/// The bounds of intervals.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A duration as people write it: `10s`, `1m 30s`, `500ms`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        text.trim()
            .parse::<jiff::SignedDuration>()
            .map_err(|error| error.to_string())
            .and_then(|span| Duration::try_from(span).map_err(|error| error.to_string()))
            .map(Span)
            .map_err(|error| format!("{error} (write a duration such as 10s or 500ms)"))
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Span, String> {
        text.parse()
    }
}

/// The value of an interval setting, or its default.
///
/// # Errors
/// If it is out of the bounds of intervals.
pub fn interval(name: &str, span: Option<Span>, default: Duration) -> Result<Duration, Failure> {
    Ok(bounded(name, span)?.unwrap_or(default))
}

/// Checks an interval or a timeout. Without a pause nothing else would happen, and beyond the upper
/// bound sums of times overflow.
///
/// # Errors
/// If it is out of the bounds of intervals.
pub fn bounded(name: &str, span: Option<Span>) -> Result<Option<Duration>, Failure> {
    match span {
        Some(Span(span)) if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&span) => {
            Err(Failure::Configuration(format!(
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
pub fn distance(name: &str, span: Option<Span>) -> Result<Option<Duration>, Failure> {
    match span {
        Some(Span(span)) if span > INTERVAL_MAX => Err(Failure::Configuration(format!(
            "{name} must be at most {INTERVAL_MAX:?}"
        ))),
        span => Ok(span.map(|span| span.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_do() {
        let parsed = |text: &str| text.parse::<Span>().map(|span| span.0.as_millis());
        assert_eq!(parsed("100ms"), Ok(100));
        assert_eq!(parsed("1s"), Ok(1000));
        assert_eq!(parsed("1m 30s"), Ok(90_000));
        assert_eq!(parsed("2 min"), Ok(120_000));
        for text in ["", "10", "-1s", "soon"] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains("such as 10s"), "{text}: {error}");
        }
    }
}
