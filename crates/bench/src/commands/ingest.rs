//! `ingest`: writes rows into a table that has an index, and measures how soon they are found.
//!
//! While the rows are written, some of them are searched for from their acknowledgement until they
//! are found. Such a probe searches every two milliseconds, which is its resolution. Few probes run
//! at once, so that they hardly load the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use annulus_bench::data::{DataArguments, VectorRows};
use anyhow::ensure;
use clap::Args;
use hdrhistogram::Histogram;
use tokio::sync::{Semaphore, mpsc};

use super::arguments::{CqlArguments, seconds};
use crate::load::{
    self, AnsweredRequest, RepeatedRequest, RequestFailure, TrafficLength, TrafficPlan,
};
use crate::report::{Measurement, OutputArguments, ResultOutput};
use crate::servers::TableNames;
use crate::servers::cql_server::{RowInserter, SearchStatement};

/// The number of probes that run at once.
const PROBES_AT_ONCE: usize = 2;
/// The pause between two searches of a probe.
const PROBE_PAUSE: Duration = Duration::from_millis(2);
/// The number of rows that a probe requests. It is above 1, as a row may have equals.
const PROBE_ROWS: usize = 10;

/// The arguments of `ingest`.
#[derive(Args, Debug)]
pub struct IngestArguments {
    #[command(flatten)]
    cql: CqlArguments,
    #[command(flatten)]
    names: TableNames,
    #[command(flatten)]
    data: DataArguments,
    /// Skip the first N rows, which are in the table already
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: usize,
    /// Inserts a second [default: as fast as the server takes them]
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Inserts under way at once
    #[arg(long, short, default_value_t = 32)]
    concurrency: usize,
    /// Seconds after which a row that is not found counts as lost
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    patience: f64,
    #[command(flatten)]
    output: OutputArguments,
}

/// Writes the rows, probes some of them, and reports the rate and the delays.
pub async fn run(arguments: IngestArguments) -> anyhow::Result<()> {
    let base = Arc::new(arguments.data.read_base()?);
    ensure!(
        arguments.from < base.len(),
        "--from must be below {}, the number of rows",
        base.len()
    );
    let patience = seconds("--patience", arguments.patience)?;
    let database = arguments.cql.connect().await?;
    let writes = database.writes(&arguments.names).await?;
    let searches = database.searches(&arguments.names, PROBE_ROWS).await?;
    let mut output = ResultOutput::new(&arguments.output)?;

    let (samples, incoming) = mpsc::channel(PROBES_AT_ONCE);
    let probes = tokio::spawn(probe(
        searches.clone(),
        Arc::clone(&base),
        incoming,
        patience,
    ));
    let last = Arc::new(AtomicUsize::new(arguments.from));
    let worker = || SamplingInserter {
        inserter: RowInserter {
            writes: writes.clone(),
            base: Arc::clone(&base),
            first: arguments.from,
        },
        samples: samples.clone(),
        last: Arc::clone(&last),
    };
    let workers = (0..arguments.concurrency).map(|_| worker()).collect();
    let plan = TrafficPlan {
        rate_per_s: arguments.rate,
        length: TrafficLength::Requests((base.len() - arguments.from) as u64),
        warm_up: Duration::ZERO,
        keep_requests: false,
    };
    let progress = output.progress("insert")?;
    let measured = load::run(&plan, workers, &progress).await?;
    progress.finish_and_clear();
    drop(samples);

    let written = Instant::now();
    let last = last.load(Ordering::Relaxed);
    let all_found = wait_until_found(&searches, &base, last, patience).await;
    let caught_up = written.elapsed();
    let probed = probes.await?;

    let target = format!("cql://{}", database.address());
    output.add(measurement(
        &arguments, target, &measured, &probed, caught_up,
    ))?;
    output.finish()?;
    ensure!(
        all_found && probed.lost == 0,
        "some rows were not found within {patience:?} of their insert"
    );
    Ok(())
}

