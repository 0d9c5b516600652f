//! Following the log of a table: a commit that adds to it wakes its one follower.
//!
//! # Why no row is missed
//!
//! The log is read window by window of `cdc$time`, and never twice. Before a window is read, the
//! low-water mark of the storage is raised to its end, and the commit in flight is waited for
//! ([`Storage::settle_log_to_end`]). No later commit gives a row a time at or below the mark, so
//! the window is complete for good, whatever timestamps clients give. The end is the present, or
//! the last row of the log if that is later, as after a clock was set back. The next window begins
//! after it. Deletions may be dated a little ahead, so rows up to [`AHEAD_MAX_MICROS`] after the
//! end are handed over as well: at each read until their time has come. Between two windows the
//! follower waits for a row after the mark ([`Storage::log_growth`]). A row that was written
//! meanwhile ends the wait at once, so no row comes unseen.
//!
//! The end of a window is reported once its rows have been handed over ([`LogRun::read_up_to`]). So
//! it is a position that a snapshot may be taken with: a time before which everything in the log
//! has been handed over. It means the same as the position of a reader that polls, and snapshots of
//! either open with the other. An idle log has no new position until one is requested, as for a
//! snapshot ([`LogRun::wait_for_request`]). Times of two runs of the process follow each other, as
//! the mark is stored on the disk. While the disk takes no writes, the reported position lags what
//! is read, as a later process would give out times after it again.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use platform::aside;
use schema::{ColumnId, Table};
use storage::read::{Cell, ClusteringBound, ClusteringSlice, PartitionSelection, ReadRequest, Row};
use storage::{AHEAD_MAX_MICROS, Storage};
use store::database::{ChangeHint, HintTarget, KeySchema, LogRun};
use uuid::Uuid;
use value::timeuuid;

use crate::table_of;

/// Number of rows of the log read by one visit to a thread that may wait for the disk.
const ROWS_AT_A_TIME: usize = 4096;

