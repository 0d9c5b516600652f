//! The settings of `annulus serve` as its system tables show them: each by its long name, with the
//! value that counts and the place that it comes from.
//!
//! Each setting is listed by hand, so that a secret is shown only if somebody lists it: of a file
//! with a password the path is shown. A test tells which flag is not listed.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use node::security::audit::AuditOptions;
use node::system::Setting;
use storage::Durability;
use store::Placement;

use crate::audit_log::category_names;
use crate::settings::{Resolved, Settings};

/// The settings that count. `given` are those of the command line and environment, and `file`
/// those of the file.
pub fn shown(resolved: &Resolved, given: &Settings, file: &Settings) -> Vec<Setting> {
    let mut list = List {
        given,
        file,
        shown: Vec::new(),
    };
    list.add_listeners(resolved);
    list.add_access(resolved);
    list.add_storage(resolved);
    list.add_indexes(resolved);
    let thresholds = file.guardrails.clone().unwrap_or_default();
    list.shown.extend(thresholds.shown(&resolved.guardrails));
    list.shown
}

/// The settings so far.
struct List<'a> {
    given: &'a Settings,
    file: &'a Settings,
    shown: Vec<Setting>,
}

/// Adds a setting, named as its field in [`Settings`], to a list.
macro_rules! show {
    ($list:expr, $field:ident, $kind:literal, $value:expr) => {{
        let places = ($list.given.$field.is_some(), $list.file.$field.is_some());
        $list.add(stringify!($field), $kind, places, &$value);
    }};
}

/// The path that the command line or the file gives, or "none".
macro_rules! path {
    ($list:expr, $field:ident) => {{
        let path: Option<&Path> = match &$list.given.$field {
            Some(path) => Some(path),
            None => $list.file.$field.as_deref(),
        };
        path.map_or_else(none, |path| path.display().to_string())
    }};
}

impl List<'_> {
    fn add(
        &mut self,
        field: &str,
        kind: &'static str,
        (is_given, in_file): (bool, bool),
        value: &dyn Display,
    ) {
        self.shown.push(Setting {
            name: field.replace('_', "-"),
            value: value.to_string(),
            source: match (is_given, in_file) {
                (true, _) => "command line or environment",
                (false, true) => "file",
                (false, false) => "default",
            },
            kind,
        });
    }

    fn add_listeners(&mut self, resolved: &Resolved) {
        show!(self, listen, "address", resolved.listen);
        show!(self, cql_port, "integer", resolved.cql_port);
        show!(self, http_port, "integer", resolved.http_port);
        show!(self, http_host, "text", resolved.http_hosts.join(","));
        show!(self, datacenter, "text", resolved.datacenter);
        show!(
            self,
            max_frame_mib,
            "integer",
            resolved.max_frame_bytes >> 20
        );
        show!(self, max_requests, "integer", resolved.max_requests);
        let timeouts = resolved.timeouts;
        show!(self, read_request_timeout, "duration", span(timeouts.read));
        let range = span(timeouts.range);
        show!(self, range_request_timeout, "duration", range);
        let write = span(timeouts.write);
        show!(self, write_request_timeout, "duration", write);
        show!(self, internals, "boolean", resolved.internals);
        show!(self, log, "text", resolved.log);
        show!(self, log_format, "text", word(resolved.log_format));
    }

    fn add_access(&mut self, resolved: &Resolved) {
        show!(self, login, "boolean", resolved.login);
        show!(self, superuser_file, "path", path!(self, superuser_file));
        show!(self, insecure, "boolean", resolved.insecure);
        let [audit_log, categories, keyspaces, roles] = of_audit(resolved.audit.as_ref());
        show!(self, audit_log, "path", audit_log);
        show!(self, audit_categories, "text", categories);
        show!(self, audit_keyspaces, "text", keyspaces);
        show!(self, audit_exclude_roles, "text", roles);
        show!(self, tls_cert_path, "path", path!(self, tls_cert_path));
        show!(self, tls_key_path, "path", path!(self, tls_key_path));
        let authorities = path!(self, tls_client_ca_cert_path);
        show!(self, tls_client_ca_cert_path, "path", authorities);
        let interval = resolved.tls.as_ref().map(|tls| tls.check_interval);
        show!(self, tls_file_check_interval, "duration", span(interval));
    }

    fn add_storage(&mut self, resolved: &Resolved) {
        show!(self, data_dir, "path", resolved.data_dir.display());
        show!(
            self,
            sample,
            "text",
            resolved.sample.map_or_else(none, word)
        );
        let (durability, sync_interval_ms) = match resolved.durability {
            Durability::Synced => ("synced", 0),
            Durability::Buffered { sync_interval } => ("buffered", sync_interval.as_millis()),
        };
        show!(self, durability, "text", durability);
        show!(self, sync_interval_ms, "integer", sync_interval_ms);
        let limit = resolved.memory.bytes;
        let limit = limit.map_or_else(none, |bytes| bytes.to_string());
        show!(self, memory_limit, "bytes", limit);
        show!(self, cache_mib, "integer", resolved.cache_bytes >> 20);
        let resident_mib = resolved.resident_bytes >> 20;
        show!(self, in_memory_storage_size_mb, "integer", resident_mib);
        show!(
            self,
            scrub_interval,
            "duration",
            span(resolved.scrub.interval)
        );
        show!(
            self,
            scrub_rate_mib,
            "integer",
            resolved.scrub.bytes_a_second >> 20
        );
        let walks = span(Some(resolved.partition_walk_interval));
        show!(self, partition_walk_interval, "duration", walks);
    }

    fn add_indexes(&mut self, resolved: &Resolved) {
        let vectors = match resolved.index_vectors {
            Placement::File => "file",
            Placement::Memory => "memory",
        };
        show!(self, index_vectors, "text", vectors);
        show!(self, index_dir, "path", resolved.index_dir.display());
        let snapshots = span(resolved.snapshots.interval);
        show!(self, snapshot_interval, "duration", snapshots);
        show!(self, search_threads, "integer", resolved.search_threads);
        show!(self, search_share, "integer", resolved.shares.search);
        show!(self, ingest_share, "integer", resolved.shares.ingest);
        let repair = resolved.repair.schedule.as_ref();
        let repair = span(repair.map(|schedule| schedule.interval));
        show!(self, repair_interval, "duration", repair);
        let inline = resolved.inline_searches_within.as_micros();
        show!(self, inline_searches_us, "integer", inline);
        show!(self, filter_values, "integer", resolved.filter_values_max);
    }
}

fn none() -> String {
    "none".to_owned()
}

fn never() -> String {
    "never".to_owned()
}

fn span(span: Option<Duration>) -> String {
    span.map_or_else(never, |span| format!("{span:?}"))
}

/// The file of the audit log, and its choices: categories, keyspaces and roles left out.
fn of_audit(audit: Option<&AuditOptions>) -> [String; 4] {
    match audit {
        Some(audit) => [
            audit.file.display().to_string(),
            category_names(audit),
            audit.keyspaces.join(","),
            audit.roles_left_out.join(","),
        ],
        None => [(); 4].map(|()| none()),
    }
}

/// A value by the word that the command line takes for it.
fn word(value: impl ValueEnum) -> String {
    let word = value.to_possible_value();
    word.map_or_else(none, |word| word.get_name().to_owned())
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
