//! `mixed`: measures searches while rows are deleted and inserted again.
//!
//! The last rows of the base are written all the time. A search may or may not find one of them, so
//! recall is over the true neighbours among the other rows, which every right answer has.

use std::collections::HashSet;
use std::sync::Arc;

use annulus_bench::data::VectorRows;
use anyhow::{Context, ensure};
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use indicatif::ProgressBar;

use super::arguments::TargetArguments;
use super::search_setup::SearchArguments;
use crate::load::{
    self, AnsweredRequest, RepeatedRequest, RequestFailure, TrafficLength, TrafficPlan,
};
use crate::report::{Measurement, OutputArguments, ResultOutput};
use crate::servers::cql_server::WriteStatements;

/// The number of writes under way at once.
const WRITES_AT_ONCE: usize = 32;

/// The arguments of `mixed`.
#[derive(Args, Debug)]
pub struct MixedArguments {
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    search: SearchArguments,
    /// Searches under way at once, at most
    #[arg(long, short, default_value_t = 8)]
    concurrency: usize,
    /// The CQL server for the writes [default: that of --cql, else 127.0.0.1:9042]
    #[arg(long, value_name = "HOST:PORT")]
    write_cql: Option<String>,
    /// Deletes and inserts a second
    #[arg(long, value_name = "PER_SECOND", default_value_t = 100.0)]
    write_rate: f64,
    /// Rows that are deleted and inserted again
    #[arg(long, value_name = "N", default_value_t = 1000)]
    churn: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// Searches and writes side by side, and puts the rows back.
pub async fn run(arguments: MixedArguments) -> anyhow::Result<()> {
    let (plan, duration) = arguments.search.load.timed_plan()?;
    let base = Arc::new(arguments.search.data.read_base()?);
    ensure!(
        arguments.churn > WRITES_AT_ONCE && arguments.churn < base.len(),
        "--churn must be above {WRITES_AT_ONCE} and below {}, the number of rows",
        base.len()
    );
    let first = base.len() - arguments.churn;
    let churned: HashSet<i64> = (first..base.len()).map(|at| base.id(at)).collect();
    let target = arguments.target.target()?;
    let searching = arguments.search.searching(&target, &churned).await?;
    let write_server = arguments.target.write_server(arguments.write_cql.as_ref());
    let database = arguments.search.requests.connect(&write_server);
    let writes = database.await?.writes(&arguments.search.names).await?;
    let write_plan = TrafficPlan {
        rate_per_s: Some(arguments.write_rate),
        length: TrafficLength::Duration(duration),
        ..plan.clone()
    };
    let worker = || RowChurner {
        writes: writes.clone(),
        base: Arc::clone(&base),
        first,
    };
    let writers: Vec<RowChurner> = (0..WRITES_AT_ONCE).map(|_| worker()).collect();

    let mut output = ResultOutput::new(&arguments.output)?;
    let progress = output.progress("mixed")?;
    let hidden = ProgressBar::hidden();
    let (searched, written) = tokio::join!(
        searching.run(&plan, arguments.concurrency, &progress),
        load::run(&write_plan, writers, &hidden),
    );
    put_back(&writes, &base, first).await?;
    let mut searched = searched?;
    let series = format!(
        "{} beside {:.0} writes/s",
        searched.series, arguments.write_rate
    );
    searched.series = series.clone();
    output.add(searched)?;
    output.add(Measurement {
        operation: "write".to_owned(),
        target: target.to_string(),
        series,
        dataset: arguments.search.data.name(),
        concurrency: WRITES_AT_ONCE,
        rate_asked_per_s: write_plan.rate_per_s,
        ..Measurement::of(&written?)
    })?;
    output.finish()
}

/// Inserts all rows that may have been deleted, so that the table is as it was.
async fn put_back(writes: &WriteStatements, base: &VectorRows, first: usize) -> anyhow::Result<()> {
    stream::iter(first..base.len())
        .map(|at| writes.insert(base.id(at), base.row(at)))
        .buffer_unordered(WRITES_AT_ONCE)
        .try_collect::<()>()
        .await
        .map_err(|failure| anyhow::anyhow!(failure.0))
        .context("some of the rows that were deleted could not be put back")
}

/// A worker that deletes rows and inserts them again, pass after pass.
struct RowChurner {
    writes: WriteStatements,
    base: Arc<VectorRows>,
    /// The position in `base` of the first row that is written.
    first: usize,
}

impl RepeatedRequest for RowChurner {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        // Two writes of a row are a whole pass apart, so that they do not overtake each other.
        let rows = (self.base.len() - self.first) as u64;
        let position = self.first + (number % rows) as usize;
        let id = self.base.id(position);
        if (number / rows).is_multiple_of(2) {
            self.writes.delete(id).await?;
        } else {
            self.writes.insert(id, self.base.row(position)).await?;
        }
        Ok(AnsweredRequest::now())
    }
}
