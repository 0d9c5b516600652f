//! The record of what a restore has made in the storage, by which a restore that ended early is
//! undone: a table counts only once all tables of its restore are there.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use schema::{Catalog, Keyspace, TableId};
use serde::{Deserialize, Serialize};
use storage::{CatalogChangeError, Storage, StorageError};
use uuid::Uuid;
use value::UserType;

use crate::BackupTaskError;
use crate::files::{remove_directory, remove_file, replace};

/// The name of the file in the directory of a restore.
const FILE: &str = "made.json";

/// The things that a restore has made in the storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct MadeObjects {
    /// The keyspaces.
    pub keyspaces: BTreeSet<String>,
    /// The types: keyspace and name.
    pub types: BTreeSet<(String, String)>,
    /// The tables by id, noted before they are made. A table that was not made has no effect.
    pub tables: BTreeSet<Uuid>,
    /// The roles: name and id. A later role of the name has another id.
    pub roles: BTreeSet<(String, Uuid)>,
}

/// The record of one restore.
#[derive(Debug)]
pub(super) struct RestoreRecord {
    file: PathBuf,
    pub made: MadeObjects,
}

impl RestoreRecord {
    /// A record in a directory, of a restore that has made nothing.
    pub(super) fn new(directory: &Path) -> RestoreRecord {
        RestoreRecord {
            file: directory.join(FILE),
            made: MadeObjects::default(),
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    /// If it can't be written.
    pub(super) fn save(&self) -> Result<(), BackupTaskError> {
        let bytes = serde_json::to_vec(&self.made);
        let bytes = bytes.map_err(|error| BackupTaskError::Internal(error.to_string()))?;
        replace(&self.file, &bytes).map_err(|error| BackupTaskError::file(&self.file, error))
    }

    /// Removes the record, durably: what the restore has made remains from now on.
    ///
    /// # Errors
    /// If it can't be removed.
    pub(super) fn keep_all(&self) -> Result<(), BackupTaskError> {
        remove_file(&self.file).map_err(|error| BackupTaskError::file(&self.file, error))
    }
}

/// Removes from the storage what a restore has made.
///
/// # Errors
/// If the schema can't be changed.
pub(super) async fn undo(storage: &Storage, made: MadeObjects) -> Result<(), BackupTaskError> {
    if made == MadeObjects::default() {
        return Ok(());
    }
    let changed = storage.change_catalog(move |catalog| {
        remove(catalog, &made);
        Ok::<(), Infallible>(())
    });
    match changed.await {
        Ok(()) => Ok(()),
        Err(CatalogChangeError::Refused(never)) => match never {},
        Err(CatalogChangeError::Storage(error)) => Err(error.into()),
    }
}

/// Removes tables and roles by their ids, and types and keyspaces that nothing is in any more.
fn remove(catalog: &mut Catalog, made: &MadeObjects) {
    for id in &made.tables {
        let found = catalog.table_by_id(TableId(*id));
        if let Some((keyspace, name)) = found.map(|it| (it.keyspace.clone(), it.name.clone())) {
            catalog.remove_table(&keyspace, &name);
        }
    }
    for (name, id) in &made.roles {
        if catalog.roles.get(name).is_some_and(|role| role.id == *id) {
            catalog.remove_role(name);
        }
    }
    for name in &made.keyspaces {
        let found = catalog.keyspace(name);
        if found.is_some_and(|keyspace| keyspace.tables.is_empty()) {
            catalog.keyspaces.remove(name);
        }
    }
    for (keyspace, name) in &made.types {
        let found = catalog.keyspace(keyspace);
        let is_unused = found.is_some_and(|keyspace| {
            let definition = keyspace.types.get(name);
            definition.is_some_and(|definition| !is_used(keyspace, definition))
        });
        if is_unused {
            catalog.remove_type(keyspace, name);
        }
    }
}

/// Whether a column or another type of a keyspace has values of a type.
fn is_used(keyspace: &Keyspace, definition: &UserType) -> bool {
    let tables = keyspace.tables.values();
    let mut columns = tables.flat_map(|table| &table.columns);
    let mut types = keyspace.types.values();
    columns.any(|column| column.cql_type.uses(definition))
        || types.any(|other| other.field_types.iter().any(|it| it.uses(definition)))
}

/// Undoes the restores that have left a record in the folder of restores, and removes the folder.
///
/// # Errors
/// If the storage can't be changed, or files can't be removed.
pub(super) async fn undo_interrupted(
    storage: &Storage,
    folder: &Path,
) -> Result<(), BackupTaskError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| BackupTaskError::file(folder, error))?,
    };
    for entry in entries.flatten() {
        let file = entry.path().join(FILE);
        let made = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            read => read.map_err(|error| BackupTaskError::file(&file, error))?,
        };
        let made: MadeObjects = serde_json::from_slice(&made).map_err(|error| {
            BackupTaskError::Storage(StorageError::Corrupt(format!(
                "{}: {error}; it says what an interrupted restore has made: move it away, and drop the tables of that \
                 restore yourself",
                file.display()
            )))
        })?;
        let tables = made.tables.len();
        undo(storage, made).await?;
        tracing::warn!(
            tables,
            "a restore was interrupted, and is undone: begin it again"
        );
    }
    remove_directory(folder).map_err(|error| BackupTaskError::file(folder, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_what_was_made_until_all_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut record = RestoreRecord::new(directory.path());
        record.keep_all().unwrap();
        record.made.keyspaces.insert("ks".to_owned());
        record.made.tables.insert(Uuid::nil());
        record.save().unwrap();
        let text = fs::read(directory.path().join(FILE)).unwrap();
        let again: MadeObjects = serde_json::from_slice(&text).unwrap();
        assert_eq!(again, record.made);
        record.keep_all().unwrap();
        assert!(!directory.path().join(FILE).exists());
    }
}
