//! Tables that come from another storage, mostly from a checkpoint of this one.
//!
//! Rows are copied as they are stored, with their write times, times to live and deletions. So the
//! copy answers each read as the source does, and older writes lose to it as they would there.
//!
//! A table gets a new id from the caller, who can note it before anything is copied. Its indexes
//! get new ids, too. The table is made in one change of the schema once all its rows are there. See
//! `commit::adoption`.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use platform::aside;
use schema::{Catalog, RowTtl, Table, TableId};
use tokio::sync::oneshot;
use uuid::Uuid;
use value::timeuuid;

use crate::commit::{self, AdoptionStep, DeletionSweep, FinishedCopy, QueuedRequest};
use crate::engine::SpaceId;
use crate::key::ROW;
use crate::reader::TableView;
use crate::{Storage, StorageError};

/// Bytes of keys and values after which a step of a copy ends. Writers wait for one step at most.
const BYTES_A_STEP: usize = 1 << 20;
/// The most entries of a step.
const ENTRIES_A_STEP: usize = 4096;

/// The name that an adopted table gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptedTableName {
    /// A keyspace that exists, with the user types that the table needs.
    pub keyspace: String,
    /// A name that no table of the keyspace has.
    pub table: String,
}

/// A table that was adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdoptedTable {
    /// Its id in this storage.
    pub id: TableId,
    /// The rows that were copied, those included that are deleted and still stored.
    pub rows: u64,
    /// The bytes of all keys and values.
    pub bytes: u64,
}

/// Follows the copy of a table.
pub trait AdoptProgress: Send + Sync {
    /// Gets the rows and the bytes that are copied so far.
    fn copied(&self, rows: u64, bytes: u64);

    /// Whether the copy goes on. If not, it ends with an error and leaves nothing.
    fn is_wanted(&self) -> bool;
}

/// Entries that were read from the source.
struct SourceEntries {
    entries: Vec<(Bytes, Bytes)>,
    rows: u64,
    bytes: u64,
    is_last: bool,
}

/// Drops the space of a copy unless the table is made.
struct UnfinishedCopy<'s> {
    storage: &'s Storage,
    space: SpaceId,
    is_finished: bool,
}

impl Storage {
    /// Copies a table of another storage to a name of this one. It appears with all its rows or
    /// not at all: after a kill the next start removes what was copied.
    ///
    /// `id` is the table's id here. It must be a new one: no table may have or have had it.
    ///
    /// The clock goes on from the time of the source, so that later writes win over what was
    /// copied.
    ///
    /// Secondary indexes are built as CREATE INDEX builds them. Definitions of vector and full-text
    /// indexes come along, and the index service builds these. A CDC log begins empty.
    ///
    /// # Errors
    /// If the source has no such table or it is a CDC log, if the keyspace lacks a type that the
    /// table needs or has a table or an index of its name, if the id is in use, if the source's
    /// clock is ahead by more than seconds, if the disk is full or fails, if the tables in memory
    /// have no room, or if `progress` ends the copy.
    pub async fn adopt_table(
        &self,
        source: &Storage,
        from: TableId,
        id: TableId,
        to: AdoptedTableName,
        progress: &dyn AdoptProgress,
    ) -> Result<AdoptedTable, StorageError> {
        let view = source.view(from)?;
        // No write of the view has a later time of the source's clock.
        let source_micros = source.shared().kept_micros.load(Ordering::Relaxed);
        let now_micros = self.clock().now_micros();
        commit::check_source_time(source_micros, now_micros)?;
        let original = Arc::clone(&view.context().table);
        let table = renamed(&original.table, id, &to, &self.catalog(), now_micros)?;
        commit::check_names(&self.catalog(), &table)?;
        let space = SpaceId::new(id, 0);
        let sweeps = unfinished_sweeps(&view, space)?;
        let mut copy = UnfinishedCopy {
            storage: self,
            space,
            is_finished: false,
        };
        let options = original.space_options();
        if let Err(refused) = self.step(AdoptionStep::Begin { space, options }).await {
            // Of an id that is in use, the space is another's.
            copy.is_finished = matches!(refused, StorageError::Invalid(_));
            return Err(refused);
        }
        let (rows, bytes) = self.copy_entries(&view, space, progress).await?;
        let finished = FinishedCopy {
            space,
            table,
            is_expiring: source.shared().forgetting.is_expiring(from),
            sweeps,
            source_micros,
        };
        self.step(AdoptionStep::Finish(Box::new(finished))).await?;
        copy.is_finished = true;
        Ok(AdoptedTable { id, rows, bytes })
    }

