//! `bench-ann churn`: measures an index after every vector has been replaced many times, and how
//! much a writer slows searches down.

mod latency;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, ensure};
use contender::{DataSet, Stopwatch};

use crate::contenders::annulus::{Annulus, Settings};
use crate::data;
use crate::data::random::Random;

const K: usize = 10;
/// The random stream for the orders in which vectors change hands.
const STREAM: u64 = 4_001;

/// In each round the vectors change hands at random: in random order each id gets another id's
/// vector, until all have another one, while searches go on. The index then has the same vectors as
/// before, so their true neighbours are known. It is compared with an index built afresh from them.
#[derive(clap::Args)]
pub struct Arguments {
    /// Data set (see `bench-ann --help`)
    #[arg(long, short, default_value = "texts50k")]
    dataset: String,
    /// The contender's name: annulus, or annulus with options
    #[arg(long, short, default_value = "annulus")]
    contender: String,
    /// Times that every vector is replaced
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Beam of the searches [default: the index's own]
    #[arg(long, short)]
    beam: Option<usize>,
    /// Windows of searches without a writer, and as many beside a writer, in turn
    #[arg(long, default_value_t = 10)]
    windows: usize,
    /// Seconds that a window lasts
    #[arg(long, default_value_t = 1.0)]
    window_seconds: f64,
}

/// Replaces all vectors in rounds, measures, and prints tables.
pub fn run(arguments: &Arguments, cache: &Path) -> anyhow::Result<()> {
    let data = data::open(&arguments.dataset, cache)?;
    let settings =
        Settings::of_name(&arguments.contender).context("the contender must be annulus")?;
    let count = data.description().vectors;
    let mut owners = Owners::new(count);
    let index = build(&data, &settings, &owners)?;
    println!(
        "| replaced | recall@{K} | bytes a vector in RAM | mapped | µs a replacement | searches meanwhile |"
    );
    println!("| --- | --: | --: | --: | --: | --: |");
    let row = |round: usize, index: &Annulus, owners: &Owners, after: &str| -> anyhow::Result<()> {
        let (recall, memory) = (recall(&data, index, owners, arguments.beam)?, index.bytes());
        let each = |bytes: u64| bytes as f64 / count as f64;
        println!(
            "| {round} x | {recall:.4} | {:.0} | {:.0} | {after} |",
            each(memory.anonymous),
            each(memory.mapped)
        );
        Ok(())
    };
    row(0, &index, &owners, "- | -")?;
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        let (seconds, searches) = replace_all(&data, &index, &mut owners, round, arguments.beam)?;
        let each = seconds * 1e6 / count as f64;
        row(round, &index, &owners, &format!("{each:.0} | {searches}"))?;
    }
    let fresh = build(&data, &settings, &owners)?;
    println!(
        "\nBuilt afresh from the same vectors:\n\n| | recall@{K} | bytes a vector in RAM | mapped |"
    );
    println!("| --- | --: | --: | --: |");
    let (churned_recall, fresh_recall) = (
        recall(&data, &index, &owners, arguments.beam)?,
        recall(&data, &fresh, &owners, arguments.beam)?,
    );
    let (churned, afresh) = (index.bytes(), fresh.bytes());
    println!(
        "| afresh | {fresh_recall:.4} | {} | {} |",
        afresh.anonymous / count as u64,
        afresh.mapped / count as u64
    );
    let ratio = |a: u64, b: u64| match b {
        0 => "-".into(),
        b => format!("{:.3} x", a as f64 / b as f64),
    };
    println!(
        "| churned | {:+.4} | {} | {} |",
        churned_recall - fresh_recall,
        ratio(churned.anonymous, afresh.anonymous),
        ratio(churned.mapped, afresh.mapped)
    );
    drop(fresh);
    latency::measure(&data, &index, &owners, arguments)
}

/// The vector that each id holds.
pub struct Owners {
    /// The row of each id's vector.
    row_of: Vec<u32>,
    /// The id that holds each row.
    id_of: Vec<u32>,
}

