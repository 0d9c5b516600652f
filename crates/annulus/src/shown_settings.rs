//! The settings of `annulus serve` as its system tables show them: each by its long name, with the
//! value that counts and the place that it comes from.
//!
//! Each setting is listed by hand, so that a secret is shown only if somebody lists it.

use std::fmt::Display;
use std::time::Duration;

use node::audit::AuditOptions;
use node::system::Setting;
use storage::Durability;
use store::Placement;

use crate::audit_log::category_names;
use crate::settings::{Resolved, Settings};

/// The settings that count. `given` are those of the command line and environment, and `file`
/// those of the file.
pub fn shown(resolved: &Resolved, given: &Settings, file: &Settings) -> Vec<Setting> {
    let mut shown = Vec::new();
    macro_rules! show {
        ($field:ident, $kind:literal, $value:expr) => {{
            let source = match (given.$field.is_some(), file.$field.is_some()) {
                (true, _) => "command line or environment",
                (false, true) => "file",
                (false, false) => "default",
            };
            shown.push(setting(stringify!($field), $kind, source, &$value));
        }};
    }
    let (durability, sync_interval_ms) = match resolved.durability {
        Durability::Synced => ("synced", 0),
        Durability::Buffered { sync_interval } => ("buffered", sync_interval.as_millis()),
    };
    let never = || "never".to_owned();
    let repair = resolved.repair.schedule.as_ref();
    let repair = repair.map_or_else(never, |schedule| {
        (schedule.interval.as_secs() / 3600).to_string()
    });
    let span = |span: Option<Duration>| span.map_or_else(never, |span| format!("{span:?}"));
    show!(data_dir, "path", resolved.data_dir.display());
    show!(listen, "address", resolved.listen);
    show!(cql_port, "integer", resolved.cql_port);
    show!(http_port, "integer", resolved.http_port);
    show!(http_host, "text", resolved.http_hosts.join(","));
    show!(login, "boolean", resolved.login);
    let [audit_log, categories, keyspaces, roles] = of_audit(resolved.audit.as_ref());
    show!(audit_log, "path", audit_log);
    show!(audit_categories, "text", categories);
    show!(audit_keyspaces, "text", keyspaces);
    show!(audit_exclude_roles, "text", roles);
    show!(insecure, "boolean", resolved.insecure);
    show!(tls_cert_path, "path", certificate(resolved, given, file));
    show!(datacenter, "text", resolved.datacenter);
    show!(durability, "text", durability);
    show!(sync_interval_ms, "integer", sync_interval_ms);
    let limit = resolved.memory.bytes;
    let limit = limit.map_or_else(none, |bytes| bytes.to_string());
    show!(memory_limit, "bytes", limit);
    show!(cache_mib, "integer", resolved.cache_bytes >> 20);
    show!(max_frame_mib, "integer", resolved.max_frame_bytes >> 20);
    show!(max_requests, "integer", resolved.max_requests);
    show!(index_vectors, "text", placement(resolved.index_vectors));
    show!(index_dir, "path", resolved.index_dir.display());
    let snapshots = span(resolved.snapshots.interval);
    show!(snapshot_interval, "duration", snapshots);
    show!(search_threads, "integer", resolved.search_threads);
    show!(search_share, "integer", resolved.shares.search);
    show!(ingest_share, "integer", resolved.shares.ingest);
    show!(repair_interval_h, "integer", repair);
    show!(scrub_interval, "duration", span(resolved.scrub.interval));
    show!(
        scrub_rate_mib,
        "integer",
        resolved.scrub.bytes_a_second >> 20
    );
    let walks = span(Some(resolved.partition_walk_interval));
    show!(partition_walk_interval, "duration", walks);
    let inline = resolved.inline_searches_within.as_micros();
    show!(inline_searches_us, "integer", inline);
    show!(filter_values, "integer", resolved.filter_values_max);
    show!(internals, "boolean", resolved.internals);
    show!(log, "text", resolved.log);
    let thresholds = file.guardrails.clone().unwrap_or_default();
    shown.extend(thresholds.shown(&resolved.guardrails));
    shown
}

fn none() -> String {
    "none".to_owned()
}

/// The path of the certificate.
fn certificate(resolved: &Resolved, given: &Settings, file: &Settings) -> String {
    let path = given.tls_cert_path.as_ref().or(file.tls_cert_path.as_ref());
    let path = path.filter(|_| resolved.tls.is_some());
    path.map_or_else(none, |path| path.display().to_string())
}

fn placement(vectors: Placement) -> &'static str {
    match vectors {
        Placement::File => "file",
        Placement::Memory => "memory",
    }
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

fn setting(field: &str, kind: &'static str, source: &'static str, value: &dyn Display) -> Setting {
    Setting {
        name: field.replace('_', "-"),
        value: value.to_string(),
        source,
        kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_tells_its_value_and_source() {
        let file: Settings = toml::from_str("cql-port = 1\nhttp-port = 2").unwrap();
        let given = Settings {
            cql_port: Some(3),
            ..Settings::default()
        };
        let resolved = given.clone().or(file.clone()).resolve().unwrap();
        let shown = shown(&resolved, &given, &file);
        let of = |name: &str| {
            let setting = shown.iter().find(|setting| setting.name == name).unwrap();
            (setting.value.as_str(), setting.source)
        };
        assert_eq!(of("cql-port"), ("3", "command line or environment"));
        assert_eq!(of("http-port"), ("2", "file"));
        assert_eq!(of("durability"), ("synced", "default"));
        assert_eq!(of("snapshot-interval"), ("300s", "default"));
    }
}
