//! Guardrails: thresholds at which a client is warned, and at which its request is refused.
//!
//! They have the names and the words of Cassandra. A violation is counted, logged at a bounded
//! rate, and listed with its keyspace, table and column in `system.large_data`.

mod batches;
mod kind;
mod large_data;
mod partitions;
mod values;
mod violations;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use batches::check_batch;
use cql::error::CqlError;
use kind::COUNT;
pub use kind::{Guardrail, GuardrailLimits};
use large_data::LargeDataLog;
pub use large_data::{LargeDataKind, LargeDataLimits};
use parking_lot::Mutex;
pub use partitions::PartitionWalks;
use storage::clock::{Clock, SystemClock};
pub(crate) use values::check_values;
use violations::{ExceedingValue, ViolationHistory};
pub(crate) use violations::{ViolationKey, ViolationRecord};

/// The most warnings that one statement gives.
const WARNINGS_MAX: usize = 64;

/// The thresholds of a node, and the violations of them.
#[derive(Debug)]
pub struct Guardrails {
    limits: [GuardrailLimits; COUNT],
    counts: [ViolationCounts; COUNT],
    seen: Mutex<ViolationHistory>,
    large_data: LargeDataLog,
}

#[derive(Debug, Default)]
struct ViolationCounts {
    warned: AtomicU64,
    refused: AtomicU64,
}

/// The place of a value: a name that does not apply is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ValueLocation<'a> {
    pub keyspace: &'a str,
    pub table: &'a str,
    pub column: &'a str,
    /// The key of the partition as text.
    pub partition: &'a str,
}

/// A threshold that a value violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThresholdViolation {
    /// Whether the threshold is the one for refusals.
    pub is_failure: bool,
    /// The threshold.
    pub threshold: u64,
}

impl ThresholdViolation {
    /// The word for the threshold in messages.
    pub(crate) fn word(self) -> &'static str {
        match self.is_failure {
            true => "failure",
            false => "warning",
        }
    }
}

/// A violation with its message.
pub(crate) enum ViolationMessage {
    Warned(String),
    Refused(String),
}

impl Default for Guardrails {
    fn default() -> Guardrails {
        Guardrails::new(Guardrail::default_limits)
    }
}

impl Guardrails {
    /// Guardrails with these thresholds.
    pub fn new(limits: impl Fn(Guardrail) -> GuardrailLimits) -> Guardrails {
        Guardrails {
            limits: Guardrail::ALL.map(limits),
            counts: Guardrail::ALL.map(|_| ViolationCounts::default()),
            seen: Mutex::default(),
            large_data: LargeDataLog::default(),
        }
    }

    /// These guardrails with other sizes above which data is logged as large.
    #[must_use]
    pub fn with_large_data(self, limits: LargeDataLimits) -> Guardrails {
        Guardrails {
            large_data: LargeDataLog::new(limits),
            ..self
        }
    }

    /// The numbers of large partitions, rows, cells and collections so far.
    pub fn large_data_counts(&self) -> [(LargeDataKind, u64); LargeDataKind::ALL.len()] {
        self.large_data.counts()
    }

    /// The thresholds of a guardrail.
    pub fn limits(&self, guardrail: Guardrail) -> GuardrailLimits {
        self.limits[guardrail as usize]
    }

    /// The violations of each guardrail so far, as (warned, refused).
    pub fn counts(&self) -> [(Guardrail, u64, u64); COUNT] {
        Guardrail::ALL.map(|guardrail| {
            let counts = &self.counts[guardrail as usize];
            let (warned, refused) = (&counts.warned, &counts.refused);
            (
                guardrail,
                warned.load(Ordering::Relaxed),
                refused.load(Ordering::Relaxed),
            )
        })
    }

    /// The violations by their places.
    pub(crate) fn violations(&self) -> Vec<(ViolationKey, ViolationRecord)> {
        self.seen.lock().all()
    }

    /// Looks at a value. A violation is counted, listed and logged with the message.
    pub(crate) fn judge(
        &self,
        guardrail: Guardrail,
        value: u64,
        place: ValueLocation<'_>,
        message: impl FnOnce(ThresholdViolation) -> String,
    ) -> Option<ViolationMessage> {
        let limits = self.limits(guardrail);
        let above = |threshold: Option<u64>| threshold.filter(|threshold| value > *threshold);
        let violation = match (above(limits.fail), above(limits.warn)) {
            (Some(threshold), _) => ThresholdViolation {
                is_failure: true,
                threshold,
            },
            (None, Some(threshold)) => ThresholdViolation {
                is_failure: false,
                threshold,
            },
            (None, None) => return None,
        };
        let message = message(violation);
        let is_refused = violation.is_failure && guardrail.refuses();
        let counts = &self.counts[guardrail as usize];
        match is_refused {
            true => counts.refused.fetch_add(1, Ordering::Relaxed),
            false => counts.warned.fetch_add(1, Ordering::Relaxed),
        };
        let now_micros = SystemClock.now_micros();
        let seen = ExceedingValue {
            value,
            is_failure: violation.is_failure,
            is_refused,
        };
        let is_new = (self.seen.lock()).note(guardrail, place, seen, now_micros);
        if is_new {
            log(guardrail, place, violation, &message);
        }
        traces::note(|| message.clone());
        Some(match is_refused {
            true => ViolationMessage::Refused(message),
            false => ViolationMessage::Warned(message),
        })
    }

