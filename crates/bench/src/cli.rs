//! What can be typed after `annulus bench`.

use anyhow::Context;
use clap::{Args, Subcommand};
use tokio::runtime::Runtime;

use crate::commands::cql_compare::{self, CqlCompareArguments};
use crate::commands::data::{self, DataCommand};
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
    /// Compare inserts and point reads of two CQL servers
    CqlCompare(CqlCompareArguments),
    /// Measure the time from an acknowledged insert to its being found by ANN OF
    VisibleAfter(VisibleAfterArguments),
}

/// Runs what was asked for.
pub fn run(arguments: BenchArguments) -> anyhow::Result<()> {
    match arguments.command {
        Command::Data(command) => data::run(command),
        Command::CqlCompare(arguments) => threads()?.block_on(cql_compare::run(arguments)),
        Command::VisibleAfter(arguments) => threads()?.block_on(visible_after::run(arguments)),
    }
}

/// A thread for each core.
fn threads() -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().context("starting threads")
}
