//! The adoption of a table: its rows come from another storage, as they are stored there.
//!
//! They go to a space that no table has yet, so that no read finds them. Once all are there, one
//! change of the schema makes the table. Until then a crash leaves only a space that no table
//! names, which the next start removes.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use schema::{Catalog, Keyspace, Table, log_table_name};

use super::sweep::DeletionSweep;
use super::{Committer, expiring};
use crate::StorageError;
use crate::engine::{EntryBatch, ResidentChange, SpaceId, SpaceOptions, SyncTarget};

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
}

impl Committer {
    pub(super) fn adopt(&mut self, step: AdoptionStep) -> Result<(), StorageError> {
        let done = match step {
            AdoptionStep::Begin { space, options } => {
                self.shared.check_writable()?;
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
            table,
            is_expiring,
            sweeps,
        } = copy;
        let schema = self.shared.schema();
        check_names(&schema.catalog, &table)?;
        self.check_adopting(space)?;
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

/// Fails if a name of the table is taken, or if there is no such keyspace.
pub(crate) fn check_names(catalog: &Catalog, table: &Table) -> Result<(), StorageError> {
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
