//! The table `[guardrails]` of the settings file: thresholds under the names that they have in
//! `cassandra.yaml`.

use std::collections::BTreeMap;

use node::guardrails::{Guardrail, GuardrailLimits, Guardrails};
use node::system::ProcessSetting;
use serde::Deserialize;

use crate::exit::ProcessFailure;
use crate::size::ByteSize;

/// Thresholds by their names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct GuardrailSettings(BTreeMap<String, GuardrailThreshold>);

/// A threshold as it is written: a number, or bytes with a unit. Less than 0 means none.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum GuardrailThreshold {
    Number(i64),
    Size(String),
}

impl GuardrailSettings {
    /// The thresholds of all guardrails: as given, or by default.
    ///
    /// # Errors
    /// A name that is none of a threshold, a value that is none, and a threshold for warnings above
    /// that for refusals. One for warnings that is not given is at most that for refusals.
    pub fn resolve(&self) -> Result<BTreeMap<Guardrail, GuardrailLimits>, ProcessFailure> {
        let mut limits: BTreeMap<Guardrail, GuardrailLimits> = Guardrail::ALL
            .into_iter()
            .map(|guardrail| (guardrail, guardrail.default_limits()))
            .collect();
        for (name, threshold) in &self.0 {
            let (guardrail, is_failure) = named(name)?;
            let value = threshold.value(name, guardrail)?;
            if let Some(limits) = limits.get_mut(&guardrail) {
                match is_failure {
                    true => limits.fail = value,
                    false => limits.warn = value,
                }
            }
        }
        for (guardrail, limits) in &mut limits {
            self.reconcile(*guardrail, limits)?;
        }
        Ok(limits)
    }

    /// Settles a threshold for warnings that is above that for refusals.
    ///
    /// # Errors
    /// If the one for warnings was given.
    fn reconcile(
        &self,
        guardrail: Guardrail,
        limits: &mut GuardrailLimits,
    ) -> Result<(), ProcessFailure> {
        let (Some(warn), Some(fail)) = (limits.warn, limits.fail) else {
            return Ok(());
        };
        if warn <= fail {
            return Ok(());
        }
        let name = guardrail.warn_setting();
        if !self.0.contains_key(&name) {
            limits.warn = Some(fail);
            return Ok(());
        }
        let fail_name = guardrail.fail_setting().unwrap_or_default();
        let remedy = match self.0.contains_key(&fail_name) {
            true => format!("set {fail_name} to {warn} or more, or {name} to {fail} or less"),
            false => format!(
                "{fail} is the default of {fail_name}: set it, too, to {warn} or more, or to -1 for none"
            ),
        };
        Err(ProcessFailure::Configuration(format!(
            "The warn threshold {warn} for {name} should be lower than the fail threshold {fail}; {remedy}"
        )))
    }

    /// The thresholds as the system tables show them.
    pub fn shown(&self, guardrails: &Guardrails) -> Vec<ProcessSetting> {
        let thresholds = Guardrail::ALL.into_iter().flat_map(|guardrail| {
            let limits = guardrails.limits(guardrail);
            let warn = (guardrail.warn_setting(), limits.warn);
            let fail = guardrail.fail_setting().map(|name| (name, limits.fail));
            let kind = if guardrail.is_of_bytes() {
                "bytes"
            } else {
                "integer"
            };
            [Some(warn), fail].map(|threshold| threshold.map(|of| (of, kind)))
        });
        let thresholds = thresholds
            .flatten()
            .map(|((name, threshold), kind)| ProcessSetting {
                source: match self.0.contains_key(&name) {
                    true => "file",
                    false => "default",
                },
                name,
                value: threshold.map_or_else(|| "-1".to_owned(), |value| value.to_string()),
                kind,
            });
        thresholds.collect()
    }
}

