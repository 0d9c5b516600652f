//! The options `speculative_retry` and `additional_write_policy`, which say when a coordinator
//! sends a request to another replica. There is one node here, so they are only checked and stored
//! in Cassandra's form.

use cql::ast::OptionValue;
use cql::error::CqlError;

use super::properties;

/// The time after which another replica is read: a percentile of the latencies seen, or
/// milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SpeculativeDelay {
    Percentile(f64),
    Millis(u64),
}

/// Checks the option and returns it as CQL text: `ALWAYS`, `NEVER`, `99p`, `50ms` or
/// `MIN(99p,50ms)`.
pub(super) fn text(name: &str, value: &OptionValue) -> Result<String, CqlError> {
    let written = properties::scalar(name, value)?;
    let upper = written.to_ascii_uppercase();
    let policy = match upper.as_str() {
        "ALWAYS" => Some("ALWAYS".to_owned()),
        "NEVER" | "NONE" => Some("NEVER".to_owned()),
        _ => one(&upper).map(shown).or_else(|| both(&upper)),
    };
    policy
        .map(|policy| properties::quoted(&policy))
        .ok_or_else(|| {
            CqlError::config(format!(
                "Invalid value {written} for option '{name}': expected ALWAYS, NEVER, a percentile \
                 between 0 and 100 such as 99p, milliseconds such as 50ms, or MIN or MAX of one of \
                 each"
            ))
        })
}

fn one(upper: &str) -> Option<SpeculativeDelay> {
    let number = |text: &str| -> Option<f64> {
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        is_plain.then(|| text.parse().ok()).flatten()
    };
    if let Some(millis) = upper.strip_suffix("MS") {
        // Fractions are cut off, as in Cassandra.
        return number(millis).map(|millis| SpeculativeDelay::Millis(millis as u64));
    }
    let share = upper
        .strip_suffix("PERCENTILE")
        .or_else(|| upper.strip_suffix('P'))?;
    number(share)
        .filter(|share| *share > 0.0 && *share < 100.0)
        .map(SpeculativeDelay::Percentile)
}

/// Reads `MIN(99P, 50MS)` or `MAX(99P, 50MS)`, with the arguments in either order, and returns it
/// in Cassandra's form.
fn both(upper: &str) -> Option<String> {
    let (function, rest) = upper.split_at_checked(3)?;
    let arguments = rest.trim_start().strip_prefix('(')?.strip_suffix(')')?;
    let (first, second) = arguments.split_once(',')?;
    let waits = match (one(first.trim())?, one(second.trim())?) {
        (percentile @ SpeculativeDelay::Percentile(_), millis @ SpeculativeDelay::Millis(_))
        | (millis @ SpeculativeDelay::Millis(_), percentile @ SpeculativeDelay::Percentile(_)) => {
            [percentile, millis]
        }
        _ => return None,
    };
    ["MIN", "MAX"].contains(&function).then(|| {
        let [percentile, millis] = waits.map(shown);
        format!("{function}({percentile},{millis})")
    })
}

fn shown(wait: SpeculativeDelay) -> String {
    match wait {
        SpeculativeDelay::Percentile(share) => format!("{share}p"),
        SpeculativeDelay::Millis(millis) => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Cassandra's answers to these cases are recorded in tests/compat, area `definitions`.
    #[test]
    fn policies_are_kept_in_one_form() {
        let kept = |written: &str| text("speculative_retry", &OptionValue::Scalar(written.into()));
        assert_eq!(kept("99.0percentile").unwrap(), "'99p'");
        assert_eq!(kept("min(50ms, 99P)").unwrap(), "'MIN(99p,50ms)'");
        for refused in [
            "",
            "p",
            "ms",
            "200percentile",
            "MINUTE",
            "MIN(99p)",
            "ÄÖ(99p,1ms)",
        ] {
            assert!(kept(refused).is_err(), "{refused}");
        }
    }
}
