//! The page docs/metrics.md: the families of metrics of all servers, as their registries know them.
//!
//! `make docs/metrics.md` writes it. The tests compare it with the registries, and the names of the
//! families with the naming scheme.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backup_tasks::ClientWork;
use http_server::{
    FamilyDescription, HttpTraffic, MAIN_FAMILIES, MaintenanceMode, MetricsRegistry,
};
use node::CounterValues;
use storage::{Storage, StorageOptions};
use tasks::TaskRegistry;

use crate::backups::ProcessBackups;
use crate::metrics::{
    CertificateEnds, ProcessMode, ReadNumber, StorageReadings, older_names, show_connections,
    show_disks, show_guardrails, show_listeners, show_logs, show_memory, show_process,
    show_storage,
};

/// The variable that is set where the page is to be written.
const UPDATE: &str = "ANNULUS_UPDATE_METRICS_PAGE";

const INTRODUCTION: &str = "\
# Metrics

All metrics of the three servers, in the text format of Prometheus at `/metrics` of their HTTP listener (a gateway has one
with `--metrics-listen`). `make docs/metrics.md` makes this page of the program's own registries.

A name is `annulus_`, the part, the thing, and its unit. A counter ends with `_total`. Older names of a family are shown
for one more version, with the label `index_name` in place of `index`. Those marked \"stays\" are of the Vector Store's
contract and stay. A series with values of labels that are known beforehand exists from the start. Series of an index
exist while the index does.

`GET /api/v1/metrics/history?name=NAME&seconds=N` answers the values of the last six hours, one each 15 s, as JSON; without
a name it lists the names. It has the main families (marked \"history\"), of a histogram its `_count` and `_sum`, and takes
2.8 MiB at most: 256 series of 1,440 values.
";

/// The parts in the order of the page, each with its heading.
const PARTS: [(&str, &str); 24] = [
    ("cql", "CQL"),
    ("connection", "Connections"),
    ("http", "HTTP"),
    ("search", "Searches"),
    ("index", "Indexes"),
    ("text", "Indexes on texts"),
    ("storage", "Storage"),
    ("compaction", "Compaction"),
    ("cache", "Caches"),
    ("disk", "Disks"),
    ("memory", "Memory"),
    ("scheduler", "Turns on the processor"),
    ("task", "Tasks"),
    ("backup", "Backups"),
    ("restore", "Restores"),
    ("drill", "Drills"),
    ("certificate", "Certificates"),
    ("clock", "Clock"),
    ("log", "Log"),
    ("large", "Large data"),
    ("slow", "Slow statements"),
    ("maintenance", "Maintenance"),
    ("process", "Process and build"),
    ("gateway", "Gateway"),
];

/// Units that may be the end of a name, after which only `total` may come.
const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];

/// Words that would be another unit than the base one.
const OTHER_UNITS: [&str; 9] = [
    "ms",
    "millis",
    "milliseconds",
    "micros",
    "microseconds",
    "minutes",
    "kib",
    "mib",
    "percent",
];

/// The registries of the three servers.
struct ServerRegistries {
    serve: MetricsRegistry,
    store: MetricsRegistry,
    gateway: MetricsRegistry,
    /// The results of backups, which the registries hold weakly.
    _backups: ProcessBackups,
    /// The data of the storage behind the first.
    _directory: tempfile::TempDir,
}

fn number() -> ReadNumber {
    Arc::new(|| 0)
}

fn registries() -> ServerRegistries {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path(), StorageOptions::default()).unwrap();
    let serve = store::described_metrics();
    serve.show_older_names(&older_names());
    for families in node::statement_families() {
        serve.register(families).unwrap();
    }
    let syncs = storage.sync_durations().unwrap();
    serve.register(Box::new(syncs)).unwrap();
    show_storage(&serve, &StorageReadings::of(&storage));
    show_guardrails(&serve, Arc::default());
    show_listeners(&serve, Arc::new(CounterValues::default));
    show_logs(&serve, Arc::default());
    let store = store::described_metrics();
    show_connections(&store, None);
    show_logs(&store, Arc::default());
    let backups = ProcessBackups::of_index_service(
        directory.path().to_owned(),
        TaskRegistry::default(),
        ClientWork::default(),
    );
    let backups = backups.unwrap();
    backups.tasks().show_metrics(&serve);
    backups.tasks().show_metrics(&store);
    for (registry, mode) in [(&serve, ProcessMode::Serve), (&store, ProcessMode::Store)] {
        show_memory(registry, vec![("indexes", number())]);
        show_disks(registry, vec![("index", directory.path().to_owned())]);
        HttpTraffic::of_process().show(registry);
        show_process(registry, mode, || true);
        CertificateEnds::default().show(registry);
    }
    let gateway = gateway::described_metrics();
    for families in store_api::SearchCounts::of_process().families() {
        gateway.register(families).unwrap();
    }
    HttpTraffic::of_process().show(&gateway);
    show_logs(&gateway, Arc::default());
    show_connections(&gateway, None);
    show_process(&gateway, ProcessMode::Gateway, || true);
    CertificateEnds::default().show(&gateway);
    for registry in [&serve, &store, &gateway] {
        MaintenanceMode::default().show(registry);
    }
    ServerRegistries {
        serve,
        store,
        gateway,
        _backups: backups,
        _directory: directory,
    }
}

