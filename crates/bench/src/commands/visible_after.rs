//! `visible-after`: measures the time from an acknowledged write until `ANN OF` finds the row.
//!
//! Rows are inserted one after the other while background writers keep the server as busy as
//! requested. Each row has a vector that is nearest to itself, so it is visible as soon as a search
//! for that vector gives its key. The time starts when the insert is acknowledged, and ends when
//! the search that found the row is answered. Searches follow one another without a pause, so the
//! resolution is the time of one search.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use futures::{StreamExt, TryStreamExt, stream};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::MaybeUnset;

use crate::report::progress_bar;
use crate::servers::access::AccessArguments;

const KEYSPACE: &str = "visible_after";
const PRELOAD_IN_FLIGHT: usize = 64;
const HOUR_MICROS: i64 = 3_600_000_000;
const BUILD_WAIT: Duration = Duration::from_secs(600);

/// The arguments of `visible-after`.
#[derive(Args, Debug)]
pub struct VisibleAfterArguments {
    /// The CQL server
    #[arg(
        long,
        alias = "server",
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:9042"
    )]
    cql: String,
    /// Inserts that are measured
    #[arg(long, default_value_t = 500)]
    writes: usize,
    /// Rows that are in the index before
    #[arg(long, default_value_t = 10_000)]
    rows: i64,
    /// Elements of a vector
    #[arg(long, default_value_t = 384)]
    dimensions: usize,
    /// The write timestamps that the client gives
    #[arg(long, value_enum, default_value_t = TimestampChoice::Server)]
    timestamps: TimestampChoice,
    /// Updates a second in the background
    #[arg(long, default_value_t = 0)]
    background: u32,
    /// Milliseconds after which a write counts as lost
    #[arg(long, default_value_t = 30_000)]
    patience_ms: u64,
    /// Create the keyspace without tablets
    #[arg(long)]
    vnodes: bool,
    #[command(flatten)]
    access: AccessArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum TimestampChoice {
    /// None, so the server gives them
    Server,
    /// An hour ago
    Past,
    /// In an hour
    Future,
    /// All equal
    Equal,
}

impl TimestampChoice {
    fn micros(self, start_micros: i64) -> Option<i64> {
        match self {
            TimestampChoice::Server => None,
            TimestampChoice::Past => Some(start_micros - HOUR_MICROS),
            TimestampChoice::Future => Some(start_micros + HOUR_MICROS),
            TimestampChoice::Equal => Some(start_micros),
        }
    }
}

/// Measures and prints the quantiles.
pub async fn run(arguments: VisibleAfterArguments) -> anyhow::Result<()> {
    ensure!(arguments.writes > 0, "--writes must be at least 1");
    ensure!(arguments.dimensions > 0, "--dimensions must be at least 1");
    let table = Arc::new(ProbedTable::create(&arguments).await?);

    let stop = Arc::new(AtomicBool::new(false));
    let background = tokio::spawn(update(
        Arc::clone(&table),
        arguments.rows,
        arguments.background,
        Arc::clone(&stop),
    ));
    let start = Instant::now();
    let measured = measure(&table, &arguments).await;
    let seconds = start.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let updates = background.await??;

    let mut delays = measured?;
    delays.sort_unstable();
    say!(
        "{} writes beside {} rows of {} dimensions, timestamps: {:?}, {:.0} updates/s beside",
        arguments.writes,
        arguments.rows,
        arguments.dimensions,
        arguments.timestamps,
        f64::from(updates) / seconds,
    );
    say!(
        "visible after: median {}, p90 {}, p99 {}, longest {}",
        milliseconds(quantile(&delays, 0.5)),
        milliseconds(quantile(&delays, 0.9)),
        milliseconds(quantile(&delays, 0.99)),
        milliseconds(quantile(&delays, 1.0)),
    );
    let drop = format!("DROP KEYSPACE {KEYSPACE}");
    table.session.query_unpaged(drop, ()).await?;
    Ok(())
}

/// The table that is written to and searched.
struct ProbedTable {
    session: Session,
    insert: PreparedStatement,
    search: PreparedStatement,
    dimensions: usize,
}

