//! Tests that streams of large rows hold no memory once they are let go.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use schema::Table;
use storage::read::{Next, Partitions};
use storage::{RowStream, Storage, StorageOptions};
use support::*;

const ROWS: i32 = 12;
const ROW_BYTES: usize = 1 << 20;
const STREAMS: usize = 30;

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
            _ => request(table, Partitions::One(vec![int(1)])),
        };
        request.reversed = number % 3 == 2;
        let mut stream = storage.read(request).unwrap();
        assert!(matches!(stream.advance(usize::MAX), Ok(Next::Row(_))));
        stream
    });
    streams.collect()
}

/// This is the only test of its process, as it counts all bytes that the process allocates.
#[test]
fn streams_that_are_let_go_hold_no_rows() {
    let directory = tempfile::tempdir().unwrap();
    let table = simple_table();
    let storage = open(directory.path());
    create(&storage, &table, true);
    for c in 0..ROWS {
        let value = text(&"x".repeat(ROW_BYTES));
        let row = insert(vec![int(c)], vec![set(V, value)], 1);
        write(&storage, &table, vec![int(1)], vec![row]);
    }
    // The rows are in files then, which are read in blocks.
    block_on(storage.close()).unwrap();
    drop(storage);
    let without_cache = StorageOptions {
        cache_bytes: 64 << 10,
        ..options()
    };
    let storage = Storage::open(directory.path(), without_cache).unwrap();
    // What is made once is there.
    drop(begun(&storage, &table));
    let before = LIVE.load(Ordering::Relaxed);
    let held = || LIVE.load(Ordering::Relaxed) - before;
    let some_rows = (STREAMS * ROW_BYTES / 2) as i64;

    let mut streams = begun(&storage, &table);
    assert!(held() > some_rows, "{} bytes", held());
    streams.iter_mut().for_each(RowStream::let_go);
    assert!(held() < some_rows, "{} bytes", held());
    // Each goes on where it was.
    for stream in &mut streams {
        assert_eq!(stream.count(), ROWS as usize - 1);
    }
}
