//! Restores into the running server, next to its tables.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backup::{BackupLocation, LocationAccess, PointKind, PointManifest, PointTable};
use node::schema_changes::check_new_keyspace;
use schema::{Catalog, Keyspace, Role, Table, TableId};
use storage::{AdoptProgress, AdoptedTableName, CatalogChangeError, Storage};
use tasks::Task;
use uuid::Uuid;

use super::names::in_keyspace;
use super::record::{RestoreRecord, undo, undo_interrupted};
use crate::choice::{TableChoice, files_of};
use crate::files::{ScratchDirectory, make_directory};
use crate::order::RestoreOrder;
use crate::room::check_room;
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
        let files = files_of(&point, &tables);
        // The files, and the tables that are made of them.
        check_room(&parent, 2 * files.bytes_of(&point))?;
        let scratch = ScratchDirectory::below(&parent, &task.id().to_string())?;
        make_directory(scratch.path())?;
        let (pace, reporter) = (
            self.pace(order.place.max_mib_per_second),
            self.reporter(task),
        );
        let data = scratch.path().join("data");
        let fetched = self
            .in_background(location.download(&point, &files, &data, &reporter, &pace))
            .await;
        let restored = match fetched {
            Ok(_) => self.adopt_all(storage, &order.choice, &scratch, task).await,
            Err(error) => Err(error),
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
        // If this is dropped before its end, the next start finds the record.
        scratch.leave();
        let mut adopted = self
            .adopt_recorded(storage, &source, choice, &mut record, task)
            .await;
        if adopted.is_ok() {
            adopted = record.keep_all();
        }
        let settled = match &adopted {
            Ok(()) => Ok(()),
            Err(_) => undo(storage, record.made.clone()).await,
        };
        match settled {
            Ok(()) => scratch.release(),
            Err(error) => {
                tracing::error!(%error, "tables of a restore that failed remain until the next start");
            }
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
                let adopted =
                    adopt_noted((storage, source), table.id, name, record, &progress).await;
                if !self.reporter(task).is_wanted() {
                    // A table that was copied to its end meanwhile is undone with the others.
                    return Err(BackupTaskError::Stopped);
                }
                adopted?;
                task.count(TABLES, 1);
            }
        }
        match choice.is_whole() {
            true => take_roles(storage, &from, record).await,
            false => Ok(()),
        }
    }
}