impl ProbedTable {
    /// Makes the table with its first rows, and waits until its index answers.
    async fn create(arguments: &VisibleAfterArguments) -> anyhow::Result<ProbedTable> {
        let access = arguments.access.read()?;
        let session = access
            .session(&arguments.cql)
            .await?
            .build()
            .await
            .with_context(|| arguments.cql.clone())?;
        for statement in [
            format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"),
            format!(
                "CREATE KEYSPACE {KEYSPACE} WITH replication = \
                 {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}} AND tablets = {{'enabled': {}}}",
                !arguments.vnodes
            ),
            format!(
                "CREATE TABLE {KEYSPACE}.t (id bigint PRIMARY KEY, v vector<float, {}>)",
                arguments.dimensions
            ),
        ] {
            session.query_unpaged(statement, ()).await?;
        }
        let insert = format!("INSERT INTO {KEYSPACE}.t (id, v) VALUES (?, ?) USING TIMESTAMP ?");
        let insert = session.prepare(insert).await?;
        fill(&session, &insert, arguments).await?;
        let index = format!("CREATE CUSTOM INDEX t_v ON {KEYSPACE}.t (v) USING 'vector_index'");
        session.query_unpaged(index, ()).await?;
        let search = format!("SELECT id FROM {KEYSPACE}.t ORDER BY v ANN OF ? LIMIT 1");
        let search = session.prepare(search).await?;
        let table = ProbedTable {
            session,
            insert,
            search,
            dimensions: arguments.dimensions,
        };
        let deadline = Instant::now() + BUILD_WAIT;
        while let Err(error) = table.nearest(0).await {
            if Instant::now() > deadline {
                return Err(error.context("the index does not become ready"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(table)
    }

    async fn insert(&self, id: i64, timestamp: Option<i64>) -> anyhow::Result<()> {
        insert(&self.session, &self.insert, id, self.dimensions, timestamp).await
    }

    /// The id of the row that is nearest to the vector of a row.
    async fn nearest(&self, id: i64) -> anyhow::Result<Option<i64>> {
        let vector = vector(id, self.dimensions);
        let answer = self
            .session
            .execute_unpaged(&self.search, (vector,))
            .await?;
        let row = answer.into_rows_result()?.maybe_first_row::<(i64,)>()?;
        Ok(row.map(|(id,)| id))
    }
}

async fn insert(
    session: &Session,
    statement: &PreparedStatement,
    id: i64,
    dimensions: usize,
    timestamp: Option<i64>,
) -> anyhow::Result<()> {
    // With an unset timestamp the server takes its own.
    let timestamp = MaybeUnset::from_option(timestamp);
    let values = (id, vector(id, dimensions), timestamp);
    session.execute_unpaged(statement, values).await?;
    Ok(())
}

async fn fill(
    session: &Session,
    statement: &PreparedStatement,
    arguments: &VisibleAfterArguments,
) -> anyhow::Result<()> {
    let bar = progress_bar("rows before", arguments.rows.unsigned_abs())?;
    let filled = stream::iter(0..arguments.rows)
        .map(|id| insert(session, statement, id, arguments.dimensions, None))
        .buffer_unordered(PRELOAD_IN_FLIGHT)
        .try_for_each(|()| {
            bar.inc(1);
            async { Ok(()) }
        })
        .await;
    bar.finish_and_clear();
    filled
}

/// The vector of a row. It is random, but always the same for an id.
fn vector(id: i64, dimensions: usize) -> Vec<f32> {
    let mut numbers = StdRng::seed_from_u64(id.unsigned_abs());
    (0..dimensions)
        .map(|_| numbers.random_range(-1.0..1.0))
        .collect()
}

/// Inserts rows and measures the delay of each.
async fn measure(
    table: &ProbedTable,
    arguments: &VisibleAfterArguments,
) -> anyhow::Result<Vec<Duration>> {
    let timestamp = arguments.timestamps.micros(now_micros());
    let patience = Duration::from_millis(arguments.patience_ms);
    let mut delays = Vec::with_capacity(arguments.writes);
    let bar = progress_bar("visible after", arguments.writes as u64)?;
    for id in (arguments.rows..).take(arguments.writes) {
        table.insert(id, timestamp).await?;
        let acknowledged = Instant::now();
        while table.nearest(id).await? != Some(id) {
            if acknowledged.elapsed() > patience {
                bail!("row {id} is not found {patience:?} after its insert");
            }
        }
        delays.push(acknowledged.elapsed());
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(delays)
}

/// Overwrites rows at a steady rate until `stop` is set. Returns the number of writes.
async fn update(
    table: Arc<ProbedTable>,
    rows: i64,
    rate_per_s: u32,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<u32> {
    if rate_per_s == 0 || rows == 0 {
        return Ok(0);
    }
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate_per_s);
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        table.insert(i64::from(done) % rows, None).await?;
        done += 1;
    }
    Ok(done)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the write timestamps of a client are of its machine's clock"
)]
fn now_micros() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_micros() as i64)
}

/// The smallest of the sorted values such that at least `share` of them are at most as large.
fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}
