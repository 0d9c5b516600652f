//! The command line of `annulus bench`.

use std::future::Future;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::commands::ceiling::{self, CeilingArguments};
use crate::commands::compare::{self, CompareArguments};
use crate::commands::cql_compare::{self, CqlCompareArguments};
use crate::commands::data::{self, DataCommand};
use crate::commands::in_memory::{self, InMemoryArguments};
use crate::commands::ingest::{self, IngestArguments};
use crate::commands::isolation::{self, IsolationArguments};
use crate::commands::mixed::{self, MixedArguments};
use crate::commands::read_rows::{self, ReadRowsArguments};
use crate::commands::report::{self, ReportArguments};
use crate::commands::restart::{self, RestartArguments};
use crate::commands::schema_commands::{
    self, BuildIndexArguments, BuildTableArguments, DropIndexArguments, DropTableArguments,
};
use crate::commands::search::{self, SearchCqlArguments, SearchHttpArguments, SweepArguments};
use crate::commands::serving_cost::{self, ServingCostArguments};
use crate::commands::shares::{self, SharesArguments};
use crate::commands::visible_after::{self, VisibleAfterArguments};

/// Commands for a first run, shown below the list of commands.
const FIRST_RUN: &str = "\
A first run, beside a server on this machine (annulus serve):
  annulus bench data describe SET_base.parquet
  annulus bench build-table --data SET
  annulus bench build-index --http http://127.0.0.1:6080
  annulus bench search-http --data SET -k 10 -c 8
  annulus bench sweep --data SET --http http://127.0.0.1:6080 --json run.jsonl --html run.html
  annulus bench drop-table

SET is a directory (train.parquet, test.parquet, neighbors.parquet), an HDF5 file, or what the
names of three files begin with (sift for sift_base.fvecs, sift_query.fvecs and
sift_groundtruth.ivecs). Pass the same --rows and --hold-out to all commands of a run, and to
build-index the --metric that the data are made for.

A server with logins and TLS takes these as well, at every command:
  --user ROLE --password-file FILE --ca ca.pem, and --http https://HOST:6080
(--token-file FILE for an index service with tokens, --cert and --key where clients show one).

--json FILE keeps results; `report FILE...` makes one page of those of several runs. Results of one
machine say nothing of another: two servers are compared by `compare`, in the same minutes.";

const COMPARE_EXAMPLES: &str = "\
Two servers: --a mine=http://127.0.0.1:6080 --b theirs=http://127.0.0.1:7080 --data SET
Two protocols: --a cql=cql://127.0.0.1:9042 --b http=http://127.0.0.1:6080 --data SET
Two indexes: --a wide=http://127.0.0.1:6080/bench/wide_v --b usual=http://127.0.0.1:6080 --data SET";

/// Measure vector search on any server of the same HTTP API or of CQL, and make reports
#[derive(Debug, Parser)]
#[command(
    name = "annulus-bench",
    // `annulus bench` runs this program.
    bin_name = "annulus bench",
    version,
    propagate_version = true,
    after_help = FIRST_RUN
)]
pub struct ProgramArguments {
    #[command(subcommand)]
    command: MeasurementCommand,
}

#[derive(Debug, Subcommand)]
enum MeasurementCommand {
    /// Look at data sets: describe files, compute true neighbours
    #[command(subcommand)]
    Data(DataCommand),
    /// Make a table and write a data set into it
    ///
    /// The keyspace is made if it does not exist. The rate and latencies are those of the inserts.
    /// With --empty nothing is inserted or measured.
    BuildTable(BuildTableArguments),
    /// Make an index on the table and wait until it serves
    ///
    /// The measured time is from CREATE INDEX until searches are answered. Options that are not
    /// given are left to the server. An index service notices a DROP INDEX only when it next looks
    /// at the schema, and serves the old index until then. With --http the command waits for that
    /// before CREATE INDEX. Without --http, an index of the same name that was dropped a moment ago
    /// may be taken for the new one: give drop-index the --http then.
    BuildIndex(BuildIndexArguments),
    /// Drop the index
    ///
    /// With --http the command waits until the index service has forgotten the index.
    DropIndex(DropIndexArguments),
    /// Drop the table
    DropTable(DropTableArguments),
    /// Search by the HTTP API: rate, latencies, recall
    ///
    /// Closed loop, without --rate: --concurrency requests are under way at any time, so a slow
    /// server is sent fewer. Open loop, with --rate: requests are due at that rate whatever the
    /// server does. Latency counts from when a request was due, so every request that a stall
    /// delays shows it. Recall is that of the very answers that were timed.
    SearchHttp(SearchHttpArguments),
    /// Search by ANN OF: rate, latencies, recall
    ///
    /// Works like search-http, by CQL: one prepared SELECT of the key over the driver's connections
    /// (one for each shard, or one for a server without shards), at --consistency. A request that
    /// fails is not tried again.
    SearchCql(SearchCqlArguments),
    /// Write rows into a table with an index: rate, and the time until a row is found
    ///
    /// Run `build-table --empty` and `build-index` before, or skip the rows that are in the table
    /// with --from. Some of the rows are searched for every 2 ms from their acknowledgement until
    /// they are found.
    Ingest(IngestArguments),
    /// Search while rows are deleted and inserted
    ///
    /// The last --churn rows are deleted and inserted all the time, and put back at the end. A
    /// search may or may not find such a row, so recall is over the true neighbours among the other
    /// rows.
    Mixed(MixedArguments),
    /// Read and write rows without and during searches, with the ratios of latencies
    ///
    /// Reads and overwrites are due at --requests-rate. Each kind is measured by itself and then
    /// during searches, in rounds. A ratio is taken within a round.
    Isolation(IsolationArguments),
    /// Write and search at once, with the share that each side keeps of its rate without the other
    ///
    /// Rows are overwritten as fast as the server takes them, without and with --searches in
    /// flight; and as many searches run without and with --write-rate. A write counts once the
    /// index has it. Rows get the vectors of others: make the table again before a measurement of
    /// recall.
    Shares(SharesArguments),
    /// Read a table in memory and a regular one, without and with a writer: latencies over time
    ///
    /// Both tables have equal rows and are read at one rate in the same seconds. Hold the server's
    /// memory small, page cache included, so that the regular table does not fit.
    InMemory(InMemoryArguments),
    /// Search at rising concurrency
    ///
    /// The page (--html) has the curves: queries a second and P99 against concurrency, and latency
    /// against queries a second.
    Sweep(SweepArguments),
    /// Read rows by their keys, several with one statement
    ReadRows(ReadRowsArguments),
    /// Search two targets in turn, with the ratios of their rates and latencies
    ///
    /// The speed of a machine drifts, so the two targets are measured one right after the other, in
    /// rounds and in changing order. A ratio, A by B, is taken within a round, and its median is
    /// given with the least and the most. Rates are comparable at equal recall only: a warning
    /// says when recall differs.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),
    /// Make a page with charts from files that --json wrote
    Report(ReportArguments),
    /// Measure the processor time that a server takes for a search, and that of the search itself
    ServingCost(ServingCostArguments),
    /// Measure the most requests that this generator can send on one core
    Ceiling(CeilingArguments),
    /// Compare writes and reads of two CQL servers
    CqlCompare(CqlCompareArguments),
    /// Restart an index service from its snapshot, and without it
    Restart(RestartArguments),
    /// Measure the time from the acknowledgement of an insert until ANN OF finds the row
    VisibleAfter(VisibleAfterArguments),
}

