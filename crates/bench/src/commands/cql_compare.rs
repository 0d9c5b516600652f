//! `cql-compare`: measures inserts and point reads on two CQL servers in turn.
//!
//! The speed of a machine drifts, so the two servers take turns in one run, and the ratio of their
//! rates is taken within a round. The output gives the median with the least and the most.

use std::time::Instant;

use annulus_bench::spread::Spread;
use anyhow::{Context, ensure};
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::prepared::PreparedStatement;

const DIMENSIONS: usize = 384;
const TEXT_BYTES: usize = 100;

/// The arguments of `cql-compare`.
#[derive(Args, Debug)]
pub struct CqlCompareArguments {
    /// The first server: NAME=HOST:PORT
    #[arg(long)]
    a: Target,
    /// The second server: NAME=HOST:PORT
    #[arg(long)]
    b: Target,
    /// Rows inserted into each server in each round
    #[arg(long, default_value_t = 5_000)]
    rows: i32,
    /// Point reads from each server in each round
    #[arg(long, default_value_t = 5_000)]
    reads: usize,
    /// Rounds that count, after one that warms up
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests under way at once
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
}

#[derive(Clone, Debug)]
struct Target {
    name: String,
    address: String,
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let (name, address) = text.split_once('=').ok_or("write it as NAME=HOST:PORT")?;
        Ok(Target {
            name: name.to_owned(),
            address: address.to_owned(),
        })
    }
}

/// The type of the value in each row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Payload {
    Text,
    Vector,
}

struct Server {
    target: Target,
    session: Session,
}

struct Workload {
    insert: PreparedStatement,
    read: PreparedStatement,
}

/// The operations a second of one server, one value for each round.
#[derive(Default)]
struct Rates {
    insert: Vec<f64>,
    read: Vec<f64>,
}

/// Measures both servers in turn and prints a table.
pub async fn run(arguments: CqlCompareArguments) -> anyhow::Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    let servers = [connect(&arguments.a).await?, connect(&arguments.b).await?];
    println!(
        "{} rows and {} reads a round, {} in flight, {} rounds; median (minimum to maximum)\n",
        arguments.rows, arguments.reads, arguments.in_flight, arguments.rounds
    );
    println!(
        "| workload | {} /s | {} /s | ratio |\n| --- | --- | --- | --- |",
        arguments.a.name, arguments.b.name
    );
    for payload in [Payload::Text, Payload::Vector] {
        compare(&arguments, &servers, payload).await?;
    }
    Ok(())
}

async fn connect(target: &Target) -> anyhow::Result<Server> {
    let session = SessionBuilder::new()
        .known_node(&target.address)
        .build()
        .await
        .with_context(|| format!("{} at {}", target.name, target.address))?;
    let keyspace = "CREATE KEYSPACE IF NOT EXISTS compare WITH replication = \
                    {'class': 'SimpleStrategy', 'replication_factor': 1}";
    session.query_unpaged(keyspace, ()).await?;
    Ok(Server {
        target: target.clone(),
        session,
    })
}

impl Server {
    async fn prepare(&self, payload: Payload) -> anyhow::Result<Workload> {
        let (table, cql_type) = match payload {
            Payload::Text => ("texts", "text".to_owned()),
            Payload::Vector => ("vectors", format!("vector<float, {DIMENSIONS}>")),
        };
        for statement in [
            format!("DROP TABLE IF EXISTS compare.{table}"),
            format!(
                "CREATE TABLE compare.{table} (id bigint PRIMARY KEY, n int, payload {cql_type})"
            ),
        ] {
            self.session.query_unpaged(statement, ()).await?;
        }
        let prepare = async |text: String| self.session.prepare(text).await;
        Ok(Workload {
            insert: prepare(format!(
                "INSERT INTO compare.{table} (id, n, payload) VALUES (?, ?, ?)"
            ))
            .await?,
            read: prepare(format!(
                "SELECT n, payload FROM compare.{table} WHERE id = ?"
            ))
            .await?,
        })
    }
}

