//! `shares`: measures what searches leave of ingest, and what ingest leaves of searches.
//!
//! Rows are overwritten as fast as the server takes them, without and with so many searches in
//! flight, and searches run without and with writes at a rate. Each pair is measured in one round,
//! and its ratio is taken there. A write counts as taken in once the index has it: the time of an
//! ingest ends when nothing waits for the index any more, so that a server gains nothing by letting
//! work pile up.
//!
//! Each write gives a row the vector of another, as an equal vector would change nothing. So the
//! size of the table stays, and the rows are not those of the data set afterwards.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use annulus_bench::data::VectorRows;
use anyhow::ensure;
use clap::Args;
use indicatif::ProgressBar;
use tokio::sync::oneshot;

use super::arguments::{SearchEndpoint, TargetArguments};
use super::search_setup::{SearchArguments, SearchSetup};
use crate::load::{
    self, AnsweredRequest, RepeatedRequest, RequestFailure, TrafficLength, TrafficPlan,
};
use crate::report::{Measurement, OutputArguments, ResultOutput};
use crate::servers::TableNames;
use crate::servers::cql_server::WriteStatements;
use crate::servers::http_server::{self, ApiServer, ServerUrl};

/// The number of writes under way at once.
const WRITES_AT_ONCE: usize = 32;

/// The pause between two looks at the index.
const PAUSE: Duration = Duration::from_millis(5);

/// The longest time for which searches run during an ingest.
const INGEST_MAX: Duration = Duration::from_secs(3600);

/// The arguments of `shares`.
#[derive(Args, Debug)]
pub struct SharesArguments {
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    search: SearchArguments,
    /// The CQL server for the writes [default: that of --cql, else 127.0.0.1:9042]
    #[arg(long, value_name = "HOST:PORT")]
    write_cql: Option<String>,
    /// The index service, which says when it has taken in all writes [default: that of --http,
    /// else http://127.0.0.1:6080]
    #[arg(long, value_name = "http[s]://HOST:PORT")]
    status_http: Option<ServerUrl>,
    /// Searches in flight during the writes, a measurement for each
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "64,256"
    )]
    searches: Vec<usize>,
    /// Writes a second during searches
    #[arg(long, value_name = "PER_SECOND", default_value_t = 1000.0)]
    write_rate: f64,
    /// Times that each pair is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// Measures all pairs in turn.
pub async fn run(arguments: SharesArguments) -> anyhow::Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    ensure!(
        !arguments.searches.is_empty() && !arguments.searches.contains(&0),
        "--searches must be numbers above 0"
    );
    let (plan, duration) = arguments.search.load.timed_plan()?;
    let bench = ShareExperiment::new(&arguments, plan, duration).await?;
    let mut output = ResultOutput::new(&arguments.output)?;
    for &searches in &arguments.searches {
        let mut kept = [Vec::new(), Vec::new()];
        for round in 0..arguments.rounds {
            let progress = output.progress(&format!("round {} of {searches}", round + 1))?;
            let (alone, _) = bench.ingest(None, &progress).await?;
            let (beside, full) = bench.ingest(Some(searches), &progress).await?;
            kept[0].push(beside.rate_per_s / alone.rate_per_s);
            let [searched_alone, searched, written] = bench.search(searches, &progress).await?;
            kept[1].push(searched.rate_per_s / searched_alone.rate_per_s);
            progress.finish_and_clear();
            let measured = [alone, beside, searched_alone, searched, written];
            for measurement in measured.into_iter().chain(full) {
                output.add(measurement)?;
            }
        }
        let mut summary = Measurement {
            operation: "ratio".to_owned(),
            series: format!("{searches} searches in flight"),
            concurrency: searches,
            ..Measurement::default()
        };
        summary.add_spread("ingest kept beside searches", &kept[0]);
        let name = format!("searches kept beside {:.0} writes/s", arguments.write_rate);
        summary.add_spread(&name, &kept[1]);
        output.add(summary)?;
    }
    output.finish()
}

struct ShareExperiment {
    searching: SearchSetup,
    target: SearchEndpoint,
    dataset: String,
    plan: TrafficPlan,
    duration: Duration,
    write_rate: f64,
    writes: WriteStatements,
    base: Arc<VectorRows>,
    /// The number of the next write, over all measurements.
    next: Arc<AtomicU64>,
    names: TableNames,
    status: ApiServer,
}

impl ShareExperiment {
    async fn new(
        arguments: &SharesArguments,
        plan: TrafficPlan,
        duration: Duration,
    ) -> anyhow::Result<ShareExperiment> {
        let search = &arguments.search;
        let base = Arc::new(search.data.read_base()?);
        ensure!(base.len() > WRITES_AT_ONCE, "there are too few rows");
        let target = arguments.target.target()?;
        let write_server = arguments.target.write_server(arguments.write_cql.as_ref());
        let status_server = arguments
            .target
            .status_server(arguments.status_http.as_ref())?;
        let database = search.requests.connect(&write_server).await?;
        Ok(ShareExperiment {
            searching: search.searching(&target, &HashSet::new()).await?,
            target,
            dataset: search.data.name(),
            plan,
            duration,
            write_rate: arguments.write_rate,
            writes: database.writes(&search.names).await?,
            base,
            next: Arc::default(),
            names: search.names.clone(),
            status: search.requests.server(&status_server)?,
        })
    }

