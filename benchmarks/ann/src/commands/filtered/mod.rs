//! `bench-ann filtered`: measures searches among some of the vectors, beside searches among all.

mod admitted;

use std::path::{Path, PathBuf};

use ann::{Explanation, IdSet, AccessPath};
use annulus_bench::data::SimilarityMetric;
use anyhow::Context;
use contender::{DataSet, Stopwatch};
use serde::Serialize;

use crate::contenders::annulus::{Annulus, Settings};
use crate::data;
use crate::data::parallel::fill_rows;
use crate::statistics::Spread;

use admitted::{Column, Correlation, of_columns, of_ranks};

/// The index is built, or opened from a snapshot beside the data set. Filtered searches take turns
/// with unfiltered ones; the ratio of a round is that of their processor times. The ids that a
/// filter admits are known before: finding them is no part of the time.
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
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    queries: u64,
    /// Parts that the queries are split into, for the spread of the ratios
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Threads that build the index
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Only filters that have nothing to do with the query
    #[arg(long)]
    independent: bool,
    /// File for the column that these filters are made of: its values by id, as 32-bit numbers
    #[arg(long)]
    column: Option<PathBuf>,
    /// File for the results as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// The time of one round of searches.
#[derive(Clone, Copy, Default)]
struct Round {
    seconds: f64,
    /// Time of the unfiltered searches between these.
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
    if let Some(path) = &arguments.column {
        let bytes: Vec<u8> = columns[0].values().flat_map(u32::to_le_bytes).collect();
        std::fs::write(path, bytes).with_context(|| path.display().to_string())?;
    }
    let all = data.queries();
    let queries = (arguments.queries as usize).min(all.count());
    // Evenly spread over the kinds of queries.
    let queries: Vec<&[f32]> = (0..queries)
        .map(|number| all.row(number * all.count() / queries))
        .collect();
    eprintln!("ranking all vectors for each of {} queries", queries.len());
    let mut ranked = vec![Vec::new(); queries.len()];
    fill_rows(&mut ranked, 1, |first, ranked| {
        for (query, ranked) in queries[first..].iter().zip(ranked) {
            *ranked = rank(data, query);
        }
    });
    let search = |name: &str, percent: f64, admitted: &dyn Fn(&[u32]) -> IdSet| {
        let mut case = Case {
            name: name.into(),
            percent,
            rounds: vec![Round::default(); arguments.rounds as usize],
            ..Case::default()
        };
        for (number, ranked) in ranked.iter().enumerate() {
            let ids = admitted(ranked);
            let truth = ranked.iter().filter(|id| ids.contains(**id));
            let truth: Vec<u32> = truth.take(arguments.k).copied().collect();
            // The search beside it is one for another query, and so finds no more in the caches.
            let other = queries[(number + queries.len() / 2) % queries.len()];
            let pair = [queries[number], other];
            case.search(index, pair, arguments.k, &ids, &truth, number)?;
        }
        anyhow::Ok(case)
    };
    let mut cases = vec![search("all", 100.0, &|_| columns[0].admitted(rows))?];
    for correlation in Correlation::ALL {
        if arguments.independent && correlation != Correlation::None {
            return Ok(cases);
        }
        for &percent in &arguments.selectivities {
            let count = (rows as f64 * percent / 100.0).round().max(1.0) as usize;
            let admitted = |ranked: &[u32]| match correlation {
                Correlation::None => columns[0].admitted(count),
                _ => of_ranks(ranked, correlation, count),
            };
            cases.push(search(correlation.name(), percent, &admitted)?);
        }
    }
    let admitted = |_: &[u32]| of_columns(&columns, rows / 5);
    cases.push(search("two columns of 20 %", 4.0, &admitted)?);
    Ok(cases)
}

/// All ids, the nearest to the query first.
fn rank(data: &DataSet, query: &[f32]) -> Vec<u32> {
    let metric = match data.description().metric {
        contender::Metric::Cosine => SimilarityMetric::Cosine,
        contender::Metric::Euclidean => SimilarityMetric::Euclidean,
    };
    let base = data.base();
    let mut ranked: Vec<(f64, u32)> = (0..base.count())
        .map(|row| (metric.distance(query, base.row(row)), row as u32))
        .collect();
    ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    ranked.into_iter().map(|(_, id)| id).collect()
}

impl Case {
    /// Searches for the first of two queries with the filter, and for the other one without.
    fn search(
        &mut self,
        index: &Annulus,
        [query, other]: [&[f32]; 2],
        k: usize,
        ids: &IdSet,
        truth: &[u32],
        number: usize,
    ) -> anyhow::Result<()> {
        let timed = |query, filter| {
            let stopwatch = Stopwatch::of_thread();
            let answer = index.explain(query, k, filter)?;
            anyhow::Ok((answer, stopwatch.elapsed().cpu_seconds))
        };
        let (_, unfiltered) = timed(other, None)?;
        let filter = (ids.len() < index.len()).then_some(ids);
        let ((found, explanation), seconds) = timed(query, filter)?;
        let rounds = self.rounds.len();
        let round = &mut self.rounds[number % rounds];
        round.seconds += seconds;
        round.unfiltered += unfiltered;
        self.count(&found, truth, &explanation);
        Ok(())
    }

    fn count(&mut self, found: &[u32], truth: &[u32], explanation: &Explanation) {
        self.searches += 1;
        self.found += found.iter().filter(|id| truth.contains(id)).count();
        self.to_find += truth.len();
        self.ways[match explanation.way {
            AccessPath::Walk => 0,
            AccessPath::ScanOfCodes => 1,
            AccessPath::Scan => 2,
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