async fn compare(
    arguments: &CqlCompareArguments,
    servers: &[Server; 2],
    payload: Payload,
) -> anyhow::Result<()> {
    let workloads = [
        servers[0].prepare(payload).await?,
        servers[1].prepare(payload).await?,
    ];
    let mut rates = [Rates::default(), Rates::default()];
    for round in 0..=arguments.rounds {
        for which in 0..2 {
            let (server, workload) = (&servers[which], &workloads[which]);
            let insert = insert(arguments, server, workload, payload, round).await?;
            let read = read(arguments, server, workload, round).await?;
            if round > 0 {
                rates[which].insert.push(insert);
                rates[which].read.push(read);
            }
        }
    }
    let name = match payload {
        Payload::Text => format!("{TEXT_BYTES} bytes of text"),
        Payload::Vector => format!("{DIMENSIONS} floats"),
    };
    print_row(
        &format!("insert, {name}"),
        &rates[0].insert,
        &rates[1].insert,
    );
    print_row(
        &format!("point read, {name}"),
        &rates[0].read,
        &rates[1].read,
    );
    Ok(())
}

async fn insert(
    arguments: &CqlCompareArguments,
    server: &Server,
    workload: &Workload,
    payload: Payload,
    round: usize,
) -> anyhow::Result<f64> {
    let first = round as i64 * i64::from(arguments.rows);
    let mut numbers = StdRng::seed_from_u64(round as u64);
    let text: String = "x".repeat(TEXT_BYTES);
    let vector: Vec<f32> = (0..DIMENSIONS).map(|_| numbers.random()).collect();
    let start = Instant::now();
    stream::iter(0..arguments.rows)
        .map(|n| {
            let id = first + i64::from(n);
            let (text, vector) = (&text, &vector);
            async move {
                match payload {
                    Payload::Text => {
                        server
                            .session
                            .execute_unpaged(&workload.insert, (id, n, text))
                            .await
                    }
                    Payload::Vector => {
                        server
                            .session
                            .execute_unpaged(&workload.insert, (id, n, vector))
                            .await
                    }
                }
            }
        })
        .buffer_unordered(arguments.in_flight)
        .try_for_each(|_| async { Ok(()) })
        .await
        .with_context(|| format!("insert into {}", server.target.name))?;
    Ok(f64::from(arguments.rows) / start.elapsed().as_secs_f64())
}

async fn read(
    arguments: &CqlCompareArguments,
    server: &Server,
    workload: &Workload,
    round: usize,
) -> anyhow::Result<f64> {
    let last = (round as i64 + 1) * i64::from(arguments.rows);
    let mut numbers = StdRng::seed_from_u64(round as u64);
    let ids: Vec<i64> = (0..arguments.reads)
        .map(|_| numbers.random_range(0..last))
        .collect();
    let start = Instant::now();
    stream::iter(ids)
        .map(|id| async move {
            let answer = server
                .session
                .execute_unpaged(&workload.read, (id,))
                .await?;
            let rows = answer.into_rows_result()?.rows_num();
            ensure!(rows == 1, "row {id} is not in {}", server.target.name);
            Ok(())
        })
        .buffer_unordered(arguments.in_flight)
        .try_for_each(|()| async { Ok(()) })
        .await?;
    Ok(arguments.reads as f64 / start.elapsed().as_secs_f64())
}

fn print_row(name: &str, a: &[f64], b: &[f64]) {
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    println!(
        "| {name} | {} | {} | {} |",
        spread(a, 0),
        spread(b, 0),
        spread(&ratios, 2)
    );
}

/// Writes values as `median (least to most)`.
fn spread(values: &[f64], digits: usize) -> String {
    match Spread::of(values) {
        Some(Spread {
            least,
            median,
            most,
        }) => format!("{median:.digits$} ({least:.digits$} to {most:.digits$})"),
        None => "nothing measured".to_owned(),
    }
}
