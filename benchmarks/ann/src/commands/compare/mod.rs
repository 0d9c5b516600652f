//! `bench-ann compare`: measures all contenders on several data sets.

mod builds;
mod record;
mod selection;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use contender::{DataSet, Pick, Width};

use crate::contenders::{BASELINE, Process, Rival};
use crate::data;
use crate::ratio::{self, RECALLS};
use crate::sweep::{Curve, Entrant, Plan, scopes, sweep};

use super::tables;
use builds::Builds;
use record::Record;
use selection::Selection;

/// Tables go to standard output. The same results go to a file of JSON: a list of objects, one for
/// each data set, contender, k and recall that the contender reaches.
#[derive(clap::Args)]
pub struct Arguments {
    /// The size of the run
    #[arg(value_enum, default_value_t = Size::Quick)]
    bench: Size,
    /// Measure these data sets only
    #[arg(long, short, value_delimiter = ',')]
    datasets: Vec<String>,
    /// Measure these contenders only, beside usearch-f32
    #[arg(long, short, value_delimiter = ',')]
    contenders: Vec<String>,
    /// Numbers of neighbours asked for, at most 100 each
    #[arg(short, value_delimiter = ',', default_value = "10,100", value_parser = clap::value_parser!(u64).range(1..=100))]
    k: Vec<u64>,
    /// Timed rounds [default: 3 of a quick run, 5 of a full one]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// File that the results are written to
    #[arg(long, default_value = "target/bench-ann.json")]
    json: PathBuf,
}

/// The size of a run.
#[derive(Clone, Copy, ValueEnum)]
pub enum Size {
    /// Three data sets, usearch and Annulus: within ten minutes on two cores
    Quick,
    /// Every data set and all contenders: a few hours
    Full,
}

/// Measures all data sets, prints tables, and writes the results after each data set.
pub fn run(arguments: &Arguments, cache: &Path) -> anyhow::Result<()> {
    let mut records = Vec::new();
    let rounds = arguments.rounds.unwrap_or(match arguments.bench {
        Size::Quick => 3,
        Size::Full => 5,
    });
    for mut selection in selection::of(arguments.bench, &arguments.datasets) {
        if !arguments.contenders.is_empty() {
            selection.only(&arguments.contenders);
        }
        let data = data::open(&selection.data_set, cache)?;
        records.extend(measure(
            &data,
            &selection,
            (arguments, rounds as usize),
            cache,
        )?);
        // The file is written after each data set, so that a run cut short has results.
        let text = record::to_json(&records)?;
        fs::write(&arguments.json, text).with_context(|| arguments.json.display().to_string())?;
    }
    eprintln!("{} results in {}", records.len(), arguments.json.display());
    Ok(())
}

/// Measures the contenders on one data set, and prints tables.
fn measure(
    data: &DataSet,
    selection: &Selection,
    (arguments, rounds): (&Arguments, usize),
    cache: &Path,
) -> anyhow::Result<Vec<Record>> {
    let about = data.description();
    let folder = cache.join(&about.name);
    println!(
        "\n## {}: {} x {}, {:?}\n\n{}.\n",
        about.name, about.vectors, about.dimensions, about.metric, about.remark
    );
    let mut contenders = Vec::new();
    for name in &selection.contenders {
        let rival = Rival::parse(name)?;
        if !rival.is_there() {
            eprintln!("{name} is left out: its program has not been built");
            continue;
        }
        contenders.push(Entrant {
            name: name.clone(),
            rescores: rival.rescores(),
            process: Process::start(&rival, &folder, false)?,
        });
    }
    let mut builds = Builds::measure(&about.name, &mut contenders)?;
    for name in &selection.only_built {
        builds.measure_alone(&about.name, name, &folder)?;
    }
    builds.measure_threads(&folder)?;
    builds.print(about.vectors);

    let mut records = Vec::new();
    for k in arguments.k.iter().map(|&k| k as usize) {
        // The contender's own choice is tried, and smaller numbers, which are enough if less recall
        // is asked for.
        let rescored = [None, Some(k + k / 8 + 2), Some(k)];
        let plan = Plan {
            k,
            recalls: &RECALLS,
            rounds,
            beams: &[],
            rescored: &rescored,
        };
        let curves = sweep(data, &mut contenders, &plan)?;
        for scope in scopes(data) {
            println!("\n{}, k = {k}\n", scope.name);
            tables::at_recalls(&curves, &scope, (k, rounds), &RECALLS);
            let baseline = curves.iter().find(|curve| curve.contender == BASELINE);
            let read = |curve: &Curve, recall| {
                let reading = ratio::read(curve, baseline, &scope, (k, rounds), recall)?;
                let built = builds.of(&curve.contender)?;
                Some(Record::new(about, &scope, built, k, recall, &reading))
            };
            for curve in &curves {
                records.extend(RECALLS.iter().filter_map(|&recall| read(curve, recall)));
            }
        }
    }
    if selection.calibrated {
        calibrate(data, &mut contenders)?;
    }
    Ok(records)
}

/// Prints how the recipe of a data set compares with the real set that it stands for.
fn calibrate(data: &DataSet, contenders: &mut [Entrant]) -> anyhow::Result<()> {
    const BEAM: usize = 128;
    const K: usize = 100;
    let Some(baseline) = contenders.iter_mut().find(|other| other.name == BASELINE) else {
        return Ok(());
    };
    let width = Width {
        beam: BEAM,
        rescored: None,
    };
    let searched = baseline.process.search(K, width, Pick::ALL)?;
    let found: usize = searched.iter().map(|kind| kind.found).sum();
    let recall = found as f64 / (data.description().queries() * K) as f64;
    println!(
        "\nCalibration: {BASELINE} with m 16 and ef {BEAM} finds {recall:.4} of the top {K}; 0.953 is \
         published for 50,000 OpenAI vectors of 1536 dimensions."
    );
    Ok(())
}
