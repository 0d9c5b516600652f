//! `bench-ann recall`: recall on data of many kinds, beside hnswlib and usearch at the same
//! parameters.
//!
//! Each core takes a set and does all of it on one thread: the vectors, the true neighbours, and
//! each contender's build and searches. All times are processor time of that thread. What rivals
//! find is kept under `target/bench-recall`, so that our engine alone is measured again quickly.

mod cache;
mod contenders;
mod flat;
mod judge;
mod lines;
mod measure;
mod page;
mod record;
mod truth;
mod verdict;

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::Context;
use vector_sets::{ExistingVectors, VectorSet, catalogue, find};

use crate::data::{mnist, texts};

use measure::{Job, Measured};

/// Seed of the sets, but for those that are drawn anew.
const SEED: u64 = 1;
/// Beams of searches on every set.
const EFS: [usize; 3] = [64, 128, 200];
/// Links of a vector on every set.
const M: usize = 16;
/// Links that are tried on [`WITH_OTHER_M`] too, with a beam of [`EF_OF_OTHER_M`].
const OTHER_M: [usize; 2] = [8, 32];
const EF_OF_OTHER_M: usize = 128;
/// Neighbours wanted.
const KS: [usize; 2] = [10, 100];
/// Queries of a set.
const QUERIES: usize = 1_000;

/// The sets that are measured with other numbers of links too.
const WITH_OTHER_M: [&str; 6] = [
    "texts",
    "texts-lengths-0.5",
    "random-lengths-0.2",
    "copies-1000x30",
    "clusters-200x150",
    "gaussian-64",
];

/// The sets that are drawn a second time at each whole run, with new random numbers.
const DRAWN_ANEW: [&str; 6] = [
    "random-lengths-0.2",
    "copies-1000x30",
    "clusters-200x150-in-order",
    "walk-windows",
    "faces",
    "gaussian-64-half-deleted",
];

/// A line for each set, beam and number of neighbours goes to standard output as soon as it is
/// measured, and a page with all of it to `target/bench-recall/report.md`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Sets to measure [default: all, and six of them again with new random numbers]
    #[arg(long = "set", short, value_delimiter = ',')]
    sets: Vec<String>,
    /// Print the names of all sets, and end
    #[arg(long)]
    list: bool,
    /// Measure Annulus alone; of the rivals, show what earlier runs have found
    #[arg(long)]
    ours_only: bool,
    /// Seed of all sets [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Most vectors of a set [default: as many as each set has]
    #[arg(long)]
    rows: Option<usize>,
    /// Links of a vector [default: 16; 8 and 32 too on six sets]
    #[arg(long, short, value_delimiter = ',')]
    m: Vec<usize>,
    /// Beams of searches [default: 64, 128 and 200; 128 where m is not 16]
    #[arg(long, value_delimiter = ',')]
    ef: Vec<usize>,
    /// Neighbours wanted: 10, 100 or both [default: both]
    #[arg(long, short, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(["10", "100"]))]
    k: Vec<String>,
    /// Sets measured at once, each on a thread [default: as many as there are cores]
    #[arg(long, short)]
    threads: Option<usize>,
    /// Folder of the page and of what is kept
    #[arg(long, default_value = "target/bench-recall")]
    folder: PathBuf,
    /// Python with hnswlib
    #[arg(long, default_value = "target/recall-venv/bin/python")]
    python: PathBuf,
    /// Write what hnswlib finds on the sets of the short form, which `make test` compares with
    #[arg(long)]
    record: bool,
}

/// Real vectors, read from the benchmark's files.
pub struct RealVectors {
    texts: (Vec<f32>, Vec<f32>),
    digits: (Vec<f32>, Vec<f32>),
}

impl RealVectors {
    fn read() -> anyhow::Result<RealVectors> {
        let (mut questions, kinds) = texts::queries()?;
        // The definitions, which are of the same kind as the vectors.
        questions.truncate(kinds[0].queries * texts::DIMENSIONS);
        let (digits, digit_queries) = mnist::pixels()?;
        Ok(RealVectors {
            texts: (texts::base()?, questions),
            digits: (digits.values, digit_queries.values),
        })
    }

