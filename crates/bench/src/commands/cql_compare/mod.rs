//! `cql-compare`: measures reads and writes on two CQL servers in turn.
//!
//! The speed of a machine drifts, so the two servers take turns in one run, and the ratio of their
//! rates is taken within a round. The output gives the median with the least and the most.
//! `workload` has what is measured, `server` carries it out.

mod server;
mod workload;

use annulus_bench::spread::Spread;
use anyhow::ensure;
use clap::Args;

use self::server::Server;
use self::workload::{Size, Workload, all};
use crate::servers::access::AccessArguments;

/// The arguments of `cql-compare`.
#[derive(Args, Debug)]
pub struct CqlCompareArguments {
    /// The first server: NAME=HOST:PORT
    #[arg(long)]
    a: Target,
    /// The second server: NAME=HOST:PORT
    #[arg(long)]
    b: Target,
    /// Statements to each server in each round of a workload (a tenth of it for those of many
    /// rows)
    #[arg(long, default_value_t = 5_000)]
    requests: u32,
    /// Rows of the tables that are read
    #[arg(long, default_value_t = 100_000)]
    rows: u32,
    /// Rounds that count, after one that warms up
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Requests under way at once (scans: one)
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
    /// Measure only the workloads whose names contain one of these
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    access: AccessArguments,
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

/// Measures both servers in turn and prints a table.
pub async fn run(arguments: CqlCompareArguments) -> anyhow::Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    let size = Size {
        rows: arguments.rows,
        requests: arguments.requests,
    };
    ensure!(
        size.rows >= workload::ROWS_LEAST,
        "--rows must be at least {}",
        workload::ROWS_LEAST
    );
    let mut workloads = all(size);
    if !arguments.only.is_empty() {
        workloads.retain(|workload| {
            arguments
                .only
                .iter()
                .any(|word| workload.name.contains(word))
        });
        ensure!(!workloads.is_empty(), "no workload has such a name");
    }
    let (a, b) = (&arguments.a, &arguments.b);
    let access = arguments.access.read()?;
    let servers = [
        Server::connect(a, &access).await?,
        Server::connect(b, &access).await?,
    ];
    println!(
        "{} requests a round, {} rows, {} in flight, {} rounds; median (minimum to maximum)\n",
        arguments.requests, arguments.rows, arguments.in_flight, arguments.rounds
    );
    println!(
        "| workload | {} /s | {} /s | ratio |\n| --- | --- | --- | --- |",
        a.name, b.name
    );
    for workload in &workloads {
        compare(&arguments, &servers, workload).await?;
    }
    Ok(())
}

/// Measures one workload on both servers, and prints its row.
async fn compare(
    arguments: &CqlCompareArguments,
    servers: &[Server; 2],
    workload: &Workload,
) -> anyhow::Result<()> {
    let statements = [
        servers[0].prepare(workload).await?,
        servers[1].prepare(workload).await?,
    ];
    let mut rates: [Vec<f64>; 2] = Default::default();
    for round in 0..=arguments.rounds {
        // The order is A B, B A, A B, so that neither always comes first.
        for which in [round % 2, (round + 1) % 2] {
            let (server, statement) = (&servers[which], &statements[which]);
            let rate = server.rate(workload, statement, round, arguments.in_flight);
            let rate = rate.await?;
            if round > 0 {
                rates[which].push(rate);
            }
        }
    }
    let [a, b] = rates;
    let ratios: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a / b).collect();
    println!(
        "| {} | {} | {} | {} |",
        workload.name,
        spread(&a, 0),
        spread(&b, 0),
        spread(&ratios, 2)
    );
    Ok(())
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
