//! `bench-ann filtered`: measures searches among some of the vectors, beside searches among all.

mod admitted;

use std::path::{Path, PathBuf};

use ann::{Explanation, IdSet, Way};
use annulus_bench::data::Metric;
use anyhow::Context;
use contender::{DataSet, Stopwatch};
use serde::Serialize;

use crate::contenders::annulus::{Annulus, Settings};
use crate::data;
use crate::statistics::Spread;

use admitted::{Column, Correlation, of_columns, of_ranks};

/// The index is built, or opened from a snapshot beside the data set. Each filtered search is timed
/// between two unfiltered ones for the same query; the ratio of a round is that of their processor
/// times. The ids that a filter admits are known before: finding them is no part of the time.
#[derive(clap::Args)]
pub struct Arguments {
    /// Data set (see `bench-ann --help`)
    #[arg(long, short, default_value = "texts50k")]
    dataset: String,
    /// Per cent of the vectors that filters admit
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "90,50,41,20,13,10,5,2,1,0.1,0.01"
    )]
    selectivities: Vec<f64>,
    /// Neighbours asked for
    #[arg(long, short, default_value_t = 10)]
    k: usize,
    /// Queries, each of which is searched once with every filter
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    queries: u64,
    /// Parts that the queries are split into, for the spread of the ratios
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Threads that build the index
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// File for the results as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// The work and the time of one round of searches.
#[derive(Clone, Copy, Default)]
struct Round {
    seconds: f64,
    /// Time of the unfiltered searches beside these.
    unfiltered: f64,
}

/// The sums over all searches with one filter.
#[derive(Default)]
struct Case {
    name: String,
    percent: f64,
    rounds: Vec<Round>,
    searches: usize,
    found: usize,
    to_find: usize,
    ways: [usize; 3],
    hops: u64,
    distances: u64,
    rescored: u64,
}

/// The results of one filter, as they are printed.
#[derive(Serialize)]
struct Record<'a> {
    dataset: &'a str,
    filter: &'a str,
    percent: f64,
    k: usize,
    recall: f64,
    qps: f64,
    cost_ratio: Option<Spread>,
    ways: [usize; 3],
    hops: f64,
    distances: f64,
    rescored: f64,
}

/// Measures all filters, and prints a table.
pub fn run(arguments: &Arguments, cache: &Path) -> anyhow::Result<()> {
    let data = data::open(&arguments.dataset, cache)?;
    let index = index(&data, &cache.join(&arguments.dataset), arguments.threads)?;
    let cases = measure(arguments, &data, &index)?;
    print(arguments, &cases);
    if let Some(path) = &arguments.json {
        let records: Vec<Record<'_>> = cases
            .iter()
            .map(|case| case.record(&arguments.dataset, arguments.k))
            .collect();
        let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
        serde_json::to_writer_pretty(file, &records)?;
    }
    Ok(())
}

/// Opens the index saved in `folder`, or builds and saves it.
fn index(data: &DataSet, folder: &Path, threads: usize) -> anyhow::Result<Annulus> {
    let saved = folder.join("filtered");
    let settings = Settings::default();
    if saved.exists()
        && let Ok(index) = Annulus::open(data.description(), &settings, &saved)
    {
        return Ok(index);
    }
    eprintln!("{}: building the index", data.description().name);
    let mut index = Annulus::new(data.description(), &settings)?;
    contender::Contender::build(&mut index, data.base(), threads)?;
    std::fs::create_dir_all(&saved)?;
    index.save(&saved)?;
    Ok(index)
}

fn measure(arguments: &Arguments, data: &DataSet, index: &Annulus) -> anyhow::Result<Vec<Case>> {
    let rows = data.base().count();
    let columns = Column::all(rows);
    let mut cases = Vec::new();
    let all = data.queries();
    let queries = (arguments.queries as usize).min(all.count());
    let rounds = arguments.rounds as usize;
    for number in 0..queries {
        // Evenly spread over the kinds of queries.
        let query = all.row(number * all.count() / queries);
        let ranked = ranked(data, query);
        let mut at = 0;
        let mut search = |name: &str, percent, ids: &IdSet| {
            if at == cases.len() {
                cases.push(Case {
                    name: name.into(),
                    percent,
                    rounds: vec![Round::default(); rounds],
                    ..Case::default()
                });
            }
            let k = arguments.k;
            let truth = ranked.iter().filter(|id| ids.contains(**id)).take(k);
            let truth: Vec<u32> = truth.copied().collect();
            cases[at].search(index, (query, k), ids, &truth, number % rounds)?;
            at += 1;
            anyhow::Ok(())
        };
        for correlation in Correlation::ALL {
            for &percent in &arguments.selectivities {
                let count = (rows as f64 * percent / 100.0).round().max(1.0) as usize;
                let ids = match correlation {
                    Correlation::None => columns[0].admitted(count),
                    _ => of_ranks(&ranked, correlation, count),
                };
                search(correlation.name(), percent, &ids)?;
            }
        }
        search("two columns of 20 %", 4.0, &of_columns(&columns, rows / 5))?;
    }
    Ok(cases)
}

