//! Changes of the schema: files of new tables first, then the catalog in one commit, then the end
//! of the files of dropped ones. A crash in between leaves files that no catalog names, which the
//! next start removes.
//!
//! Each table is a space of the engine, with a folder of its own. The folder of a dropped table
//! goes once its last reader has ended. The committer looks for such folders after each request,
//! and the watcher wakes it for that every second.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use schema::{Catalog, Keyspace, Table, TableId};
use uuid::Uuid;
use value::timeuuid;

use super::{CatalogEdit, CatalogEditOutcome, Committer, building};
use crate::StorageError;
use crate::engine::{Engine, EntryBatch, SpaceId, SpaceOptions, SyncTarget};
use crate::layout::ResolvedSchema;
use crate::persist::{self, TableGenerations};

/// Reads the catalog, and converts one of an older format; `None` in a new directory.
pub(crate) fn load(
    engine: &Engine,
    now_micros: i64,
) -> Result<Option<(Catalog, TableGenerations)>, StorageError> {
    let scan = engine.scan_at(&engine.snapshot()?, SpaceId::META, persist::keys())?;
    let Some(loaded) = persist::load(scan)? else {
        return Ok(None);
    };
    if !loaded.conversion.is_empty() {
        tracing::info!("converting the schema of an older version");
        engine.commit(batch(loaded.conversion), SyncTarget::Disk, now_micros)?;
    }
    Ok(Some((loaded.catalog, loaded.generations)))
}

/// Writes the first catalog of a directory, durable when it returns.
pub(crate) fn store_first(
    engine: &Engine,
    catalog: &Catalog,
    now_micros: i64,
) -> Result<(), StorageError> {
    let changes = persist::changes(None, (catalog, &TableGenerations::new()));
    engine.commit(batch(changes), SyncTarget::Disk, now_micros)
}

/// Gives a directory that is not in use another host id, durable when it returns. Returns the id.
pub(crate) fn renew_host(engine: &Engine, now_micros: i64) -> Result<Uuid, StorageError> {
    let (catalog, generations) = load(engine, now_micros)?.ok_or_else(|| {
        StorageError::Corrupt(format!("{} holds no schema", engine.path().display()))
    })?;
    let mut renewed = catalog.clone();
    renewed.host_id = Uuid::new_v4();
    renewed.version = next_version(catalog.version, now_micros);
    let changes = persist::changes(Some((&catalog, &generations)), (&renewed, &generations));
    engine.commit(batch(changes), SyncTarget::Disk, now_micros)?;
    Ok(renewed.host_id)
}

fn batch(changes: persist::CatalogWrites) -> EntryBatch {
    let changes = changes.into_iter();
    changes
        .map(|(key, value)| (SpaceId::META, key, value))
        .collect()
}

impl Committer {
    pub(super) fn change(&mut self, change: CatalogEdit) {
        let schema = self.shared.schema();
        let mut catalog = Catalog::clone(&schema.catalog);
        if let CatalogEditOutcome::Done(reply) = (change.edit)(&mut catalog) {
            let outcome = if same(&catalog, &schema.catalog) {
                Ok(())
            } else {
                self.install(catalog, schema.generations.clone(), EntryBatch::new())
            };
            reply(outcome);
        }
    }

    pub(super) fn truncate(&mut self, table: TableId) -> Result<(), StorageError> {
        let schema = self.shared.schema();
        let old = schema.table(table)?;
        let mut generations = schema.generations.clone();
        generations.insert(table, old.space.generation() + 1);

        let mut catalog = Catalog::clone(&schema.catalog);
        let mut truncated = (*old.table).clone();
        let now_ms = self.shared.clock.now_micros().div_euclid(1_000);
        // Each TRUNCATE has a time of its own. By it an index knows that it has to be built again.
        let last_ms = old.table.truncated_at_ms;
        truncated.truncated_at_ms = Some(last_ms.map_or(now_ms, |last| now_ms.max(last + 1)));
        if let Some(keyspace) = catalog.keyspaces.get_mut(&old.table.keyspace) {
            // Not by `put_table`: the log is not concerned.
            Arc::make_mut(keyspace)
                .tables
                .insert(truncated.name.clone(), Arc::new(truncated));
        }
        self.install(catalog, generations, EntryBatch::new())
    }

    /// Makes a catalog the one that counts. `entries` are committed with it.
    pub(super) fn install(
        &mut self,
        mut catalog: Catalog,
        generations: TableGenerations,
        mut entries: EntryBatch,
    ) -> Result<(), StorageError> {
        self.shared.check_writable()?;
        let old = self.shared.schema();
        catalog.version = next_version(old.catalog.version, self.shared.clock.now_micros());
        begin_streams(&mut catalog, &old, self.shared.clock.now_micros());
        let mut building = old.building.clone();
        building.extend(building::added(&old.catalog, &catalog));
        let new = ResolvedSchema::new(Arc::new(catalog), generations, building, Some(&old));
        let begun = building::begun(&old, &new);

        let mut spaces = old.spaces();
        entries.extend(building::entries(&old, &new, &begun));
        let committed = self.commit_schema(&spaces, &old, &new, entries);
        if let Err(error) = committed {
            self.shared.note_write_failure(&error);
            return Err(self.shared.explain(&error));
        }
        for kept in new.spaces().keys() {
            spaces.remove(kept);
        }
        let gone = spaces.into_iter();
        self.retired
            .extend(gone.map(|(space, (_, lease))| (space, lease)));
        drop(old);
        self.take_builds(&new, begun);
        self.shared.set_schema(new);
        Ok(())
    }

