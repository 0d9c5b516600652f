//! Prepares one write: checks its condition, and makes its changes and its log rows.

use std::sync::Arc;

use bytes::Bytes;
use value::token::Token;

use super::apply::{self, Moment};
use super::lists::{self, Found};
use super::log::{self, Target};
use super::overlay::{Changes, Overlay};
use crate::StorageError;
use crate::cdc::{CdcGate, Growth};
use crate::engine::{Batch, Engine};
use crate::key::{self, ROW};
use crate::mutation::{Change, Condition, PartitionMutation, Write, WriteOutcome};
use crate::read::{Partition, Position, Row};
use crate::record::{CellRecord, ColumnRecord, Liveness, Record};
use crate::schema::{Schema, TableSchema};

/// The parts that a write adds to its batch, with its outcome.
pub(super) struct Prepared {
    pub outcome: WriteOutcome,
    pub changes: Changes,
    pub log_rows: Batch,
    pub grown: Grown,
}

/// The logs that get rows, with the times of these.
pub(super) type Grown = Vec<(Arc<Growth>, i64)>;

struct Resolved<'s> {
    table: &'s TableSchema,
    partition_key: Vec<Bytes>,
    partition: Vec<u8>,
    token: Token,
    changes: Vec<Change>,
}

pub(super) fn prepare(
    engine: &Engine,
    schema: &Schema,
    gate: &CdcGate,
    batch: &Changes,
    write: Write,
    moment: Moment,
) -> Result<Prepared, StorageError> {
    let mut overlay = Overlay::new(engine, batch);
    let floor = match &write.condition {
        Some(condition) => match evaluate(&overlay, schema, condition, moment)? {
            Verdict::Holds { floor } => floor,
            Verdict::Fails(existing) => {
                return Ok(Prepared {
                    outcome: WriteOutcome::NotApplied { existing },
                    changes: Changes::default(),
                    log_rows: Batch::new(),
                    grown: Grown::new(),
                });
            }
        },
        None => i64::MIN,
    };
    let resolved = write
        .mutations
        .into_iter()
        .map(|mutation| resolve(&overlay, schema, mutation, floor, moment))
        .collect::<Result<Vec<_>, _>>()?;
    let mut groups = log::group(resolved.iter().map(|mutation| Target {
        table: mutation.table,
        partition_key: &mutation.partition_key,
        partition: &mutation.partition,
        token: mutation.token,
        changes: &mutation.changes,
    }));
    for group in &mut groups {
        group.note_deleted(&overlay, moment)?;
        group.take_pre_images(&overlay, moment)?;
    }
    for mutation in &resolved {
        for change in &mutation.changes {
            apply::apply(
                &mut overlay,
                mutation.table,
                &mutation.partition,
                change,
                moment,
            )?;
        }
    }
    for group in &mut groups {
        group.judge_deleted(&overlay, moment)?;
        group.take_post_images(&overlay, moment)?;
    }
    let mut log_rows = Batch::new();
    let mut grown = Grown::new();
    let mut changes = overlay.write;
    for group in groups {
        grown.extend(group.write(schema, gate, moment, &mut log_rows, &mut changes.expiring)?);
    }
    Ok(Prepared {
        outcome: WriteOutcome::Applied,
        changes,
        log_rows,
        grown,
    })
}