    fn writers(&self) -> Vec<VectorOverwriter> {
        let writer = |_| VectorOverwriter {
            writes: self.writes.clone(),
            base: Arc::clone(&self.base),
            next: Arc::clone(&self.next),
        };
        (0..WRITES_AT_ONCE).map(writer).collect()
    }

    /// Overwrites rows as fast as the server takes them, without or with searches. The rate is that
    /// of rows in the index. The second value is that of the searches.
    async fn ingest(
        &self,
        searches: Option<usize>,
        progress: &ProgressBar,
    ) -> anyhow::Result<(Measurement, Option<Measurement>)> {
        let plan = TrafficPlan {
            rate_per_s: None,
            length: TrafficLength::Duration(self.duration),
            ..self.plan.clone()
        };
        let ingest = async {
            let began = Instant::now() + plan.warm_up;
            let measured = load::run(&plan, self.writers(), progress).await?;
            self.wait_until_indexed().await?;
            anyhow::Ok((measured, began.elapsed()))
        };
        let (ingested, mut searched) = match searches {
            None => (ingest.await?, None),
            Some(count) => {
                let (end, mut ended) = oneshot::channel::<()>();
                let ingest = async {
                    let ingested = ingest.await;
                    drop(end);
                    ingested
                };
                let hidden = ProgressBar::hidden();
                let go_on = TrafficPlan {
                    length: TrafficLength::Duration(INGEST_MAX),
                    ..plan.clone()
                };
                // Searches go on until everything is taken in.
                let searches = async {
                    let searched = self.searching.run(&plan, count, &hidden).await?;
                    tokio::select! {
                        _ = &mut ended => Ok(Some(searched)),
                        more = self.searching.run(&go_on, count, &hidden) => {
                            more?;
                            anyhow::bail!("the ingest took longer than {INGEST_MAX:?}");
                        }
                    }
                };
                tokio::try_join!(ingest, searches)?
            }
        };
        let (measured, took) = ingested;
        if let (Some(searched), Some(count)) = (&mut searched, searches) {
            // The rows have the vectors of others, so recall would say nothing.
            searched.recall = None;
            searched.series = format!("{count} searches in flight beside an ingest");
        }
        let beside = searches.map_or("alone".to_owned(), |count| {
            format!("beside {count} searches in flight")
        });
        let mut ingested = self.measurement("ingest", format!("ingest {beside}"), &measured);
        ingested.seconds = took.as_secs_f64();
        ingested.rate_per_s = ingested.operations as f64 / ingested.seconds;
        Ok((ingested, searched))
    }

    /// Searches without, and then with writes at a rate.
    async fn search(
        &self,
        searches: usize,
        progress: &ProgressBar,
    ) -> anyhow::Result<[Measurement; 3]> {
        let mut alone = self.searching.run(&self.plan, searches, progress).await?;
        let writes = TrafficPlan {
            rate_per_s: Some(self.write_rate),
            length: TrafficLength::Duration(self.duration),
            ..self.plan.clone()
        };
        let hidden = ProgressBar::hidden();
        let (searched, written) = tokio::join!(
            self.searching.run(&self.plan, searches, &hidden),
            load::run(&writes, self.writers(), progress),
        );
        let mut searched = searched?;
        self.wait_until_indexed().await?;
        // The rows have the vectors of others, so recall would say nothing.
        (alone.recall, searched.recall) = (None, None);
        alone.series = format!("{searches} searches in flight, alone");
        let beside = format!("{:.0} writes/s", self.write_rate);
        searched.series = format!("{searches} searches in flight beside {beside}");
        let series = format!("{beside} beside {searches} searches in flight");
        let mut written = self.measurement("write", series, &written?);
        written.rate_asked_per_s = writes.rate_per_s;
        Ok([alone, searched, written])
    }

    fn measurement(
        &self,
        operation: &str,
        series: String,
        measured: &load::TrafficResults,
    ) -> Measurement {
        Measurement {
            operation: operation.to_owned(),
            target: self.target.to_string(),
            series,
            dataset: self.dataset.clone(),
            concurrency: WRITES_AT_ONCE,
            ..Measurement::of(measured)
        }
    }

    /// Waits until the index has all acknowledged writes. A service that doesn't tell its lag is
    /// believed to have them.
    async fn wait_until_indexed(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + INGEST_MAX;
        while Instant::now() < deadline {
            let status = http_server::index_status(&self.status, &self.names).await?;
            if status.changes_waiting == 0 && status.lag_seconds.unwrap_or(0.0) == 0.0 {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        anyhow::bail!("the index does not take in what was written")
    }
}

/// A worker that gives rows the vectors of others, pass after pass.
struct VectorOverwriter {
    writes: WriteStatements,
    base: Arc<VectorRows>,
    next: Arc<AtomicU64>,
}

impl RepeatedRequest for VectorOverwriter {
    async fn perform(&mut self, _: u64) -> Result<AnsweredRequest, RequestFailure> {
        let rows = self.base.len() as u64;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // In each pass a row gets another vector than in the one before.
        let (row, pass) = (number % rows, number / rows + 1);
        let vector = (row + pass) % rows;
        let id = self.base.id(row as usize);
        self.writes
            .insert(id, self.base.row(vector as usize))
            .await?;
        Ok(AnsweredRequest::now())
    }
}