    /// The vectors as recipes take them.
    pub fn real(&self) -> vector_sets::RealSamples<'_> {
        fn samples((base, queries): &(Vec<f32>, Vec<f32>)) -> Option<ExistingVectors<'_>> {
            Some(ExistingVectors { base, queries })
        }
        vector_sets::RealSamples {
            texts: samples(&self.texts),
            digits: samples(&self.digits),
        }
    }
}

/// Measures the sets. Fails if a name is not known, or a rival is not installed.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.list {
        for set in catalogue() {
            println!(
                "{:28} {:>6} x {:<4} {:?}: {}",
                set.name, set.rows, set.dimensions, set.metric, set.about
            );
        }
        return Ok(());
    }
    if arguments.record {
        return record::run(&arguments.python, &arguments.folder);
    }
    let start = Instant::now();
    let jobs = jobs(arguments)?;
    let real = RealVectors::read()?;
    let anew = jobs.iter().find(|job| job.drawn_anew);
    let seed = anew.map(|job| job.seed);
    if let Some(seed) = seed {
        println!("drawn anew with --seed {seed}: {}", DRAWN_ANEW.join(","));
    }
    lines::print_heading();
    let count = jobs.len();
    let threads = arguments.threads.map_or_else(cores, Ok)?.min(count);
    let jobs = Mutex::new(jobs.into_iter().enumerate().collect::<VecDeque<_>>());
    let measured: Mutex<Vec<(usize, Measured)>> = Mutex::new(Vec::new());
    let work = || -> anyhow::Result<()> {
        loop {
            let next = jobs.lock().expect("no worker panics with it").pop_front();
            let Some((number, job)) = next else {
                return Ok(());
            };
            let of_set = measure::measure(&job, &real, arguments)
                .with_context(|| format!("{} with seed {}", job.set.name, job.seed))?;
            let mut measured = measured.lock().expect("no worker panics with it");
            lines::print(&of_set);
            measured.push((number, of_set));
            eprintln!(
                "{} of {count} sets, {:.0} s",
                measured.len(),
                start.elapsed().as_secs_f64()
            );
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let mut measured = measured.into_inner().expect("no worker panics with it");
    measured.sort_by_key(|(number, _)| *number);
    let measured: Vec<Measured> = measured.into_iter().map(|(_, measured)| measured).collect();
    page::write(&measured, start.elapsed(), &arguments.folder)
}

fn cores() -> anyhow::Result<usize> {
    Ok(thread::available_parallelism()?.get())
}

/// The sets to measure, and how.
fn jobs(arguments: &Arguments) -> anyhow::Result<Vec<Job>> {
    let named = |name: &String| {
        find(name).with_context(|| format!("there is no set {name}: --list shows them"))
    };
    let sets: Vec<VectorSet> = match arguments.sets.as_slice() {
        [] => catalogue(),
        names => names.iter().map(named).collect::<anyhow::Result<_>>()?,
    };
    let job = |set: &VectorSet, seed: u64, drawn_anew: bool| Job {
        set: set.clone(),
        seed,
        drawn_anew,
        rows: arguments.rows.map_or(set.rows, |rows| rows.min(set.rows)),
        ms: match arguments.m.as_slice() {
            [] if WITH_OTHER_M.contains(&set.name) && !drawn_anew => {
                [&[M], OTHER_M.as_slice()].concat()
            }
            [] => vec![M],
            ms => ms.to_vec(),
        },
    };
    let seed = arguments.seed.unwrap_or(SEED);
    let mut jobs: Vec<Job> = sets.iter().map(|set| job(set, seed, false)).collect();
    if arguments.sets.is_empty() && arguments.seed.is_none() && !arguments.ours_only {
        // Six digits are enough to be new, and can be typed.
        let seed = RandomState::new().build_hasher().finish() % 1_000_000;
        let anew = sets.iter().filter(|set| DRAWN_ANEW.contains(&set.name));
        jobs.extend(anew.map(|set| job(set, seed, true)));
    }
    Ok(jobs)
}
