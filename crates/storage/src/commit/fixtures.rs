//! Committers that do nothing by themselves, for tests that go step by step.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cpu_scheduler::WorkClass;
use futures::executor::block_on;
use schema::{CdcOptions, Column, ColumnId, ColumnKind, Keyspace, RowTtl, Table, TableId};
use tokio::sync::{Semaphore, oneshot};
use uuid::Uuid;
use value::CqlType;
use value::token::Partitioner;

use super::{Committer, PendingWrite};
use crate::clock::{Clock, ManualClock};
use crate::handle::manual_committer;
use crate::mutation::{AtomicWrite, CellChange, CellOperation, PartitionChange, PartitionMutation};
use crate::{Durability, Storage, StorageError, StorageOptions};

/// The second at which the tests begin.
pub(super) const START_S: i64 = 1_700_000_000;
/// The columns of [`table`].
pub(super) const AT: ColumnId = ColumnId(1);
pub(super) const V: ColumnId = ColumnId(2);

/// A table `ks.t` of an int key, a time and a text.
pub(super) fn table(cdc: Option<CdcOptions>) -> Table {
    let column = |id, name: &str, kind, cql_type| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        kind,
        cql_type,
    };
    let key = ColumnKind::PartitionKey { position: 0 };
    Table {
        id: TableId(Uuid::new_v4()),
        keyspace: "ks".to_owned(),
        name: "t".to_owned(),
        columns: vec![
            column(0, "p", key, CqlType::Int),
            column(1, "at", ColumnKind::Regular, CqlType::Int),
            column(2, "v", ColumnKind::Regular, CqlType::Text),
        ],
        next_column: ColumnId(3),
        dropped_columns: BTreeMap::new(),
        partitioner: Partitioner::Murmur3,
        default_ttl_s: 0,
        row_ttl: Some(RowTtl {
            column: AT,
            version: Uuid::new_v4(),
        }),
        gc_grace_s: 864_000,
        options: BTreeMap::new(),
        indexes: BTreeMap::new(),
        secondary_indexes: BTreeMap::new(),
        cdc,
        log: None,
        log_of: None,
        truncated_at_ms: None,
    }
}

pub(super) fn int(value: i64) -> Bytes {
    let value = i32::try_from(value).expect("an int");
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// A row with a time and a text, written in a partition of its own.
pub(super) fn row(table: &Table, p: i64, at: Bytes, text: &str) -> AtomicWrite {
    let set = |column, value| CellChange {
        column,
        change: CellOperation::Set(value),
    };
    let text = Bytes::copy_from_slice(text.as_bytes());
    AtomicWrite {
        mutations: vec![PartitionMutation {
            table: table.id,
            partition_key: vec![int(p)],
            changes: vec![PartitionChange::Row {
                clustering: Vec::new(),
                cells: vec![set(AT, at), set(V, text)],
                timestamp: 1,
                ttl_s: None,
                marker: true,
            }],
        }],
        condition: None,
    }
}

/// Options with which only the kernel has what is written.
pub(super) fn options() -> StorageOptions {
    StorageOptions {
        durability: Durability::Buffered {
            sync_interval: std::time::Duration::from_secs(60),
        },
        ..StorageOptions::default()
    }
}

/// Makes a directory with a table and its rows.
pub(super) fn make(
    directory: &Path,
    options: StorageOptions,
    clock: &Arc<ManualClock>,
    table: &Table,
    rows: Vec<AtomicWrite>,
) {
    let opened = Arc::clone(clock) as Arc<dyn Clock>;
    let storage = Storage::open_with_clock(directory, options, opened).expect("it opens");
    let made = table.clone();
    let change = storage.change_catalog(move |catalog| {
        let keyspace = Keyspace {
            name: "ks".to_owned(),
            replication: BTreeMap::new(),
            durable_writes: true,
            tablets: true,
            types: Default::default(),
            tables: BTreeMap::new(),
        };
        catalog
            .keyspaces
            .insert("ks".to_owned(), Arc::new(keyspace));
        catalog.put_table(made);
        Ok::<(), ()>(())
    });
    block_on(change).expect("the table is made");
    for row in rows {
        block_on(storage.write(row)).expect("the row is written");
    }
    block_on(storage.close()).expect("it closes");
}

/// Makes a directory with a table and its rows, at the start, and a committer over it, so many
/// seconds later.
pub(super) fn committer(
    directory: &Path,
    table: &Table,
    rows: Vec<AtomicWrite>,
    later_s: i64,
) -> Committer {
    let clock = ManualClock::new(START_S * 1_000_000);
    make(directory, options(), &clock, table, rows);
    clock.advance_seconds(later_s);
    manual_committer(directory, &options(), clock).expect("it opens")
}

/// Commits a write as a batch of its own.
pub(super) fn try_write(committer: &mut Committer, write: AtomicWrite) -> Result<(), StorageError> {
    let (reply, mut answer) = oneshot::channel();
    let permits = Arc::new(Semaphore::new(1));
    let pending = PendingWrite {
        write,
        client_now_s: None,
        beginning: None,
        reply,
        permit: permits.try_acquire_owned().expect("a permit"),
    };
    let turn = block_on(committer.cpu_scheduler.acquire(WorkClass::Write));
    block_on(committer.commit(vec![pending], turn));
    answer.try_recv().expect("it is answered").map(drop)
}

/// Commits a write that succeeds.
pub(super) fn write(committer: &mut Committer, write: AtomicWrite) {
    try_write(committer, write).expect("the write succeeds");
}
