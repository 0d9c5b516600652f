//! What can be typed after `annulus bench`.

use std::future::Future;

use anyhow::Context;
use clap::{Args, Subcommand};

use crate::commands::ceiling::{self, CeilingArguments};
use crate::commands::compare::{self, CompareArguments};
use crate::commands::cql_compare::{self, CqlCompareArguments};
use crate::commands::data::{self, DataCommand};
use crate::commands::ingest::{self, IngestArguments};
use crate::commands::isolation::{self, IsolationArguments};
use crate::commands::mixed::{self, MixedArguments};
use crate::commands::read_rows::{self, ReadRowsArguments};
use crate::commands::report::{self, ReportArguments};
use crate::commands::restart::{self, RestartArguments};
use crate::commands::schema::{self, BuildIndexArguments, BuildTableArguments, DropArguments};
use crate::commands::search::{self, SearchCqlArguments, SearchHttpArguments, SweepArguments};
use crate::commands::serving_cost::{self, ServingCostArguments};
use crate::commands::visible_after::{self, VisibleAfterArguments};

/// The arguments of `annulus bench`.
#[derive(Args, Debug)]
pub struct BenchArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at data sets: describe files, compute true neighbours
    #[command(subcommand)]
    Data(DataCommand),
    /// Make a table and write a data set into it
    BuildTable(BuildTableArguments),
    /// Make an index on the table and wait until it serves
    BuildIndex(BuildIndexArguments),
    /// Drop the index
    DropIndex(DropArguments),
    /// Drop the table
    DropTable(DropArguments),
    /// Search by the HTTP API: rate, latencies, recall
    SearchHttp(SearchHttpArguments),
    /// Search by ANN OF: rate, latencies, recall
    SearchCql(SearchCqlArguments),
    /// Write rows into a table with an index: rate, and how soon they are found
    Ingest(IngestArguments),
    /// Search while rows are deleted and inserted
    Mixed(MixedArguments),
    /// Read and write rows alone and beside searches, with the ratios
    Isolation(IsolationArguments),
    /// Search with ever more requests at once
    Sweep(SweepArguments),
    /// Read rows by their keys, several with one statement
    ReadRows(ReadRowsArguments),
    /// Search two targets in turn, with the ratios of what they do
    Compare(CompareArguments),
    /// Make a page with charts from results that --json kept
    Report(ReportArguments),
    /// What serving a search costs beside the search itself, in processor time of the server
    ServingCost(ServingCostArguments),
    /// What this generator can send on one core at most
    Ceiling(CeilingArguments),
    /// Compare inserts and point reads of two CQL servers
    CqlCompare(CqlCompareArguments),
    /// Restart an index service from its snapshot, and build the index anew
    Restart(RestartArguments),
    /// Measure the time from an acknowledged insert to its being found by ANN OF
    VisibleAfter(VisibleAfterArguments),
}

/// Runs what was asked for.
pub fn run(arguments: BenchArguments) -> anyhow::Result<()> {
    match arguments.command {
        Command::Data(command) => data::run(command),
        Command::BuildTable(arguments) => block_on(schema::build_table(arguments)),
        Command::BuildIndex(arguments) => block_on(schema::build_index(arguments)),
        Command::DropIndex(arguments) => block_on(schema::drop_index(arguments)),
        Command::DropTable(arguments) => block_on(schema::drop_table(arguments)),
        Command::SearchHttp(arguments) => block_on(search::http(arguments)),
        Command::SearchCql(arguments) => block_on(search::cql(arguments)),
        Command::Ingest(arguments) => block_on(ingest::run(arguments)),
        Command::Mixed(arguments) => block_on(mixed::run(arguments)),
        Command::Isolation(arguments) => block_on(isolation::run(arguments)),
        Command::Sweep(arguments) => block_on(search::sweep(arguments)),
        Command::Compare(arguments) => block_on(compare::run(arguments)),
        Command::Report(arguments) => report::run(&arguments),
        Command::ServingCost(arguments) => block_on(serving_cost::run(arguments)),
        Command::Ceiling(arguments) => ceiling::run(&arguments),
        Command::ReadRows(arguments) => block_on(read_rows::run(arguments)),
        Command::CqlCompare(arguments) => block_on(cql_compare::run(arguments)),
        Command::Restart(arguments) => block_on(restart::run(arguments)),
        Command::VisibleAfter(arguments) => block_on(visible_after::run(arguments)),
    }
}

/// Runs with a thread for each core.
fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().build().context("starting threads")?;
    runtime.block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_can_be_typed() {
        BenchArguments::augment_args(clap::Command::new("bench")).debug_assert();
    }
}