/// Finds the table, raises timestamps to at least `floor`, and turns list operations into
/// operations by path, according to the state before the write.
fn resolve<'s>(
    overlay: &Overlay<'_>,
    schema: &'s Schema,
    mutation: PartitionMutation,
    floor: i64,
    moment: Moment,
) -> Result<Resolved<'s>, StorageError> {
    let table = schema.table(mutation.table)?;
    let (token, partition) = table.keys.partition(&mutation.partition_key)?;
    let mut changes = mutation.changes;
    for change in &mut changes {
        match change {
            Change::Row {
                clustering,
                cells,
                timestamp,
                ..
            } => {
                *timestamp = floor.max(*timestamp);
                if lists::needs_list(cells) {
                    let suffix = table.keys.clustering(clustering)?;
                    let (record, liveness) =
                        lists::find_row(overlay, table, &partition, &suffix, moment.now_s)?;
                    let found = Found {
                        record: &record,
                        liveness,
                        is_static: false,
                    };
                    *cells = lists::resolve(table, &found, std::mem::take(cells))?;
                }
            }
            Change::Static {
                cells, timestamp, ..
            } => {
                *timestamp = floor.max(*timestamp);
                if lists::needs_list(cells) {
                    let head = overlay.head(table, &partition)?;
                    let found = Found {
                        record: &head,
                        liveness: Liveness {
                            deleted_to: i64::MIN,
                            now_s: moment.now_s,
                        },
                        is_static: true,
                    };
                    *cells = lists::resolve(table, &found, std::mem::take(cells))?;
                }
            }
            Change::DeleteRow { timestamp, .. }
            | Change::DeleteRange { timestamp, .. }
            | Change::DeletePartition { timestamp } => *timestamp = floor.max(*timestamp),
        }
    }
    Ok(Resolved {
        table,
        partition_key: mutation.partition_key,
        partition,
        token,
        changes,
    })
}

enum Verdict {
    /// Timestamps at or above `floor` win over everything that the row has.
    Holds {
        floor: i64,
    },
    Fails(Box<crate::read::Row>),
}

fn evaluate(
    overlay: &Overlay<'_>,
    schema: &Schema,
    condition: &Condition,
    moment: Moment,
) -> Result<Verdict, StorageError> {
    let Condition::RowNotExists {
        table,
        partition_key,
        clustering,
    } = condition;
    let table = schema.table(*table)?;
    let (token, partition) = table.keys.partition(partition_key)?;
    let of_statics = clustering.is_empty() && table.keys.has_clustering();
    let head = overlay.head(table, &partition)?;
    let head_liveness = Liveness {
        deleted_to: i64::MIN,
        now_s: moment.now_s,
    };
    let statics = head_liveness.statics(&head, &table.live);
    let (key, record, deleted_to, cells) = if of_statics {
        let key = key::join(&partition, key::HEADER, &[])?;
        let cells = (!statics.is_empty()).then(Vec::new);
        (key, head, i64::MIN, cells)
    } else {
        let suffix = table.keys.clustering(clustering)?;
        let key = key::join(&partition, ROW, &suffix)?;
        let deleted_to = overlay.deleted_to(table, &partition, &head, &suffix)?;
        let record = overlay.row(table, &partition, &suffix)?;
        let liveness = Liveness {
            deleted_to,
            now_s: moment.now_s,
        };
        let cells = liveness.row(&record, &table.live);
        (key, record, deleted_to, cells)
    };
    match cells {
        Some(cells) => Ok(Verdict::Fails(Box::new(Row {
            partition: std::sync::Arc::new(Partition {
                token,
                key: partition_key.clone(),
                static_cells: statics,
            }),
            clustering: (!of_statics).then(|| {
                record
                    .clustering
                    .clone()
                    .unwrap_or_else(|| clustering.clone())
            }),
            cells,
            position: Position(key.into()),
        }))),
        None => Ok(Verdict::Holds {
            floor: newest(&record).max(deleted_to).saturating_add(1),
        }),
    }
}

/// The greatest timestamp in a record.
fn newest(record: &Record) -> i64 {
    let cell = |cell: &CellRecord| cell.timestamp;
    let cells = record.cells.iter().flat_map(|(_, column)| match column {
        ColumnRecord::Simple(one) => vec![cell(one)],
        ColumnRecord::Elements { deletion, cells } => cells
            .iter()
            .map(|(_, one)| cell(one))
            .chain(deletion.map(|deletion| deletion.timestamp))
            .collect(),
    });
    cells
        .chain(record.marker.map(|marker| marker.timestamp))
        .chain(record.deletion.map(|deletion| deletion.timestamp))
        .max()
        .unwrap_or(i64::MIN)
}
