//! Writers that note what was acknowledged, and a check that all of that is there and that nothing
//! is there by halves.
//!
//! Each writer works on a partition of its own and does numbered operations, each acknowledged
//! before the next. The table logs its changes. So the log says how many operations were applied,
//! and the rows have to be exactly those that these operations make. A further thread makes and
//! drops tables.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use schema::{ColumnId, Table};
use storage::mutation::{CellOperation, PartitionChange};
use storage::{Durability, Storage, StorageOptions};
use value::CqlType;

use crate::support::*;

const WRITERS: i32 = 6;
/// Bytes of acknowledgements between two changes of the schema.
const NOTES_BETWEEN: u64 = 100;
const LARGE: ColumnId = ColumnId(3);

fn table() -> Table {
    TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .regular(
            "large",
            CqlType::Vector {
                element: Box::new(CqlType::Float),
                dimensions: 700,
            },
        )
        .cdc(cdc_options())
        .build()
}

/// The options of the storage. Synced, it has small memtables, so that files are written out and
/// merged within a short test. Buffered, it has large ones, so that nothing is synced by the way.
fn storage_options(durability: Durability) -> StorageOptions {
    StorageOptions {
        durability,
        memtable_bytes: match durability {
            Durability::Synced => 128 << 10,
            Durability::Buffered { .. } => 64 << 20,
        },
        ..options()
    }
}

pub fn prepare(directory: &Path, durability: Durability) {
    let storage = open_with(directory, storage_options(durability)).expect("it opens");
    create(&storage, &table(), true);
    block_on(storage.close()).expect("it closes");
}

fn table_of(storage: &Storage) -> Arc<Table> {
    storage
        .catalog()
        .table("ks", "t")
        .expect("the table was acknowledged")
        .clone()
}

fn log_of(storage: &Storage) -> Arc<Table> {
    storage
        .catalog()
        .table("ks", "t_scylla_cdc_log")
        .expect("with its log")
        .clone()
}

fn filler(n: i32) -> Bytes {
    n.to_be_bytes().repeat(700).into()
}

/// Operation `n` of a writer.
fn operation(n: i32) -> PartitionChange {
    let timestamp = i64::from(n) + 1;
    match n % 5 {
        3 => update(
            vec![int(n - 3)],
            vec![set(V, text(&format!("updated {n}")))],
            timestamp,
        ),
        4 => PartitionChange::DeleteRow {
            clustering: vec![int(n - 3)],
            timestamp,
        },
        rest => {
            let mut cells = vec![set(V, text(&format!("inserted {n}")))];
            if rest == 2 {
                cells.push(set(LARGE, filler(n)));
            }
            insert(vec![int(n)], cells, timestamp)
        }
    }
}

/// The rows after the first `count` operations: for each row its text and whether it has the large
/// value.
fn rows_after(count: i32) -> BTreeMap<i32, (String, Option<Bytes>)> {
    let mut rows = BTreeMap::new();
    for n in 0..count {
        match operation(n) {
            PartitionChange::DeleteRow { clustering, .. } => {
                rows.remove(&number(&clustering[0]));
            }
            PartitionChange::Row {
                clustering, cells, ..
            } => {
                let row: &mut (String, Option<Bytes>) =
                    rows.entry(number(&clustering[0])).or_default();
                for cell in cells {
                    let CellOperation::Set(value) = cell.change else {
                        panic!("only sets");
                    };
                    if cell.column == LARGE {
                        row.1 = Some(value);
                    } else {
                        row.0 = String::from_utf8(value.to_vec()).expect("text");
                    }
                }
            }
            other => panic!("{other:?}"),
        }
    }
    rows
}

fn number(bytes: &Bytes) -> i32 {
    i32::from_be_bytes(bytes[..].try_into().expect("an int"))
}

/// The number of operations of each writer in the log.
fn logged(storage: &Storage) -> BTreeMap<i32, i32> {
    let log = log_of(storage);
    let p = log.column("p").expect("a key column").id;
    let mut counts = BTreeMap::new();
    for row in read_all(storage, &log) {
        let writer = number(&simple_value(&row, p).expect("a key"));
        *counts.entry(writer).or_default() += 1;
    }
    counts
}

fn acknowledge(path: &Path, line: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .expect("it opens");
    file.write_all(line.as_bytes()).expect("it is written");
}

/// Writes until the process is killed. Notes each acknowledgement as a line of `acknowledged`:
/// `w WRITER COUNT`, and `c NUMBER` or `d NUMBER` for a table made or dropped.
pub fn work(directory: &Path, acknowledged: &Path, durability: Durability) {
    let storage = open_with(directory, storage_options(durability)).expect("it opens");
    let done = logged(&storage);
    let table = table_of(&storage);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (storage, table) = (storage.clone(), Arc::clone(&table));
            let first = done.get(&writer).copied().unwrap_or(0);
            let acknowledged = acknowledged.to_path_buf();
            thread::spawn(move || {
                for n in first.. {
                    write(&storage, &table, vec![int(writer)], vec![operation(n)]);
                    acknowledge(&acknowledged, &format!("w {writer} {}\n", n + 1));
                }
            })
        })
        .collect();
    // A schema change is always synced, and every write before it is synced with it.
    if durability == Durability::Synced {
        make_and_drop(&storage, acknowledged);
    }
    for writer in writers {
        writer.join().expect("a writer does not panic");
    }
}

