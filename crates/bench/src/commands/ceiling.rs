//! `ceiling`: measures the most requests that the generator can send on one core.
//!
//! Searches like those of `search-http` go to a responder in this process, which answers all alike
//! as soon as it has read them. The generator has one thread, whose processor time is counted. The
//! result is the number of requests for a second of that processor time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use annulus_bench::data::{TrueNeighbours, VectorRows};
use anyhow::{Context, ensure};
use bytes::Bytes;
use clap::Args;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use store_api::binary;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::arguments::seconds;
use crate::load::{self, AnswerJudge, TrafficLength, TrafficPlan};
use crate::report::{Measurement, OutputArguments, ResultOutput};
use crate::servers::http_server::{self, ApiServer, ServerUrl};
use crate::servers::wire::{self, SearchBodies, SearchEncoding};
use crate::servers::{SearchQueries, SearchWorker, TableNames};

const QUERIES: usize = 100;
const HEADER_END: &[u8] = b"\r\n\r\n";

/// The arguments of `ceiling`.
#[derive(Args, Debug)]
pub struct CeilingArguments {
    /// Elements of a vector
    #[arg(long, default_value_t = 384)]
    dimensions: usize,
    /// Rows requested
    #[arg(short, default_value_t = 10)]
    k: usize,
    /// The form of searches and answers
    #[arg(long, value_enum, default_value_t = SearchEncoding::Json)]
    wire: SearchEncoding,
    /// Requests under way at once
    #[arg(long, short, default_value_t = 8)]
    concurrency: usize,
    /// Seconds that requests are sent for
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    #[command(flatten)]
    names: TableNames,
    #[command(flatten)]
    output: OutputArguments,
}

/// Sends searches to the responder and reports the generator's rate a second of processor time.
pub fn run(arguments: &CeilingArguments) -> anyhow::Result<()> {
    ensure!(arguments.dimensions > 0, "--dimensions must be at least 1");
    ensure!(arguments.k > 0, "-k must be at least 1");
    let mut output = ResultOutput::new(&arguments.output)?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let url: ServerUrl = format!("http://{}", listener.local_addr()?)
        .parse()
        .map_err(anyhow::Error::msg)?;
    let server = ApiServer::from(url);
    let answer = answer(arguments.wire, arguments.k, &arguments.names.key_column);
    // The thread holds nothing that must be closed, so it ends with the process.
    std::thread::spawn(move || respond(listener, &answer));

    let questions = questions(arguments);
    let bodies = SearchBodies::new(arguments.wire, &questions)?;
    let timeout = Duration::from_secs(10);
    let worker = || {
        SearchWorker::Http(http_server::ApiSearcher::new(
            &server,
            &arguments.names,
            &questions,
            &bodies,
            timeout,
        ))
    };
    let workers: Vec<_> = (0..arguments.concurrency).map(|_| worker()).collect();
    let plan = TrafficPlan {
        rate_per_s: None,
        length: TrafficLength::Duration(seconds("--seconds", arguments.seconds)?),
        warm_up: Duration::ZERO,
        keep_requests: false,
    };
    let progress = output.progress("ceiling")?;
    let begin = load::thread_cpu_time();
    let measured = one_thread()?.block_on(load::run(&plan, workers, &progress))?;
    let taken = load::thread_cpu_time() - begin;
    progress.finish_and_clear();

    let mut measurement = Measurement {
        operation: "ceiling".to_owned(),
        target: server.to_string(),
        series: format!("{} dimensions, k={}", arguments.dimensions, arguments.k),
        k: Some(arguments.k),
        concurrency: arguments.concurrency,
        ..Measurement::of(&measured)
    };
    measurement.client_cpu_cores = taken.as_secs_f64() / measurement.seconds;
    let most = measurement.operations as f64 / taken.as_secs_f64();
    let name = "requests a second that one core of the client sends at most";
    measurement.figures.insert(name.to_owned(), most);
    let failed = measurement.failed();
    output.add(measurement)?;
    output.finish()?;
    ensure!(failed == 0, "{failed} requests failed");
    Ok(())
}

fn one_thread() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
}

/// Random queries whose true neighbours are the rows that the responder answers with.
fn questions(arguments: &CeilingArguments) -> SearchQueries {
    let mut numbers = StdRng::seed_from_u64(1);
    let elements = QUERIES * arguments.dimensions;
    let neighbours = TrueNeighbours {
        per_query: arguments.k,
        ids: (0..QUERIES).flat_map(|_| 0..arguments.k as i64).collect(),
    };
    SearchQueries {
        queries: Arc::new(VectorRows {
            dimensions: arguments.dimensions,
            values: (0..elements)
                .map(|_| numbers.random_range(-1.0..1.0))
                .collect(),
            ids: None,
        }),
        judge: Arc::new(AnswerJudge::new(&neighbours, arguments.k, &HashSet::new())),
        k: arguments.k,
        metric: None,
    }
}

/// A whole HTTP answer of `k` rows.
fn answer(wire: SearchEncoding, k: usize, key_column: &str) -> Vec<u8> {
    let (distance, similarity) = (0.123_456_7_f32, 0.938_271_6_f32);
    let body = match wire {
        SearchEncoding::Json => {
            let ids: Vec<usize> = (0..k).collect();
            let body = serde_json::json!({
                "primary_keys": { key_column: ids },
                "distances": vec![distance; k],
                "similarity_scores": vec![similarity; k],
            });
            Bytes::from(body.to_string())
        }
        SearchEncoding::Binary => {
            let ids: Vec<[u8; 8]> = (0..k as u64).map(u64::to_be_bytes).collect();
            let scores = std::iter::repeat_n((distance, similarity), k);
            let mut body = binary::AnswerWriter::new(scores, 1, 0);
            body.column(key_column, wire::BIGINT, ids.iter().map(|id| &id[..]));
            body.finish()
        }
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
        wire.accepted(),
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

/// Answers every request on every connection with `answer`.
fn respond(listener: std::net::TcpListener, answer: &[u8]) {
    let answer: Arc<[u8]> = answer.into();
    let serve = async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(respond_on(stream, Arc::clone(&answer)));
        }
    };
    // If this fails, the generator counts failed requests.
    let _: anyhow::Result<()> = one_thread().and_then(|runtime| runtime.block_on(serve));
}

async fn respond_on(mut stream: TcpStream, answer: Arc<[u8]>) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(64 << 10);
    loop {
        while let Some(end) = request_end(&buffer) {
            buffer.drain(..end);
            stream.write_all(&answer).await?;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// The offset after the first request in `bytes`, if it is whole. The generator gives every body a
/// length.
fn request_end(bytes: &[u8]) -> Option<usize> {
    let head = bytes
        .windows(HEADER_END.len())
        .position(|window| window == HEADER_END)?;
    let length = std::str::from_utf8(&bytes[..head])
        .ok()?
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().ok())?
        })
        .unwrap_or(0);
    let end = head + HEADER_END.len() + length;
    (bytes.len() >= end).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_after_its_body() {
        let request = b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcPOST";
        assert_eq!(request_end(request), Some(request.len() - 4));
        assert_eq!(request_end(&request[..request.len() - 5]), None);
        assert_eq!(request_end(b"POST / HTTP/1.1\r\n"), None);
    }
}
