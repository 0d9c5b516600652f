//! The adoption of a table: its rows come from another storage, as they are stored there.
//!
//! They go to a space that no table has yet, so that no read finds them. Once all are there, one
//! change of the schema makes the table. Until then a crash leaves only a space that no table
//! names, which the next start removes.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use schema::{Catalog, Keyspace, Table, TableId, log_table_name};

use super::adopted_types::take_types_of;
use super::sweep::DeletionSweep;
use super::{Committer, expiring};
use crate::StorageError;
use crate::engine::{EntryBatch, ResidentChange, SpaceId, SpaceOptions, SyncTarget};

/// The longest time by which the source's clock may be ahead of this one. Microseconds.
const LEAD_MAX_MICROS: i64 = 10_000_000;

/// A step of an adoption.
pub(crate) enum AdoptionStep {
    /// Makes the space.
    Begin {
        space: SpaceId,
        options: SpaceOptions,
    },
    /// Adds entries to the space.
    Copy {
        space: SpaceId,
        entries: Vec<(Bytes, Bytes)>,
    },
    /// Makes the table.
    Finish(Box<FinishedCopy>),
    /// Drops the space.
    Abandon { space: SpaceId },
}

/// The table of a space that has all its rows.
pub(crate) struct FinishedCopy {
    pub space: SpaceId,
    pub table: Table,
    /// Whether anything was written with a time to live.
    pub is_expiring: bool,
    /// The deletions whose rows are still stored.
    pub sweeps: Vec<DeletionSweep>,
    /// The source's clock has given no later time to a write of the copy. Microseconds since the
    /// epoch.
    pub source_micros: i64,
}

impl Committer {
    pub(super) fn adopt(&mut self, step: AdoptionStep) -> Result<(), StorageError> {
        let done = match step {
            AdoptionStep::Begin { space, options } => {
                self.shared.check_writable()?;
                self.check_unused(space)?;
                self.adopting.insert(space);
                self.shared.engine.create_space(space, options)
            }
            AdoptionStep::Copy { space, entries } => {
                self.shared.check_writable()?;
                self.copy_entries(space, entries)
            }
            AdoptionStep::Finish(copy) => return self.finish_adoption(*copy),
            AdoptionStep::Abandon { space } => {
                self.adopting.remove(&space);
                // The table may have been made while its caller stopped waiting.
                match self.shared.schema().table(space.table()) {
                    Ok(_) => Ok(()),
                    Err(_) => self.shared.engine.drop_space(space),
                }
            }
        };
        done.map_err(|error| {
            self.shared.note_write_failure(&error);
            self.shared.explain(&error)
        })
    }

    fn copy_entries(
        &self,
        space: SpaceId,
        entries: Vec<(Bytes, Bytes)>,
    ) -> Result<(), StorageError> {
        self.check_adopting(space)?;
        let engine = &self.shared.engine;
        // Nothing if the space is not held in memory.
        let growth = engine.resident_growth(entries.iter().map(|(key, value)| ResidentChange {
            space,
            key: Cow::Borrowed(&key[..]),
            before: Some(None),
            value: Some(value.len()),
        }));
        engine.check_resident_room(growth, false)?;
        let entries = entries.into_iter();
        let batch: EntryBatch = entries
            .map(|(key, value)| (space, key, Some(value)))
            .collect();
        // The commit that makes the table syncs all before it.
        engine.commit(batch, SyncTarget::Kernel, self.shared.clock.now_micros())
    }