fn make_and_drop(storage: &Storage, acknowledged: &Path) {
    for n in 1 + promised(acknowledged).dropped.. {
        let mut made = simple_table();
        made.name = format!("made_{n}");
        create(storage, &made, false);
        write(
            storage,
            &made,
            vec![int(n)],
            vec![insert(vec![int(n)], vec![], 1)],
        );
        acknowledge(acknowledged, &format!("c {n}\n"));
        let former = format!("made_{}", n - 2);
        block_on(storage.change_catalog(move |catalog| {
            catalog.remove_table("ks", &former);
            Ok::<(), ()>(())
        }))
        .expect("the table is dropped");
        acknowledge(acknowledged, &format!("d {}\n", n - 2));
        // Most of the work shall be writes.
        let noted = || acknowledged.metadata().map_or(0, |file| file.len());
        let before = noted();
        eventually("others write", || noted() > before + NOTES_BETWEEN);
    }
}

/// Everything that was acknowledged.
#[derive(Debug, Default)]
struct Promised {
    /// Operations of each writer.
    counts: BTreeMap<i32, i32>,
    /// The number of the last table made.
    made: i32,
    /// The number of the last table dropped.
    dropped: i32,
}

fn promised(acknowledged: &Path) -> Promised {
    let mut promised = Promised::default();
    let text = fs::read_to_string(acknowledged).unwrap_or_default();
    for line in text.lines() {
        let words: Vec<i32> = line
            .split(' ')
            .skip(1)
            .map(|n| n.parse().expect("a number"))
            .collect();
        match &line[..1] {
            "w" => drop(promised.counts.insert(words[0], words[1])),
            "c" => promised.made = words[0],
            _ => promised.dropped = words[0].max(promised.dropped),
        }
    }
    promised
}

/// The result of a check: what was acknowledged and is missing or wrong.
#[derive(Debug, Default, PartialEq)]
pub struct Findings {
    /// The number of operations that were acknowledged and are missing.
    pub lost: i64,
    /// The number of tables that were acknowledged as made and are missing, or as dropped and still
    /// exist.
    pub schema_lost: i64,
    /// Partitions whose rows differ from their log.
    pub torn: Vec<String>,
    /// The number of operations that are there.
    pub kept: i64,
}

pub fn check(directory: &Path, acknowledged: &Path) -> Findings {
    let storage =
        open_with(directory, storage_options(Durability::Synced)).expect("it opens again");
    let mut findings = Findings::default();
    let logged = logged(&storage);
    let Promised {
        counts,
        made,
        dropped,
    } = promised(acknowledged);
    for writer in 0..WRITERS {
        let promised = counts.get(&writer).copied().unwrap_or(0);
        let found = logged.get(&writer).copied().unwrap_or(0);
        findings.lost += i64::from((promised - found).max(0));
        findings.kept += i64::from(found);
        let expected = rows_after(found);
        let rows = read_partition(&storage, &table_of(&storage), vec![int(writer)]);
        let actual: BTreeMap<i32, (String, Option<Bytes>)> = rows
            .iter()
            .map(|row| {
                let (_, c, v) = shown(row);
                let large = simple_value(row, LARGE);
                (c.expect("a row"), (v.unwrap_or_default(), large))
            })
            .collect();
        if actual != expected {
            findings.torn.push(format!(
                "writer {writer} after {found} operations: {} rows, expected {}",
                actual.len(),
                expected.len()
            ));
        }
    }
    findings.schema_lost = check_made(&storage, made, dropped);
    // The tables are dropped, as the next writers begin with new names.
    let last = made + 1;
    block_on(storage.change_catalog(move |catalog| {
        (1..=last).for_each(|n| catalog.remove_table("ks", &format!("made_{n}")));
        Ok::<(), ()>(())
    }))
    .expect("the tables are dropped");
    acknowledge(acknowledged, &format!("d {last}\n"));
    block_on(storage.close()).expect("it closes");
    findings
}

/// The number of tables that differ from what was acknowledged.
fn check_made(storage: &Storage, made: i32, dropped: i32) -> i64 {
    let catalog = storage.catalog();
    let mut lost = 0;
    for n in dropped + 1..=made {
        match catalog.table("ks", &format!("made_{n}")) {
            Some(table) if read_all(storage, table).len() == 1 => {}
            // Its drop may have been under way.
            None if n == dropped + 1 => {}
            _ => lost += 1,
        }
    }
    for n in 1..=dropped {
        lost += i64::from(catalog.table("ks", &format!("made_{n}")).is_some());
    }
    lost
}
