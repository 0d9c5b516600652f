//! `in-memory`: measures point reads of a table in memory and of a regular one over time, without
//! and with a writer.
//!
//! The two tables have equal rows, and both are read at the same rate in the same seconds. So what
//! disturbs the machine disturbs both. A file on the server's disk may be read at the same time,
//! past the page cache: its latency is the part that a read which misses all caches can't avoid.

mod disk;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use indicatif::ProgressBar;

use self::disk::RandomFile;
use super::arguments::{CqlArguments, seconds};
use crate::load::{
    self, AnsweredRequest, RepeatedRequest, RequestFailure, TrafficLength, TrafficPlan,
    TrafficResults,
};
use crate::report::{Measurement, OutputArguments, ResultOutput};
use crate::servers::cql_server::{BlobTable, DatabaseSession};

/// The most reads of one kind under way at once.
const AT_ONCE: usize = 32;

/// Inserts under way at once while the tables are filled.
const FILLS_AT_ONCE: usize = 32;

/// The blocks of the file that is read: 256 MiB, more than a disk keeps in a memory of its own.
const DISK_BLOCKS: u64 = 65_536;

/// Rows that the writer overwrites.
const WRITTEN_ROWS: u64 = 1_000_000;

/// The time of warm-up, which does not count.
const WARM_UP: Duration = Duration::from_secs(2);

const KEYSPACE: &str = "bench";

/// The options of both tables, so that their reads differ only in the place of the rows.
const OPTIONS: &str = "compression = {}";

/// The options of the table in memory, in addition to those of both.
const IN_MEMORY: &str =
    "in_memory = 'true' AND compaction = {'class': 'InMemoryCompactionStrategy'}";

