//! Builds of secondary indexes: rows from before an index get their entries, a few at a time
//! between other work, in the order of the disk.
//!
//! Writes after CREATE INDEX bring their entries along. So once each row has been looked at, no row
//! lacks its entries, whatever was written meanwhile.
//!
//! ```text
//! key       "build/" and the version of the index (16 bytes) in the meta space
//! value     version (1 byte: 1), table (16), generation (8, big-endian), then the key after which
//!           the build goes on
//! ```

use std::ops::Bound;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use schema::{Catalog, TableId};
use tasks::{Task, TaskScope, TaskSpec};
use uuid::Uuid;

use super::skipped::FailedRows;
use super::{Committer, skipped};
use crate::StorageError;
use crate::engine::{Engine, EntryBatch, SpaceId, SyncTarget};
use crate::entries::entries_of;
use crate::key::{HEADER, ROW};
use crate::layout::{IndexSchema, ResolvedSchema, TableSchema, UnbuiltIndexes};
use crate::record;

const PREFIX: &[u8] = b"build/";
const VERSION: u8 = 1;
/// Rows that are looked at between two requests.
const ROWS_A_STEP: usize = 128;
/// Bytes of rows after which a step ends.
const BYTES_A_STEP: usize = 1 << 20;

/// A secondary index that is being built.
pub(crate) struct IndexBuild {
    index: Uuid,
    /// The space of the rows.
    space: SpaceId,
    /// The last key that was looked at; empty at the beginning.
    behind: Vec<u8>,
    task: Option<Task>,
}

impl IndexBuild {
    pub(super) fn new(index: Uuid, space: SpaceId) -> IndexBuild {
        IndexBuild {
            index,
            space,
            behind: Vec::new(),
            task: None,
        }
    }

    /// The entry that is stored until the build is done.
    fn entry(&self) -> (SpaceId, Bytes, Option<Bytes>) {
        let mut out = vec![VERSION];
        out.extend_from_slice(self.space.table().0.as_bytes());
        out.extend_from_slice(&self.space.generation().to_be_bytes());
        out.extend_from_slice(&self.behind);
        (SpaceId::META, key(self.index), Some(out.into()))
    }

    fn decode(index: &[u8], mut value: Bytes) -> Option<IndexBuild> {
        let index = Uuid::from_slice(index).ok()?;
        if value.len() < 25 || value.get_u8() != VERSION {
            return None;
        }
        let table = TableId(Uuid::from_u128(value.get_u128()));
        let space = SpaceId::new(table, value.get_u64());
        Some(IndexBuild {
            behind: value.to_vec(),
            ..IndexBuild::new(index, space)
        })
    }
}

fn key(index: Uuid) -> Bytes {
    [PREFIX, index.as_bytes()].concat().into()
}

/// Reads the builds that were not done when the storage stopped.
pub(crate) fn load(engine: &Engine) -> Result<Vec<IndexBuild>, StorageError> {
    let snapshot = engine.snapshot()?;
    let range = (Bound::Included(PREFIX.to_vec()), Bound::Unbounded);
    let mut builds = Vec::new();
    for entry in engine.scan_at(&snapshot, SpaceId::META, range)? {
        let (key, value) = entry?;
        let Some(index) = key.strip_prefix(PREFIX) else {
            break;
        };
        let build = IndexBuild::decode(index, value).ok_or_else(|| {
            StorageError::Corrupt("the build of an index can't be read: drop the index".to_owned())
        })?;
        builds.push(build);
    }
    Ok(builds)
}

/// The indexes that are being built.
pub(crate) fn indexes(builds: &[IndexBuild]) -> UnbuiltIndexes {
    builds.iter().map(|build| build.index).collect()
}

/// The secondary indexes of a schema with their tables.
fn indexes_of(schema: &ResolvedSchema) -> impl Iterator<Item = (&Arc<TableSchema>, &IndexSchema)> {
    let tables = schema.tables();
    tables.flat_map(|table| table.indexes.iter().map(move |index| (table, index)))
}

/// The indexes that a new catalog adds.
pub(super) fn added(old: &Catalog, new: &Catalog) -> UnbuiltIndexes {
    let versions = |catalog: &Catalog| -> UnbuiltIndexes {
        let keyspaces = catalog.keyspaces.values();
        let tables = keyspaces.flat_map(|keyspace| keyspace.tables.values());
        let versions = tables.flat_map(|table| {
            let indexes = table.secondary_indexes.values();
            let row_ttl = table.row_ttl.map(|row_ttl| row_ttl.version);
            indexes.map(|index| index.version).chain(row_ttl)
        });
        versions.collect()
    };
    let known = versions(old);
    let mut versions = versions(new);
    versions.retain(|version| !known.contains(version));
    versions
}

/// The builds that a new schema begins.
pub(super) fn begun(old: &ResolvedSchema, new: &ResolvedSchema) -> Vec<IndexBuild> {
    let is_new = |index: &IndexSchema| {
        new.building.contains(&index.version) && !old.building.contains(&index.version)
    };
    let added = indexes_of(new).filter(|(_, index)| is_new(index));
    added
        .map(|(table, index)| IndexBuild::new(index.version, table.space))
        .collect()
}

/// The changes of the stored builds where a new schema counts.
pub(super) fn entries(
    old: &ResolvedSchema,
    new: &ResolvedSchema,
    begun: &[IndexBuild],
) -> EntryBatch {
    let gone = old.building.difference(&new.building);
    let gone = gone.map(|index| (SpaceId::META, key(*index), None));
    begun.iter().map(IndexBuild::entry).chain(gone).collect()
}

