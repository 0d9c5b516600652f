//! `read-rows`: reads several rows by their keys with one statement.
//!
//! Each request reads the true neighbours of a query of the data set. So the rate is the most that
//! the server can reach for nearest-neighbour queries whose keys come from elsewhere.

use std::sync::Arc;

use annulus_bench::data::{DataArguments, SearchSet, TrueNeighbours};
use anyhow::{Context, ensure};
use clap::Args;

use super::arguments::{CqlArguments, LoadArguments};
use crate::load::{self, AnsweredRequest, RepeatedRequest, RequestFailure};
use crate::report::{Measurement, OutputArguments, ResultOutput};
use crate::servers::TableNames;
use crate::servers::cql_server::ReadStatements;

/// The arguments of `read-rows`.
#[derive(Args, Debug)]
pub struct ReadRowsArguments {
    #[command(flatten)]
    cql: CqlArguments,
    #[command(flatten)]
    names: TableNames,
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    load: LoadArguments,
    /// Requests under way at once, at most
    #[arg(long, short, default_value_t = 8)]
    concurrency: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// Reads rows by their keys and reports rate and latencies.
pub async fn run(arguments: ReadRowsArguments) -> anyhow::Result<()> {
    let plan = arguments.load.plan()?;
    let k = arguments.load.k;
    let SearchSet { neighbours, .. } = arguments.data.read_search_set(k)?;
    ensure!(!neighbours.is_empty(), "there are no queries");
    let database = arguments.cql.connect().await?;
    let reads = database.reads(&arguments.names).await;
    let reads = reads.context("`annulus bench build-table` makes the table")?;
    let mut output = ResultOutput::new(&arguments.output)?;
    let neighbours = Arc::new(neighbours);
    let worker = || NeighbourReader {
        reads: reads.clone(),
        neighbours: neighbours.clone(),
        k,
    };
    let workers = (0..arguments.concurrency).map(|_| worker()).collect();
    let progress = output.progress("read")?;
    let measured = load::run(&plan, workers, &progress).await?;
    progress.finish_and_clear();
    let target = format!("cql://{}", database.address());
    output.add(Measurement {
        operation: "read rows".to_owned(),
        series: format!("{target} {k} rows"),
        target,
        dataset: arguments.data.name(),
        k: Some(k),
        concurrency: arguments.concurrency,
        rate_asked_per_s: plan.rate_per_s,
        ..Measurement::of(&measured)
    })?;
    output.finish()
}

/// A worker that reads the true neighbours of one query after the other.
struct NeighbourReader {
    reads: ReadStatements,
    neighbours: Arc<TrueNeighbours>,
    k: usize,
}

impl RepeatedRequest for NeighbourReader {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        let query = (number % self.neighbours.len() as u64) as usize;
        let ids = &self.neighbours.of(query)[..self.k];
        let (mut done, found) = self.reads.rows(ids).await?;
        done.short = found < ids.len();
        Ok(done)
    }
}