/// The arguments of `in-memory`.
#[derive(Args, Debug)]
pub struct InMemoryArguments {
    #[command(flatten)]
    cql: CqlArguments,
    /// Rows of each of the two tables
    #[arg(long, default_value_t = 200_000)]
    rows: u64,
    /// Bytes of each row, those that the writer overwrites included
    #[arg(long, default_value_t = 1_000)]
    row_bytes: usize,
    /// Point reads a second of each table, and reads of the disk
    #[arg(long, value_name = "PER_SECOND", default_value_t = 200.0)]
    rate: f64,
    /// Seconds of reads without the writer, and then with it
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    seconds: f64,
    /// Writes under way at once
    #[arg(long, default_value_t = 32)]
    writes: usize,
    /// Read 4 KiB at a time of a file in this directory, past the page cache: name one on the
    /// server's disk
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

/// The tables, and the file of the disk.
struct TableComparison {
    regular: BlobTable,
    in_memory: BlobTable,
    written: BlobTable,
    disk: Option<RandomFile>,
    rows: u64,
}

/// Measures reads of both tables, without and with the writer, and drops the tables.
pub async fn run(arguments: InMemoryArguments) -> anyhow::Result<()> {
    ensure!(arguments.rows > 0, "--rows must be at least 1");
    ensure!(arguments.writes > 0, "--writes must be at least 1");
    let plan = TrafficPlan {
        rate_per_s: Some(arguments.rate),
        length: TrafficLength::Duration(seconds("--seconds", arguments.seconds)?),
        warm_up: WARM_UP,
        keep_requests: false,
    };
    let mut output = ResultOutput::new(&arguments.output)?;
    let bench = TableComparison::prepare(&arguments, &output).await?;
    for (phase, writes) in [("alone", 0), ("beside writes", arguments.writes)] {
        let progress = output.progress(phase)?;
        let measured = bench.measure(&plan, writes, &progress).await?;
        progress.finish_and_clear();
        measured.report(&arguments, phase, &mut output)?;
    }
    let database = arguments.cql.connect().await?;
    for table in ["regular", "in_memory", "written"] {
        let drop = format!("DROP TABLE {KEYSPACE}.{table}");
        database.change(drop).await?;
    }
    output.finish()
}

impl TableComparison {
    /// Makes the tables, fills those that are read, and makes the file.
    async fn prepare(
        arguments: &InMemoryArguments,
        output: &ResultOutput,
    ) -> anyhow::Result<TableComparison> {
        let database = arguments.cql.connect().await?;
        let keyspace = format!(
            "CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = \
             {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        );
        database.change(keyspace).await?;
        let in_memory = format!("{OPTIONS} AND {IN_MEMORY}");
        let of = async |database: &DatabaseSession, table, options| {
            make(database, table, options).await?;
            database.blobs(KEYSPACE, table, arguments.row_bytes).await
        };
        let bench = TableComparison {
            regular: of(&database, "regular", OPTIONS).await?,
            in_memory: of(&database, "in_memory", &in_memory).await?,
            // On connections of its own, so that reads wait for no write on the way to the server.
            written: of(&arguments.cql.connect().await?, "written", OPTIONS).await?,
            disk: match &arguments.disk {
                Some(directory) => Some(RandomFile::make(directory, DISK_BLOCKS)?),
                None => None,
            },
            rows: arguments.rows,
        };
        for table in [&bench.in_memory, &bench.regular] {
            let progress = output.progress("filling")?;
            let workers = (0..FILLS_AT_ONCE).map(|_| BlobWriter::new(table, arguments.rows));
            let measured = load::run(&fill(arguments.rows), workers.collect(), &progress).await?;
            progress.finish_and_clear();
            if let Some((failure, _)) = measured.errors.first_key_value() {
                anyhow::bail!("filling a table: {failure}");
            }
        }
        Ok(bench)
    }

    async fn measure(
        &self,
        plan: &TrafficPlan,
        writes: usize,
        progress: &ProgressBar,
    ) -> anyhow::Result<PhaseResults> {
        let hidden = ProgressBar::hidden();
        let readers = |table: &BlobTable| {
            let reader = |_| BlobReader {
                table: table.clone(),
                rows: self.rows,
            };
            (0..AT_ONCE).map(reader).collect::<Vec<BlobReader>>()
        };
        let flood = TrafficPlan {
            rate_per_s: None,
            ..plan.clone()
        };
        let disk = async {
            Ok::<_, anyhow::Error>(match &self.disk {
                Some(disk) => Some(load::run(plan, disk.readers(AT_ONCE)?, &hidden).await?),
                None => None,
            })
        };
        let written = async {
            let writer = |_| BlobWriter::new(&self.written, WRITTEN_ROWS);
            Ok::<_, anyhow::Error>(match writes {
                0 => None,
                _ => Some(load::run(&flood, (0..writes).map(writer).collect(), &hidden).await?),
            })
        };
        let (regular, in_memory, disk, written) = tokio::join!(
            load::run(plan, readers(&self.regular), progress),
            load::run(plan, readers(&self.in_memory), &hidden),
            disk,
            written,
        );
        Ok(PhaseResults {
            regular: regular?,
            in_memory: in_memory?,
            disk: disk?,
            written: written?,
        })
    }
}

/// The plan that writes each row once.
fn fill(rows: u64) -> TrafficPlan {
    TrafficPlan {
        rate_per_s: None,
        length: TrafficLength::Requests(rows),
        warm_up: Duration::ZERO,
        keep_requests: false,
    }
}

async fn make(database: &DatabaseSession, table: &str, options: &str) -> anyhow::Result<()> {
    let drop = format!("DROP TABLE IF EXISTS {KEYSPACE}.{table}");
    database.change(drop).await?;
    let create = format!(
        "CREATE TABLE {KEYSPACE}.{table} (key blob PRIMARY KEY, \"C0\" blob) WITH {options}"
    );
    database
        .change(create)
        .await
        .context("a table in memory needs annulus serve")
}

/// The results of some seconds.
struct PhaseResults {
    regular: TrafficResults,
    in_memory: TrafficResults,
    disk: Option<TrafficResults>,
    written: Option<TrafficResults>,
}

impl PhaseResults {
    fn report(
        &self,
        arguments: &InMemoryArguments,
        phase: &str,
        output: &mut ResultOutput,
    ) -> anyhow::Result<()> {
        let of = |what: &str, operation: &str, measured: &TrafficResults| Measurement {
            operation: operation.to_owned(),
            target: format!("cql://{}", arguments.cql.cql),
            series: format!("{what}, {phase}"),
            dataset: format!("{} x {} bytes", arguments.rows, arguments.row_bytes),
            concurrency: AT_ONCE,
            rate_asked_per_s: Some(arguments.rate),
            ..Measurement::of(measured)
        };
        let regular = of("regular table", "read", &self.regular);
        let mut in_memory = of("table in memory", "read", &self.in_memory);
        let ratio = regular.latency_ms.p99 / in_memory.latency_ms.p99;
        let name = "P99 of the regular table by that of the one in memory";
        in_memory.figures.insert(name.to_owned(), ratio);
        output.add(regular)?;
        output.add(in_memory)?;
        if let Some(disk) = &self.disk {
            output.add(of("disk, 4 KiB", "read", disk))?;
        }
        if let Some(written) = &self.written {
            output.add(Measurement {
                concurrency: arguments.writes,
                rate_asked_per_s: None,
                ..of("writer", "write", written)
            })?;
        }
        Ok(())
    }
}

/// The row that the `number`th request is for. The step is prime, so that rows are met in an order
/// far from that of their keys.
fn scattered(number: u64, rows: u64) -> u64 {
    const STEP: u64 = 7_919_917;
    number.wrapping_mul(STEP) % rows
}

struct BlobReader {
    table: BlobTable,
    rows: u64,
}

impl RepeatedRequest for BlobReader {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        let found = self.table.read(scattered(number, self.rows)).await?;
        match found {
            true => Ok(AnsweredRequest::now()),
            false => Err(RequestFailure(
                "the row is not there as it was written".to_owned(),
            )),
        }
    }
}

/// Writes the rows again and again.
struct BlobWriter {
    table: BlobTable,
    rows: u64,
}

impl BlobWriter {
    fn new(table: &BlobTable, rows: u64) -> BlobWriter {
        BlobWriter {
            table: table.clone(),
            rows,
        }
    }
}

impl RepeatedRequest for BlobWriter {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        self.table.write(number % self.rows).await?;
        Ok(AnsweredRequest::now())
    }
}
