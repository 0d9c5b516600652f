//! Deletes the rows whose time has come: those whose column for it ([`schema::RowTtl`]) has a value
//! in the past.
//!
//! The times of all rows are stored in order, as the entries of a secondary index do
//! ([`super::derived`]). So a pass reads the times that have come, and no others. A pass over each
//! such table begins every second ([`Request::Expire`](super::QueuedRequest::Expire)) and does a
//! few rows at a time between other work.
//!
//! Clients go first. No pass begins while the queue of requests is full. A pass over a table ends
//! while its writers wait for readers of its log. Its rows stay until a later pass.
//!
//! An entry is a hint. The row is read on the one thread that writes, and deleted only if it still
//! has a time in the past. So a client that gives it a later time either comes before, and the row
//! stays, or after.
//!
//! The deletion is as old as the newest value in the row. So what a client writes later with a
//! newer timestamp is not hidden by it, whatever clock the client goes by. A value from the future
//! has its price: the deletion is from the future, too, and hides what is written with a right
//! clock until then. Only values that live count there. Cells of dropped columns, cells that have
//! expired and tombstones from the future are left as they are ([`step`]).
//!
//! A pass begins where the last one ended. Entries before that place are of rows that were looked
//! at. If some of them are written again, a pass looks these up by their keys. If they are many,
//! the place moves back ([`written`]). A row that can't be read is logged and skipped, so that it
//! does not hold up the others.

mod step;
mod times;
mod written;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cpu_scheduler::{Permit, WorkClass};
use schema::TableId;
use step::{DueEntry, ExpiredRowDeletions};
use tasks::{Task, TaskScope, TaskSpec};
use times::times;
use written::RewrittenEntries;

use super::apply::CommitTime;
use super::{Committer, skipped};
use crate::StorageError;
use crate::engine::SpaceId;
use crate::layout::{IndexSchema, ResolvedSchema, TableSchema};

/// Entries that are looked at between two requests.
const ROWS_A_STEP: usize = 128;

/// The passes, and where they begin.
#[derive(Default)]
pub(super) struct RowExpirer {
    passes: VecDeque<TableExpiryPass>,
    /// For each table the first key of an entry that is to be looked at, by the space of the
    /// entries; none for the beginning.
    places: HashMap<SpaceId, Vec<u8>>,
    /// The entries before these places that were written since.
    written: HashMap<SpaceId, RewrittenEntries>,
    /// The tables whose last pass that ended has failed, which is logged once.
    failing: HashSet<TableId>,
}

/// A pass over the times of a table.
struct TableExpiryPass {
    table: TableId,
    /// Made once there is more than one step to do.
    task: Option<Task>,
}

/// The next entries of times that have come.
struct DueEntries {
    due: Vec<DueEntry>,
    /// Whether there are none after them.
    is_last: bool,
    /// The place after all of them; `None` if that is the end of the space.
    end: Option<Vec<u8>>,
}

/// The outcome of a step.
enum PassStepOutcome {
    /// There is more to do.
    Continues,
    /// All rows whose time has come were looked at.
    Done,
}

impl RowExpirer {
    /// Notes entries that were written. Those before the place of a pass would be passed over.
    pub(super) fn note_written(&mut self, keys: HashMap<SpaceId, Vec<Vec<u8>>>) {
        for (space, keys) in keys {
            let Some(place) = self.places.get_mut(&space) else {
                continue;
            };
            let written = self.written.entry(space).or_default();
            for key in keys {
                if key < *place {
                    written.add(key);
                }
            }
            if let Some(least) = written.overflow() {
                *place = least;
            }
        }
    }

    /// Forgets where the passes were, as steps may have been lost.
    pub(super) fn reset(&mut self) {
        self.passes.clear();
        self.places.clear();
        self.written.clear();
    }
}

impl Committer {
    /// Begins a pass over each table whose rows expire, unless one is under way.
    pub(super) fn begin_expiry(&mut self) {
        let schema = self.shared.schema();
        let expiry = &mut self.expiry;
        let (mut spaces, mut tables) = (HashSet::new(), HashSet::new());
        for table in schema.tables() {
            if let Some(times) = times(table) {
                spaces.insert(times.space);
                tables.insert(table.table.id);
            }
        }
        expiry.places.retain(|space, _| spaces.contains(space));
        expiry.written.retain(|space, _| spaces.contains(space));
        expiry.failing.retain(|table| tables.contains(table));
        for pass in &expiry.passes {
            tables.remove(&pass.table);
        }
        let passes = tables
            .into_iter()
            .map(|table| TableExpiryPass { table, task: None });
        expiry.passes.extend(passes);
    }

    /// Does a step of a pass. Returns whether there may be more to do.
    pub(super) async fn expire(&mut self) -> bool {
        let Some(mut pass) = self.expiry.passes.pop_front() else {
            return false;
        };
        match self.expiry_step(&mut pass).await {
            Ok(PassStepOutcome::Continues) => self.expiry.passes.push_back(pass),
            Ok(PassStepOutcome::Done) => {
                self.expiry.failing.remove(&pass.table);
                if let Some(task) = pass.task {
                    task.done();
                }
            }
            Err(error) => {
                // The next pass tries again.
                if self.expiry.failing.insert(pass.table) {
                    let schema = self.shared.schema();
                    let table = schema.table(pass.table).map(|table| skipped::name(table));
                    let table = table.unwrap_or_default();
                    tracing::warn!(%error, table, "rows that have expired could not be deleted yet");
                }
                if let Some(task) = pass.task {
                    task.failed(error);
                }
            }
        }
        true
    }

