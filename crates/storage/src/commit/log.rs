//! The CDC groups of a write, with their images.
//!
//! ScyllaDB's index service takes the time of a log row for that of the deletion. So a log that
//! only an index needs does not tell a row as deleted that lives on: a back-dated DELETE that loses
//! leaves no log row, and one that takes some columns is logged as an update. A log that the user
//! asked for keeps every delete.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use value::token::Token;
use value::token::Token;

use super::apply::Moment;
use super::overlay::{Overlay, put_encoded};
use crate::StorageError;
use crate::catalog::{CdcLog, ColumnId, ImageMode, TableId};
use crate::cdc::{CdcGate, DeleteFate, Group, Growth, ImageRow, Images};
use crate::engine::{Batch, SpaceId};
use crate::mutation::Change;
use crate::read::Cell;
use crate::record::Liveness;
use crate::schema::{Schema, TableSchema};

/// A group: the changes of a write to one partition of a logged table with one timestamp.
pub(super) struct Pending<'w> {
    table: &'w TableSchema,
    partition_key: &'w [Bytes],
    partition: &'w [u8],
    token: Token,
    timestamp: i64,
    changes: Vec<&'w Change>,
    images: Images,
    /// The cells of the rows to be deleted, as they were before the write, by the position of the
    /// change. `None` for a row that was dead.
    deleted: HashMap<usize, LiveCells>,
    fates: HashMap<usize, DeleteFate>,
}

type LiveCells = Option<Vec<(ColumnId, Cell)>>;

/// A resolved mutation of a write.
pub(super) struct Target<'w> {
    pub table: &'w TableSchema,
    pub partition_key: &'w [Bytes],
    pub partition: &'w [u8],
    pub token: Token,
    pub changes: &'w [Change],
}

fn timestamp(change: &Change) -> i64 {
    match change {
        Change::Row { timestamp, .. }
        | Change::Static { timestamp, .. }
        | Change::DeleteRow { timestamp, .. }
        | Change::DeleteRange { timestamp, .. }
        | Change::DeletePartition { timestamp } => *timestamp,
    }
}

/// Sorts the changes of a write into groups.
pub(super) fn group<'w>(targets: impl IntoIterator<Item = Target<'w>>) -> Vec<Pending<'w>> {
    let mut groups: Vec<Pending<'w>> = Vec::new();
    let mut known: HashMap<(SpaceId, &'w [u8], i64), usize> = HashMap::new();
    for target in targets {
        let log = target.table.table.log.as_ref();
        if log.is_none_or(|log| !log.options.enabled) {
            continue;
        }
        for change in target.changes {
            let timestamp = timestamp(change);
            let id = (target.table.space, target.partition, timestamp);
            let at = *known.entry(id).or_insert_with(|| {
                groups.push(Pending {
                    table: target.table,
                    partition_key: target.partition_key,
                    partition: target.partition,
                    token: target.token,
                    timestamp,
                    changes: Vec::new(),
                    images: Images::default(),
                    deleted: HashMap::new(),
                    fates: HashMap::new(),
                });
                groups.len() - 1
            });
            groups[at].changes.push(change);
        }
    }
    groups
}

