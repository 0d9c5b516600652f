//! `cql-compare`: measures reads and writes on two CQL servers in turn.
//!
//! The speed of a machine drifts, so the two servers take turns in one run, and the ratio of their
//! rates is taken within a round. The output gives the median with the least and the most.
//! `workload` has what is measured, `server` carries it out.
//!
//! The client takes its part of a machine that it shares with the servers, which brings rates
//! nearer to each other than the servers are. So the processor time of each server is reported,
//! too.

mod server;
mod workload;

use annulus_bench::spread::MedianRange;
use anyhow::ensure;
use clap::Args;
use indicatif::ProgressBar;

use self::server::ConnectedServer;
use self::workload::{RunSize, Workload, all};
use crate::proc::process_cpu_time;
use crate::report::progress_bar;
use crate::servers::access::AccessArguments;

/// The arguments of `cql-compare`.
#[derive(Args, Debug)]
pub struct CqlCompareArguments {
    /// The first server: NAME=HOST:PORT
    #[arg(long)]
    a: NamedServer,
    /// The second server: NAME=HOST:PORT
    #[arg(long)]
    b: NamedServer,
    /// The process id of the first server, on this machine: its processor time is measured, too
    #[arg(long, value_name = "PID", requires = "b_pid")]
    a_pid: Option<u32>,
    /// The process id of the second server
    #[arg(long, value_name = "PID", requires = "a_pid")]
    b_pid: Option<u32>,
    /// Statements to each server in each round of a workload (a tenth of it for those of many
    /// rows)
    #[arg(long, default_value_t = 20_000)]
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
struct NamedServer {
    name: String,
    address: String,
}

impl std::str::FromStr for NamedServer {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedServer, String> {
        let (name, address) = text.split_once('=').ok_or("write it as NAME=HOST:PORT")?;
        Ok(NamedServer {
            name: name.to_owned(),
            address: address.to_owned(),
        })
    }
}

/// Measures both servers in turn and prints a table.
pub async fn run(arguments: CqlCompareArguments) -> anyhow::Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    let size = RunSize {
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
        ConnectedServer::connect(a, &access).await?,
        ConnectedServer::connect(b, &access).await?,
    ];
    say!(
        "{} requests a round, {} rows, {} in flight, {} rounds; median (minimum to maximum)\n",
        arguments.requests,
        arguments.rows,
        arguments.in_flight,
        arguments.rounds
    );
    let of_processor = format!(" {} µs | {} µs | ratio |", a.name, b.name);
    let pids = arguments.a_pid.zip(arguments.b_pid).map(<[u32; 2]>::from);
    say!(
        "| workload | {} /s | {} /s | ratio |{}\n| --- | --- | --- | --- |{}",
        a.name,
        b.name,
        pids.map_or("", |_| &of_processor),
        pids.map_or("", |_| " --- | --- | --- |"),
    );
    let measurements = workloads.len() * (arguments.rounds + 1) * servers.len();
    let bar = progress_bar("measurements", measurements as u64)?;
    for workload in &workloads {
        compare(&arguments, &servers, pids, workload, &bar).await?;
    }
    bar.finish_and_clear();
    Ok(())
}

/// The measurements of a server, one of each kind for each round.
#[derive(Default)]
struct ServerMeasurements {
    /// Operations a second.
    rates: Vec<f64>,
    /// The server's processor time for an operation, in microseconds.
    costs: Vec<f64>,
}

/// Measures one workload on both servers, and prints its row.
async fn compare(
    arguments: &CqlCompareArguments,
    servers: &[ConnectedServer; 2],
    pids: Option<[u32; 2]>,
    workload: &Workload,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let statements = [
        servers[0].prepare(workload).await?,
        servers[1].prepare(workload).await?,
    ];
    let mut measured: [ServerMeasurements; 2] = Default::default();
    for round in 0..=arguments.rounds {
        // The order is A B, B A, A B, so that neither always comes first.
        for which in [round % 2, (round + 1) % 2] {
            let (server, statement) = (&servers[which], &statements[which]);
            let busy = || pids.map(|pids| process_cpu_time(pids[which])).transpose();
            let before = busy()?;
            let rate = server.rate(workload, statement, round, arguments.in_flight);
            let rate = rate.await?;
            let took = busy()?.zip(before).map(|(after, before)| after - before);
            if round > 0 {
                let of_server = &mut measured[which];
                of_server.rates.push(rate);
                let cost = took.map(|took| took.as_secs_f64() * 1e6 / workload.operations());
                of_server.costs.extend(cost);
            }
            bar.inc(1);
        }
    }
    let [a, b] = &measured;
    let ratios = |above: &[f64], below: &[f64]| -> Vec<f64> {
        above.iter().zip(below).map(|(a, b)| a / b).collect()
    };
    let rates = [
        spread(&a.rates, 0),
        spread(&b.rates, 0),
        spread(&ratios(&a.rates, &b.rates), 2),
    ];
    let costs = [
        spread(&a.costs, 1),
        spread(&b.costs, 1),
        spread(&ratios(&b.costs, &a.costs), 2),
    ];
    let costs = pids.map_or(String::new(), |_| format!(" {} |", costs.join(" | ")));
    bar.suspend(|| say!("| {} | {} |{costs}", workload.name, rates.join(" | ")));
    Ok(())
}

/// Writes values as `median (least to most)`.
fn spread(values: &[f64], digits: usize) -> String {
    match MedianRange::of(values) {
        Some(MedianRange {
            least,
            median,
            most,
        }) => format!("{median:.digits$} ({least:.digits$} to {most:.digits$})"),
        None => "nothing measured".to_owned(),
    }
}