    async fn expiry_step(
        &mut self,
        pass: &mut TableExpiryPass,
    ) -> Result<PassStepOutcome, StorageError> {
        self.shared.check_writable()?;
        let schema = self.shared.schema();
        let Ok(table) = schema.table(pass.table) else {
            return Ok(PassStepOutcome::Done);
        };
        let Some(times) = times(table) else {
            return Ok(PassStepOutcome::Done);
        };
        // Readers of the log can't keep up. They have clients wait, too.
        if is_slowed(&schema, table) {
            return Ok(PassStepOutcome::Done);
        }
        let turn = self.cpu_scheduler.acquire(WorkClass::Write).await;
        let moment = self.moment();
        let DueEntries {
            mut due,
            is_last,
            end,
        } = self.find(times, moment)?;
        let in_order = due.len();
        let are_all = self.find_written(times.space, &mut due)?;
        let (count, looked) = match due.is_empty() {
            true => (0, 0),
            false => self.delete(&schema, table, &due, moment, turn).await?,
        };
        let place = match is_last && looked >= in_order {
            true => end,
            false => due[..looked.min(in_order)].last().map(DueEntry::behind),
        };
        self.note_looked(times.space, place, due.iter().take(looked).skip(in_order));
        let is_done = is_last && are_all && looked == due.len();
        if !is_done && pass.task.is_none() {
            pass.task = Some(self.tasks.start(spec(table)));
        }
        if let Some(task) = &pass.task {
            task.add(count);
        }
        Ok(if is_done {
            PassStepOutcome::Done
        } else {
            PassStepOutcome::Continues
        })
    }

    /// Notes that a pass has come to a place, and has looked at these entries before it.
    fn note_looked<'d>(
        &mut self,
        space: SpaceId,
        place: Option<Vec<u8>>,
        written: impl Iterator<Item = &'d DueEntry>,
    ) {
        if let Some(place) = place {
            self.expiry.places.insert(space, place);
        }
        if let Some(of) = self.expiry.written.get_mut(&space) {
            written.for_each(|due| of.remove(&due.key));
        }
    }

    /// Deletes those of the rows whose time has come, from the first on. Returns how many, and how
    /// many were looked at.
    async fn delete(
        &mut self,
        schema: &ResolvedSchema,
        table: &TableSchema,
        due: &[DueEntry],
        moment: CommitTime,
        turn: Permit,
    ) -> Result<(u64, usize), StorageError> {
        let shared = Arc::clone(&self.shared);
        let in_flight = shared.gate.begin();
        let step = ExpiredRowDeletions::of(&shared, schema, table, due, moment)?;
        let (count, looked) = (step.count, step.looked);
        if count > 0 {
            let (changes, derived, grown) = (step.changes, step.derived, step.grown);
            let committed = self.commit_derived(changes, derived, grown, turn).await;
            drop(in_flight);
            committed.inspect_err(|error| shared.note_write_failure(error))?;
            let expired = &shared.statistics.rows_expired;
            expired.fetch_add(count, Ordering::Relaxed);
        }
        Ok((count, looked))
    }

    /// The entries of the next rows whose time may have come.
    fn find(&self, times: &IndexSchema, moment: CommitTime) -> Result<DueEntries, StorageError> {
        let (low, high) = times::range(times, moment)?;
        let low = times::key(low).max(self.expiry.places.get(&times.space).cloned());
        let low = low.unwrap_or_default();
        let mut found = DueEntries {
            due: Vec::new(),
            is_last: true,
            end: times::key(high.clone()),
        };
        // The clock does not go back. A place after the end would make no range.
        if found.end.as_ref().is_some_and(|end| low >= *end) {
            return Ok(found);
        }
        let engine = &self.shared.engine;
        let range = (Bound::Included(low), high);
        for entry in engine.scan_at(&engine.snapshot()?, times.space, range)? {
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) if found.due.is_empty() => return Err(error),
                // The next step begins here, and reports the error.
                Err(_) => {
                    found.is_last = false;
                    break;
                }
            };
            found.due.push(DueEntry::read(key, &value));
            if found.due.len() == ROWS_A_STEP {
                found.is_last = false;
                break;
            }
        }
        Ok(found)
    }

    /// Adds the first of the entries that were written before the place of the pass. Returns
    /// whether these are all.
    fn find_written(
        &mut self,
        space: SpaceId,
        due: &mut Vec<DueEntry>,
    ) -> Result<bool, StorageError> {
        let Some(written) = self.expiry.written.get_mut(&space) else {
            return Ok(true);
        };
        let keys = written.first(ROWS_A_STEP);
        let are_all = keys.len() == written.len();
        for key in keys {
            match self.shared.engine.get(space, &key)? {
                Some(value) => due.push(DueEntry::read(key.into(), &value)),
                // The row was deleted, or has another time.
                None => written.remove(&key),
            }
        }
        Ok(are_all)
    }
}

/// Whether readers of the table's log have its writers slowed.
fn is_slowed(schema: &ResolvedSchema, table: &TableSchema) -> bool {
    let log = table.table.log.as_ref();
    let log = log.and_then(|log| schema.table(log.table).ok());
    log.is_some_and(|log| log.growth.free().is_some())
}

fn spec(table: &TableSchema) -> TaskSpec {
    TaskSpec {
        kind: "expiry",
        scope: TaskScope {
            keyspace: Some(table.table.keyspace.clone()),
            table: Some(table.table.name.clone()),
            ..TaskScope::default()
        },
        units: "rows",
        total: None,
        counters: &[],
        abortable: false,
    }
}
