//! Tests of reading: work in chunks of every size gives the same rows and pages.

use bytes::BytesMut;
use cql::error::ErrorKind;
use proptest::prelude::*;
use storage::{Storage, StorageOptions};

use super::*;
use crate::planner::{self, StatementPlan};
use crate::select::order::ResultOrder;
use crate::statement::{ClientPresence, DefaultTimeouts};
use crate::system::SystemTables;

const QUERIES: [&str; 8] = [
    "SELECT p, c FROM ks.t",
    "SELECT p, c FROM ks.t WHERE v > 3 LIMIT 9 ALLOW FILTERING",
    "SELECT p, c FROM ks.t WHERE v = 99 ALLOW FILTERING",
    "SELECT p, c FROM ks.t WHERE p IN (9, 8, 7, 6, 5, 4, 3, 2, 1)",
    "SELECT p, c FROM ks.t WHERE p IN (2, 1, 3) ORDER BY c",
    "SELECT count(*) FROM ks.t",
    "SELECT p, count(*), max(c) FROM ks.t WHERE v > 2 GROUP BY p LIMIT 4 ALLOW FILTERING",
    "SELECT p, c, sum(v) FROM ks.t GROUP BY p, c PER PARTITION LIMIT 3",
];

async fn database(directory: &std::path::Path) -> CqlDatabase {
    let database = CqlDatabase {
        storage: Storage::open(directory, StorageOptions::default()).unwrap(),
        system: SystemTables::new(),
        stores: store_api::IndexServices::disabled(),
        access: Default::default(),
        timeouts: Default::default(),
    };
    run(&database, "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").await;
    run(
        &database,
        "CREATE TABLE ks.t (p int, c int, v int, PRIMARY KEY (p, c))",
    )
    .await;
    for p in 0..8 {
        let rows: Vec<String> = (0..p * 2)
            .map(|c| format!("INSERT INTO ks.t (p, c, v) VALUES ({p}, {c}, {c});"))
            .collect();
        let batch = format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", rows.join(" "));
        if p > 0 {
            run(&database, &batch).await;
        }
    }
    database
}

async fn run(database: &CqlDatabase, cql: &str) {
    let parsed = cql::parser::parse_statement(cql).unwrap();
    let plan = planner::prepare(database, None, &parsed).unwrap();
    plan.execute(database, ExecutionParameters::default())
        .await
        .unwrap();
}

/// Reads all pages. Returns their rows and the number of pages.
async fn read(
    database: &CqlDatabase,
    cql: &str,
    pace: QueryBudgets,
    page_size: Option<usize>,
) -> (BytesMut, usize) {
    let parsed = cql::parser::parse_statement(cql).unwrap();
    let StatementPlan::Select(plan) = planner::prepare(database, None, &parsed).unwrap() else {
        panic!("no SELECT");
    };
    let ResultOrder::Clustering(order) = &plan.resolved.order else {
        panic!("no order of the disk");
    };
    let mut body = BytesMut::new();
    let mut paging_state = None;
    for page in 1.. {
        let parameters = ExecutionParameters {
            page_size,
            paging_state,
            ..ExecutionParameters::default()
        };
        let answer = execute_at(pace, database, &plan.resolved, order, parameters)
            .await
            .unwrap();
        let ExecutionOutcome::Rows(rows) = answer.outcome else {
            panic!("no rows");
        };
        body.extend_from_slice(&rows.body);
        match rows.paging_state {
            Some(state) => paging_state = Some(state),
            None => return (body, page),
        }
        assert!(page < 10_000, "the pages of {cql} don't end");
    }
    unreachable!()
}

/// Reads a page in small steps for a client.
async fn read_page(
    database: &CqlDatabase,
    cql: &str,
    page_size: Option<usize>,
    presence: &ClientPresence,
) -> Result<ExecutionResult, CqlError> {
    let parsed = cql::parser::parse_statement(cql).unwrap();
    let StatementPlan::Select(plan) = planner::prepare(database, None, &parsed).unwrap() else {
        panic!("no SELECT");
    };
    let ResultOrder::Clustering(order) = &plan.resolved.order else {
        panic!("no order of the disk");
    };
    let budget = |rows, takes_large| StepBudget {
        rows,
        time: Duration::ZERO,
        takes_large,
    };
    let pace = QueryBudgets {
        inline: budget(1, false),
        chunk: budget(8, true),
        page_time_max: Duration::MAX,
        internal_page: 1,
    };
    let parameters = ExecutionParameters {
        page_size,
        presence: presence.clone(),
        ..ExecutionParameters::default()
    };
    execute_at(pace, database, &plan.resolved, order, parameters).await
}

