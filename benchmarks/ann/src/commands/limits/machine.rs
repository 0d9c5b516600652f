//! Measures how fast this machine's memory serves one core.
//!
//! - **Stream**: a set of bytes is read from one end to the other, again and again.
//! - **Chase**: reads follow a ring through all cache lines of a set in random order, in which each
//!   line has the place of the next one. This gives the latency.
//! - **Blocks**: blocks at random places in a set are read, and each is prefetched a little ahead,
//!   as a graph walk does. They are prefetched into the first-level cache, or into the second,
//!   which on many processors waits for more lines at a time.
//!
//! Sets lie in huge pages if the system has them. Times are of the processor, so that what other
//! processes take of a shared machine does not count (except for the caches that they fill).

use std::fs;
use std::hint::black_box;

use contender::Stopwatch;
use rustix::mm::{Advice, madvise};

use crate::data::random::Random;

/// The sizes of the sets: within a core's own caches, within the last one, and beyond.
const SETS: [(&str, usize); 5] = [
    ("16 KiB", 16 << 10),
    ("1 MiB", 1 << 20),
    ("16 MiB", 16 << 20),
    ("64 MiB", 64 << 20),
    ("1 GiB", 1 << 30),
];
/// The sizes of the blocks in bytes.
const BLOCKS: [usize; 5] = [64, 128, 256, 512, 1024];
/// The number of blocks between the one prefetched and the one read.
const AHEAD: usize = 16;
const LINE: usize = 64;
/// The least number of bytes read for one figure.
const BYTES_READ: usize = 1 << 30;
/// The number of steps of a chase.
const STEPS: usize = 2_000_000;
/// The repeats of a measurement. The fastest counts, as the machine may be shared.
const REPEATS: usize = 3;
const STREAM: u64 = 5_001;

/// The speeds by size of the set and of the block, each by the faster way to prefetch.
pub struct Blocks {
    speeds: Vec<(usize, Vec<(usize, f64)>)>,
}

impl Blocks {
    /// The speed for the smallest measured set and block that are at least as large, or else for
    /// the largest ones.
    pub fn bytes_per_second(&self, set: u64, block: f64) -> f64 {
        fn at_least<T>(all: &[(usize, T)], size: f64) -> &T {
            let found = all.iter().find(|(measured, _)| *measured as f64 >= size);
            &found.or(all.last()).expect("sizes have been measured").1
        }
        let of_set: &Vec<(usize, f64)> = at_least(&self.speeds, set as f64);
        *at_least(of_set, block)
    }
}

/// Prints the processor's caches, as the kernel lists them.
pub fn print_caches() {
    let read = |index: usize, file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}");
        fs::read_to_string(path).map(|text| text.trim().to_owned())
    };
    println!("| cache | kind | size |\n| --- | --- | --: |");
    for index in 0..8 {
        if let (Ok(level), Ok(kind), Ok(size)) = (
            read(index, "level"),
            read(index, "type"),
            read(index, "size"),
        ) {
            println!("| L{level} | {kind} | {size} |");
        }
    }
}

/// Measures all sets and prints a table.
pub fn measure() -> Blocks {
    let blocks: Vec<String> = BLOCKS
        .iter()
        .map(|block| format!("blocks of {block} B by L1, by L2, GB/s"))
        .collect();
    println!(
        "\n| set | stream, GB/s | chase, ns | {} |",
        blocks.join(" | ")
    );
    println!("| --- | --: | --: |{}", " --: |".repeat(BLOCKS.len()));
    let mut speeds = Vec::new();
    for (name, bytes) in SETS {
        eprintln!("measuring this machine with {name}");
        let mut set = vec![0u64; bytes / size_of::<u64>()];
        ask_for_huge_pages(&set);
        link(&mut set);
        let stream = stream(&set);
        let chase = chase(&set);
        let mut cells = Vec::new();
        let mut of_blocks = Vec::new();
        for block in BLOCKS {
            let near = scattered::<true>(&set, block);
            let far = scattered::<false>(&set, block);
            cells.push(format!("{:.1}, {:.1}", near / 1e9, far / 1e9));
            of_blocks.push((block, near.max(far)));
        }
        println!(
            "| {name} | {:.1} | {:.1} | {} |",
            stream / 1e9,
            chase * 1e9,
            cells.join(" | ")
        );
        speeds.push((bytes, of_blocks));
    }
    Blocks { speeds }
}

