//! `compare`: searches two targets in turn, in the same minutes, and reports the ratios of their
//! rates and latencies.
//!
//! The speed of a machine drifts. So the targets are measured in rounds and in changing order, and
//! a ratio is taken within a round.
//!
//! Two servers seldom have the same recall. So a target may have several indexes on the same
//! vectors, which search more or less widely. Each is measured, and the time at a given recall is
//! read off between them.

mod ratios;
mod side;

use std::collections::HashSet;

use anyhow::ensure;
use clap::Args;

use self::ratios::{Rounds, at_recall, recalls_apart, summary};
use self::side::LabelledTarget;
use super::search_setup::{SearchArguments, SearchSetup, questions};
use crate::report::{OutputArguments, ResultOutput};

/// The arguments of `compare`.
#[derive(Args, Debug)]
pub struct CompareArguments {
    /// One target: `NAME=http[s]://HOST:PORT`, `NAME=binary+http[s]://HOST:PORT` or
    /// `NAME=cql://HOST:PORT`, followed by /KEYSPACE/INDEX (/KEYSPACE/TABLE for CQL) if they differ
    /// from --keyspace, --index and --table
    ///
    /// With --recall a target has several indexes on the same vectors, made with ever larger
    /// --ef-search: /KEYSPACE/INDEX,INDEX,INDEX. By CQL name several tables, each with one index.
    #[arg(long, value_name = "TARGET")]
    a: LabelledTarget,
    /// The other target
    #[arg(long, value_name = "TARGET")]
    b: LabelledTarget,
    /// Compare at these recalls, each read off between the indexes of a target
    #[arg(long, value_name = "RECALL", value_delimiter = ',')]
    recall: Vec<f64>,
    #[command(flatten)]
    search: SearchArguments,
    /// Requests under way at once, at most
    #[arg(long, short, default_value_t = 8)]
    concurrency: usize,
    /// Times that each target is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// Measures both targets in turn.
pub async fn run(arguments: CompareArguments) -> anyhow::Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    ensure!(
        arguments.recall.iter().all(|&r| r > 0.0 && r <= 1.0),
        "--recall is a share of the true neighbours: above 0, at most 1"
    );
    let search = &arguments.search;
    let plan = search.load.plan()?;
    let questions = questions(&search.data, search.load.k, &HashSet::new())?;
    let mut output = ResultOutput::new(&arguments.output)?;
    let sides = [&arguments.a, &arguments.b];
    let mut searchings: [Vec<SearchSetup>; 2] = Default::default();
    for (side, searchings) in sides.iter().zip(&mut searchings) {
        let names = side.names(&search.names);
        ensure!(
            names.len() == 1 || !arguments.recall.is_empty(),
            "{} has several indexes: name the recall to compare at, as --recall 0.95",
            side.name
        );
        for names in names {
            let dataset = search.data.name();
            let requests = &search.requests;
            let searching = SearchSetup::new(&side.target, &names, requests, &questions, dataset);
            searchings.push(searching.await?);
        }
    }
    let mut found = searchings
        .each_ref()
        .map(|all| vec![Rounds::new(); all.len()]);
    for round in 0..arguments.rounds {
        // The order is A B, B A, A B, so that neither always comes first.
        for turn in [round % 2, (round + 1) % 2] {
            let name = &sides[turn].name;
            for (searching, found) in searchings[turn].iter().zip(&mut found[turn]) {
                let progress = output.progress(&format!("round {} of {name}", round + 1))?;
                let run = searching.run(&plan, arguments.concurrency, &progress);
                let mut measurement = run.await?;
                measurement.series.clone_from(name);
                found.push(measurement.clone());
                output.add(measurement)?;
            }
        }
    }
    compare(&arguments, &found, &mut output)?;
    output.finish()
}

/// Adds the ratios of both sides to the output: at each recall that was named, and of the rounds as
/// they are if each side has one index.
fn compare(
    arguments: &CompareArguments,
    [a, b]: &[Vec<Rounds>; 2],
    output: &mut ResultOutput,
) -> anyhow::Result<()> {
    let sides = [&arguments.a, &arguments.b];
    let names = format!("{} / {}", sides[0].name, sides[1].name);
    for &recall in &arguments.recall {
        match at_recall([a, b], recall) {
            Ok(mut ratios) => {
                ratios.series = format!("{names} at recall {recall}");
                output.add(ratios)?;
            }
            Err((side, best)) => say!(
                "  ! {} finds {best:.4} at most, not {recall}: give it an index that was made with a larger --ef-search",
                sides[side].name
            ),
        }
    }
    if let ([a], [b]) = (&a[..], &b[..]) {
        let mut ratios = summary(a, b);
        ratios.series = names;
        output.add(ratios)?;
        if arguments.recall.is_empty()
            && let Some((a, b)) = recalls_apart(a, b)
        {
            say!(
                "  ! recall differs ({a:.4} and {b:.4}): rates are comparable at equal recall only; give each target several \
                 indexes with different --ef-search, and use --recall"
            );
        }
    }
    Ok(())
}
