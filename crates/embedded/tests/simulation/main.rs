//! A simulation of `annulus serve`: everything in one thread, under one seed, with simulated time.
//!
//! The change log, its reader, the re-reads, the index and the snapshots are those of the product,
//! and so is the node that answers CQL. Below them lie a stand-in for the storage engine whose disk
//! forgets what was not synced ([`storage::SimulatedDisk`]), files of snapshots that fail, tear and
//! rot ([`platform::Simulation`]), and a clock that is set forward and back ([`clock`]). A seed
//! decides what is written and when, what fails, how long each piece of work takes, and when the
//! process dies. Its memory runs out, and there is some again.
//!
//! Five things hold, whatever happens:
//!
//! - *The table* is what the acknowledged writes make of it, with or without each of those that
//!   no one answered, and never with one that was refused ([`model`]).
//! - *The log* gets no row below a time up to which it has been read, and none of those rows goes,
//!   over restarts as well.
//! - *The index* holds each row of the table with a vector, and no other, once it has had the time
//!   and the memory. Until then its answers say that they may lack rows.
//! - *Searches with filters* in CQL ([`searches`]) answer each row that satisfies the filter, once
//!   and by its vector, LIMIT of them or as many as there are. They know all writes that were
//!   acknowledged before, while others are on their way.
//! - *Time* does not go back: a write without a timestamp of its own gets a later one than all that
//!   were acknowledged before.
//!
//! One seed makes one trace. A seed that fails prints its trace, and how to run it again.
//! `broken.rs` breaks one mechanism after the other, and checks that the simulation finds each.

mod beginning;
mod broken;
mod clock;
mod database;
mod model;
mod pages;
mod random;
mod searches;
mod sweeping;
mod table;
mod trace;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::thread;

use searches::Column;
use world::World;

/// Number of seeds that are run by default. `make simulate` runs more.
const SEEDS: u64 = 100;
/// Number of seeds in which searches by each column find rows in each way.
const SEEDS_OF_SEARCHES: u64 = 60;
/// Number of lines of a trace that are shown of a seed that failed.
const LINES_SHOWN: usize = 200;

/// Mechanisms that are broken on purpose, to see that the simulation finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Nothing is broken.
    Nothing,
    /// The disk reports that it has synced, and has not.
    DiskLies,
    /// The mark of how far time had come is lost at each crash.
    TimeIsForgotten,
    /// The log is not followed.
    LogIsNotRead,
    /// The first reading of a row is told for ever.
    RowsAreNotReadAgain,
    /// The first reading of the values beside a row's vector is told for ever.
    ValuesAreNotReadAgain,
}

thread_local! {
    /// Panics on this thread. A panic in a task ends that task alone.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Notes panics, each on its thread.
fn note_panics() {
    static NOTED: Once = Once::new();
    NOTED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()));
            before(panic);
        }));
    });
}

/// The number of rows that searches with filters have found, by the column and by whether the index
/// may have answered alone.
pub type RowsFound = BTreeMap<(Column, bool), usize>;

/// The outcome of a seed.
pub struct Run {
    /// The things that were done, and their outcomes.
    pub trace: Vec<String>,
    /// The thing that does not hold.
    pub failure: Option<String>,
    /// The rows that searches have found.
    pub found: RowsFound,
}

impl Run {
    /// The hash of the trace, by FNV-1a.
    pub fn hash(&self) -> u64 {
        let bytes = self
            .trace
            .iter()
            .flat_map(|line| line.bytes().chain([b'\n']));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// Runs a seed.
pub fn run(seed: u64, broken: Broken) -> Run {
    note_panics();
    PANICS.take();
    let mut world = World::new(seed, broken);
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    let panics = PANICS.take();
    let failure = match ended {
        Ok(Err(failure)) => Some(failure),
        _ => panics.first().cloned(),
    };
    let (trace, found) = world.into_results();
    Run {
        trace,
        failure,
        found,
    }
}

/// Shows the log of the service if `RUST_LOG` asks for it: it is worth its lines for one seed
/// alone.
fn show_log() {
    if std::env::var_os("RUST_LOG").is_some() {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
    }
}

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else {
        return default;
    };
    text.parse()
        .unwrap_or_else(|_| panic!("{name} is to be a number, and is {text:?}"))
}

/// Runs seeds on as many threads as there are cores. Returns those that fail, and what the searches
/// of all have found.
fn run_all(first: u64, seeds: u64) -> (Vec<(u64, Run)>, RowsFound) {
    let next = AtomicU64::new(first);
    let (failed, found) = (Mutex::new(Vec::new()), Mutex::new(RowsFound::new()));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        return;
                    }
                    let run = run(seed, Broken::Nothing);
                    for (kind, rows) in &run.found {
                        *found.lock().unwrap().entry(*kind).or_insert(0) += rows;
                    }
                    if run.failure.is_some() {
                        failed.lock().unwrap().push((seed, run));
                    }
                }
            });
        }
    });
    (failed.into_inner().unwrap(), found.into_inner().unwrap())
}

#[test]
fn table_log_and_index_agree_whatever_happens() {
    show_log();
    let (first, seeds) = (setting("FIRST_SEED", 1), setting("SEEDS", SEEDS));
    let (failed, found) = run_all(first, seeds);
    if let Some((seed, run)) = failed.first() {
        let shown = run.trace.len().saturating_sub(LINES_SHOWN);
        for line in &run.trace[shown..] {
            println!("{line}");
        }
        let numbers: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
        panic!(
            "{} of {seeds} seeds failed: {numbers:?}. The trace above is that of seed {seed}, which ended with: {}\n\
             Run it again with: make simulate FIRST_SEED={seed} SEEDS=1",
            failed.len(),
            run.failure.as_deref().unwrap_or_default()
        );
    }
    // Otherwise searches would have been tested in some of their ways only.
    if seeds >= SEEDS_OF_SEARCHES {
        let few: Vec<_> = found.iter().filter(|(_, rows)| **rows < 50).collect();
        assert!(found.len() == 10 && few.is_empty(), "{found:?}");
    }
}

#[test]
fn one_seed_makes_one_trace() {
    for seed in 1..=8 {
        let (first, second) = (run(seed, Broken::Nothing), run(seed, Broken::Nothing));
        let differs = first
            .trace
            .iter()
            .zip(&second.trace)
            .find(|(first, second)| first != second);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.hash(), second.hash(), "seed {seed}");
        assert_ne!(first.hash(), run(seed + 100, Broken::Nothing).hash());
    }
}
