//! The numbers of rows and the digests of the tables in a directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use storage::{Storage, StorageOptions, TableDigest};

use crate::BackupTaskError;
use crate::files::make_directory;

/// Folders whose files never change once they have their names.
const OF_FIXED_FILES: [&str; 2] = ["tables", "blobs"];

/// Whether work that blocks a thread is to go on.
pub(crate) type IsWanted = Arc<dyn Fn() -> bool + Send + Sync>;

/// A digest as a point has it.
pub(crate) fn as_text(digest: u128) -> String {
    format!("{digest:032x}")
}

/// Makes a directory like a checkpoint that can be opened: to open one writes into it. Files that
/// never change are links, all others are copies. Snapshots of indexes are left out.
///
/// # Errors
/// If a file can't be read or made.
pub(crate) fn link_to_read(from: &Path, to: &Path) -> Result<(), BackupTaskError> {
    make_directory(to)?;
    let failed = |error| BackupTaskError::file(from, error);
    let is_fixed = from
        .file_name()
        .is_some_and(|name| OF_FIXED_FILES.iter().any(|fixed| name == *fixed));
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(failed)?.is_dir() {
            if entry.file_name() != "indexes" {
                link_to_read(&source, &target)?;
            }
            continue;
        }
        let made = match is_fixed {
            true => fs::hard_link(&source, &target),
            false => fs::copy(&source, &target).map(drop),
        };
        made.map_err(|error| BackupTaskError::file(&target, error))?;
    }
    Ok(())
}

/// Opens a directory of data to read.
///
/// # Errors
/// If it can't be opened.
pub(crate) async fn open(directory: &Path) -> Result<Storage, BackupTaskError> {
    let directory = directory.to_owned();
    let opened = tokio::task::spawn_blocking(move || {
        let options = StorageOptions {
            // It is read once, from end to end.
            cache_bytes: 32 << 20,
            ..StorageOptions::default()
        };
        Storage::open_read_only(&directory, options)
    });
    let opened = opened.await.map_err(lost)?;
    Ok(opened?)
}

/// Closes a storage that was opened to read: the last clone does.
///
/// # Errors
/// If its thread ended early.
pub(crate) async fn close(storage: Storage) -> Result<(), BackupTaskError> {
    let closed = tokio::task::spawn_blocking(move || drop(storage));
    closed.await.map_err(lost)
}

/// The numbers of rows and digests of all tables in a directory, by the ids of the tables: of the
/// rows that were alive at a time, in seconds since the epoch.
///
/// # Errors
/// If the directory can't be opened or read.
pub(crate) async fn of_tables(
    directory: &Path,
    at_s: i64,
    is_wanted: &IsWanted,
) -> Result<BTreeMap<String, TableDigest>, BackupTaskError> {
    let storage = open(directory).await?;
    let catalog = storage.catalog();
    let tables = catalog.keyspaces.values();
    let tables: Vec<_> = tables
        .flat_map(|keyspace| keyspace.tables.values())
        .map(|table| table.id)
        .collect();
    let mut found = BTreeMap::new();
    let mut outcome = Ok(());
    for table in tables {
        match of_table(&storage, table, at_s, is_wanted).await {
            Ok(digest) => found.insert(table.0.to_string(), digest),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        };
    }
    close(storage).await?;
    outcome.map(|()| found)
}

/// The number of rows and the digest of one table.
///
/// # Errors
/// If the table can't be read.
pub(crate) async fn of_table(
    storage: &Storage,
    table: schema::TableId,
    at_s: i64,
    is_wanted: &IsWanted,
) -> Result<TableDigest, BackupTaskError> {
    let (storage, is_wanted) = (storage.clone(), is_wanted.clone());
    let read = tokio::task::spawn_blocking(move || {
        let digest = storage.table_digest_at(table, at_s, &*is_wanted);
        match is_wanted() {
            true => digest.map_err(BackupTaskError::from),
            false => Err(BackupTaskError::Stopped),
        }
    });
    read.await.map_err(lost)?
}

/// The error for a thread that ended early.
pub(crate) fn lost(error: tokio::task::JoinError) -> BackupTaskError {
    BackupTaskError::Internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn only_files_that_never_change_are_linked() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        for file in [
            "db/keyspaces/1/tables/5",
            "db/keyspaces/1/current",
            "db/0.jnl",
            "indexes/snapshots/x",
        ] {
            let file = from.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "x").unwrap();
        }
        link_to_read(&from, &to).unwrap();
        let inode = |path: &str| fs::metadata(directory.path().join(path)).unwrap().ino();
        let table = "db/keyspaces/1/tables/5";
        assert_eq!(
            inode(&format!("from/{table}")),
            inode(&format!("to/{table}"))
        );
        assert_ne!(inode("from/db/0.jnl"), inode("to/db/0.jnl"));
        assert!(!to.join("indexes").exists());
    }

    #[test]
    fn a_digest_is_a_text_of_fixed_length() {
        assert_eq!(as_text(0), "0".repeat(32));
        assert_eq!(as_text(u128::MAX), "f".repeat(32));
    }
}
