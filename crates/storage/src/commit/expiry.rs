//! Deletes the rows whose time has come: those whose column for it ([`schema::RowTtl`]) has a value
//! in the past.
//!
//! The times of all rows lie in order, as the entries of a secondary index do ([`super::derived`]).
//! So a pass reads the times that have come, and no others. A pass over each such table begins
//! every second ([`Request::Expire`]) and does a few rows at a time between other work.
//!
//! An entry is a hint. The row is read on the one thread that writes, and deleted only if it still
//! has a time in the past. So a client that gives it a later time either comes before, and the row
//! stays, or after. The deletion is as old as the newest value in the row. So what a client writes
//! later is never hidden by it, whatever clock the client goes by.
//!
//! A pass begins where the last one ended. Entries before that place are of rows that were looked
//! at. If one of them is written again, the place moves back.

use std::collections::{HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use schema::TableId;
use tasks::{Scope, Spec, Task};
use turns::{Class, Turn};
use value::CqlType;

use super::apply::Moment;
use super::overlay::{Changes, Overlay};
use super::resolve::ResolvedMutation;
use super::room::Growth;
use super::{Committer, lists, write};
use crate::StorageError;
use crate::engine::{Batch, SpaceId};
use crate::key::ROW;
use crate::key::term::StoredEntry;
use crate::layout::{IndexSchema, Schema, TableSchema};
use crate::mutation::Change;
use crate::read::Cell;

/// Entries that are looked at between two requests.
const ROWS_A_STEP: usize = 128;

/// The passes, and where they begin.
#[derive(Default)]
pub(super) struct Expiry {
    passes: VecDeque<Pass>,
    /// For each table the first key of an entry that is to be looked at, by the space of the
    /// entries; none for the beginning.
    places: HashMap<SpaceId, Vec<u8>>,
    /// Whether the last pass that ended has failed, which is logged once.
    is_failing: bool,
}

/// A pass over the times of a table.
struct Pass {
    table: TableId,
    /// Made once there is more than one step to do.
    task: Option<Task>,
}

/// The outcome of a step.
enum Step {
    /// There is more to do.
    Goes,
    /// All rows whose time has come were looked at.
    Done,
}

impl Expiry {
    /// Moves places back to entries that were written.
    pub(super) fn move_back(&mut self, written: HashMap<SpaceId, Vec<u8>>) {
        for (space, key) in written {
            if let Some(place) = self.places.get_mut(&space)
                && key < *place
            {
                *place = key;
            }
        }
    }

    /// Forgets where the passes were, as steps may have been lost.
    pub(super) fn begin_anew(&mut self) {
        self.passes.clear();
        self.places.clear();
    }
}

/// The table's times, once all rows have theirs.
fn times(table: &TableSchema) -> Option<&IndexSchema> {
    table.expiry().filter(|times| times.is_ready)
}

impl Committer {
    /// Begins a pass over each table whose rows expire, unless one is under way.
    pub(super) fn begin_expiry(&mut self) {
        let schema = self.shared.schema();
        let tables = || schema.tables().filter(|table| times(table).is_some());
        let expiry = &mut self.expiry;
        let is_known = |space: &SpaceId| {
            tables().any(|table| times(table).is_some_and(|times| times.space == *space))
        };
        expiry.places.retain(|space, _| is_known(space));
        for table in tables() {
            let table = table.table.id;
            if !expiry.passes.iter().any(|pass| pass.table == table) {
                expiry.passes.push_back(Pass { table, task: None });
            }
        }
    }

    /// Does a step of a pass. Returns whether there may be more to do.
    pub(super) async fn expire(&mut self) -> bool {
        let Some(mut pass) = self.expiry.passes.pop_front() else {
            return false;
        };
        match self.expiry_step(&mut pass).await {
            Ok(Step::Goes) => {
                self.expiry.passes.push_back(pass);
                self.expiry.is_failing = false;
            }
            Ok(Step::Done) => {
                self.expiry.is_failing = false;
                if let Some(task) = pass.task {
                    task.done();
                }
            }
            Err(error) => {
                // The next pass tries again.
                if !self.expiry.is_failing {
                    tracing::warn!(%error, "rows that have expired could not be deleted yet");
                }
                self.expiry.is_failing = true;
                if let Some(task) = pass.task {
                    task.failed(error);
                }
            }
        }
        true
    }

    async fn expiry_step(&mut self, pass: &mut Pass) -> Result<Step, StorageError> {
        self.shared.check_writable()?;
        let schema = self.shared.schema();
        let Ok(table) = schema.table(pass.table) else {
            return Ok(Step::Done);
        };
        let Some(times) = times(table) else {
            return Ok(Step::Done);
        };
        // Readers of the log can't keep up. They have clients wait, too.
        if is_slowed(&schema, table) {
            return Ok(Step::Done);
        }
        let turn = self.turns.take(Class::Write).await;
        let moment = self.moment();
        let (due, next) = self.due(table, times, moment)?;
        let count = match due.is_empty() {
            true => 0,
            false => self.delete(&schema, table, &due, moment, turn).await?,
        };
        let is_done = next.is_none();
        let place = next.map_or_else(|| end(times, moment), Ok)?;
        self.expiry.places.insert(times.space, place);
        if !is_done && pass.task.is_none() {
            pass.task = Some(self.tasks.start(spec(table)));
        }
        if let Some(task) = &pass.task {
            task.add(count);
        }
        Ok(if is_done { Step::Done } else { Step::Goes })
    }

    /// Deletes those of the rows whose time has come. Returns how many.
    async fn delete(
        &mut self,
        schema: &Schema,
        table: &TableSchema,
        rows: &[Bytes],
        moment: Moment,
        turn: Turn,
    ) -> Result<u64, StorageError> {
        let shared = Arc::clone(&self.shared);
        let (engine, gate) = (&shared.engine, &shared.gate);
        let in_flight = gate.begin();
        let (mut changes, mut derived, mut grown) = (Changes::default(), Batch::new(), Vec::new());
        let (mut growth, mut count) = (Growth::default(), 0);
        for row in rows {
            let overlay = Overlay::new(engine, &changes);
            let Some(deletion) = deletion(&overlay, table, row, moment)? else {
                continue;
            };
            let prepared = write::prepare_expiry(engine, schema, gate, &changes, deletion, moment)?;
            self.admit(schema, &changes, &prepared.changes, &mut growth, true)?;
            changes.absorb(prepared.changes);
            derived.extend(prepared.derived.batch);
            grown.extend(prepared.derived.grown);
            count += 1;
        }
        if count > 0 {
            let committed = self.commit_derived(changes, derived, grown, turn).await;
            drop(in_flight);
            committed.inspect_err(|error| shared.note_write_failure(error))?;
            let expired = &shared.statistics.rows_expired;
            expired.fetch_add(count, Ordering::Relaxed);
        }
        Ok(count)
    }

    /// The keys of the next rows whose time may have come, and the place behind them; `None` if
    /// there are no more.
    fn due(
        &self,
        table: &TableSchema,
        times: &IndexSchema,
        moment: Moment,
    ) -> Result<(Vec<Bytes>, Option<Vec<u8>>), StorageError> {
        let place = self.expiry.places.get(&times.space);
        let range = (
            Bound::Included(place.cloned().unwrap_or_default()),
            Bound::Excluded(end(times, moment)?),
        );
        let mut rows = Vec::new();
        // The clock does not go back. A place behind the end would make no range.
        if let (Bound::Included(low), Bound::Excluded(high)) = &range
            && low >= high
        {
            return Ok((rows, None));
        }
        let engine = &self.shared.engine;
        let entries = engine.scan_at(&engine.snapshot()?, times.space, range)?;
        for entry in entries.take(ROWS_A_STEP) {
            let (key, value) = entry?;
            let stored = StoredEntry::read(&value);
            let row = stored.and_then(|stored| key.get(stored.term..).map(|_| stored.term));
            let row = row.map(|term| key.slice(term..));
            rows.push(row.ok_or_else(|| damaged(table))?);
            if rows.len() == ROWS_A_STEP {
                return Ok((rows, Some([&key[..], &[0]].concat())));
            }
        }
        Ok((rows, None))
    }
}

/// Whether readers of the table's log have its writers slowed.
fn is_slowed(schema: &Schema, table: &TableSchema) -> bool {
    let log = table.table.log.as_ref();
    let log = log.and_then(|log| schema.table(log.table).ok());
    log.is_some_and(|log| log.growth.free().is_some())
}

fn damaged(table: &TableSchema) -> StorageError {
    StorageError::Corrupt(format!(
        "an entry of a time at which a row of {}.{} expires can't be read: ALTER TABLE ... TTL NULL, \
         then ALTER TABLE ... TTL with the column makes the entries anew",
        table.table.keyspace, table.table.name
    ))
}

/// The first key behind the entries of times that have come.
fn end(times: &IndexSchema, moment: Moment) -> Result<Vec<u8>, StorageError> {
    let millis = moment.now_micros.div_euclid(1_000);
    let later = match &times.column.cql_type {
        CqlType::Timestamp => (millis + 1).to_be_bytes().to_vec(),
        CqlType::Int => {
            let seconds = i32::try_from(moment.now_s.saturating_add(1)).unwrap_or(i32::MAX);
            seconds.to_be_bytes().to_vec()
        }
        _ => (moment.now_s + 1).to_be_bytes().to_vec(),
    };
    times.terms.term([&later[..]])
}

/// Whether a time has come. An empty value tells none.
fn has_come(cql_type: &CqlType, value: &[u8], moment: Moment) -> bool {
    let long = || <[u8; 8]>::try_from(value).map(i64::from_be_bytes);
    let short = || <[u8; 4]>::try_from(value).map(i32::from_be_bytes);
    match cql_type {
        CqlType::Timestamp => long().is_ok_and(|at| at <= moment.now_micros.div_euclid(1_000)),
        CqlType::Bigint => long().is_ok_and(|at| at <= moment.now_s),
        CqlType::Int => short().is_ok_and(|at| i64::from(at) <= moment.now_s),
        _ => false,
    }
}

/// The deletion of the row under a key; `None` if it is not there, or has a later time by now.
fn deletion<'s>(
    overlay: &Overlay<'_>,
    table: &'s TableSchema,
    key: &[u8],
    moment: Moment,
) -> Result<Option<ResolvedMutation<'s>>, StorageError> {
    let parts = table.keys.split(key).filter(|parts| parts.kind == ROW);
    let parts = parts.ok_or_else(|| damaged(table))?;
    let (partition, suffix) = (parts.partition, parts.suffix);
    let (record, liveness) = lists::find_row(overlay, table, partition, suffix, moment.now_s)?;
    let cells = liveness.row(&record, &table.live).unwrap_or_default();
    let is_due = table.table.row_ttl_column().is_some_and(|column| {
        cells.iter().any(|(id, cell)| match cell {
            Cell::Simple(cell) if *id == column.id => {
                has_come(&column.cql_type, &cell.value, moment)
            }
            _ => false,
        })
    });
    if !is_due {
        return Ok(None);
    }
    let decoded = table.keys.decode_partition(partition);
    let (token, partition_key) = decoded.ok_or_else(|| damaged(table))?;
    let timestamp = record.newest();
    let clustering = match record.clustering {
        Some(given) => given,
        None => {
            let decoded = table.keys.decode_clustering(suffix);
            decoded.ok_or_else(|| damaged(table))?
        }
    };
    Ok(Some(ResolvedMutation {
        table,
        partition_key,
        partition: partition.to_vec(),
        token,
        changes: vec![Change::DeleteRow {
            clustering,
            timestamp,
        }],
    }))
}

fn spec(table: &TableSchema) -> Spec {
    Spec {
        kind: "expiry",
        scope: Scope {
            keyspace: Some(table.table.keyspace.clone()),
            table: Some(table.table.name.clone()),
            ..Scope::default()
        },
        units: "rows",
        total: None,
        counters: &[],
        abortable: false,
    }
}