    fn finish_adoption(&mut self, copy: FinishedCopy) -> Result<(), StorageError> {
        let FinishedCopy {
            space,
            mut table,
            is_expiring,
            sweeps,
            source_micros,
        } = copy;
        let schema = self.shared.schema();
        check_names(&schema.catalog, &table)?;
        // Types may have been dropped or changed since the copy began.
        let keyspace = keyspace_of(&schema.catalog, &table.keyspace)?;
        take_types_of(&mut table, keyspace)?;
        self.check_adopting(space)?;
        let clock = &self.shared.clock;
        check_source_time(source_micros, clock.now_micros())?;
        // The commit of the schema carries the mark for it.
        clock.raise(source_micros);
        let mut catalog = Catalog::clone(&schema.catalog);
        let id = table.id;
        catalog.put_table(table);
        let mut entries: EntryBatch = sweeps.iter().map(DeletionSweep::entry).collect();
        if is_expiring {
            entries.push(expiring::entry(id));
            self.shared.forgetting.set_expiring([id]);
        }
        self.install(catalog, schema.generations.clone(), entries)?;
        self.adopting.remove(&space);
        self.sweeps.extend(sweeps);
        self.count_sweeps();
        Ok(())
    }

    /// Fails if a table has the space, had it until a moment ago, or is about to get it.
    fn check_unused(&self, space: SpaceId) -> Result<(), StorageError> {
        let is_retired = self.retired.iter().any(|(former, _)| *former == space);
        let is_table = self.shared.schema().table(space.table()).is_ok();
        match is_retired || is_table || self.adopting.contains(&space) {
            true => Err(id_in_use(space.table())),
            false => Ok(()),
        }
    }

    /// Fails if the engine was opened again since the space was made. Then the space is no longer
    /// held in memory, if it was to be.
    fn check_adopting(&self, space: SpaceId) -> Result<(), StorageError> {
        match self.adopting.contains(&space) {
            true => Ok(()),
            false => Err(StorageError::Io(
                "the disk failed while a table was copied: copy it again".to_owned(),
            )),
        }
    }
}

/// Fails if the clock of a copy's source is ahead by more than seconds.
pub(crate) fn check_source_time(source_micros: i64, now_micros: i64) -> Result<(), StorageError> {
    let lead_micros = source_micros.saturating_sub(now_micros);
    if lead_micros <= LEAD_MAX_MICROS {
        return Ok(());
    }
    let (lead_s, max_s) = (lead_micros / 1_000_000, LEAD_MAX_MICROS / 1_000_000);
    Err(StorageError::Invalid(format!(
        "the clock of the server that the table comes from was {lead_s} s ahead of the clock here, \
         so writes here would lose to its rows; at most {max_s} s are made up for: set the clock \
         of this machine, or copy the table again once the difference has passed"
    )))
}

fn id_in_use(id: TableId) -> StorageError {
    StorageError::Invalid(format!(
        "the id {} is in use: copy the table with a new id",
        id.0
    ))
}

/// Fails if the id or a name of the table is taken, or if there is no such keyspace.
pub(crate) fn check_names(catalog: &Catalog, table: &Table) -> Result<(), StorageError> {
    if catalog.table_by_id(table.id).is_some() {
        return Err(id_in_use(table.id));
    }
    let keyspace = keyspace_of(catalog, &table.keyspace)?;
    let taken = |what: &str, name: &str| {
        StorageError::Invalid(format!(
            "{what} {}.{name} exists already: copy the table to another keyspace, or drop it first",
            keyspace.name
        ))
    };
    let log = log_table_name(&table.name);
    if let Some(name) = [&table.name, &log]
        .into_iter()
        .find(|name| keyspace.tables.contains_key(*name))
    {
        return Err(taken("the table", name));
    }
    let names = table.indexes.keys().chain(table.secondary_indexes.keys());
    for name in names {
        let has = |other: &Arc<Table>| {
            other.indexes.contains_key(name) || other.secondary_indexes.contains_key(name)
        };
        if keyspace.tables.values().any(has) {
            return Err(taken("the index", name));
        }
    }
    Ok(())
}

/// A keyspace by its name.
pub(crate) fn keyspace_of<'c>(
    catalog: &'c Catalog,
    name: &str,
) -> Result<&'c Keyspace, StorageError> {
    let keyspace = catalog.keyspace(name).map(|keyspace| &**keyspace);
    keyspace
        .ok_or_else(|| StorageError::Invalid(format!("there is no keyspace {name}: make it first")))
}