    /// `spaces` are those of the old schema, `entries` further changes of the meta space.
    fn commit_schema(
        &self,
        spaces: &HashMap<SpaceId, (SpaceOptions, Arc<()>)>,
        old: &ResolvedSchema,
        new: &ResolvedSchema,
        entries: EntryBatch,
    ) -> Result<(), StorageError> {
        let engine = &self.shared.engine;
        // Spaces come before the schema that names them: a crash in between leaves only an empty
        // one.
        for (space, (options, _)) in new.spaces() {
            if !spaces.contains_key(&space) {
                engine.create_space(space, options)?;
            }
        }
        let was = (&*old.catalog, &old.generations);
        let is = (&*new.catalog, &new.generations);
        let mut batch = batch(persist::changes(Some(was), is));
        batch.extend(entries);
        let mark = self.carry_mark(&mut batch);
        let now_micros = self.shared.clock.now_micros();
        engine.commit(batch, SyncTarget::Disk, now_micros)?;
        self.carried(mark);
        Ok(())
    }

    /// Drops the space of a former table that has no readers any more. Only one, as the engine
    /// syncs several files for it and writers wait meanwhile. Says whether there was one.
    pub(super) fn drop_retired(&mut self) -> bool {
        let is_free = |(_, lease): &(SpaceId, Arc<()>)| Arc::strong_count(lease) == 1;
        let free = self.retired.iter().position(is_free);
        if let Some(index) = free {
            let (space, _) = self.retired.swap_remove(index);
            if let Err(error) = self.shared.engine.drop_space(space) {
                // The next start removes it.
                tracing::warn!(%error, "the files of a dropped table could not be removed");
            }
        }
        let waiting = self.retired.len() as u64;
        let counters = &self.shared.statistics;
        counters.retired_waiting.store(waiting, Ordering::Relaxed);
        free.is_some()
    }
}

/// The streams of a new log begin when it is committed.
fn begin_streams(catalog: &mut Catalog, old: &ResolvedSchema, now_micros: i64) {
    let is_new = |table: &Arc<Table>| {
        table
            .log
            .as_ref()
            .is_some_and(|log| log.streams.is_some() && old.table(log.table).is_err())
    };
    for keyspace in catalog.keyspaces.values_mut() {
        if !keyspace.tables.values().any(is_new) {
            continue;
        }
        let tables = &mut Arc::make_mut(keyspace).tables;
        for table in tables.values_mut().filter(|table| is_new(table)) {
            if let Some(log) = &mut Arc::make_mut(table).log
                && let Some(streams) = &mut log.streams
            {
                streams.since_ms = now_micros.div_euclid(1_000);
            }
        }
    }
}

/// A timeuuid after the last one, at the present if that is later.
fn next_version(last: Uuid, now_micros: i64) -> Uuid {
    let micros = now_micros.max(timeuuid::unix_micros(&last).saturating_add(1));
    timeuuid::from_micros(micros, Uuid::new_v4().as_u64_pair().1).unwrap_or(last)
}

fn same(a: &Catalog, b: &Catalog) -> bool {
    let mut keyspaces = a.keyspaces.values().zip(b.keyspaces.values());
    same_roles(a, b)
        && a.keyspaces.len() == b.keyspaces.len()
        && keyspaces.all(|(a, b)| Arc::ptr_eq(a, b) || same_keyspace(a, b))
        && a.cluster_name == b.cluster_name
        && a.vnode_streams == b.vnode_streams
        && a.host_id == b.host_id
        && a.created_at_ms == b.created_at_ms
}

fn same_roles(a: &Catalog, b: &Catalog) -> bool {
    let mut roles = a.roles.iter().zip(b.roles.iter());
    a.roles.is_same(&b.roles)
        || a.roles.len() == b.roles.len()
            && roles.all(|(a, b)| a.0 == b.0 && (Arc::ptr_eq(a.1, b.1) || a.1 == b.1))
}

/// Unchanged tables are the same in memory, which is cheaper to see than that they say the same.
fn same_keyspace(a: &Keyspace, b: &Keyspace) -> bool {
    let Keyspace {
        name,
        replication,
        durable_writes,
        tablets,
        types,
        tables,
    } = a;
    let mut pairs = tables.values().zip(b.tables.values());
    (name, replication, durable_writes, tablets, types)
        == (
            &b.name,
            &b.replication,
            &b.durable_writes,
            &b.tablets,
            &b.types,
        )
        && tables.len() == b.tables.len()
        && pairs.all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
}