/// Copies a table from the second storage to the first. Its id is in the record before anything is
/// made, so that no kill leaves a table that the record lacks.
async fn adopt_noted(
    (storage, source): (&Storage, &Storage),
    from: TableId,
    to: AdoptedTableName,
    record: &mut RestoreRecord,
    progress: &dyn AdoptProgress,
) -> Result<(), BackupTaskError> {
    let id = TableId(Uuid::new_v4());
    record.made.tables.insert(id.0);
    record.save()?;
    storage.adopt_table(source, from, id, to, progress).await?;
    Ok(())
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
        check_new_keyspace(name).map_err(|error| {
            format!(
                "{}: restore it under another name (--to-keyspace)",
                error.message
            )
        })?;
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

/// Takes the roles of the point, if the server has none but the one that it made itself. That one
/// stays as it is. The others are in the record before they are made.
async fn take_roles(
    storage: &Storage,
    from: &Catalog,
    record: &mut RestoreRecord,
) -> Result<(), BackupTaskError> {
    let noted = missing_roles(&storage.catalog(), from);
    if noted.is_empty() {
        return Ok(());
    }
    let noted = noted.iter().map(|(name, role)| (name.clone(), role.id));
    record.made.roles.extend(noted);
    record.save()?;
    let of_point = from.clone();
    let changed = storage.change_catalog(move |catalog| {
        let missing = missing_roles(catalog, &of_point);
        catalog.roles.extend(missing);
        Ok::<(), Infallible>(())
    });
    match changed.await {
        Ok(()) => Ok(()),
        Err(CatalogChangeError::Refused(never)) => match never {},
        Err(CatalogChangeError::Storage(error)) => Err(error.into()),
    }
}

/// The roles of a point that a server takes: none if somebody has made roles there.
fn missing_roles(catalog: &Catalog, of_point: &Catalog) -> BTreeMap<String, Arc<Role>> {
    if of_point.roles.is_empty() {
        return BTreeMap::new();
    }
    if has_own_roles(catalog) {
        tracing::warn!("this server has roles of its own, so those of the backup are left out");
        return BTreeMap::new();
    }
    let roles = of_point.roles.iter();
    let missing = roles.filter(|(name, _)| !catalog.roles.contains_key(*name));
    let taken = missing.map(|(name, role)| {
        let mut role = Role::clone(role);
        // An identity of a certificate is that of one role.
        let is_free = |identity: &String| catalog.role_of_identity(identity).is_none();
        role.identities.retain(is_free);
        (name.clone(), Arc::new(role))
    });
    taken.collect()
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

    fn open(directory: &Path) -> Storage {
        Storage::open(directory, storage::StorageOptions::default()).unwrap()
    }

    fn keyspace(name: &str) -> Keyspace {
        Keyspace {
            name: name.to_owned(),
            replication: Default::default(),
            durable_writes: true,
            tablets: false,
            types: Default::default(),
            tables: Default::default(),
        }
    }

    #[tokio::test]
    async fn a_point_may_not_make_a_keyspace_that_no_statement_could_make() {
        let directory = tempfile::tempdir().unwrap();
        let storage = open(directory.path());
        for name in ["system", "", "a/b"] {
            let refused = make_keyspace(&storage, keyspace(name)).await.unwrap_err();
            assert!(refused.to_string().contains("--to-keyspace"), "{refused}");
        }
        assert!(storage.catalog().keyspaces.is_empty());
        storage.close().await.unwrap();
    }

    /// A table of one column.
    fn column_alone(keyspace: &str) -> Table {
        let id = schema::ColumnId(0);
        Table {
            id: TableId(Uuid::new_v4()),
            keyspace: keyspace.to_owned(),
            name: "t".to_owned(),
            columns: vec![schema::Column {
                id,
                name: "p".to_owned(),
                kind: schema::ColumnKind::PartitionKey { position: 0 },
                cql_type: value::CqlType::Int,
            }],
            next_column: schema::ColumnId(1),
            dropped_columns: BTreeMap::new(),
            partitioner: value::token::Partitioner::Murmur3,
            default_ttl_s: 0,
            row_ttl: None,
            gc_grace_s: 864_000,
            options: BTreeMap::new(),
            indexes: BTreeMap::new(),
            secondary_indexes: BTreeMap::new(),
            cdc: None,
            log: None,
            log_of: None,
            truncated_at_ms: None,
        }
    }

    /// Reads the record while rows are copied.
    struct RecordReader(PathBuf, std::sync::Mutex<Vec<u8>>);

    impl AdoptProgress for RecordReader {
        fn copied(&self, _rows: u64, _bytes: u64) {
            *self.1.lock().unwrap() = std::fs::read(&self.0).unwrap();
        }

        fn is_wanted(&self) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn the_id_of_a_table_is_recorded_before_the_table_is_there() {
        let home = tempfile::tempdir().unwrap();
        let [one, other, scratch] = ["one", "other", "scratch"].map(|it| home.path().join(it));
        let (source, target) = (open(&one), open(&other));
        std::fs::create_dir(&scratch).unwrap();
        let table = column_alone("ks");
        let (from, made) = (table.id, keyspace("ks"));
        make_keyspace(&source, made.clone()).await.unwrap();
        make_keyspace(&target, made).await.unwrap();
        let put = source.change_catalog(move |catalog| {
            catalog.put_table(table);
            Ok::<(), Infallible>(())
        });
        assert!(put.await.is_ok());
        let mut record = RestoreRecord::new(&scratch);
        let reader = RecordReader(scratch.join("made.json"), Default::default());
        let to = AdoptedTableName {
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
        };
        let adopted = adopt_noted((&target, &source), from, to, &mut record, &reader);
        adopted.await.unwrap();
        let seen = reader.1.into_inner().unwrap();
        let seen: crate::restore::record::MadeObjects = serde_json::from_slice(&seen).unwrap();
        let id = target.catalog().table("ks", "t").unwrap().id;
        assert!(seen.tables.contains(&id.0), "{seen:?}");
        // An id of a table that was not made yet is no hindrance.
        record.made.tables.insert(Uuid::new_v4());
        undo(&target, record.made).await.unwrap();
        assert!(target.catalog().table("ks", "t").is_none());
        source.close().await.unwrap();
        target.close().await.unwrap();
    }

    #[tokio::test]
    async fn the_superuser_stays_and_roles_that_were_taken_are_undone() {
        let directory = tempfile::tempdir().unwrap();
        let storage = open(directory.path());
        let first = node::security::access::first_superuser::NAME;
        let role = || Role {
            id: Uuid::new_v4(),
            can_login: true,
            ..Role::default()
        };
        let (own, theirs, reader) = (role(), role(), role());
        let own_id = own.id;
        let put = storage.change_catalog(move |catalog| {
            catalog.roles.insert(first.to_owned(), Arc::new(own));
            Ok::<(), Infallible>(())
        });
        assert!(put.await.is_ok());
        let mut point = Catalog::clone(&storage.catalog());
        point.roles.insert(first.to_owned(), Arc::new(theirs));
        point.roles.insert("reader".to_owned(), Arc::new(reader));
        let mut record = RestoreRecord::new(directory.path());
        take_roles(&storage, &point, &mut record).await.unwrap();
        let catalog = storage.catalog();
        assert_eq!(catalog.roles[first].id, own_id);
        assert_eq!(catalog.roles["reader"], point.roles["reader"]);
        // Now the server has roles of its own.
        assert!(missing_roles(&catalog, &point).is_empty());
        undo(&storage, record.made).await.unwrap();
        assert_eq!(storage.catalog().roles.len(), 1);
        assert_eq!(storage.catalog().roles[first].id, own_id);
        storage.close().await.unwrap();
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