impl Owners {
    fn new(count: usize) -> Owners {
        let all: Vec<u32> = (0..count as u32).collect();
        Owners {
            id_of: all.clone(),
            row_of: all,
        }
    }

    /// Records that an id holds a row now. The record is whole once every row has been given.
    fn give(&mut self, id: u32, row: u32) {
        self.row_of[id as usize] = row;
        self.id_of[row as usize] = id;
    }
}

/// A random hand-over: ids in random order, each with the row that it gets.
fn hand_over(owners: &Owners, round: usize) -> Vec<(u32, u32)> {
    let mut random = Random::of_row(STREAM, round);
    let mut ids: Vec<u32> = (0..owners.row_of.len() as u32).collect();
    random.shuffle(&mut ids);
    // Each id gets the row of the next one in line, so that none keeps its own.
    let rows: Vec<u32> = ids.iter().map(|&id| owners.row_of[id as usize]).collect();
    let next = rows.into_iter().cycle().skip(1);
    let mut given: Vec<(u32, u32)> = ids.into_iter().zip(next).collect();
    random.shuffle(&mut given);
    given
}

fn build(data: &DataSet, settings: &Settings, owners: &Owners) -> anyhow::Result<Annulus> {
    eprintln!("building an index");
    let index = Annulus::new(data.description(), settings)?;
    for (id, &row) in owners.row_of.iter().enumerate() {
        index.insert(id as u32, data.base().row(row as usize))?;
    }
    Ok(index)
}

/// Replaces every vector, beside a thread that searches. Returns the seconds by the clock, and the
/// number of searches done.
fn replace_all(
    data: &DataSet,
    index: &Annulus,
    owners: &mut Owners,
    round: usize,
    beam: Option<usize>,
) -> anyhow::Result<(f64, u64)> {
    let done = AtomicBool::new(false);
    let search = || -> anyhow::Result<u64> {
        let queries = data.queries();
        let mut searches = 0;
        for query in (0..queries.count()).cycle() {
            if done.load(Ordering::Relaxed) {
                break;
            }
            let found = index.find(queries.row(query), K, beam)?;
            ensure!(found.len() == K, "an answer of {} vectors", found.len());
            searches += 1;
        }
        Ok(searches)
    };
    thread::scope(|scope| {
        let searcher = scope.spawn(search);
        let stopwatch = Stopwatch::of_thread();
        let replaced = hand_over(owners, round)
            .into_iter()
            .try_for_each(|(id, row)| {
                index.replace(id, data.base().row(row as usize))?;
                owners.give(id, row);
                anyhow::Ok(())
            });
        let seconds = stopwatch.elapsed().wall_seconds;
        done.store(true, Ordering::Relaxed);
        let searches = searcher.join().expect("a search does not panic")?;
        replaced?;
        Ok((seconds, searches))
    })
}

/// The recall of all queries.
fn recall(
    data: &DataSet,
    index: &Annulus,
    owners: &Owners,
    beam: Option<usize>,
) -> anyhow::Result<f64> {
    let queries = data.queries();
    let mut right = 0;
    for query in 0..queries.count() {
        let found = index.find(queries.row(query), K, beam)?;
        let truth = data.neighbours(query, K).iter();
        right += truth
            .filter(|&&row| found.contains(&owners.id_of[row as usize]))
            .count();
    }
    Ok(right as f64 / (queries.count() * K) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_gets_the_vector_of_another_one() {
        let mut owners = Owners::new(100);
        for round in 1..4 {
            let before = owners.row_of.clone();
            for (id, row) in hand_over(&owners, round) {
                assert_ne!(before[id as usize], row);
                owners.give(id, row);
            }
            let mut rows = owners.row_of.clone();
            rows.sort_unstable();
            assert_eq!(rows, (0..100).collect::<Vec<u32>>());
            for (row, &id) in owners.id_of.iter().enumerate() {
                assert_eq!(owners.row_of[id as usize], row as u32);
            }
        }
    }
}
