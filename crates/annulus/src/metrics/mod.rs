//! The metrics that the program adds to those of its parts: of the process, its disk, its storage,
//! its connections and its certificates. All modes show them in the one registry of their server.

mod certificates;
mod connections;
mod process;
mod serving;
mod storage;

use std::path::PathBuf;
use std::sync::Arc;

use http_server::{MetricsRegistry, ReadCounts};

pub use certificates::CertificateEnds;
pub use connections::{CqlConnections, show_connections};
pub use process::{ProcessMode, show_process};
#[cfg(test)]
pub use serving::{older_names, show_guardrails, show_listeners};
pub use serving::{show_logs, show_serve};
pub use storage::{StorageReadings, show_storage};

/// Reads a number of this moment.
pub type ReadNumber = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The readings of one number, without labels.
fn single(read: impl Fn() -> u64 + Send + Sync + 'static) -> ReadCounts {
    Arc::new(move || vec![(Vec::new(), read())])
}

/// Shows the size and the free bytes of the file systems of directories, each with its label. A
/// directory that can't be looked at has no series.
pub fn show_disks(metrics: &MetricsRegistry, directories: Vec<(&'static str, PathBuf)>) {
    let directories = Arc::new(directories);
    let read = |value: fn(&rustix::fs::StatVfs) -> u64| -> ReadCounts {
        let directories = directories.clone();
        Arc::new(move || {
            let directories = directories.iter();
            let values = directories.filter_map(|(label, path)| {
                let volume = rustix::fs::statvfs(path).ok()?;
                Some((vec![*label], value(&volume)))
            });
            values.collect::<Vec<_>>()
        })
    };
    metrics.show_gauge(
        "annulus_disk_size_bytes",
        "Size of the file system of a directory",
        &["directory"],
        read(|volume| volume.f_blocks.saturating_mul(volume.f_frsize)),
    );
    metrics.show_gauge(
        "annulus_disk_free_bytes",
        "Bytes that the process may still write to the file system of a directory",
        &["directory"],
        read(|volume| volume.f_bavail.saturating_mul(volume.f_frsize)),
    );
}

/// Shows the memory that parts of the process hold, by owner.
pub fn show_memory(metrics: &MetricsRegistry, owners: Vec<(&'static str, ReadNumber)>) {
    let read = move || {
        let owners = owners.iter();
        let bytes = owners.map(|(owner, read)| (vec![*owner], read()));
        bytes.collect::<Vec<_>>()
    };
    metrics.show_gauge(
        "annulus_memory_bytes",
        "Memory that a part of the process holds",
        &["owner"],
        Arc::new(read),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_not_there_has_no_series() {
        let metrics = MetricsRegistry::default();
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let directories = vec![("data", directory.path().to_owned()), ("index", missing)];
        show_disks(&metrics, directories);
        let text = metrics.text().unwrap();
        assert!(
            text.contains(r#"annulus_disk_size_bytes{directory="data"}"#),
            "{text}"
        );
        assert!(
            text.contains(r#"annulus_disk_free_bytes{directory="data"}"#),
            "{text}"
        );
        assert!(!text.contains("index"), "{text}");
    }

    #[test]
    fn memory_is_shown_by_owner() {
        let metrics = MetricsRegistry::default();
        let owners: Vec<(&'static str, ReadNumber)> =
            vec![("indexes", Arc::new(|| 7)), ("block_cache", Arc::new(|| 9))];
        show_memory(&metrics, owners);
        let text = metrics.text().unwrap();
        assert!(
            text.contains(r#"annulus_memory_bytes{owner="indexes"} 7"#),
            "{text}"
        );
        assert!(
            text.contains(r#"annulus_memory_bytes{owner="block_cache"} 9"#),
            "{text}"
        );
    }
}
