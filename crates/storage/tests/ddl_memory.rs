//! Tests that tables which are made and dropped leave no memory behind.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use storage::Storage;
use support::*;
use value::CqlType;

/// Pairs before the first measurement.
const BEFORE: usize = 300;
/// The bytes that the pairs may leave: those of the catalog's own space until they are written out,
/// and little beside.
const LEFT_BYTES_MAX: i64 = 8 << 20;

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

/// Makes a table with a row, and drops it.
fn pair(storage: &Storage) {
    let table = TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .build();
    create(storage, &table, true);
    let row = insert(vec![int(1)], vec![set(V, text("here"))], 1);
    write(storage, &table, vec![int(1)], vec![row]);
    let removed = block_on(storage.change_catalog(move |catalog| {
        catalog.remove_table("ks", "t");
        Ok::<(), ()>(())
    }));
    removed.unwrap();
}

/// This is the only test of its process, as it counts all bytes that the process allocates.
#[test]
fn tables_that_were_dropped_leave_no_memory_behind() {
    let pairs = std::env::var("DDL_PAIRS").map_or(2_500, |value| value.parse().unwrap());
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let directory = directory.unwrap();
    let storage = open(directory.path());
    (0..BEFORE).for_each(|_| pair(&storage));
    let before = LIVE.load(Ordering::Relaxed);
    (0..pairs).for_each(|_| pair(&storage));
    // The folders of dropped tables go a moment later.
    let left = || LIVE.load(Ordering::Relaxed) - before;
    eventually("the memory is given back", || left() < LEFT_BYTES_MAX);
    println!("{} bytes a pair", left() / i64::from(pairs));
}
