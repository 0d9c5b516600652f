//! Restores into the running server, next to its tables.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backup::{BackupLocation, LocationAccess, PointKind, PointManifest, PointTable};
use schema::{Catalog, Keyspace, Role, Table};
use storage::{AdoptedTableName, CatalogChangeError, Storage};
use tasks::Task;

use super::names::in_keyspace;
use super::record::{RestoreRecord, undo, undo_interrupted};
use crate::choice::{TableChoice, files_of};
use crate::files::{ScratchDirectory, make_directory};
use crate::order::RestoreOrder;
use crate::service::{BackupRunner, TABLES};
use crate::transfer::AdoptReporter;
use crate::{BackupTaskError, digests};

/// The folder of restores in a data directory.
fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("restore")
}

impl BackupRunner {
    /// Removes the tables that an interrupted restore has left, and its files. To be called before
    /// clients are served.
    ///
    /// # Errors
    /// If the storage can't be changed, or files can't be removed.
    pub async fn undo_restores(&self) -> Result<(), BackupTaskError> {
        let options = self.options();
        match options.state.storage() {
            Some(storage) => undo_interrupted(storage, &folder(&options.data_dir)).await,
            None => Ok(()),
        }
    }

    /// Restores tables of a point into the storage of this process.
    pub(crate) async fn restore(
        &self,
        order: RestoreOrder,
        task: &Task,
    ) -> Result<(), BackupTaskError> {
        let state = &self.options().state;
        let Some(storage) = state.storage() else {
            return Err(BackupTaskError::Wrong(format!(
                "this service has no tables to restore into: stop it, and restore its directory with --data DIR; {}",
                state.leaves_out().unwrap_or_default()
            )));
        };
        let location = BackupLocation::open(&order.options, LocationAccess::Read).await?;
        let point = location.point(order.point.as_ref()).await?;
        check_kind(&point)?;
        let tables = order.choice.of_point(&point)?;
        check_names(&storage.catalog(), &order.choice, &tables)?;
        tracing::info!(task = %task.id(), point = %point.id, tables = tables.len(), "restore begins");
        let parent = folder(&self.options().data_dir);
        let scratch = ScratchDirectory::below(&parent, &task.id().to_string())?;
        make_directory(scratch.path())?;
        let (pace, reporter) = (
            self.pace(order.place.max_mib_per_second),
            self.reporter(task),
        );
        let (files, data) = (files_of(&point, &tables), scratch.path().join("data"));
        let fetched = location
            .download(&point, &files, &data, &reporter, &pace)
            .await;
        let restored = match fetched {
            Ok(_) => self.adopt_all(storage, &order.choice, &scratch, task).await,
            Err(error) => Err(error.into()),
        };
        scratch.remove().await;
        restored
    }

    /// Takes over the chosen tables of a downloaded directory: all, or none.
    async fn adopt_all(
        &self,
        storage: &Storage,
        choice: &TableChoice,
        scratch: &ScratchDirectory,
        task: &Task,
    ) -> Result<(), BackupTaskError> {
        let source = digests::open(&scratch.path().join("data")).await?;
        let mut record = RestoreRecord::new(scratch.path());
        let mut adopted = self
            .adopt_recorded(storage, &source, choice, &mut record, task)
            .await;
        if adopted.is_ok() {
            adopted = record.keep_all();
        }
        if adopted.is_err()
            && let Err(error) = undo(storage, record.made.clone()).await
        {
            tracing::error!(%error, "tables of a restore that failed remain until the next start");
            // The record in it is needed for that.
            scratch.leave();
        }
        digests::close(source).await?;
        adopted
    }

