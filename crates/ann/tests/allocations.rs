//! The memory that a search takes from the allocator: one block, for its answer. A walk has its
//! working memory from searches before it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ann::{
    AccessPath, DistanceMetric, Neighbour, NeighbourIndex, NeighbourIndexOptions, SearchOptions,
};

thread_local! {
    /// Blocks and bytes that this thread was given.
    static TAKEN: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(bytes: usize) {
    // Nothing is counted while a thread ends.
    let _ = TAKEN.try_with(|taken| {
        let (blocks, before) = taken.get();
        taken.set((blocks + 1, before + bytes));
    });
}

// SAFETY: every call goes on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const DIMENSIONS: usize = 48;
const ROWS: u32 = 3000;

/// A vector that is the same whenever it is asked for: elements by the finalizer of SplitMix64.
fn vector(number: u32) -> Vec<f32> {
    let element = |at: usize| {
        let mut z = (u64::from(number) * DIMENSIONS as u64 + at as u64 + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..DIMENSIONS).map(element).collect()
}

#[test]
fn a_walk_takes_nothing_and_an_answer_one_block() {
    let queries: Vec<Vec<f32>> = (0..50).map(|number| vector(ROWS + number)).collect();
    for metric in [
        DistanceMetric::Cosine,
        DistanceMetric::Euclidean,
        DistanceMetric::DotProduct,
    ] {
        let index = NeighbourIndex::new(NeighbourIndexOptions {
            metric,
            ..NeighbourIndexOptions::new(DIMENSIONS)
        });
        let index = index.unwrap();
        for id in 0..ROWS {
            index.insert(id, &vector(id)).unwrap();
        }
        for (k, beam) in [(10, 32), (10, 128), (50, 128)] {
            let search = SearchOptions {
                beam: Some(beam),
                ..SearchOptions::new(k)
            };
            // The first searches find out how much working memory it takes.
            for query in &queries {
                index.search_with(query, &search).unwrap();
            }
            for query in &queries {
                let (blocks, bytes) = TAKEN.get();
                let (answer, explanation) = index.explain(query, &search).unwrap();
                let (blocks_after, bytes_after) = TAKEN.get();
                assert_eq!((explanation.way, answer.len()), (AccessPath::Walk, k));
                let taken = (blocks_after - blocks, bytes_after - bytes);
                let one = (1, k * size_of::<Neighbour>());
                assert_eq!(taken, one, "{metric:?}, k {k}, beam {beam}");
            }
        }
    }
}