    /// Looks at a value as Cassandra's guardrails do: a warning goes to the client, and a refusal
    /// is an error. `message` is without the name of the guardrail.
    ///
    /// # Errors
    /// If the value is above the threshold for refusals.
    pub(crate) fn check(
        &self,
        guardrail: Guardrail,
        value: u64,
        place: ValueLocation<'_>,
        message: impl FnOnce(ThresholdViolation) -> String,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let named = |violation| {
            let message = message(violation);
            format!("Guardrail {} violated: {message}", guardrail.name())
        };
        match self.judge(guardrail, value, place, named) {
            None => Ok(()),
            Some(ViolationMessage::Warned(warning)) => {
                warn(warnings, warning);
                Ok(())
            }
            Some(ViolationMessage::Refused(error)) => Err(CqlError::invalid(error)),
        }
    }
}

/// Writes a line of the log. A refusal is a warning, as the client gets the error. Without a
/// refusal, the line has the level that the threshold deserves.
fn log(
    guardrail: Guardrail,
    place: ValueLocation<'_>,
    violation: ThresholdViolation,
    message: &str,
) {
    // A key or a name in it may have line ends.
    let message = without_controls(message);
    let name = guardrail.name();
    let ValueLocation {
        keyspace,
        table,
        column,
        ..
    } = place;
    match violation.is_failure && !guardrail.refuses() {
        true => tracing::error!(guardrail = name, keyspace, table, column, "{message}"),
        false => tracing::warn!(guardrail = name, keyspace, table, column, "{message}"),
    }
}

/// The text with its control characters escaped.
fn without_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character.is_control() {
            true => escaped.extend(character.escape_debug()),
            false => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// Adds a warning, unless it is there already or there are many.
pub(crate) fn warn(warnings: &mut Vec<String>, warning: String) {
    if warnings.len() < WARNINGS_MAX && !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: ValueLocation<'_> = ValueLocation {
        keyspace: "k",
        table: "t",
        column: "c",
        partition: "",
    };

    fn guardrails() -> Guardrails {
        Guardrails::new(|guardrail| match guardrail {
            Guardrail::ColumnValueSize => GuardrailLimits::new(Some(10), Some(20)),
            _ => GuardrailLimits::default(),
        })
    }

    #[test]
    fn a_line_of_the_log_stays_one_line() {
        let forged = without_controls("key 'é\n2026 ERROR \u{1b}[0m' ");
        assert_eq!(forged, "key 'é\\n2026 ERROR \\u{1b}[0m' ");
        assert!(matches!(without_controls("a 'é'"), Cow::Borrowed(_)));
    }

    #[test]
    fn values_above_a_threshold_are_warned_of_or_refused() {
        let guardrails = guardrails();
        let mut warnings = Vec::new();
        let mut check = |value| {
            let message = |violation: ThresholdViolation| {
                format!("{value} above {} {}", violation.word(), violation.threshold)
            };
            guardrails.check(
                Guardrail::ColumnValueSize,
                value,
                PLACE,
                message,
                &mut warnings,
            )
        };
        assert!(check(10).is_ok());
        assert!(check(11).is_ok());
        assert!(check(20).is_ok());
        let error = check(21).unwrap_err();
        assert_eq!(
            error.message,
            "Guardrail column_value_size violated: 21 above failure 20"
        );
        assert_eq!(
            warnings,
            [
                "Guardrail column_value_size violated: 11 above warning 10",
                "Guardrail column_value_size violated: 20 above warning 10"
            ]
        );
        let counted = guardrails.counts()[Guardrail::ColumnValueSize as usize];
        assert_eq!(counted, (Guardrail::ColumnValueSize, 2, 1));
        let [(key, entry)] = &guardrails.violations()[..] else {
            panic!("one place");
        };
        assert_eq!((&*key.table, &*key.column), ("t", "c"));
        assert_eq!((entry.warned, entry.refused, entry.largest), (2, 1, 21));
    }

    #[test]
    fn a_statement_gives_few_warnings() {
        let mut warnings = Vec::new();
        for n in 0..1000 {
            warn(&mut warnings, format!("{}", n / 2));
        }
        assert_eq!(warnings.len(), WARNINGS_MAX);
    }

    #[test]
    fn the_guardrails_stand_at_their_numbers() {
        for (at, guardrail) in Guardrail::ALL.into_iter().enumerate() {
            assert_eq!(guardrail as usize, at);
        }
    }
}