/// Asks for huge pages for a set that has not been touched yet. Without them it lies in small ones.
fn ask_for_huge_pages(set: &[u64]) {
    const PAGE: usize = 4096;
    let bytes = set.as_ptr_range();
    let start = (bytes.start as usize).next_multiple_of(PAGE);
    let end = bytes.end as usize / PAGE * PAGE;
    if start < end {
        // SAFETY: the range lies within the set, and the advice changes nothing of its content.
        let _ = unsafe { madvise(start as *mut _, end - start, Advice::LinuxHugepage) };
    }
}

/// Writes into the first word of each line the number of the next line's first word. This makes one
/// ring through all lines in random order (Sattolo, 1986).
fn link(set: &mut [u64]) {
    let words = LINE / size_of::<u64>();
    let lines = set.len() / words;
    let mut random = Random::of_row(STREAM, 0);
    for line in 0..lines {
        set[line * words] = (line * words) as u64;
    }
    for line in (1..lines).rev() {
        set.swap(line * words, random.below(line) * words);
    }
}

/// The bytes a second of a stream.
fn stream(set: &[u64]) -> f64 {
    let passes = (BYTES_READ / size_of_val(set)).max(1);
    let seconds = fastest(|| {
        for _ in 0..passes {
            black_box(sum(black_box(set)));
        }
    });
    (passes * size_of_val(set)) as f64 / seconds
}

/// The seconds of a step of a chase.
fn chase(set: &[u64]) -> f64 {
    let seconds = fastest(|| {
        let mut place = 0;
        for _ in 0..STEPS {
            place = set[place] as usize;
        }
        black_box(place);
    });
    seconds / STEPS as f64
}

/// The bytes a second of blocks that are prefetched into the first-level cache (`NEAR`) or the
/// second.
fn scattered<const NEAR: bool>(set: &[u64], block: usize) -> f64 {
    let words = block / size_of::<u64>();
    let reads = BYTES_READ / block / 4;
    let mut random = Random::of_row(STREAM, block);
    let places: Vec<u32> = (0..reads + AHEAD)
        .map(|_| random.below(set.len() / words) as u32)
        .collect();
    let place = |read: usize| places[read] as usize * words;
    let seconds = fastest(|| {
        let mut total = 0;
        for read in 0..reads {
            let ahead = &set[place(read + AHEAD)..][..words];
            ahead
                .iter()
                .step_by(LINE / size_of::<u64>())
                .for_each(prefetch::<NEAR>);
            total += sum(&set[place(read)..][..words]);
        }
        black_box(total);
    });
    (reads * block) as f64 / seconds
}

/// The processor seconds of the fastest of several runs.
fn fastest(run: impl Fn()) -> f64 {
    let timed = || {
        let stopwatch = Stopwatch::of_thread();
        run();
        stopwatch.elapsed().cpu_seconds
    };
    (0..REPEATS).map(|_| timed()).fold(f64::INFINITY, f64::min)
}

/// The sum of all words, in many lanes, so that the time is that of reading.
fn sum(words: &[u64]) -> u64 {
    const LANES: usize = 8;
    let mut lanes = [0u64; LANES];
    for chunk in words.as_chunks::<LANES>().0 {
        for (lane, word) in lanes.iter_mut().zip(chunk) {
            *lane = lane.wrapping_add(*word);
        }
    }
    lanes.into_iter().fold(0, u64::wrapping_add)
}

/// Prefetches the cache line that a word is in.
fn prefetch<const NEAR: bool>(word: &u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees and faults nowhere.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        match NEAR {
            true => _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()),
            false => _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(word).cast()),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_passes_every_line() {
        let mut set = vec![0u64; 100 * LINE / 8];
        link(&mut set);
        let mut place = 0;
        for step in 1..=100 {
            place = set[place] as usize;
            assert_eq!(place == 0, step == 100, "after {step} steps");
        }
    }

    #[test]
    fn the_next_larger_size_counts_and_the_largest_beyond() {
        let of = |speed| vec![(64, speed), (128, speed + 1.0)];
        let blocks = Blocks {
            speeds: vec![(1_000, of(10.0)), (2_000, of(20.0))],
        };
        assert_eq!(blocks.bytes_per_second(900, 65.0), 11.0);
        assert_eq!(blocks.bytes_per_second(1_500, 64.0), 20.0);
        assert_eq!(blocks.bytes_per_second(9_000, 900.0), 21.0);
    }
}