/// Follows a log until the log is dropped.
pub async fn follow(storage: &Storage, run: &LogRun) -> anyhow::Result<()> {
    run.is_up();
    let base = table_of(storage, run.table()).context("the table is gone")?;
    let log = base.log.as_ref().context("the table has no log")?.table;
    let mut from_us = micros(run.from());
    let mut unread_since = run.from();
    loop {
        // A request that comes from here on is answered by the read after this one.
        let asked = run.request_count();
        let settled = storage.settle_log_to_end(log).await?;
        hand_over(storage, run, from_us, settled.up_to_micros).await?;
        run.read_up_to(settled.kept_micros, unread_since, asked)
            .await?;
        from_us = settled.up_to_micros.saturating_add(1);
        tokio::select! {
            biased;
            () = storage.log_growth(log, from_us) => {}
            () = run.wait_for_request(asked) => {}
        }
        unread_since = run.now();
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Hands over the rows that a window of the log names, and those of deletions that are dated ahead
/// of it. Both ends of the window are inclusive.
async fn hand_over(
    storage: &Storage,
    run: &LogRun,
    from_us: i64,
    up_to_us: i64,
) -> anyhow::Result<()> {
    // The log may have other columns by now, and those of the key other names.
    let catalog = storage.catalog();
    let (named, id) = (run.table(), run.table().id);
    let base = catalog.table(&named.keyspace, &named.table);
    let base = base.filter(|base| base.id.0 == id);
    let base = base.context("the table is gone")?;
    let log = base.log.as_ref().context("the table has no log")?;
    let table = catalog.table_by_id(log.table).context("the log is gone")?;
    let columns = BaseKeyColumns::of(table, base)?;
    let bound = |micros: i64| -> anyhow::Result<Vec<Bytes>> {
        let first = timeuuid::min_for_micros(micros)?;
        Ok(vec![Bytes::copy_from_slice(first.as_bytes())])
    };
    let window = ClusteringSlice {
        start: ClusteringBound::Inclusive(bound(from_us)?),
        end: ClusteringBound::Exclusive(bound(up_to_us.saturating_add(1 + AHEAD_MAX_MICROS))?),
    };
    for stream in &catalog.log_streams(log).streams {
        let mut rows = storage.read(ReadRequest {
            table: log.table,
            partitions: PartitionSelection::One(vec![stream.clone()]),
            slices: vec![window.clone()],
            reversed: false,
            resume_after: None,
            static_only_rows: false,
        })?;
        let mut last = None;
        loop {
            let read = move || {
                let some: Result<Vec<Row>, _> = rows.by_ref().take(ROWS_AT_A_TIME).collect();
                some.map(|some| (some, rows))
            };
            let (some, left) = aside(read).await??;
            rows = left;
            let ended = some.len() < ROWS_AT_A_TIME;
            for row in some {
                match columns.hint(run.keys(), &row) {
                    Ok(hint) if hint == last => {}
                    Ok(hint) => {
                        last.clone_from(&hint);
                        if let Some(hint) = hint {
                            run.hint(hint).await?;
                        }
                    }
                    Err(error) => run.not_understood(error),
                }
            }
            if ended {
                break;
            }
        }
    }
    Ok(())
}

/// The operation -3: a row with clustering columns has expired.
const EXPIRED_ROW: u8 = 0xfd;
/// The operation -4: a row without clustering columns has expired.
const EXPIRED_PARTITION: u8 = 0xfc;

/// The columns of the log that hold the key of the base row.
struct BaseKeyColumns {
    operation: ColumnId,
    partition: Vec<ColumnId>,
    clustering: Vec<ColumnId>,
}

impl BaseKeyColumns {
    fn of(log: &Table, base: &Table) -> anyhow::Result<BaseKeyColumns> {
        let column = |name: &str| -> anyhow::Result<ColumnId> {
            Ok(log.column(name).context("the log lacks a column")?.id)
        };
        let key = |columns: Vec<&schema::Column>| -> anyhow::Result<Vec<ColumnId>> {
            columns.iter().map(|of| column(&of.name)).collect()
        };
        Ok(BaseKeyColumns {
            operation: column("cdc$operation")?,
            partition: key(base.partition_key())?,
            clustering: key(base.clustering_key())?,
        })
    }

    /// The hint in a row of the log; None for an image.
    fn hint(&self, keys: &KeySchema, row: &Row) -> Result<Option<ChangeHint>, &'static str> {
        let operation = value(row, self.operation).ok_or("a log row has no operation")?;
        let of_partition = match operation {
            [0] => return Ok(None),
            [1 | 2 | 3 | 9 | EXPIRED_ROW] => false,
            [4 | EXPIRED_PARTITION] => !self.clustering.is_empty(),
            [5..=8] => true,
            _ => return Err("a log row has an operation that is unknown"),
        };
        let partition = self.partition.iter().map(|column| value(row, *column));
        let mut key: Vec<&[u8]> = partition
            .collect::<Option<_>>()
            .ok_or("a log row lacks the partition key")?;
        let target = if of_partition {
            HintTarget::Partition(keys.encode_partition(key))
        } else {
            let clustering = self.clustering.iter().map(|column| value(row, *column));
            match clustering.collect::<Option<Vec<_>>>() {
                Some(clustering) => {
                    key.extend(clustering);
                    HintTarget::Row(keys.encode(key))
                }
                // An update of only static columns.
                None => HintTarget::Static(keys.encode_partition(key)),
            }
        };
        Ok(Some(ChangeHint {
            target,
            noticed_us: time_us(row),
        }))
    }
}

fn value(row: &Row, column: ColumnId) -> Option<&[u8]> {
    match row.cell(column)? {
        Cell::Simple(cell) => Some(&cell.value),
        Cell::Elements(_) => None,
    }
}

/// The `cdc$time` of a row, the first of its clustering columns.
fn time_us(row: &Row) -> Option<i64> {
    let bytes: [u8; 16] = row.clustering.as_ref()?.first()?.as_ref().try_into().ok()?;
    Some(timeuuid::unix_micros(&Uuid::from_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;
    use std::sync::Arc;

    use schema::Keyspace;
    use storage::StorageOptions;
    use storage::mutation::{
        AtomicWrite, CellChange, CellOperation, PartitionChange, PartitionMutation,
    };

    use super::*;
    use crate::fixtures::{NUMBER, STATIC, VECTOR, table};

    /// The targets in the log after a write of a change to the partition 1.
    async fn hinted(change: PartitionChange) -> Vec<HintTarget> {
        let directory = tempfile::tempdir().unwrap();
        let storage = Storage::open(directory.path(), StorageOptions::default()).unwrap();
        let table = table(&[], &["n", "s"]);
        let keyspace = Keyspace {
            name: "ks".to_owned(),
            replication: BTreeMap::new(),
            durable_writes: true,
            tablets: true,
            types: Default::default(),
            tables: BTreeMap::new(),
        };
        let id = table.id;
        let keys = crate::catalog_changes::identity(&table, &table.indexes["i"])
            .unwrap()
            .keys;
        let made = storage.change_catalog(move |catalog| {
            catalog
                .keyspaces
                .insert("ks".to_owned(), Arc::new(keyspace));
            catalog.put_table(table);
            Ok::<(), ()>(())
        });
        made.await.unwrap();
        let write = AtomicWrite {
            mutations: vec![PartitionMutation {
                table: id,
                partition_key: vec![int(1)],
                changes: vec![change],
            }],
            condition: None,
        };
        storage.write(write).await.unwrap();
        let catalog = storage.catalog();
        let log = catalog.table("ks", "t_scylla_cdc_log").unwrap();
        let base = catalog.table("ks", "t").unwrap();
        let columns = BaseKeyColumns::of(log, base).unwrap();
        let rows = storage.read(ReadRequest {
            table: log.id,
            partitions: PartitionSelection::Tokens(Bound::Unbounded, Bound::Unbounded),
            slices: Vec::new(),
            reversed: false,
            resume_after: None,
            static_only_rows: false,
        });
        let hints = rows
            .unwrap()
            .map(|row| columns.hint(&keys, &row.unwrap()).unwrap());
        hints.flatten().map(|hint| hint.target).collect()
    }

    fn int(value: i32) -> Bytes {
        Bytes::copy_from_slice(&value.to_be_bytes())
    }

    fn cell(column: ColumnId, change: CellOperation) -> Vec<CellChange> {
        vec![CellChange { column, change }]
    }

    #[tokio::test]
    async fn every_column_has_hints() {
        let row = |cells, timestamp| PartitionChange::Row {
            clustering: vec![int(2)],
            cells,
            timestamp,
            ttl_s: None,
            marker: false,
        };
        let fixed = |change, timestamp| PartitionChange::Static {
            cells: cell(STATIC, change),
            timestamp,
            ttl_s: None,
        };
        let table = table(&[], &[]);
        let keys = crate::catalog_changes::identity(&table, &table.indexes["i"])
            .unwrap()
            .keys;
        let of_row = HintTarget::Row(keys.encode([&1_i32.to_be_bytes()[..], &2_i32.to_be_bytes()]));
        let of_static = HintTarget::Static(keys.encode_partition([&1_i32.to_be_bytes()[..]]));
        for (change, expected) in [
            (row(cell(VECTOR, CellOperation::Delete), 100), &of_row),
            (row(cell(NUMBER, CellOperation::Set(int(5))), 100), &of_row),
            (row(cell(NUMBER, CellOperation::Delete), 100), &of_row),
            (
                fixed(CellOperation::Set(Bytes::from_static(b"x")), 100),
                &of_static,
            ),
            (fixed(CellOperation::Delete, 100), &of_static),
        ] {
            assert_eq!(hinted(change).await, std::slice::from_ref(expected));
        }
    }
}