/// The guardrail of a threshold, and whether the threshold is for refusals.
fn named(name: &str) -> Result<(Guardrail, bool), ProcessFailure> {
    let mut all = Guardrail::ALL.into_iter();
    let found = all.find_map(|guardrail| {
        if guardrail.warn_setting() == name {
            return Some((guardrail, false));
        }
        (guardrail.fail_setting().as_deref() == Some(name)).then_some((guardrail, true))
    });
    found.ok_or_else(|| {
        ProcessFailure::Configuration(format!(
            "guardrails: there is no threshold {name}; docs/guardrails.md lists them"
        ))
    })
}

impl GuardrailThreshold {
    fn value(&self, name: &str, guardrail: Guardrail) -> Result<Option<u64>, ProcessFailure> {
        match self {
            GuardrailThreshold::Number(number) => Ok(u64::try_from(*number).ok()),
            GuardrailThreshold::Size(text) if guardrail.is_of_bytes() => {
                let size: ByteSize = text.parse().map_err(|error| {
                    ProcessFailure::Configuration(format!("guardrails: {name}: {error}"))
                })?;
                Ok(Some(size.0))
            }
            GuardrailThreshold::Size(text) => Err(ProcessFailure::Configuration(format!(
                "guardrails: {name} is a number, not '{text}'; -1 is for none"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<BTreeMap<Guardrail, GuardrailLimits>, String> {
        let settings: GuardrailSettings = toml::from_str(text).unwrap();
        settings.resolve().map_err(|error| error.to_string())
    }

    #[test]
    fn thresholds_are_given_by_cassandras_names() {
        let limits = resolved(
            "batch_size_warn_threshold = \"1KiB\"\ntombstone_failure_threshold = 9000\ntables_fail_threshold = 7",
        )
        .unwrap();
        assert_eq!(
            limits[&Guardrail::BatchSize],
            GuardrailLimits::new(Some(1024), None)
        );
        assert_eq!(
            limits[&Guardrail::Tombstones],
            GuardrailLimits::new(Some(1000), Some(9000))
        );
        assert_eq!(
            limits[&Guardrail::Tables],
            GuardrailLimits::new(None, Some(7))
        );
        let none = resolved("batch_size_warn_threshold = -1").unwrap();
        assert!(!none[&Guardrail::BatchSize].is_set());
    }

    #[test]
    fn a_default_for_warnings_follows_a_lower_threshold_for_refusals() {
        let limits =
            resolved("tombstone_failure_threshold = 500\nbatch_size_fail_threshold = \"1KiB\"")
                .unwrap();
        assert_eq!(
            limits[&Guardrail::Tombstones],
            GuardrailLimits::new(Some(500), Some(500))
        );
        assert_eq!(
            limits[&Guardrail::BatchSize],
            GuardrailLimits::new(Some(1024), Some(1024))
        );
    }

    #[test]
    fn a_threshold_that_cannot_be_is_refused_by_name() {
        for (text, part) in [
            ("tables_max = 1", "no threshold tables_max"),
            (
                "tables_warn_threshold = \"1KiB\"",
                "tables_warn_threshold is a number",
            ),
            ("row_size_warn_threshold = \"x\"", "row_size_warn_threshold"),
            (
                "tables_warn_threshold = 9\ntables_fail_threshold = 7",
                "should be lower than the fail threshold 7; set tables_fail_threshold to 9 or more",
            ),
            (
                "tombstone_warn_threshold = 200000",
                "100000 is the default of tombstone_failure_threshold: set it, too",
            ),
        ] {
            let error = resolved(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn thresholds_are_shown() {
        let settings: GuardrailSettings = toml::from_str("tables_fail_threshold = 7").unwrap();
        let limits = settings.resolve().unwrap();
        let shown = settings.shown(&Guardrails::new(|guardrail| limits[&guardrail]));
        let of = |name: &str| {
            let setting = shown.iter().find(|setting| setting.name == name).unwrap();
            (setting.value.as_str(), setting.source)
        };
        assert_eq!(of("tables_fail_threshold"), ("7", "file"));
        assert_eq!(of("tables_warn_threshold"), ("-1", "default"));
        assert_eq!(of("batch_size_warn_threshold"), ("5120", "default"));
    }
}
