//! `serving-cost`: measures the processor time that serving a search takes in addition to the
//! search itself.
//!
//! The processor time of the server's process, as the system accounts for it, is divided by the
//! searches that it answered. It is compared with the processor time of the same searches on an
//! index of the same data and options in this process. Nothing is subtracted: background work of
//! the server counts too, and is shown. The ways take turns, in rounds. A ratio is taken within a
//! round, and its median is given with the least and the most.
//!
//! Two threads of one core slow each other down, which raises the processor time of both. So the
//! searches in this process run on all cores, as those of a server and its client do.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use indicatif::ProgressBar;

use super::arguments::{ConsistencyName, RequestArguments, SearchEndpoint};
use super::search_setup::{SearchArguments, SearchSetup, questions};
use crate::load::{TrafficLength, TrafficPlan};
use crate::proc::process_cpu_time;
use crate::report::{Measurement, OutputArguments, ResultOutput};
use crate::servers::http_server::{self, ServerUrl};
use crate::servers::in_process::InProcess;
use crate::servers::wire::SearchEncoding;

const CPU_FIGURE: &str = "processor time a search, µs";

/// The arguments of `serving-cost`.
#[derive(Args, Debug)]
pub struct ServingCostArguments {
    /// The index service
    #[arg(
        long,
        value_name = "http[s]://HOST:PORT",
        default_value = "http://127.0.0.1:6080"
    )]
    http: ServerUrl,
    /// The CQL server, if it is the same process
    #[arg(long, value_name = "HOST:PORT")]
    cql: Option<String>,
    /// The process id of the server, on this machine
    #[arg(long, value_name = "PID")]
    server_pid: u32,
    #[command(flatten)]
    search: SearchArguments,
    /// Requests under way at once
    #[arg(long, short, default_value_t = 8)]
    concurrency: usize,
    /// Times that each way is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// A way to search, with its cost in each round.
struct SearchVariant {
    name: &'static str,
    /// The target to search; absent for the search in this process.
    searching: Option<SearchSetup>,
    /// Processor time of a search in microseconds, one value for each round.
    costs: Vec<f64>,
}

/// Measures all ways in turn.
pub async fn run(arguments: ServingCostArguments) -> anyhow::Result<()> {
    ensure!(arguments.rounds > 0, "--rounds must be at least 1");
    let search = &arguments.search;
    let (plan, duration) = search.load.timed_plan()?;
    let mut output = ResultOutput::new(&arguments.output)?;
    let questions = questions(&search.data, search.load.k, &HashSet::new())?;
    let server = search.requests.server(&arguments.http)?;
    let info = http_server::index_info(&server, &search.names).await?;
    let base = search.data.read_base()?;
    let index = tokio::task::block_in_place(|| InProcess::build(&info.options, &base))?;
    drop(base);

    let mut ways = vec![SearchVariant {
        name: "in process",
        searching: None,
        costs: Vec::new(),
    }];
    for (name, target, requests) in targets(&arguments) {
        let (names, dataset) = (&search.names, search.data.name());
        let searching = SearchSetup::new(&target, names, &requests, &questions, dataset).await?;
        ways.push(SearchVariant {
            name,
            searching: Some(searching),
            costs: Vec::new(),
        });
    }
    let idle = idle(arguments.server_pid).await?;
    let threads = std::thread::available_parallelism()?.get();
    for round in 0..arguments.rounds {
        for way in &mut ways {
            let progress = output.progress(&format!("round {} {}", round + 1, way.name))?;
            let mut measurement = match &way.searching {
                None => {
                    let searched = tokio::task::block_in_place(|| {
                        index.search(&questions, threads, duration)
                    })?;
                    Measurement {
                        operations: searched.searches,
                        seconds: duration.as_secs_f64(),
                        rate_per_s: searched.searches as f64 / duration.as_secs_f64(),
                        recall: searched.recall,
                        k: Some(search.load.k),
                        dataset: search.data.name(),
                        ..cost(searched.cpu, searched.searches)
                    }
                }
                Some(searching) => served(&arguments, searching, &plan, &progress).await?,
            };
            progress.finish_and_clear();
            ensure!(
                measurement.operations > 0,
                "{}: nothing was answered",
                way.name
            );
            way.costs.push(measurement.figures[CPU_FIGURE]);
            measurement.series = way.name.to_owned();
            output.add(measurement)?;
        }
    }
    output.add(summary(&ways, idle))?;
    output.finish()
}

