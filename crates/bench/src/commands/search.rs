//! The commands `search-http`, `search-cql` and `sweep`, which measure rate, latencies and recall
//! of a target.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

use super::arguments::{SearchEndpoint, TargetArguments, seconds_or_none};
use super::search_setup::SearchArguments;
use crate::report::{OutputArguments, ResultOutput};
use crate::servers::http_server::ServerUrl;
use crate::servers::wire::SearchEncoding;

/// The arguments of `search-http`.
#[derive(Args, Debug)]
pub struct SearchHttpArguments {
    /// The server
    #[arg(
        long,
        value_name = "http[s]://HOST:PORT",
        default_value = "http://127.0.0.1:6080"
    )]
    http: ServerUrl,
    /// The form of searches and answers
    #[arg(long, value_enum, default_value_t = SearchEncoding::Json)]
    wire: SearchEncoding,
    /// Open a connection for each search
    #[arg(long)]
    reconnect: bool,
    #[command(flatten)]
    one: OneArguments,
}

/// The arguments of `search-cql`.
#[derive(Args, Debug)]
pub struct SearchCqlArguments {
    /// The server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9042")]
    cql: String,
    #[command(flatten)]
    one: OneArguments,
}

/// The arguments of a search at one concurrency.
#[derive(Args, Debug)]
struct OneArguments {
    #[command(flatten)]
    search: SearchArguments,
    /// Requests under way at once, at most
    #[arg(long, short, default_value_t = 8)]
    concurrency: usize,
    /// Write when each request was due and when it ended, in nanoseconds of CLOCK_MONOTONIC, and
    /// whether it was answered (CSV)
    #[arg(long, value_name = "FILE")]
    requests_log: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

/// The arguments of `sweep`.
#[derive(Args, Debug)]
pub struct SweepArguments {
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    search: SearchArguments,
    /// Requests under way at once, one number for each step
    #[arg(long, short, value_delimiter = ',', default_values_t = [1, 4, 7, 10, 13, 16, 19, 22, 25])]
    concurrency: Vec<usize>,
    /// Seconds between steps
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pause: f64,
    #[command(flatten)]
    output: OutputArguments,
}

/// Measures searches by HTTP.
pub async fn http(arguments: SearchHttpArguments) -> anyhow::Result<()> {
    let target = SearchEndpoint::Http(arguments.http, arguments.wire);
    one(&target, arguments.reconnect, arguments.one).await
}

/// Measures searches by CQL.
pub async fn cql(arguments: SearchCqlArguments) -> anyhow::Result<()> {
    one(&SearchEndpoint::Cql(arguments.cql), false, arguments.one).await
}

async fn one(
    target: &SearchEndpoint,
    reconnect: bool,
    arguments: OneArguments,
) -> anyhow::Result<()> {
    let plan = arguments.search.load.plan()?;
    let mut output = ResultOutput::new(&arguments.output)?;
    let mut searching = arguments.search.searching(target, &HashSet::new()).await?;
    if reconnect {
        searching = searching.reconnecting();
    }
    if let Some(path) = &arguments.requests_log {
        searching = searching.logging(path)?;
    }
    let progress = output.progress("search")?;
    let measurement = searching
        .run(&plan, arguments.concurrency, &progress)
        .await?;
    let answered = measurement.operations;
    output.add(measurement)?;
    output.finish()?;
    ensure!(answered > 0, "nothing was answered");
    Ok(())
}

/// Measures searches at each concurrency in turn.
pub async fn sweep(arguments: SweepArguments) -> anyhow::Result<()> {
    let plan = arguments.search.load.plan()?;
    let pause = seconds_or_none("--pause", arguments.pause)?;
    let mut output = ResultOutput::new(&arguments.output)?;
    let target = arguments.target.target()?;
    let searching = arguments.search.searching(&target, &HashSet::new()).await?;
    for (step, &concurrency) in arguments.concurrency.iter().enumerate() {
        if step > 0 {
            tokio::time::sleep(pause).await;
        }
        let progress = output.progress(&format!("{concurrency} at once"))?;
        let measurement = searching.run(&plan, concurrency, &progress).await?;
        output.add(measurement)?;
    }
    output.finish()
}