fn rows_of(answer: Result<ExecutionResult, CqlError>) -> ResultRows {
    match answer.unwrap().outcome {
        ExecutionOutcome::Rows(rows) => rows,
        other => panic!("no rows: {other:?}"),
    }
}

/// Tests with limits of no time at all, so that each step is beyond them.
#[tokio::test]
async fn a_page_has_a_limit_of_time_and_an_aggregate_one_for_each_internal_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = database(&directory.path().join("data")).await;
    let no_time = Some(Duration::ZERO);
    let client = ClientPresence::of_client();
    let (scan, of_keys) = (QUERIES[0], QUERIES[3]);
    for (read, range) in [(no_time, None), (None, no_time)] {
        database.timeouts = DefaultTimeouts {
            read,
            range,
            write: None,
        };
        for (cql, limit) in [(scan, range), (of_keys, read)] {
            let answer = read_page(&database, cql, None, &client).await;
            match limit {
                Some(_) => {
                    let error = answer.unwrap_err();
                    let is_timeout = matches!(error.kind, ErrorKind::ReadTimeout { .. });
                    assert!(is_timeout, "{cql}: {error}");
                }
                None => assert_eq!(rows_of(answer).paging_state, None, "{cql}"),
            }
            // A page that another can follow ends with the rows that it has.
            let rows = rows_of(read_page(&database, cql, Some(1_000), &client).await);
            assert_eq!(rows.paging_state.is_some(), limit.is_some(), "{cql}");
            let own = read_page(&database, cql, None, &ClientPresence::default()).await;
            assert_eq!(rows_of(own).paging_state, None, "{cql}");
        }
        let count = "SELECT count(*) FROM ks.t";
        let counted = rows_of(read_page(&database, count, None, &client).await);
        assert_eq!(counted.body[4..], 56_i64.to_be_bytes());
    }
}

#[tokio::test]
async fn a_read_ends_with_its_client() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(&directory.path().join("data")).await;
    let client = ClientPresence::of_client();
    let count = "SELECT count(*) FROM ks.t";
    assert_eq!(
        rows_of(read_page(&database, count, None, &client).await).count,
        1
    );
    client.end();
    let ended = read_page(&database, count, None, &client).await;
    assert!(ended.is_err_and(|error| error.message.contains("hung up")));
}

/// Tests that the rows are the same at every pace, even if every page ends after one step.
#[test]
fn the_pace_does_not_change_the_rows() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let database = runtime.block_on(database(&directory.path().join("data")));
    let whole: Vec<BytesMut> = QUERIES
        .iter()
        .map(|cql| runtime.block_on(read(&database, cql, PACE, None)).0)
        .collect();
    assert!(!whole[0].is_empty() && whole[2].is_empty());
    let config = ProptestConfig::with_cases(60);
    proptest!(config, |(
        query in 0..QUERIES.len(),
        inline in 0..9_usize,
        chunk in 1..9_usize,
        takes_large: bool,
        ends_early: bool,
        page_size in proptest::option::of(1..40_usize),
    )| {
        // Merged partitions are not paged.
        let page_size = page_size.filter(|_| query != 4);
        let budget = |rows, takes_large| StepBudget { rows, time: Duration::ZERO, takes_large };
        let pace = QueryBudgets {
            inline: budget(inline, takes_large),
            chunk: budget(chunk, true),
            page_time_max: if ends_early { Duration::ZERO } else { Duration::MAX },
            internal_page: 3,
        };
        let (body, pages) = runtime.block_on(read(&database, QUERIES[query], pace, page_size));
        prop_assert_eq!(&body, &whole[query], "{}", QUERIES[query]);
        if ends_early && (query < 4 || query == 7) && page_size.is_some() {
            prop_assert!(pages > 1, "no page ended early");
        }
    });
}
