//! Tests passes step by step, and over rows and entries that are damaged.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::executor::block_on;
use schema::{
    CdcOptions, Column, ColumnId, ColumnKind, DeltaMode, ImageMode, Keyspace, RowTtl, Table,
    TableId,
};
use tasks::Registry;
use tokio::sync::{Semaphore, mpsc, oneshot};
use turns::{Class, Turns};
use uuid::Uuid;
use value::CqlType;
use value::token::Partitioner;

use super::Committer;
use crate::clock::{Clock, HandClock, ServerClock};
use crate::commit::{PendingWrite, Unfinished, load};
use crate::engine::{Directory, Engine, EngineOptions, Examiners, SpaceId, Sync};
use crate::forget::Forgetting;
use crate::horizon::Horizon;
use crate::layout::{Building, Schema};
use crate::mutation::{CellChange, CellOperation, Change, PartitionMutation, Write};
use crate::shared::Shared;
use crate::{Durability, Storage, StorageOptions};

const START_S: i64 = 1_700_000_000;
const AT: ColumnId = ColumnId(1);
const V: ColumnId = ColumnId(2);

/// A table `ks.t` of an int key, a time and a text.
fn table(cdc: Option<CdcOptions>) -> Table {
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

fn int(value: i64) -> Bytes {
    let value = i32::try_from(value).expect("an int");
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// A row with a time and a text, written in a partition of its own.
fn row(table: &Table, p: i64, at: Bytes, text: &str) -> Write {
    let set = |column, value| CellChange {
        column,
        change: CellOperation::Set(value),
    };
    let text = Bytes::copy_from_slice(text.as_bytes());
    Write {
        mutations: vec![PartitionMutation {
            table: table.id,
            partition_key: vec![int(p)],
            changes: vec![Change::Row {
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

/// Makes a directory with a table and its rows, at the start, and a committer over it that does
/// nothing by itself, so many seconds later.
fn committer(directory: &Path, table: &Table, rows: Vec<Write>, later_s: i64) -> Committer {
    let options = StorageOptions {
        durability: Durability::Buffered {
            sync_interval: std::time::Duration::from_secs(60),
        },
        ..StorageOptions::default()
    };
    let clock = HandClock::new(START_S * 1_000_000);
    let opened = Arc::clone(&clock) as Arc<dyn Clock>;
    let storage = Storage::open_with_clock(directory, options, opened).expect("it opens");
    let made = table.clone();
    let change = storage.change_catalog(move |catalog| {
        let keyspace = Keyspace {
            name: "ks".to_owned(),
            replication: BTreeMap::new(),
            durable_writes: true,
            tablets: true,
            types: BTreeMap::new(),
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
    drop(storage);

    clock.advance_seconds(later_s);
    let clock = ServerClock::new(clock);
    let horizon = Horizon::new(Arc::clone(&clock));
    let forgetting = Forgetting::new(Arc::clone(&horizon));
    let examiners: Examiners = Arc::new(|_, _| None);
    let engine_options = EngineOptions {
        cache_bytes: 8 << 20,
        memtable_bytes: 64 << 20,
        resident_bytes: 64 << 20,
    };
    let (directory, _) = Directory::open(directory).expect("nobody holds it");
    let engine = Engine::open(directory, engine_options, examiners).expect("it opens");
    let now_micros = clock.now_micros();
    let (catalog, generations) = load(&engine, now_micros).unwrap().expect("a schema");
    let schema = Schema::new(Arc::new(catalog), generations, Building::new(), None);
    let shared = Shared::new(
        Arc::new(engine),
        horizon,
        forgetting,
        clock,
        now_micros,
        Durability::Synced,
        schema,
    );
    let (_, requests) = mpsc::channel(1);
    let none = Unfinished::default();
    let (tasks, turns) = (Registry::default(), Turns::default());
    Committer::new(Arc::new(shared), requests, none, tasks, turns)
}

fn expired(committer: &Committer) -> u64 {
    let expired = &committer.shared.statistics.rows_expired;
    expired.load(Ordering::Relaxed)
}

fn write(committer: &mut Committer, write: Write) {
    let (reply, mut answer) = oneshot::channel();
    let permits = Arc::new(Semaphore::new(1));
    let pending = PendingWrite {
        write,
        told_s: None,
        reply,
        _permit: permits.try_acquire_owned().unwrap(),
    };
    let turn = block_on(committer.turns.take(Class::Write));
    block_on(committer.commit(vec![pending], turn));
    answer.try_recv().unwrap().expect("the write succeeds");
}

/// Does a whole pass. Returns the number of steps.
fn pass(committer: &mut Committer) -> usize {
    committer.begin_expiry();
    std::iter::from_fn(|| block_on(committer.expire()).then_some(())).count()
}

/// Damages the value under the first key of a space.
fn damage(committer: &Committer, space: SpaceId) {
    let engine = &committer.shared.engine;
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut entries = engine
        .scan_at(&engine.snapshot().unwrap(), space, all)
        .unwrap();
    let (key, _) = entries.next().expect("an entry").unwrap();
    let damaged = Some(Bytes::from_static(b"\xff"));
    let now_micros = committer.shared.clock.now_micros();
    engine
        .commit(vec![(space, key, damaged)], Sync::Kernel, now_micros)
        .unwrap();
}

#[test]
fn rows_whose_column_is_empty_are_never_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(None);
    let mut rows: Vec<_> = (0..200).map(|p| row(&table, p, Bytes::new(), "")).collect();
    rows.push(row(&table, 200, int(START_S + 5), ""));
    rows.push(row(&table, 201, int(START_S + 500), ""));
    let mut committer = committer(directory.path(), &table, rows, 10);
    assert_eq!((pass(&mut committer), expired(&committer)), (1, 1));
    // Such a row that is written again does not take the place back.
    let place = committer.expiry.places.clone();
    write(&mut committer, row(&table, 3, Bytes::new(), "again"));
    assert_eq!(committer.expiry.places, place);
}

#[test]
fn a_step_ends_when_its_images_are_large() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(Some(CdcOptions {
        enabled: true,
        preimage: ImageMode::Full,
        postimage: false,
        delta: DeltaMode::Full,
        ttl_s: 86_400,
    }));
    let text = "x".repeat(100_000);
    let rows = (0..30)
        .map(|p| row(&table, p, int(START_S + 5), &text))
        .collect();
    let mut committer = committer(directory.path(), &table, rows, 10);
    committer.begin_expiry();
    assert!(block_on(committer.expire()));
    assert_eq!(expired(&committer), 11, "rows of a mebibyte");
    assert_eq!((pass(&mut committer), expired(&committer)), (2, 30));
    assert_eq!((pass(&mut committer), expired(&committer)), (1, 30));
}

#[test]
fn damaged_rows_and_entries_hold_up_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let table = table(None);
    let rows = (0..300)
        .map(|p| row(&table, p, int(START_S + 5), ""))
        .collect();
    let mut committer = committer(directory.path(), &table, rows, 10);
    let schema = committer.shared.schema();
    let laid_out = schema.table(table.id).unwrap();
    damage(&committer, laid_out.space);
    assert_eq!((pass(&mut committer), expired(&committer)), (3, 299));
    assert!(committer.expiry.failing.is_empty());

    // Only the entry of the damaged row is left.
    damage(&committer, laid_out.expiry().unwrap().space);
    committer.expiry.begin_anew();
    assert_eq!((pass(&mut committer), expired(&committer)), (1, 299));
    assert!(committer.expiry.failing.is_empty());
}

#[test]
fn the_last_second_of_an_int_comes() {
    let table = table(None);
    let last = i64::from(i32::MAX);
    for (now_s, count) in [(last - 1, 1), (last, 2), (last + 1_000, 2)] {
        let directory = tempfile::tempdir().unwrap();
        let rows = [(1, last), (2, last - 1)];
        let rows = rows.map(|(p, at)| row(&table, p, int(at), "")).into();
        let mut committer = committer(directory.path(), &table, rows, now_s - START_S);
        assert_eq!((pass(&mut committer), expired(&committer)), (1, count));
    }
}