impl Pending<'_> {
    fn log(&self) -> Option<&CdcLog> {
        self.table.table.log.as_ref()
    }

    /// Whether only an index needs the log. The log's readers may take the time of a log row for
    /// that of the deletion, so the log must not tell a row as deleted that lives on.
    fn is_for_index(&self) -> bool {
        let cdc = self.table.table.cdc.as_ref();
        !cdc.is_some_and(|options| options.enabled)
    }

    /// The row that a change deletes by its whole key.
    fn deleted_row<'c>(&self, change: &'c Change) -> Option<&'c [Bytes]> {
        match change {
            Change::DeleteRow { clustering, .. } => Some(clustering),
            Change::DeletePartition { .. } if !self.table.keys.has_clustering() => Some(&[]),
            _ => None,
        }
    }

    fn live_cells(
        &self,
        overlay: &Overlay<'_>,
        clustering: &[Bytes],
        moment: Moment,
    ) -> Result<LiveCells, StorageError> {
        let suffix = self.table.keys.clustering(clustering)?;
        let (row, liveness) =
            super::lists::find_row(overlay, self.table, self.partition, &suffix, moment.now_s)?;
        Ok(liveness.row(&row, &self.table.live))
    }

    /// Notes the rows that are to be deleted. Called before the write is applied.
    pub(super) fn note_deleted(
        &mut self,
        overlay: &Overlay<'_>,
        moment: Moment,
    ) -> Result<(), StorageError> {
        if !self.is_for_index() {
            return Ok(());
        }
        for (at, change) in self.changes.iter().enumerate() {
            if let Some(clustering) = self.deleted_row(change) {
                let cells = self.live_cells(overlay, clustering, moment)?;
                self.deleted.insert(at, cells);
            }
        }
        Ok(())
    }

    /// Finds which of the rows that were to be deleted live on. Called after the write was applied.
    pub(super) fn judge_deleted(
        &mut self,
        overlay: &Overlay<'_>,
        moment: Moment,
    ) -> Result<(), StorageError> {
        for (at, before) in std::mem::take(&mut self.deleted) {
            let Some(clustering) = self.deleted_row(self.changes[at]) else {
                continue;
            };
            let Some(after) = self.live_cells(overlay, clustering, moment)? else {
                continue;
            };
            let fate = if before.as_ref() == Some(&after) {
                DeleteFate::Lost
            } else {
                let is_gone = |(id, _): &&(ColumnId, Cell)| !after.iter().any(|(o, _)| o == id);
                let before = before.unwrap_or_default();
                DeleteFate::Nulled(before.iter().filter(is_gone).map(|(id, _)| *id).collect())
            };
            self.fates.insert(at, fate);
        }
        Ok(())
    }

    /// Whether the group has no log rows, as all its changes are deletions that lost.
    fn is_void(&self) -> bool {
        let is_lost = |at| self.fates.get(&at) == Some(&DeleteFate::Lost);
        (0..self.changes.len()).all(is_lost)
    }

    /// Takes the pre-images, if the log has them. Called before the write is applied.
    pub(super) fn take_pre_images(
        &mut self,
        overlay: &Overlay<'_>,
        moment: Moment,
    ) -> Result<(), StorageError> {
        if self
            .log()
            .is_some_and(|log| log.options.preimage != ImageMode::Off)
        {
            self.images.before = self.images(overlay, moment, true)?;
        }
        Ok(())
    }

    /// Takes the post-images, if the log has them. Called after the write was applied.
    pub(super) fn take_post_images(
        &mut self,
        overlay: &Overlay<'_>,
        moment: Moment,
    ) -> Result<(), StorageError> {
        if self.log().is_some_and(|log| log.options.postimage) {
            self.images.after = self.images(overlay, moment, false)?;
        }
        Ok(())
    }

    /// The state of every row that a change names by its whole key. Deleted rows have no
    /// post-image. Rows below a range or partition deletion have no image at all.
    fn images(
        &self,
        overlay: &Overlay<'_>,
        moment: Moment,
        of_deleted: bool,
    ) -> Result<Vec<ImageRow>, StorageError> {
        let mut images: Vec<ImageRow> = Vec::new();
        let mut seen: HashSet<Option<&Vec<Bytes>>> = HashSet::new();
        for change in &self.changes {
            let clustering = match change {
                Change::Row { clustering, .. } => Some(clustering),
                Change::DeleteRow { clustering, .. } if of_deleted => Some(clustering),
                Change::Static { .. } => None,
                _ => continue,
            };
            if !seen.insert(clustering) {
                continue;
            }
            let cells = match clustering {
                Some(clustering) => {
                    let suffix = self.table.keys.clustering(clustering)?;
                    let (row, liveness) = super::lists::find_row(
                        overlay,
                        self.table,
                        self.partition,
                        &suffix,
                        moment.now_s,
                    )?;
                    liveness.row(&row, &self.table.live)
                }
                None => {
                    let head = overlay.head(self.table, self.partition)?;
                    let liveness = Liveness {
                        deleted_to: i64::MIN,
                        now_s: moment.now_s,
                    };
                    let cells = liveness.statics(&head, &self.table.live);
                    (!cells.is_empty()).then_some(cells)
                }
            };
            if let Some(cells) = cells {
                images.push(ImageRow {
                    clustering: clustering.cloned(),
                    cells,
                });
            }
        }
        Ok(images)
    }

    /// Puts the log rows into the batch. Returns the log and the time of the rows in it; `None` if
    /// there are no log rows.
    pub(super) fn write(
        self,
        schema: &Schema,
        gate: &CdcGate,
        moment: Moment,
        batch: &mut Batch,
        expiring: &mut HashSet<TableId>,
    ) -> Result<Option<(Arc<Growth>, i64)>, StorageError> {
        let Some(log) = &self.table.table.log else {
            return Ok(None);
        };
        if self.is_void() {
            return Ok(None);
        }
        let generation = schema.catalog.log_streams(log);
        let Some(stream) = generation.stream_of(self.token) else {
            return Err(StorageError::Corrupt(format!(
                "the CDC log of {} has no streams",
                self.table.table.name
            )));
        };
        let log_table = schema.table(log.table)?;
        // No reader looks for rows from before the streams began, so such a row gets the commit
        // time.
        let is_older = self.timestamp < generation.since_ms.saturating_mul(1_000);
        let timestamp = if is_older { i64::MIN } else { self.timestamp };
        let time = gate.take(timestamp, moment.now_micros);
        log_table.growth.reach(time.micros());
        let rows = Group {
            base: self.table,
            log: log_table,
            options: &log.options,
            stream,
            time: time.timeuuid(),
            partition_key: self.partition_key,
            changes: &self.changes,
            fates: self.fates,
            images: self.images,
            now_micros: moment.now_micros,
        }
        .log_rows()?;
        if log.options.ttl_s > 0 {
            expiring.insert(log.table);
        }
        for (key, record) in rows {
            put_encoded(batch, log_table.space, key, &record);
        }
        Ok(Some((Arc::clone(&log_table.growth), time.micros())))
    }
}