/// The rate of the inserts, with the delays until rows were found as its figures.
fn measurement(
    arguments: &IngestArguments,
    target: String,
    measured: &load::TrafficResults,
    probed: &ProbeResults,
    caught_up: Duration,
) -> Measurement {
    let mut measurement = Measurement {
        operation: "ingest".to_owned(),
        series: target.clone(),
        target,
        dataset: arguments.data.name(),
        concurrency: arguments.concurrency,
        rate_asked_per_s: arguments.rate,
        ..Measurement::of(measured)
    };
    let figures = &mut measurement.figures;
    let at = |share| probed.delays_ns.value_at_quantile(share) as f64 / 1e6;
    figures.insert("rows probed".to_owned(), probed.delays_ns.len() as f64);
    for (name, share) in [("P50", 0.5), ("P90", 0.9), ("P99", 0.99), ("max", 1.0)] {
        figures.insert(format!("searchable after, {name} ms"), at(share));
    }
    figures.insert("rows not found in time".to_owned(), probed.lost as f64);
    let name = "last row searchable after the last insert, ms";
    figures.insert(name.to_owned(), caught_up.as_secs_f64() * 1e3);
    measurement
}

/// A worker that inserts rows, and hands a row to a probe whenever one is free.
struct SamplingInserter {
    inserter: RowInserter,
    samples: mpsc::Sender<(usize, Instant)>,
    /// The highest position of a row that was inserted, over all workers.
    last: Arc<AtomicUsize>,
}

impl RepeatedRequest for SamplingInserter {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        let done = self.inserter.perform(number).await?;
        let position = self.inserter.first + number as usize;
        self.last.fetch_max(position, Ordering::Relaxed);
        // A full channel means that all probes are busy.
        let _ = self.samples.try_send((position, done.answered));
        Ok(done)
    }
}

/// The results of the probes.
struct ProbeResults {
    delays_ns: Histogram<u64>,
    lost: u64,
}

/// Searches for each row that arrives, until the channel is closed.
async fn probe(
    searches: SearchStatement,
    base: Arc<VectorRows>,
    mut incoming: mpsc::Receiver<(usize, Instant)>,
    patience: Duration,
) -> ProbeResults {
    let free = Arc::new(Semaphore::new(PROBES_AT_ONCE));
    let mut running = tokio::task::JoinSet::new();
    loop {
        let permit = Arc::clone(&free).acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        let Some((position, acknowledged)) = incoming.recv().await else {
            break;
        };
        let (searches, base) = (searches.clone(), Arc::clone(&base));
        // A row that waited in the channel may have been searchable before its probe began. Its
        // delay would seem too long, so it is skipped.
        if acknowledged.elapsed() > PROBE_PAUSE {
            continue;
        }
        running.spawn(async move {
            let found = wait_until_found(&searches, &base, position, patience).await;
            drop(permit);
            found.then(|| acknowledged.elapsed())
        });
    }
    let mut probed = ProbeResults {
        delays_ns: load::latencies(),
        lost: 0,
    };
    while let Some(delay) = running.join_next().await {
        match delay {
            Ok(Some(delay)) => probed.delays_ns.saturating_record(delay.as_nanos() as u64),
            _ => probed.lost += 1,
        }
    }
    probed
}

/// Searches for a row until it is found or `patience` has passed. Returns whether it was found.
async fn wait_until_found(
    searches: &SearchStatement,
    base: &VectorRows,
    position: usize,
    patience: Duration,
) -> bool {
    let deadline = Instant::now() + patience;
    let (id, vector) = (base.id(position), base.row(position));
    while Instant::now() < deadline {
        // A search that fails counts as one that has not found the row.
        if let Ok((_, ids)) = searches.nearest(vector).await
            && ids.contains(&id)
        {
            return true;
        }
        tokio::time::sleep(PROBE_PAUSE).await;
    }
    false
}