impl Committer {
    /// Takes over the builds of a schema that counts now.
    pub(super) fn take_builds(&mut self, schema: &ResolvedSchema, begun: Vec<IndexBuild>) {
        for build in self
            .builds
            .extract_if(.., |build| !schema.building.contains(&build.index))
        {
            if let Some(task) = build.task {
                task.stopped();
            }
        }
        self.builds.extend(begun);
    }

    /// Does a step of a build. Returns whether there may be more to do.
    pub(super) fn build(&mut self) -> bool {
        if self.shared.check_writable().is_err() {
            return false;
        }
        let Some(mut build) = self.builds.pop() else {
            return false;
        };
        let schema = self.shared.schema();
        let place = (build.space, build.behind.clone());
        match self.build_step(&schema, &mut build) {
            Ok(false) => self.builds.push(build),
            Ok(true) => self.finish_build(&schema, build),
            Err(error @ (StorageError::ReadOnly(_) | StorageError::Io(_))) => {
                tracing::warn!(%error, "an index could not be built further yet");
                self.shared.note_write_failure(&error);
                // The rows of the step have no entries yet.
                (build.space, build.behind) = place;
                // Builds are taken from the end, so another one is tried before this one.
                self.builds.insert(0, build);
                return false;
            }
            Err(error) => {
                log_abandoned_build(&schema, &build, &error);
                if let Some(task) = build.task {
                    task.failed(error);
                }
            }
        }
        true
    }

    /// Looks at some rows. Returns whether the build is done.
    fn build_step(
        &self,
        schema: &ResolvedSchema,
        build: &mut IndexBuild,
    ) -> Result<bool, StorageError> {
        let mut all = indexes_of(schema);
        let Some((table, index)) = all.find(|(_, index)| index.version == build.index) else {
            return Ok(true);
        };
        if table.space != build.space {
            // The table was emptied.
            build.space = table.space;
            build.behind.clear();
        }
        let task = build
            .task
            .get_or_insert_with(|| self.tasks.start(spec(table, build.index)));
        let engine = &self.shared.engine;
        let range = (Bound::Excluded(build.behind.clone()), Bound::Unbounded);
        let mut rows = engine.scan_at(&engine.snapshot()?, table.space, range)?;
        let mut batch = EntryBatch::new();
        let (mut count, mut bytes) = (0, 0);
        let mut is_done = true;
        let mut skipped = FailedRows::default();
        for entry in rows.by_ref() {
            let (key, value) = entry?;
            bytes += value.len();
            build.behind = key.to_vec();
            let kind = table.keys.split(&key).map(|parts| parts.kind);
            if matches!(kind, Some(ROW | HEADER)) {
                let record = record::decode(value);
                match record.and_then(|record| entries_of(table, index, &key, &record)) {
                    Ok(entries) => batch.extend(entries),
                    Err(error) if is_left(table, index, &error) => skipped.add(&key, error),
                    Err(error) => return Err(error),
                }
            }
            count += 1;
            if count == ROWS_A_STEP || bytes > BYTES_A_STEP {
                is_done = false;
                break;
            }
        }
        skipped.log(
            table,
            "rows can't be given the times at which they expire, and stay. Mend or delete them, then ALTER TABLE ... TTL \
             NULL and ALTER TABLE ... TTL with the column makes the times anew",
        );
        task.add(count as u64);
        batch.push(match is_done {
            true => (SpaceId::META, key(build.index), None),
            false => build.entry(),
        });
        // Not synced, as a step that a crash loses is done again.
        engine.commit(batch, SyncTarget::Kernel, self.shared.clock.now_micros())?;
        Ok(is_done)
    }

    /// Makes an index ready for reads.
    fn finish_build(&self, old: &ResolvedSchema, build: IndexBuild) {
        let mut building = old.building.clone();
        building.remove(&build.index);
        let (catalog, generations) = (Arc::clone(&old.catalog), old.generations.clone());
        let new = ResolvedSchema::new(catalog, generations, building, Some(old));
        self.shared.set_schema(new);
        if let Some(task) = build.task {
            task.done();
        }
    }
}

/// Whether a row is left without its entry because of an error. A row without a time just stays,
/// while an index that lacks a row would give wrong answers.
fn is_left(table: &TableSchema, index: &IndexSchema, error: &StorageError) -> bool {
    let is_of_row = matches!(error, StorageError::Corrupt(_) | StorageError::Invalid(_));
    is_of_row && is_row_ttl(table, index)
}

/// Whether an index is that of the times at which the rows expire.
fn is_row_ttl(table: &TableSchema, index: &IndexSchema) -> bool {
    let row_ttl = table.table.row_ttl;
    row_ttl.is_some_and(|row_ttl| row_ttl.version == index.version)
}

/// Logs that a build has ended without being done.
fn log_abandoned_build(schema: &ResolvedSchema, build: &IndexBuild, error: &StorageError) {
    let Some((table, index)) = indexes_of(schema).find(|(_, index)| index.version == build.index)
    else {
        return;
    };
    let name = skipped::name(table);
    if is_row_ttl(table, index) {
        tracing::error!(
            %error, table = name,
            "rows do not expire, as their times can't be gathered: ALTER TABLE ... TTL NULL, and look at the table"
        );
        return;
    }
    let index = spec(table, build.index).scope.index;
    tracing::error!(
        %error, table = name, index,
        "an index can't be built: drop it, and look at the row"
    );
}

fn spec(table: &TableSchema, version: Uuid) -> TaskSpec {
    let mut indexes = table.table.secondary_indexes.values();
    let index = indexes.find(|index| index.version == version);
    TaskSpec {
        kind: "entries",
        scope: TaskScope {
            keyspace: Some(table.table.keyspace.clone()),
            table: Some(table.table.name.clone()),
            index: index.map(|index| index.name.clone()),
            ..TaskScope::default()
        },
        units: "rows",
        total: None,
        counters: &[],
        abortable: false,
    }
}
