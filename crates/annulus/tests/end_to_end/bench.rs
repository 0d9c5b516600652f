//! `annulus bench` measures `annulus serve`, and can tell a new index from a dropped one of its
//! name.

mod login;

use std::path::Path;
use std::process::{Command, Output};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use test_support::free_address;

use crate::server::Server;
use crate::store_alone;

const ROWS: usize = 600;
const DIMENSIONS: usize = 16;
const HELD_OUT: &str = "100";

/// The interval at which the index service of a test looks at the schema. It is longer than the
/// test takes from a DROP to the next step.
const SELDOM: &str = "3s";

/// Asserts that the log of requests has one line for each.
fn assert_requests_logged(log: &str) {
    let requests = std::fs::read_to_string(log).unwrap();
    let mut lines = requests.lines();
    assert_eq!(lines.next(), Some("due_ns,ended_ns,answered"));
    let mut took = lines.map(|line| {
        let fields: Vec<u64> = line
            .split(',')
            .map(|field| field.parse().unwrap())
            .collect();
        assert_eq!(fields[2], 1, "{line}");
        fields[1].checked_sub(fields[0]).unwrap()
    });
    assert_eq!(took.clone().count(), 200);
    assert!(took.all(|ns| ns > 0));
}

/// Asserts how many measurements there are of each operation, and that each answer is exact.
fn assert_measured(results: &[Value]) {
    let counts = |operation: &str| {
        let of = |result: &&Value| result["operation"] == operation;
        results.iter().filter(of).count()
    };
    assert_eq!((counts("insert"), counts("search")), (1, 13));
    assert_eq!(
        (counts("write"), counts("ingest"), counts("ratio")),
        (1, 1, 3)
    );
    let paced = |result: &&Value| result["pacer_lateness_ms"].is_object();
    // The searches and the writes of `mixed` are paced.
    assert_eq!(results.iter().filter(paced).count(), 2);
    for result in results {
        assert_eq!(paced(&result), result["rate_asked_per_s"].is_number());
        assert_eq!(result["errors"], serde_json::json!({}), "{result}");
        if result["operation"] == "search" {
            assert_eq!(result["operations"], 200, "{result}");
            // The index scans so few rows, so every answer is exact.
            let recall = result["recall"].as_f64().unwrap();
            assert!(recall > 0.999, "{result}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_loaded_indexed_searched_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let path = |name: &str| directory.path().join(name).display().to_string();
    write_vectors(&directory.path().join("base.npy"), ROWS);
    let (cql, http) = (server.cql.to_string(), format!("http://{}", server.http));
    let (base, json) = (path("base.npy"), path("results.jsonl"));
    let data = ["--base", &base, "--hold-out", HELD_OUT, "--json", &json];
    bench(&[&["build-table", "--cql", &cql][..], &data].concat());
    bench(&["build-index", "--cql", &cql, "--http", &http]);
    let few = ["--requests", "200", "--warm-up", "0"];
    bench(&[&["search-http", "--http", &http][..], &data, &few].concat());
    let log = path("requests.csv");
    let logged = ["search-cql", "--cql", &cql, "--requests-log", &log];
    bench(&[&logged[..], &data, &few].concat());
    let steps = ["sweep", "--http", &http, "-c", "1,4", "--pause", "0.01"];
    bench(&[&steps[..], &data, &few].concat());
    let mixed = ["mixed", "--cql", &cql, "--write-cql", &cql, "--churn", "50"];
    bench(&[&mixed[..], &data, &few, &["--rate", "400"]].concat());
    let ingest = ["ingest", "--cql", &cql, "--from", "400"];
    bench(&[&ingest[..], &data].concat());
    let (a, b) = (format!("a={http}"), format!("b=cql://{cql}"));
    let compare = ["compare", "--a", &a, "--b", &b, "--rounds", "2"];
    bench(&[&compare[..], &data, &few].concat());
    let at_recall = ["--recall", "0.9"];
    bench(&[&compare[..], &data, &few, &at_recall].concat());
    let restart = [
        "restart", "--cql", &cql, "--json", &json, "--behind", "0.01",
    ];
    bench(&[&restart[..], &["--rounds", "1", "--restarts", "1"]].concat());
    bench(&["drop-index", "--cql", &cql]);
    bench(&["drop-table", "--cql", &cql]);
    let page = path("report.html");
    bench(&["report", &json, "-o", &page]);

    assert_requests_logged(&log);
    let results = measurements(Path::new(&json));
    assert_measured(&results);
    let ingest = results
        .iter()
        .find(|result| result["operation"] == "ingest");
    let figures = &ingest.unwrap()["figures"];
    assert_eq!(figures["rows not found in time"], 0.0, "{figures}");
    // A search takes longer than this, so no row can be found sooner.
    let found_after_ms = figures["searchable after, P50 ms"].as_f64().unwrap();
    assert!(found_after_ms > 0.02, "{figures}");
    let restart = results
        .iter()
        .find(|result| result["operation"] == "restart");
    let restart = restart.unwrap();
    assert!(restart["operations"].as_u64().unwrap() > 0, "{restart}");
    let caught_up_s = restart["figures"]["caught up, s"].as_f64().unwrap();
    assert!(caught_up_s > 0.0, "{restart}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.matches("<svg").count() >= 4);
}

/// The service has not noticed a DROP yet when an index of the same name is created.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_index_is_not_taken_for_the_next_of_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let cql = server.cql.to_string();
    let address = free_address().to_string();
    let http = format!("http://{address}");
    let settings = [
        "--uri",
        &address,
        "--scylladb-uri",
        &cql,
        "--monitor-indexes-interval",
        SELDOM,
    ];
    let _store = store_alone::start(directory.path(), &settings);
    let json = directory.path().join("results.jsonl");
    let json = json.display().to_string();
    let index = ["--cql", &cql, "--http", &http];
    let built = ["build-index", "--json", &json];
    for rows in [ROWS, ROWS / 2] {
        let base = directory.path().join(format!("{rows}.npy"));
        write_vectors(&base, rows);
        let base = base.display().to_string();
        bench(&["build-table", "--cql", &cql, "--base", &base]);
        bench(&[&built[..], &index].concat());
        if rows == ROWS {
            bench(&["drop-table", "--cql", &cql]);
        }
    }
    let results = measurements(Path::new(&json));
    let counts: Vec<_> = results.iter().map(|built| &built["operations"]).collect();
    assert_eq!(counts, [ROWS, ROWS / 2]);

    bench(&[&["drop-index"][..], &index].concat());
    // The dropped index can't be searched any more, so it can't be taken for an index that is
    // created now.
    let search = ["search-http", "--http", &http, "--requests", "1"];
    let base = directory.path().join(format!("{ROWS}.npy"));
    let base = base.display().to_string();
    let data = ["--base", &base, "--hold-out", HELD_OUT];
    let searched = run_bench(&[&search[..], &data].concat());
    assert!(!searched.status.success());
    let said = String::from_utf8_lossy(&searched.stderr);
    assert!(said.contains("has no index bench.vectors_v"), "{said}");
}

/// Runs `annulus bench`, which has to succeed.
fn bench(arguments: &[&str]) {
    let output = run_bench(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

fn run_bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annulus"));
    command.arg("bench").args(arguments).output().unwrap()
}

#[test]
fn a_program_without_its_bench_says_where_it_is_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("annulus");
    std::fs::copy(env!("CARGO_BIN_EXE_annulus"), &alone).unwrap();
    let mut command = Command::new(&alone);
    let output = command
        .args(["bench", "--help"])
        .env("PATH", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let folder = folder.path().display().to_string();
    assert!(
        said.contains("annulus-bench") && said.contains(&folder) && said.contains("make dist"),
        "{said}"
    );
}

/// Random vectors as an npy file.
fn write_vectors(path: &Path, rows: usize) {
    let mut numbers = StdRng::seed_from_u64(5);
    let header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {DIMENSIONS}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    for _ in 0..rows * DIMENSIONS {
        bytes.extend(numbers.random_range(-1.0_f32..1.0).to_le_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

fn measurements(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["type"] == "measurement")
        .collect()
}