/// The families of all servers by name, each with the servers that have it.
fn families() -> BTreeMap<String, (FamilyDescription, Vec<&'static str>)> {
    let registries = registries();
    let mut all = BTreeMap::new();
    for (server, registry) in [
        ("serve", &registries.serve),
        ("store", &registries.store),
        ("gateway", &registries.gateway),
    ] {
        for family in registry.described() {
            let name = family.name.clone();
            let (_, servers) = all.entry(name).or_insert_with(|| (family, Vec::new()));
            servers.push(server);
        }
    }
    all
}

/// The part that a family is of.
fn part_of(name: &str) -> &str {
    let part = name.split('_').nth(1).unwrap_or_default();
    match part {
        "build" => "process",
        part => part,
    }
}

fn line(family: &FamilyDescription, servers: &[&str]) -> String {
    let kind = match MAIN_FAMILIES.contains(&family.name.as_str()) {
        true => format!("{}, history", family.kind),
        false => family.kind.to_owned(),
    };
    let older = family.older.map(|name| match name.stays {
        true => format!("`{}` (stays)", name.older),
        false => format!("`{}`", name.older),
    });
    let cells = [
        format!("`{}`", family.name),
        kind,
        family.labels.join(", "),
        servers.join(", "),
        family.help.replace('|', "\\|"),
        older.unwrap_or_default(),
    ];
    let cells = cells.map(|cell| match cell.as_str() {
        "" => " |".to_owned(),
        cell => format!(" {cell} |"),
    });
    format!("|{}\n", cells.concat())
}

fn page() -> String {
    let families = families();
    let mut page = INTRODUCTION.to_owned();
    for (part, heading) in PARTS {
        let of_part = families.values();
        let of_part = of_part.filter(|(family, _)| part_of(&family.name) == part);
        let lines: String = of_part.map(|(family, of)| line(family, of)).collect();
        if !lines.is_empty() {
            page.push_str(&format!(
                "\n## {heading}\n\n| Name | Type | Labels | Servers | Meaning | Older name |\n|---|---|---|---|---|---|\n{lines}"
            ));
        }
    }
    page
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md")
}

#[test]
fn the_page_has_all_families() {
    let page = page();
    if std::env::var_os(UPDATE).is_some() {
        fs::write(path(), &page).unwrap();
    }
    let written = fs::read_to_string(path()).unwrap();
    for (written, made) in written.lines().zip(page.lines()) {
        assert_eq!(written, made, "make docs/metrics.md");
    }
    assert!(written == page, "make docs/metrics.md");
}

#[test]
fn names_follow_the_scheme() {
    let parts: BTreeSet<&str> = PARTS.iter().map(|(part, _)| *part).collect();
    for (name, (family, _)) in families() {
        assert!(name.starts_with("annulus_"), "{name}");
        assert!(parts.contains(part_of(&name)), "{name}: add its part");
        let of_counter = name.strip_suffix("_total");
        assert_eq!(of_counter.is_some(), family.kind == "counter", "{name}");
        let words: Vec<&str> = of_counter.unwrap_or(&name).split('_').collect();
        let (last, before) = words.split_last().unwrap();
        assert!(!before.iter().any(|word| UNITS.contains(word)), "{name}");
        assert!(
            !words.iter().any(|word| OTHER_UNITS.contains(word)),
            "{name}"
        );
        if family.kind == "histogram" {
            assert!(UNITS.contains(last), "{name}");
        }
        assert!(
            !family.help.is_empty() && !family.help.ends_with('.'),
            "{name}"
        );
    }
}

#[test]
fn main_families_are_families() {
    let families = families();
    for name in MAIN_FAMILIES {
        assert!(families.contains_key(name), "{name}");
    }
}

#[test]
fn older_names_are_of_families_and_differ() {
    let families = families();
    let mut seen = BTreeSet::new();
    for (family, _) in families.values() {
        if let Some(name) = family.older {
            assert!(seen.insert(name.older), "{name:?}");
            assert!(!families.contains_key(name.older), "{name:?}");
        }
    }
    assert_eq!(seen.len(), 54);
}