/// Runs the command.
pub fn run(command_line: ProgramArguments) -> anyhow::Result<()> {
    match command_line.command {
        MeasurementCommand::Data(command) => data::run(command),
        MeasurementCommand::BuildTable(arguments) => {
            block_on(schema_commands::build_table(arguments))
        }
        MeasurementCommand::BuildIndex(arguments) => {
            block_on(schema_commands::build_index(arguments))
        }
        MeasurementCommand::DropIndex(arguments) => {
            block_on(schema_commands::drop_index(arguments))
        }
        MeasurementCommand::DropTable(arguments) => {
            block_on(schema_commands::drop_table(arguments))
        }
        MeasurementCommand::SearchHttp(arguments) => block_on(search::http(arguments)),
        MeasurementCommand::SearchCql(arguments) => block_on(search::cql(arguments)),
        MeasurementCommand::Ingest(arguments) => block_on(ingest::run(arguments)),
        MeasurementCommand::Mixed(arguments) => block_on(mixed::run(arguments)),
        MeasurementCommand::Isolation(arguments) => block_on(isolation::run(arguments)),
        MeasurementCommand::InMemory(arguments) => block_on(in_memory::run(arguments)),
        MeasurementCommand::Shares(arguments) => block_on(shares::run(arguments)),
        MeasurementCommand::Sweep(arguments) => block_on(search::sweep(arguments)),
        MeasurementCommand::Compare(arguments) => block_on(compare::run(arguments)),
        MeasurementCommand::Report(arguments) => report::run(&arguments),
        MeasurementCommand::ServingCost(arguments) => block_on(serving_cost::run(arguments)),
        MeasurementCommand::Ceiling(arguments) => ceiling::run(&arguments),
        MeasurementCommand::ReadRows(arguments) => block_on(read_rows::run(arguments)),
        MeasurementCommand::CqlCompare(arguments) => block_on(cql_compare::run(arguments)),
        MeasurementCommand::Restart(arguments) => block_on(restart::run(arguments)),
        MeasurementCommand::VisibleAfter(arguments) => block_on(visible_after::run(arguments)),
    }
}

/// Runs `work` on a runtime with a thread for each core.
fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().build().context("starting threads")?;
    runtime.block_on(work)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_can_be_typed() {
        ProgramArguments::command().debug_assert();
    }

    #[test]
    fn the_examples_of_the_help_can_be_typed() {
        const PREFIX: &str = "annulus bench ";
        let typed = |arguments: &str| {
            let words = ["annulus bench"].into_iter();
            let parsed =
                ProgramArguments::try_parse_from(words.chain(arguments.split_whitespace()));
            if let Err(error) = parsed {
                panic!("{arguments}: {error}");
            }
        };
        let first_run = FIRST_RUN.lines().map(str::trim);
        let first_run: Vec<&str> = first_run
            .filter_map(|line| line.strip_prefix(PREFIX))
            .collect();
        first_run.iter().for_each(|arguments| typed(arguments));
        let compare = COMPARE_EXAMPLES
            .lines()
            .filter_map(|line| line.split_once(": "));
        let compare: Vec<&str> = compare.map(|(_, arguments)| arguments).collect();
        compare
            .iter()
            .for_each(|arguments| typed(&format!("compare {arguments}")));
        assert_eq!((first_run.len(), compare.len()), (6, 3));
        let help = ProgramArguments::command().render_help().to_string();
        assert!(help.contains("A first run"));
        assert!(help.contains("Usage: annulus bench"));
    }
}
