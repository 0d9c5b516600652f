//! Tests that streams of large rows, and of the entries of indexes, hold no memory once they are
//! let go.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use schema::{IndexedPart, SecondaryIndex, Table};
use storage::read::{IndexRequest, IndexedValues, NextRow, PartitionSelection};
use storage::{EntryStream, RowStream, Storage, StorageOptions, TableView};
use support::*;
use uuid::Uuid;

const ROWS: i32 = 12;
const ROW_BYTES: usize = 1 << 20;
const STREAMS: usize = 30;

/// The indexed values, each of which has a stream.
const VALUES: usize = 100;
/// The rows of a value: their entries fill blocks of the disk.
const ROWS_A_VALUE: usize = 400;
/// Less than a block of the disk, and more than a stream that was let go.
const SOME_BYTES: usize = 2 << 10;

/// The bytes that are allocated and not freed.
static LIVE: AtomicI64 = AtomicI64::new(0);

struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Streams of each kind, each of which has given one row.
fn begun(storage: &Storage, table: &Table) -> Vec<RowStream> {
    let streams = (0..STREAMS).map(|number| {
        let mut request = match number % 3 {
            0 => request(table, whole_ring()),
            _ => request(table, PartitionSelection::One(vec![int(1)])),
        };
        request.reversed = number % 3 == 2;
        let mut stream = storage.read(request).unwrap();
        assert!(matches!(stream.advance(usize::MAX), Ok(NextRow::Row(_))));
        stream
    });
    streams.collect()
}

/// Closes the storage, and opens it with hardly a cache. The rows are in files then, which are read
/// in blocks.
fn reopen(directory: &Path, storage: Storage) -> Storage {
    block_on(storage.close()).unwrap();
    drop(storage);
    let without_cache = StorageOptions {
        cache_bytes: 64 << 10,
        ..options()
    };
    Storage::open(directory, without_cache).unwrap()
}

/// Makes streams, lets them go, and checks that they hold the bytes before and not after. `begin`
/// makes streams that have each given something.
fn check_let_go<S>(
    some_bytes: usize,
    begin: impl Fn() -> Vec<S>,
    let_go: impl FnMut(&mut S),
) -> Vec<S> {
    // What is made once is there.
    drop(begin());
    let before = LIVE.load(Ordering::Relaxed);
    let held = || LIVE.load(Ordering::Relaxed) - before;
    let mut streams = begin();
    assert!(held() > some_bytes as i64, "{} bytes", held());
    streams.iter_mut().for_each(let_go);
    assert!(held() < some_bytes as i64, "{} bytes", held());
    streams
}

fn rows() {
    let directory = tempfile::tempdir().unwrap();
    let table = simple_table();
    let storage = open(directory.path());
    create(&storage, &table, true);
    for c in 0..ROWS {
        let value = text(&"x".repeat(ROW_BYTES));
        let row = insert(vec![int(c)], vec![set(V, value)], 1);
        write(&storage, &table, vec![int(1)], vec![row]);
    }
    let storage = reopen(directory.path(), storage);
    let some_rows = STREAMS * ROW_BYTES / 2;
    let streams = check_let_go(some_rows, || begun(&storage, &table), RowStream::let_go);
    // Each goes on where it was.
    for stream in streams {
        assert_eq!(stream.count(), ROWS as usize - 1);
    }
}

/// A stream of each value, which has given one position.
fn begun_entries(view: &TableView, index: &SecondaryIndex) -> Vec<EntryStream> {
    let streams = (0..VALUES).map(|number| {
        let request = IndexRequest {
            index: index.version,
            values: IndexedValues::one(text(&format!("{number:03}"))),
            tokens: (Bound::Unbounded, Bound::Unbounded),
            from: None,
        };
        let mut stream = view.positions(&request).unwrap();
        stream.next().unwrap().unwrap();
        stream
    });
    streams.collect()
}

fn entries() {
    let directory = tempfile::tempdir().unwrap();
    let index = SecondaryIndex {
        name: "i".to_owned(),
        column: V,
        part: IndexedPart::Value,
        is_local: false,
        class_name: Some("sai".to_owned()),
        options: Default::default(),
        version: Uuid::new_v4(),
    };
    let mut table = simple_table();
    let of_table = Arc::new(index.clone());
    table.secondary_indexes.insert("i".to_owned(), of_table);
    let storage = open(directory.path());
    create(&storage, &table, true);
    block_on(storage.index_built(index.version));
    for number in 0..VALUES {
        let row = |c| {
            let value = text(&format!("{number:03}"));
            insert(vec![int(c)], vec![set(V, value)], 1)
        };
        let rows = (0..ROWS_A_VALUE as i32).map(row).collect();
        write(&storage, &table, vec![int(number as i32)], rows);
    }
    let storage = reopen(directory.path(), storage);
    let view = storage.view(table.id).unwrap();
    let begin = || begun_entries(&view, &index);
    let streams = check_let_go(VALUES * SOME_BYTES, begin, EntryStream::let_go);
    for stream in streams {
        assert_eq!(stream.count(), ROWS_A_VALUE - 1);
    }
}

/// This is the only test of its process, as it counts all bytes that the process allocates.
#[test]
fn streams_that_are_let_go_hold_no_rows() {
    rows();
    entries();
}