    async fn adopt_recorded(
        &self,
        storage: &Storage,
        source: &Storage,
        choice: &TableChoice,
        record: &mut RestoreRecord,
        task: &Task,
    ) -> Result<(), BackupTaskError> {
        let from = source.catalog();
        let keyspaces = from.keyspaces.values();
        let keyspaces: Vec<&Arc<Keyspace>> = keyspaces
            .filter(|it| choice.keyspace.as_ref().is_none_or(|name| it.name == *name))
            .collect();
        for keyspace in keyspaces {
            let here = in_keyspace(keyspace, choice.keyspace_here(&keyspace.name));
            note_missing(&storage.catalog(), &here, record);
            record.save()?;
            make_keyspace(storage, here).await?;
            for table in chosen_tables(keyspace, choice) {
                let name = AdoptedTableName {
                    keyspace: choice.keyspace_here(&keyspace.name).to_owned(),
                    table: table.name.clone(),
                };
                let progress = AdoptReporter::new(task, self.stop_token());
                let adopted = storage.adopt_table(source, table.id, name, &progress).await;
                if !self.reporter(task).is_wanted() {
                    // A table that was copied to its end meanwhile is undone with the others.
                    record.made.tables.extend(adopted.ok().map(|it| it.id.0));
                    return Err(BackupTaskError::Stopped);
                }
                let adopted = adopted?;
                record.made.tables.insert(adopted.id.0);
                record.save()?;
                task.count(TABLES, 1);
            }
        }
        match choice.is_whole() {
            true => take_roles(storage, &from).await,
            false => Ok(()),
        }
    }
}

/// The chosen tables of a keyspace. CDC logs are made with their tables.
fn chosen_tables<'a>(
    keyspace: &'a Keyspace,
    choice: &'a TableChoice,
) -> impl Iterator<Item = &'a Arc<Table>> {
    let tables = keyspace.tables.values();
    tables.filter(|table| table.log_of.is_none() && choice.has(&table.keyspace, &table.name))
}

/// Refuses points that are no databases.
pub(crate) fn check_kind(point: &PointManifest) -> Result<(), BackupTaskError> {
    match point.kind {
        PointKind::Database => Ok(()),
        PointKind::GatewayState => Err(BackupTaskError::Wrong(format!(
            "point {} has the state of an index service, and no tables: `annulus restore --data DIR` brings it back for a \
             restart of that service",
            point.id
        ))),
    }
}

/// Refuses names that tables here have already. Logs have the names of their tables.
fn check_names(
    catalog: &Catalog,
    choice: &TableChoice,
    tables: &[&PointTable],
) -> Result<(), BackupTaskError> {
    let is_here = |table: &&&PointTable| {
        let keyspace = choice.keyspace_here(&table.keyspace);
        catalog.table(keyspace, &table.table).is_some()
    };
    let Some(table) = tables.iter().find(is_here) else {
        return Ok(());
    };
    let keyspace = choice.keyspace_here(&table.keyspace);
    Err(BackupTaskError::Wrong(format!(
        "{keyspace}.{} exists here: restore under another name (--keyspace {} --to-keyspace NAME), or drop it first; \
         nothing was changed",
        table.table, table.keyspace
    )))
}

/// Notes the keyspace and types that are about to be made.
fn note_missing(catalog: &Catalog, wanted: &Keyspace, record: &mut RestoreRecord) {
    let present = catalog.keyspace(&wanted.name);
    if present.is_none() {
        record.made.keyspaces.insert(wanted.name.clone());
    }
    for name in wanted.types.keys() {
        if present.is_none_or(|keyspace| !keyspace.types.contains_key(name)) {
            let names = (wanted.name.clone(), name.clone());
            record.made.types.insert(names);
        }
    }
}

/// Makes a keyspace and its types, as far as they are missing.
async fn make_keyspace(storage: &Storage, wanted: Keyspace) -> Result<(), BackupTaskError> {
    let changed = storage.change_catalog(move |catalog| add_keyspace(catalog, &wanted));
    match changed.await {
        Ok(()) => Ok(()),
        Err(CatalogChangeError::Refused(text)) => Err(BackupTaskError::Wrong(text)),
        Err(CatalogChangeError::Storage(error)) => Err(error.into()),
    }
}

