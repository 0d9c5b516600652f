//! `bench-ann limits`: compares the speed at which a search reads with that of the machine's
//! memory.

mod machine;

use std::path::Path;

use anyhow::Context;
use contender::{Contender, Effort, Pick, Width};

use crate::contenders::annulus::{Annulus, Settings};
use crate::data;
use crate::statistics::median;

/// First the machine is measured: sequential reads, reads that wait for each address, and reads of
/// blocks at random places, from sets of bytes that fit into one cache or the other. Then searches
/// are measured: the bytes they read, against the time in which the machine could have delivered
/// them.
#[derive(clap::Args)]
pub struct Arguments {
    /// Data sets (see `bench-ann --help`)
    #[arg(
        long,
        short,
        value_delimiter = ',',
        default_value = "texts50k,lifted1536-20k"
    )]
    datasets: Vec<String>,
    /// The contender's name: annulus, or annulus with options
    #[arg(long, short, default_value = "annulus")]
    contender: String,
    /// Neighbours asked for, at most 100
    #[arg(long, short, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100))]
    k: u64,
    /// Beams of the searches
    #[arg(long, short, value_delimiter = ',', default_value = "32,64,128")]
    beams: Vec<usize>,
    /// Timed rounds
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Measures the machine and the searches, and prints tables.
pub fn run(arguments: &Arguments, cache: &Path) -> anyhow::Result<()> {
    let settings =
        Settings::of_name(&arguments.contender).context("the contender must be annulus")?;
    machine::print_caches();
    let blocks = machine::measure();
    for name in &arguments.datasets {
        let data = data::open(name, cache)?;
        eprintln!("{name}: building an index");
        let empty = Annulus::new(data.description(), &settings)?;
        let (built, index) = contender::build(&data, Box::new(empty), 1)?;
        println!(
            "\n## {name}, k = {}: {:.1} MiB that must stay in RAM\n",
            arguments.k,
            built.anonymous_grown as f64 / f64::from(1 << 20)
        );
        println!(
            "| beam | recall | µs | distances | KiB read | GB/s | µs, read as blocks here and there | share |"
        );
        println!("| --: | --: | --: | --: | --: | --: | --: | --: |");
        for &beam in &arguments.beams {
            let width = Width {
                beam,
                rescored: None,
            };
            let k = arguments.k as usize;
            let (recall, seconds) = timed(&data, &*index, k, width, arguments.rounds)?;
            let Some(Effort {
                distances,
                bytes: Some(bytes),
                ..
            }) = effort(&data, &*index, k, width)?
            else {
                println!("| {beam} | {recall:.4} | {:.1} | | | | | |", seconds * 1e6);
                continue;
            };
            // The set is as large as the index, and a block is as large as what one distance reads.
            let floor = bytes / blocks.bytes_per_second(built.anonymous_grown, bytes / distances);
            println!(
                "| {beam} | {recall:.4} | {:.1} | {distances:.0} | {:.1} | {:.1} | {:.1} | {:.0} % |",
                seconds * 1e6,
                bytes / 1024.0,
                bytes / seconds / 1e9,
                floor * 1e6,
                floor / seconds * 100.0
            );
        }
    }
    Ok(())
}

/// The recall of all queries, and the processor seconds for a query in the median round.
fn timed(
    data: &contender::DataSet,
    index: &dyn Contender,
    k: usize,
    width: Width,
    rounds: usize,
) -> anyhow::Result<(f64, f64)> {
    let mut seconds = Vec::new();
    let mut recall = 0.0;
    for _ in 0..rounds {
        let kinds = contender::search(data, index, k, width, Pick::ALL)?;
        let queries: usize = kinds.iter().map(|kind| kind.queries).sum();
        let found: usize = kinds.iter().map(|kind| kind.found).sum();
        recall = found as f64 / (queries * k) as f64;
        let cpu: f64 = kinds.iter().map(|kind| kind.elapsed.cpu_seconds).sum();
        seconds.push(cpu / queries as f64);
    }
    Ok((recall, median(&mut seconds).unwrap_or(f64::NAN)))
}

fn effort(
    data: &contender::DataSet,
    index: &dyn Contender,
    k: usize,
    width: Width,
) -> anyhow::Result<Option<Effort>> {
    let queries = data.queries();
    let all = (0..queries.count()).map(|query| index.effort(queries.row(query), k, width));
    let all: Option<Vec<Effort>> = all.collect::<anyhow::Result<_>>()?;
    Ok(all.and_then(|all| Effort::mean(&all)))
}