/// All ids, the nearest to the query first.
fn ranked(data: &DataSet, query: &[f32]) -> Vec<u32> {
    let metric = match data.description().metric {
        contender::Metric::Cosine => Metric::Cosine,
        contender::Metric::Euclidean => Metric::Euclidean,
    };
    let base = data.base();
    let mut ranked: Vec<(f64, u32)> = (0..base.count())
        .map(|row| (metric.distance(query, base.row(row)), row as u32))
        .collect();
    ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    ranked.into_iter().map(|(_, id)| id).collect()
}

impl Case {
    /// Searches once with the filter, and before and after without.
    fn search(
        &mut self,
        index: &Annulus,
        (query, k): (&[f32], usize),
        ids: &IdSet,
        truth: &[u32],
        round: usize,
    ) -> anyhow::Result<()> {
        let timed = |filter| {
            let stopwatch = Stopwatch::of_thread();
            let answer = index.explain(query, k, filter)?;
            anyhow::Ok((answer, stopwatch.elapsed().cpu_seconds))
        };
        let (_, before) = timed(None)?;
        let ((found, explanation), seconds) = timed(Some(ids))?;
        let (_, after) = timed(None)?;
        self.rounds[round].seconds += seconds;
        self.rounds[round].unfiltered += (before + after) / 2.0;
        self.count(&found, truth, &explanation);
        Ok(())
    }

    fn count(&mut self, found: &[u32], truth: &[u32], explanation: &Explanation) {
        self.searches += 1;
        self.found += found.iter().filter(|id| truth.contains(id)).count();
        self.to_find += truth.len();
        self.ways[match explanation.way {
            Way::Walk => 0,
            Way::ScanOfCodes => 1,
            Way::Scan => 2,
        }] += 1;
        self.hops += explanation.hops;
        self.distances += explanation.distances;
        self.rescored += explanation.rescored;
    }

    fn record<'a>(&'a self, dataset: &'a str, k: usize) -> Record<'a> {
        let each = |count: u64| count as f64 / self.searches as f64;
        let seconds: f64 = self.rounds.iter().map(|round| round.seconds).sum();
        let used = self.rounds.iter().filter(|round| round.seconds > 0.0);
        let ratios = used.map(|round| round.seconds / round.unfiltered);
        Record {
            dataset,
            filter: &self.name,
            percent: self.percent,
            k,
            recall: self.found as f64 / self.to_find as f64,
            qps: self.searches as f64 / seconds,
            cost_ratio: Spread::of(ratios.collect()),
            ways: self.ways,
            hops: each(self.hops),
            distances: each(self.distances),
            rescored: each(self.rescored),
        }
    }
}

fn print(arguments: &Arguments, cases: &[Case]) {
    let k = arguments.k;
    println!("\n{}, k = {k}\n", arguments.dataset);
    println!(
        "| filter | % | recall | queries/s CPU | cost, unfiltered = 1 | walks, scans of codes, of vectors | hops | distances | rescored |"
    );
    println!("| --- | --: | --: | --: | --: | --: | --: | --: | --: |");
    for case in cases {
        let record = case.record(&arguments.dataset, k);
        let ratio = record.cost_ratio.map_or("-".into(), |ratio| {
            let Spread { median, min, max } = ratio;
            format!("**{median:.2}** ({min:.2} to {max:.2})")
        });
        let [walks, codes, vectors] = record.ways;
        println!(
            "| {} | {} | {:.4} | {:.0} | {ratio} | {walks}, {codes}, {vectors} | {:.0} | {:.0} | {:.0} |",
            case.name,
            case.percent,
            record.recall,
            record.qps,
            record.hops,
            record.distances,
            record.rescored,
        );
    }
}