fn add_keyspace(catalog: &mut Catalog, wanted: &Keyspace) -> Result<(), String> {
    let name = &wanted.name;
    if catalog.keyspace(name).is_none() {
        let empty = Keyspace {
            types: Default::default(),
            tables: Default::default(),
            ..wanted.clone()
        };
        catalog.keyspaces.insert(name.clone(), Arc::new(empty));
    }
    for definition in wanted.types_in_order() {
        let present = catalog.keyspace(name);
        match present.and_then(|keyspace| keyspace.types.get(&definition.name)) {
            None => catalog.put_type(value::UserType::clone(definition)),
            Some(same) if same == definition => {}
            Some(_) => {
                return Err(format!(
                    "type {name}.{} exists here, and is another: restore under another name (--to-keyspace)",
                    definition.name
                ));
            }
        }
    }
    Ok(())
}

/// Takes the roles of the point, if the server has none but the one that it made itself.
async fn take_roles(storage: &Storage, from: &Catalog) -> Result<(), BackupTaskError> {
    if from.roles.is_empty() {
        return Ok(());
    }
    let roles = from.roles.clone();
    let changed = storage.change_catalog(move |catalog| {
        if has_own_roles(catalog) {
            tracing::warn!("this server has roles of its own, so those of the backup are left out");
            return Ok::<(), Infallible>(());
        }
        let made = std::mem::take(&mut *catalog.roles);
        let mut taken: std::collections::BTreeMap<String, Arc<Role>> = (*roles).clone();
        for (name, role) in made {
            taken.entry(name).or_insert(role);
        }
        *catalog.roles = taken;
        Ok(())
    });
    match changed.await {
        Ok(()) => Ok(()),
        Err(CatalogChangeError::Refused(never)) => match never {},
        Err(CatalogChangeError::Storage(error)) => Err(error.into()),
    }
}

/// Whether somebody has made roles.
fn has_own_roles(catalog: &Catalog) -> bool {
    let first = node::security::access::first_superuser::NAME;
    catalog.roles.keys().any(|name| name != first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(keyspace: &str, table: &str) -> PointTable {
        PointTable {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            id: String::new(),
            rows: None,
            digest: None,
            folders: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_keyspace_is_added_with_its_types_and_a_name_in_use_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let options = storage::StorageOptions::default();
        let storage = Storage::open(directory.path(), options).unwrap();
        let definition = Arc::new(value::UserType {
            keyspace: "ks".to_owned(),
            name: "t".to_owned(),
            field_names: vec!["a".to_owned()],
            field_types: vec![value::CqlType::Int],
        });
        let wanted = Keyspace {
            name: "ks".to_owned(),
            replication: Default::default(),
            durable_writes: true,
            tablets: false,
            types: std::collections::BTreeMap::from([("t".to_owned(), definition)]).into(),
            tables: Default::default(),
        };
        let mut record = RestoreRecord::new(directory.path());
        note_missing(&storage.catalog(), &wanted, &mut record);
        make_keyspace(&storage, wanted.clone()).await.unwrap();
        assert!(
            storage
                .catalog()
                .keyspace("ks")
                .unwrap()
                .types
                .contains_key("t")
        );
        // Once more changes nothing, and another type of the name is refused.
        make_keyspace(&storage, wanted.clone()).await.unwrap();
        let mut other = wanted;
        let other_type = value::UserType {
            keyspace: "ks".to_owned(),
            name: "t".to_owned(),
            field_names: vec!["b".to_owned()],
            field_types: vec![value::CqlType::Int],
        };
        other.types.insert("t".to_owned(), Arc::new(other_type));
        let error = make_keyspace(&storage, other).await.unwrap_err();
        assert!(error.to_string().contains("--to-keyspace"), "{error}");
        undo(&storage, record.made).await.unwrap();
        assert!(storage.catalog().keyspace("ks").is_none());
        storage.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_table_that_exists_is_refused_unless_its_keyspace_gets_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let options = storage::StorageOptions::default();
        let storage = Storage::open(directory.path(), options).unwrap();
        let catalog = storage.catalog();
        let named = table("ks", "t");
        assert!(check_names(&catalog, &TableChoice::default(), &[&named]).is_ok());
        assert!(!has_own_roles(&catalog));
        storage.close().await.unwrap();
    }
}
