//! `isolation`: measures how much searches slow down point reads and writes.
//!
//! Reads of rows by their keys, and overwrites, are due at a fixed rate, so that every request that
//! a stall delays shows it. Each kind is measured without and then during searches, in rounds. The
//! ratio of the two latencies is taken within a round.

use std::collections::HashSet;
use std::sync::Arc;

use annulus_bench::data::{DataArguments, VectorRows};
use anyhow::ensure;
use clap::Args;
use indicatif::ProgressBar;

use super::arguments::{CqlArguments, SearchEndpoint};
use super::search_setup::{SearchSetup, questions};
use crate::load::{
    self, AnsweredRequest, RepeatedRequest, RequestFailure, TrafficLength, TrafficPlan,
};
use crate::report::{Measurement, OutputArguments, ResultOutput};
use crate::servers::TableNames;
use crate::servers::cql_server::{ReadStatements, RowInserter};
use crate::servers::http_server::ServerUrl;
use crate::servers::wire::SearchEncoding;

/// The most point reads or writes that are under way at once.
const AT_ONCE: usize = 64;

/// The arguments of `isolation`.
#[derive(Args, Debug)]
pub struct IsolationArguments {
    #[command(flatten)]
    cql: CqlArguments,
    /// The index service that is searched during the reads and writes
    #[arg(
        long,
        value_name = "http[s]://HOST:PORT",
        default_value = "http://127.0.0.1:6080"
    )]
    http: ServerUrl,
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    names: TableNames,
    #[command(flatten)]
    load: super::arguments::LoadArguments,
    /// Searches under way at once
    #[arg(long, short, default_value_t = 4)]
    concurrency: usize,
    /// Point reads a second, and writes a second
    #[arg(long, value_name = "PER_SECOND", default_value_t = 200.0)]
    requests_rate: f64,
    /// Times that each kind of requests is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// The kind of requests.
#[derive(Clone, Copy, PartialEq)]
enum ReadOrWrite {
    Read,
    Write,
}

/// Measures both kinds of requests without and during searches.
pub async fn run(arguments: IsolationArguments) -> anyhow::Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    let (plan, duration) = arguments.load.timed_plan()?;
    let requests_plan = TrafficPlan {
        rate_per_s: Some(arguments.requests_rate),
        length: TrafficLength::Duration(duration),
        ..plan.clone()
    };
    let base = Arc::new(arguments.data.read_base()?);
    let questions = questions(&arguments.data, arguments.load.k, &HashSet::new())?;
    let dataset = arguments.data.name();
    let target = SearchEndpoint::Http(arguments.http.clone(), SearchEncoding::Json);
    let (names, requests) = (&arguments.names, &arguments.cql.requests);
    let searching = SearchSetup::new(&target, names, requests, &questions, dataset.clone()).await?;
    let database = arguments.cql.connect().await?;
    let (reads, writes) = (database.reads(names).await?, database.writes(names).await?);
    let workers = |kind| -> Vec<ReadWriteWorker> {
        let worker = |_| match kind {
            ReadOrWrite::Read => ReadWriteWorker::Read(RandomRowReader {
                reads: reads.clone(),
                base: Arc::clone(&base),
            }),
            ReadOrWrite::Write => ReadWriteWorker::Write(RowInserter {
                writes: writes.clone(),
                base: Arc::clone(&base),
                first: 0,
            }),
        };
        (0..AT_ONCE).map(worker).collect()
    };

    let mut output = ResultOutput::new(&arguments.output)?;
    let label = arguments.output.label.clone();
    let label = label.unwrap_or_else(|| arguments.http.to_string());
    for kind in [ReadOrWrite::Read, ReadOrWrite::Write] {
        let operation = match kind {
            ReadOrWrite::Read => "read",
            ReadOrWrite::Write => "write",
        };
        let mut ratios: [Vec<f64>; 2] = Default::default();
        for round in 0..arguments.rounds {
            let progress = output.progress(&format!("round {} {operation}", round + 1))?;
            let alone = load::run(&requests_plan, workers(kind), &progress).await?;
            let hidden = ProgressBar::hidden();
            let (beside, searched) = tokio::join!(
                load::run(&requests_plan, workers(kind), &progress),
                searching.run(&plan, arguments.concurrency, &hidden),
            );
            progress.finish_and_clear();
            let of = |measured: &load::TrafficResults, where_: &str| Measurement {
                operation: operation.to_owned(),
                target: format!("cql://{}", arguments.cql.cql),
                series: format!("{label}, {where_}"),
                dataset: dataset.clone(),
                concurrency: AT_ONCE,
                rate_asked_per_s: requests_plan.rate_per_s,
                ..Measurement::of(measured)
            };
            let alone = of(&alone, "alone");
            let beside = of(&beside?, "beside searches");
            ratios[0].push(beside.latency_ms.p50 / alone.latency_ms.p50);
            ratios[1].push(beside.latency_ms.p99 / alone.latency_ms.p99);
            output.add(alone)?;
            output.add(beside)?;
            output.add(searched?)?;
        }
        let series = format!("{operation}s of {label} beside searches, by alone");
        output.add(summary(series, &ratios))?;
    }
    output.finish()
}

/// The spread of the ratios of the medians and of the 99th percentiles.
fn summary(series: String, ratios: &[Vec<f64>; 2]) -> Measurement {
    let mut summary = Measurement {
        operation: "ratio".to_owned(),
        series,
        ..Measurement::default()
    };
    for (name, ratios) in ["P50", "P99"].into_iter().zip(ratios) {
        summary.add_spread(name, ratios);
    }
    summary
}

enum ReadWriteWorker {
    Read(RandomRowReader),
    Write(RowInserter),
}

impl RepeatedRequest for ReadWriteWorker {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        match self {
            ReadWriteWorker::Read(reader) => reader.perform(number).await,
            // The same rows are overwritten again and again.
            ReadWriteWorker::Write(inserter) => {
                let rows = inserter.base.len() as u64;
                inserter.perform(number % rows).await
            }
        }
    }
}

/// A worker that reads rows from all over the table.
struct RandomRowReader {
    reads: ReadStatements,
    base: Arc<VectorRows>,
}

impl RandomRowReader {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        // The step is prime, so it has no factor in common with most numbers of rows. Rows that are
        // neighbours in the file are read far apart in time.
        const STEP: u64 = 7_919;
        let position = (number.wrapping_mul(STEP) % self.base.len() as u64) as usize;
        let found = self.reads.row(self.base.id(position)).await?;
        match found {
            true => Ok(AnsweredRequest::now()),
            false => Err(RequestFailure("the row is not there".to_owned())),
        }
    }
}
