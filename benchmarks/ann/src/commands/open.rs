//! `bench-ann open`: compares opening an index from a snapshot with building it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use contender::{DataSet, Elapsed, Stopwatch};
use serde::{Deserialize, Serialize};

use crate::contenders::annulus::{Annulus, Settings};
use crate::data;
use crate::statistics::median;

const K: usize = 10;

/// The index is built by one thread and saved twice, the second time after one vector was replaced.
/// Then fresh processes open the snapshot, one after the other. Each answers a query and verifies
/// all full vectors.
#[derive(clap::Args)]
pub struct Arguments {
    /// Data set (see `bench-ann --help`)
    #[arg(long, short, default_value = "texts50k")]
    dataset: String,
    /// The contender's name: annulus, or annulus with options
    #[arg(long, short, default_value = "annulus")]
    contender: String,
    /// Processes that open the snapshot; the median counts
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
}

/// The arguments of a process that opens the snapshot once.
#[derive(clap::Args)]
pub struct OnceArguments {
    contender: String,
    data_set: PathBuf,
    snapshot: PathBuf,
}

/// The results of a process that opened the snapshot, which it prints as JSON.
#[derive(Serialize, Deserialize)]
struct Opened {
    open: Elapsed,
    first_query: Elapsed,
    verification: Elapsed,
    /// The ids in the answer.
    found: Vec<u32>,
}

/// Builds, saves and opens the index, and prints a table of the times.
pub fn run(arguments: &Arguments, cache: &Path) -> anyhow::Result<()> {
    let data = data::open(&arguments.dataset, cache)?;
    let settings = settings(&arguments.contender)?;
    let snapshots = cache.join(&arguments.dataset).join("snapshots");
    if snapshots.exists() {
        std::fs::remove_dir_all(&snapshots)?;
    }
    eprintln!("{}: building an index", arguments.dataset);
    let (index, build) = timed(|| build(&data, &settings))?;
    let save = |name: &str| {
        let path = snapshots.join(name);
        std::fs::create_dir_all(&path)?;
        let (saved, elapsed) = timed(|| index.save(&path))?;
        Ok::<_, anyhow::Error>((path, saved, elapsed))
    };
    let (_, _, first_save) = save("first")?;
    let count = data.description().vectors;
    index.replace(0, data.base().row(count - 1))?;
    index.replace(0, data.base().row(0))?;
    let (snapshot, saved, second_save) = save("second")?;
    let expected = index.find(data.queries().row(0), K, None)?;

    let mut runs = Vec::new();
    for _ in 0..arguments.rounds {
        let opened = in_a_process(arguments, cache, &snapshot)?;
        ensure!(opened.found == expected, "opening changed the answer");
        runs.push(opened);
    }
    let median_of = |part: fn(&Opened) -> Elapsed| {
        let of = |of: fn(Elapsed) -> f64| {
            let mut all: Vec<f64> = runs.iter().map(|run| of(part(run))).collect();
            median(&mut all).unwrap_or(f64::NAN)
        };
        Elapsed {
            cpu_seconds: of(|elapsed| elapsed.cpu_seconds),
            wall_seconds: of(|elapsed| elapsed.wall_seconds),
        }
    };
    println!("\n## {}: {count} vectors\n", arguments.dataset);
    println!("| | CPU ms | wall ms |");
    println!("| --- | --: | --: |");
    let row = |name: &str, elapsed: Elapsed| {
        let milliseconds = |seconds: f64| seconds * 1e3;
        println!(
            "| {name} | {:.2} | {:.2} |",
            milliseconds(elapsed.cpu_seconds),
            milliseconds(elapsed.wall_seconds)
        );
    };
    let both = median_of(|run| run.open + run.first_query);
    row("build, one thread", build);
    row("save", first_save);
    row("save again, one vector replaced twice", second_save);
    row("open", median_of(|run| run.open));
    row("first query", median_of(|run| run.first_query));
    row("open and first query", both);
    row("verify all vectors", median_of(|run| run.verification));
    println!(
        "\nOpening and answering is {:.0} times faster than building by processor time, {:.0} times by the \
         clock. The second save wrote {} and kept {} of the files of vectors.",
        build.cpu_seconds / both.cpu_seconds,
        build.wall_seconds / both.wall_seconds,
        saved.files_written,
        saved.files_kept
    );
    drop(index);
    Ok(std::fs::remove_dir_all(&snapshots)?)
}

/// Opens the snapshot once, in the process that [`run`] has started, and prints the times.
pub fn run_once(arguments: &OnceArguments) -> anyhow::Result<()> {
    let data = DataSet::open(&arguments.data_set)?.context("there is no data set in the folder")?;
    let settings = settings(&arguments.contender)?;
    let query = data.queries().row(0).to_vec();
    let (index, open) =
        timed(|| Annulus::open(data.description(), &settings, &arguments.snapshot))?;
    let (found, first_query) = timed(|| index.find(&query, K, None))?;
    let ((), verification) = timed(|| index.verify())?;
    let opened = Opened {
        open,
        first_query,
        verification,
        found,
    };
    println!("{}", serde_json::to_string(&opened)?);
    Ok(())
}

fn in_a_process(arguments: &Arguments, cache: &Path, snapshot: &Path) -> anyhow::Result<Opened> {
    let output = Command::new(std::env::current_exe()?)
        .arg("open-once")
        .arg(&arguments.contender)
        .arg(cache.join(&arguments.dataset))
        .arg(snapshot)
        .output()?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the process that opens: {message}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn settings(contender: &str) -> anyhow::Result<Settings> {
    Settings::of_name(contender).context("the contender must be annulus")
}

fn build(data: &DataSet, settings: &Settings) -> anyhow::Result<Annulus> {
    let index = Annulus::new(data.description(), settings)?;
    for row in 0..data.description().vectors {
        index.insert(row as u32, data.base().row(row))?;
    }
    Ok(index)
}

fn timed<R>(work: impl FnOnce() -> anyhow::Result<R>) -> anyhow::Result<(R, Elapsed)> {
    let stopwatch = Stopwatch::of_process();
    let result = work()?;
    Ok((result, stopwatch.elapsed()))
}
