//! A simulation of `annulus serve`: everything in one thread, under one seed, with simulated time.
//!
//! The change log, its reader, the re-reads, the index actor and the snapshots are what they are in the product. Below them lie a
//! stand-in for the storage engine whose disk forgets what was not synced ([`storage::SimulatedDisk`]), files of snapshots
//! that fail, tear and rot ([`machine::Simulation`]), and a clock that is set forward and back ([`clock`]). A seed decides what
//! is written and when, what fails, how long each piece of work takes, and when the process dies.
//!
//! These hold, however it goes:
//!
//! - *The table* is what the writes that were acknowledged make of it, with or without each of those that nobody answered, and
//!   never with one that was refused ([`model`]).
//! - *The log*: no row comes to lie below a time up to which it has been read, and none of those goes, over restarts as well.
//! - *The index* holds each row of the table with a vector, and no other, once it has had the time.
//! - *Time*: a write without a timestamp of its own gets a later one than all that were acknowledged before.
//!
//! One seed makes one trace. A seed that fails prints it, and how to run it again. `broken.rs` breaks one mechanism after the other, and
//! says that the simulation finds each.

mod beginning;
mod broken;
mod clock;
mod database;
mod model;
mod random;
mod table;
mod world;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::thread;

use world::World;

/// How many seeds are run if nothing is said of it.
const SEEDS: u64 = 300;
/// Lines of a trace that are shown of a seed that failed.
const LINES_SHOWN: usize = 200;

/// Mechanisms that are broken on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Nothing is.
    Nothing,
    /// The disk says that it has synced, and has not.
    DiskLies,
    /// The mark of how far time had come is lost at each crash.
    TimeIsForgotten,
    /// The log is not followed.
    LogIsNotRead,
    /// What was read of a row first is told for ever.
    RowsAreNotReadAgain,
}

thread_local! {
    /// Panics on this thread: those of tasks end the task alone.
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

/// What became of a seed.
pub struct Run {
    /// What was done, and what came of it.
    pub trace: Vec<String>,
    /// What does not hold.
    pub failure: Option<String>,
}

impl Run {
    /// Of the trace, by FNV-1a.
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
    Run {
        trace: world.into_trace(),
        failure,
    }
}

/// The log of the service is worth its lines for one seed alone: `RUST_LOG` asks for it.
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

/// Runs seeds on as many threads as there are cores; those that fail.
fn run_all(first: u64, seeds: u64) -> Vec<(u64, Run)> {
    let next = AtomicU64::new(first);
    let failed = Mutex::new(Vec::new());
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
                    if run.failure.is_some() {
                        failed.lock().unwrap().push((seed, run));
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap()
}

#[test]
fn table_log_and_index_agree_whatever_happens() {
    show_log();
    let (first, seeds) = (setting("FIRST_SEED", 1), setting("SEEDS", SEEDS));
    let failed = run_all(first, seeds);
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
}

#[test]
fn one_seed_makes_one_trace() {
    for seed in 1..6 {
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
