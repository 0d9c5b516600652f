//! Counting a search takes no memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use store_api::{CountedSearch, SearchCounts};

thread_local! {
    /// Blocks that this thread was given.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

struct CountingAllocator;

// SAFETY: every call goes on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Nothing is counted while a thread ends.
        let _ = TAKEN.try_with(|taken| taken.set(taken.get() + 1));
        // SAFETY: the caller's promises are those that the system's allocator needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those that the system's allocator needs.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn counting_a_search_takes_no_memory() {
    // The families are made by the first search.
    let counts = SearchCounts::of_process();
    let count = || {
        for kind in CountedSearch::ALL {
            counts.answered(kind, Duration::from_micros(700), true);
            counts.was_short(kind);
            counts.was_refilled(kind);
        }
    };
    count();
    let before = TAKEN.get();
    (0..100).for_each(|_| count());
    assert_eq!(TAKEN.get(), before);
}