/// The servers that are measured, by the names of their ways, and how requests are sent to them.
fn targets(
    arguments: &ServingCostArguments,
) -> Vec<(&'static str, SearchEndpoint, RequestArguments)> {
    let requests = &arguments.search.requests;
    let http = |wire| SearchEndpoint::Http(arguments.http.clone(), wire);
    let mut targets = vec![
        (
            "HTTP binary",
            http(SearchEncoding::Binary),
            requests.clone(),
        ),
        ("HTTP JSON", http(SearchEncoding::Json), requests.clone()),
    ];
    if let Some(address) = &arguments.cql {
        let cql = SearchEndpoint::Cql(address.clone());
        targets.push(("CQL", cql.clone(), requests.clone()));
        // Beyond ONE the node answers from the rows, even if the index has the columns.
        let of_rows = RequestArguments {
            consistency: ConsistencyName::Quorum,
            ..requests.clone()
        };
        targets.push(("CQL, rows read", cql, of_rows));
    }
    targets
}

/// Searches by a server, and measures its processor time.
async fn served(
    arguments: &ServingCostArguments,
    searching: &SearchSetup,
    plan: &TrafficPlan,
    progress: &ProgressBar,
) -> anyhow::Result<Measurement> {
    // The warm-up is a load of its own, so that processor time is counted over exactly the measured
    // searches.
    if plan.warm_up > Duration::ZERO {
        let warm_up = TrafficPlan {
            length: TrafficLength::Duration(plan.warm_up),
            warm_up: Duration::ZERO,
            ..plan.clone()
        };
        searching
            .run(&warm_up, arguments.concurrency, progress)
            .await?;
    }
    let measured = TrafficPlan {
        warm_up: Duration::ZERO,
        ..plan.clone()
    };
    let before = process_cpu_time(arguments.server_pid)?;
    let found = searching
        .run(&measured, arguments.concurrency, progress)
        .await?;
    let cpu = process_cpu_time(arguments.server_pid)? - before;
    let searches = found.operations;
    Ok(Measurement {
        figures: cost(cpu, searches).figures,
        ..found
    })
}

/// A measurement with the processor time of a search, and nothing else.
fn cost(cpu: Duration, searches: u64) -> Measurement {
    let each = cpu.as_secs_f64() * 1e6 / searches.max(1) as f64;
    Measurement {
        operation: "search".to_owned(),
        figures: [(CPU_FIGURE.to_owned(), each)].into(),
        ..Measurement::default()
    }
}

/// The ratios of each way to the search in this process, which is the first way.
fn summary(ways: &[SearchVariant], idle: f64) -> Measurement {
    let mut summary = Measurement {
        operation: "serving cost".to_owned(),
        series: "processor time of the server, by that of the search alone".to_owned(),
        ..Measurement::default()
    };
    let Some((alone, served)) = ways.split_first() else {
        return summary;
    };
    for way in served {
        let rounds = way.costs.iter().zip(&alone.costs);
        let ratios: Vec<f64> = rounds.map(|(served, alone)| served / alone).collect();
        summary.add_spread(way.name, &ratios);
    }
    let name = "cores that the server keeps busy without requests";
    summary.figures.insert(name.to_owned(), idle);
    summary
}

/// The number of cores that a process keeps busy while no requests are sent to it.
async fn idle(pid: u32) -> anyhow::Result<f64> {
    let (begin, before) = (Instant::now(), process_cpu_time(pid)?);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let cpu = process_cpu_time(pid)? - before;
    Ok(cpu.as_secs_f64() / begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_rounds() {
        let way = |name, costs: &[f64]| SearchVariant {
            name,
            searching: None,
            costs: costs.to_vec(),
        };
        // The machine was half as fast in the second round.
        let ways = [way("alone", &[100.0, 200.0]), way("HTTP", &[150.0, 260.0])];
        let figures = summary(&ways, 0.02).figures;
        assert!((figures["HTTP, median"] - 1.4).abs() < 1e-9, "{figures:?}");
        assert_eq!((figures["HTTP, least"], figures["HTTP, most"]), (1.3, 1.5));
    }
}