    /// Copies the entries of a table to a space. Returns the numbers of rows and bytes.
    async fn copy_entries(
        &self,
        view: &TableView,
        space: SpaceId,
        progress: &dyn AdoptProgress,
    ) -> Result<(u64, u64), StorageError> {
        let (mut rows, mut bytes) = (0, 0);
        let mut after = Bound::Unbounded;
        loop {
            if !progress.is_wanted() {
                return Err(unwanted());
            }
            let (of, from) = (view.clone(), after.clone());
            let read = aside(move || read_entries(&of, from)).await;
            let read = read.map_err(|_| stopped())??;
            if let Some((key, _)) = read.entries.last() {
                after = Bound::Excluded(key.to_vec());
            }
            let entries = read.entries;
            if !entries.is_empty() {
                self.step(AdoptionStep::Copy { space, entries }).await?;
            }
            rows += read.rows;
            bytes += read.bytes;
            progress.copied(rows, bytes);
            if read.is_last {
                return Ok((rows, bytes));
            }
        }
    }

    async fn step(&self, step: AdoptionStep) -> Result<(), StorageError> {
        let (reply, answer) = oneshot::channel();
        self.send_request(QueuedRequest::Adopt { step, reply })
            .await?;
        answer.await.unwrap_or(Err(StorageError::Closed))
    }
}

impl Drop for UnfinishedCopy<'_> {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let (reply, _) = oneshot::channel();
        let step = AdoptionStep::Abandon { space: self.space };
        if !(self.storage).try_send_request(QueuedRequest::Adopt { step, reply }) {
            let table = self.space.table().0;
            tracing::info!(%table, "the rows of a copy that has ended are removed at the next start");
        }
    }
}

/// Reads the next entries of a table's space.
fn read_entries(view: &TableView, after: Bound<Vec<u8>>) -> Result<SourceEntries, StorageError> {
    let context = view.context();
    let table = &context.table;
    let range = (after, Bound::Unbounded);
    let mut scan = context
        .engine
        .scan_at(&context.snapshot, table.space, range)?;
    let mut read = SourceEntries {
        entries: Vec::new(),
        rows: 0,
        bytes: 0,
        is_last: false,
    };
    while read.entries.len() < ENTRIES_A_STEP && (read.bytes as usize) < BYTES_A_STEP {
        let Some((key, value)) = scan.next().transpose()? else {
            read.is_last = true;
            break;
        };
        let kind = table.keys.split(&key).map(|parts| parts.kind);
        read.rows += u64::from(kind == Some(ROW));
        read.bytes += (key.len() + value.len()) as u64;
        // What is read are parts of blocks, which a memtable would hold whole.
        let copied = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
        read.entries.push((copied(&key), copied(&value)));
    }
    Ok(read)
}

/// The deletions whose rows are still stored in the source, as those of the copy.
fn unfinished_sweeps(view: &TableView, space: SpaceId) -> Result<Vec<DeletionSweep>, StorageError> {
    let context = view.context();
    let sweeps = commit::load_sweeps_at(&context.engine, &context.snapshot)?.into_iter();
    let of_table = sweeps.filter(|sweep| sweep.space() == context.table.space);
    Ok(of_table.map(|sweep| sweep.in_copy(space)).collect())
}

/// The definition of a table under another name, with another id and indexes of its own.
fn renamed(
    original: &Table,
    id: TableId,
    to: &AdoptedTableName,
    catalog: &Catalog,
    now_micros: i64,
) -> Result<Table, StorageError> {
    if original.log_of.is_some() {
        return Err(StorageError::Invalid(format!(
            "{}.{} is a CDC log, and is not copied by itself: a copy of its table gets a new one",
            original.keyspace, original.name
        )));
    }
    let keyspace = commit::keyspace_of(catalog, &to.keyspace)?;
    let mut table = original.clone();
    table.id = id;
    table.keyspace.clone_from(&to.keyspace);
    table.name.clone_from(&to.table);
    table.log = None;
    table.truncated_at_ms = None;
    commit::take_types_of(&mut table, keyspace)?;
    let version = || {
        let random = Uuid::new_v4().as_u64_pair().1;
        timeuuid::from_micros(now_micros, random).unwrap_or_else(|_| Uuid::new_v4())
    };
    for index in table.indexes.values_mut() {
        Arc::make_mut(index).version = version();
    }
    for index in table.secondary_indexes.values_mut() {
        Arc::make_mut(index).version = version();
    }
    table.row_ttl = table.row_ttl.map(|row_ttl| RowTtl {
        version: version(),
        ..row_ttl
    });
    Ok(table)
}

fn unwanted() -> StorageError {
    StorageError::Invalid("the copy of the table was stopped".to_owned())
}

fn stopped() -> StorageError {
    StorageError::Io("internal error: the copy of a table stopped".to_owned())
}
