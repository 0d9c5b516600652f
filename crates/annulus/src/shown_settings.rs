//! The settings of `annulus serve` as its system tables show them: each by its long name, with the
//! value that counts and the place that it comes from.
//!
//! The table of [`Settings`] says which are shown: of a file with a password the path is. A test
//! reports which flag is not.

use node::system::ProcessSetting;

use crate::settings::{ResolvedSettings, Settings};

/// The settings that count. `given` are those of the command line and environment, and `file`
/// those of the file.
pub fn shown(
    resolved: &ResolvedSettings,
    given: &Settings,
    file: &Settings,
) -> Vec<ProcessSetting> {
    let table = Settings::SHOWN.iter();
    let mut shown: Vec<ProcessSetting> = table
        .map(|setting| setting.setting(resolved, given, file))
        .collect();
    let thresholds = file.guardrails.clone().unwrap_or_default();
    shown.extend(thresholds.shown(&resolved.guardrails));
    shown
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Args;

    use super::*;

    #[test]
    fn a_setting_tells_its_value_and_source() {
        let file: Settings =
            toml::from_str("cql-port = 1\nhttp-port = 2\nlog-format = \"json\"").unwrap();
        let given = Settings {
            cql_port: Some(3),
            superuser_file: Some("who".into()),
            in_memory_storage_size_mb: Some(7),
            ..Settings::default()
        };
        let resolved = given.clone().or(file.clone()).resolve().unwrap();
        let shown = shown(&resolved, &given, &file);
        let of = |name: &str| {
            let setting = shown.iter().find(|setting| setting.name == name).unwrap();
            (setting.value.as_str(), setting.source)
        };
        let typed = "command line or environment";
        for (name, value, source) in [
            ("cql-port", "3", typed),
            ("superuser-file", "who", typed),
            ("in-memory-storage-size-mb", "7", typed),
            ("http-port", "2", "file"),
            ("log-format", "json", "file"),
            ("durability", "synced", "default"),
            ("sample", "none", "default"),
            ("snapshot-interval", "300s", "default"),
            ("tls-client-ca-cert-path", "none", "default"),
            ("tls-file-check-interval", "never", "default"),
        ] {
            assert_eq!(of(name), (value, source), "{name}");
        }
    }

    #[test]
    fn every_flag_is_shown_once() {
        let settings = Settings::default();
        let resolved = settings.clone().resolve().unwrap();
        let shown = shown(&resolved, &settings, &settings);
        let thresholds = settings.guardrails.unwrap_or_default();
        let thresholds = thresholds.shown(&resolved.guardrails).len();
        let names: Vec<_> = shown.iter().map(|setting| setting.name.clone()).collect();
        let names = &names[..names.len() - thresholds];
        let command = Settings::augment_args(clap::Command::new("serve"));
        let flags = command.get_arguments().filter_map(|flag| flag.get_long());
        let flags: BTreeSet<String> = flags.map(str::to_owned).collect();
        assert_eq!(names.iter().cloned().collect::<BTreeSet<_>>(), flags);
        assert_eq!(names.len(), flags.len());
    }
}
