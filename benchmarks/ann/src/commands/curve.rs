//! `bench-ann curve`: measures every beam width of the search on one data set, for tuning.

use std::path::Path;

use crate::contenders::{BASELINE, Process, Rival};
use crate::data;
use crate::ratio::RECALLS;
use crate::sweep::{Entrant, Plan, scopes, sweep};

use super::tables;

/// The baseline's index is built once and kept beside the data set.
#[derive(clap::Args)]
pub struct Arguments {
    /// Data set (see `bench-ann --help`)
    #[arg(long, short, default_value = "texts50k")]
    dataset: String,
    /// Contenders; ratios are given if usearch-f32 is among them
    #[arg(
        long,
        short,
        value_delimiter = ',',
        default_value = "annulus,usearch-f32"
    )]
    contenders: Vec<String>,
    /// Neighbours asked for, at most 100
    #[arg(long, short, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100))]
    k: u64,
    /// Beams to measure [default: wider and wider ones, until recall is 0.996]
    #[arg(long, short, value_delimiter = ',')]
    beams: Vec<usize>,
    /// Numbers of candidates to rescore, each with every beam [default: the contender's own choice]
    #[arg(long, short, value_delimiter = ',')]
    rescored: Vec<usize>,
    /// Timed rounds; with 0 only recall is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Threads that build the index
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// Measures the contenders and prints tables. Fails if the data set or a contender is not known.
pub fn run(arguments: &Arguments, cache: &Path) -> anyhow::Result<()> {
    let data = data::open(&arguments.dataset, cache)?;
    let folder = cache.join(&arguments.dataset);
    let mut contenders = Vec::new();
    for name in &arguments.contenders {
        let rival = Rival::parse(name)?;
        let mut process = Process::start(&rival, &folder, name == BASELINE)?;
        let built = process.build(arguments.threads)?;
        let each = |bytes: u64| bytes / data.description().vectors as u64;
        eprintln!(
            "{name}: built in {:.1} s CPU, {:.1} s ({}); bytes a vector: {} in RAM{}",
            built.elapsed.cpu_seconds,
            built.elapsed.wall_seconds,
            built.kernels,
            each(built.anonymous_grown),
            built.memory.map_or(String::new(), |memory| format!(
                ", {} and {} mapped as it says itself",
                each(memory.anonymous),
                each(memory.mapped)
            )),
        );
        contenders.push(Entrant {
            name: name.clone(),
            rescores: rival.rescores(),
            process,
        });
    }
    let k = arguments.k as usize;
    let rescored: Vec<Option<usize>> = match arguments.rescored.as_slice() {
        [] => vec![None],
        counts => counts.iter().copied().map(Some).collect(),
    };
    let plan = Plan {
        k,
        recalls: &[],
        rounds: arguments.rounds,
        beams: &arguments.beams,
        rescored: &rescored,
    };
    let curves = sweep(&data, &mut contenders, &plan)?;
    for scope in scopes(&data) {
        println!("\n{}, k = {k}\n", scope.name);
        tables::settings(&curves, &scope, k);
        if arguments.rounds > 0 {
            println!();
            tables::at_recalls(&curves, &scope, (k, arguments.rounds), &RECALLS);
        }
    }
    Ok(())
}
