//! Batches, as CQL text and as requests of the protocol.

use cql::ast::TextBatchKind;
use node::modify;
use node::planner::StatementPlan;
use node::statement::{BoundValue, ExecutionOutcome, ExecutionParameters};
use value::Value;

use crate::fixture::{Fixture, int};

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int PRIMARY KEY, v int)",
        "CREATE TABLE u (k int, c int, v int, PRIMARY KEY (k, c))",
    ])
}

#[test]
fn all_statements_of_a_text_take_effect_with_one_timestamp() {
    let f = fixture();
    for kind in ["", "UNLOGGED "] {
        f.run(&format!(
            "BEGIN {kind}BATCH USING TIMESTAMP 500 INSERT INTO t (k, v) VALUES (1, 1); UPDATE u \
             SET v = 2 WHERE k = 1 AND c = 1; DELETE FROM t WHERE k = 9; APPLY BATCH"
        ));
    }
    assert_eq!(f.rows("SELECT v, writetime(v) FROM t"), ["1 | 500"]);
    assert_eq!(f.rows("SELECT v, writetime(v) FROM u"), ["2 | 500"]);
}

#[test]
fn markers_count_through_the_whole_batch() {
    let f = fixture();
    let batch = "BEGIN BATCH USING TIMESTAMP ? INSERT INTO t (k, v) VALUES (?, 7); UPDATE u SET v \
                 = ? WHERE k = ? AND c = 1; APPLY BATCH";
    assert_eq!(
        f.variables(batch),
        ["[timestamp] bigint", "k int", "v int", "k int"]
    );
    let timestamp = value::Value::Bigint(700).serialize();
    let parameters = ExecutionParameters {
        values: vec![
            node::statement::BoundValue::Value(timestamp),
            int(1),
            int(2),
            int(3),
        ],
        ..ExecutionParameters::default()
    };
    f.execute(batch, parameters).unwrap();
    assert_eq!(f.rows("SELECT k, v, writetime(v) FROM t"), ["1 | 7 | 700"]);
    assert_eq!(f.rows("SELECT k, v FROM u"), ["3 | 2"]);
}

#[test]
fn a_timeout_is_taken_and_left_aside() {
    let f = fixture();
    assert_eq!(
        f.variables(
            "BEGIN BATCH USING TIMEOUT ? INSERT INTO t (k, v) VALUES (1, 1) USING TIMEOUT 5s; \
             APPLY BATCH"
        ),
        ["[timeout] duration"]
    );
    for timeout in ["'hey'", "5", "-10ms", "1mo", "1us", "null"] {
        let refused = f.refused(
            &format!("INSERT INTO t (k, v) VALUES (1, 1) USING TIMEOUT {timeout}"),
            &[],
        );
        assert!(
            refused.to_lowercase().contains("timeout"),
            "{timeout}: {refused}"
        );
    }
    let negative = Value::Duration {
        months: 0,
        days: 0,
        nanoseconds: -1_000_000,
    };
    assert_eq!(
        f.refused(
            "UPDATE t USING TIMEOUT ? SET v = 1 WHERE k = 1",
            &[BoundValue::Value(negative.serialize())]
        ),
        "Timeout values must be non-negative"
    );
}

#[test]
fn no_batch_has_a_ttl() {
    let f = fixture();
    assert_eq!(
        f.refused(
            "BEGIN BATCH USING TTL 5 INSERT INTO t (k, v) VALUES (1, 1); APPLY BATCH",
            &[]
        ),
        "Global TTL on the BATCH statement is not supported."
    );
}

#[test]
fn a_batch_with_a_mistake_writes_nothing() {
    let f = fixture();
    let batch = "BEGIN BATCH INSERT INTO t (k, v) VALUES (1, 1); UPDATE u SET v = 1 WHERE k = ? \
                 AND c = 1; APPLY BATCH";
    assert_eq!(
        f.refused(batch, &[node::statement::BoundValue::Null]),
        "Invalid null value in condition for column k"
    );
    assert!(f.rows("SELECT * FROM t").is_empty());
}

#[test]
fn batches_that_cannot_be_are_refused() {
    let f = fixture();
    for (batch, message) in [
        (
            "BEGIN COUNTER BATCH UPDATE t SET v = 1 WHERE k = 1; APPLY BATCH",
            "Cannot include non-counter statement in a counter batch",
        ),
        (
            "BEGIN BATCH USING TIMESTAMP 1 INSERT INTO t (k) VALUES (1) USING TIMESTAMP 2; APPLY \
             BATCH",
            "Timestamp must be set either on BATCH or individual statements",
        ),
        (
            "BEGIN BATCH USING TIMESTAMP 1 INSERT INTO t (k) VALUES (1) IF NOT EXISTS; APPLY BATCH",
            "Cannot provide custom timestamp for conditional BATCH",
        ),
        (
            "BEGIN BATCH INSERT INTO t (k) VALUES (1) IF NOT EXISTS; INSERT INTO u (k, c) VALUES \
             (1, 1); APPLY BATCH",
            "Batch with conditions cannot span multiple tables",
        ),
        (
            "BEGIN BATCH INSERT INTO t (k) VALUES (1) IF NOT EXISTS; INSERT INTO t (k) VALUES (2); \
             APPLY BATCH",
            "Batch with conditions cannot span multiple partitions",
        ),
    ] {
        assert_eq!(f.refused(batch, &[]), message, "{batch}");
    }
}

#[test]
fn a_batch_of_the_protocol_takes_statements_with_their_values() {
    let f = fixture();
    let insert = f.plan("INSERT INTO t (k, v) VALUES (?, ?)").unwrap();
    let update = f
        .plan("UPDATE u USING TIMESTAMP 9 SET v = 5 WHERE k = 1 AND c = 2")
        .unwrap();
    fn modify_plan(plan: &StatementPlan) -> &modify::ModifyPlan {
        match plan {
            StatementPlan::Modify(plan) => plan,
            other => panic!("{other:?}"),
        }
    }
    let (insert, update) = (modify_plan(&insert), modify_plan(&update));
    let entries = vec![
        (insert, vec![int(1), int(10)]),
        (insert, vec![int(2), int(20)]),
        (update, Vec::new()),
    ];
    let parameters = ExecutionParameters {
        timestamp_micros: Some(800),
        ..ExecutionParameters::default()
    };
    let answer = crate::block_on(modify::execute_batch(
        &f.database,
        TextBatchKind::Logged,
        entries,
        &parameters,
    ))
    .unwrap();
    assert!(matches!(answer.outcome, ExecutionOutcome::Void));
    assert_eq!(
        f.rows("SELECT k, v, writetime(v) FROM t"),
        ["1 | 10 | 800", "2 | 20 | 800"]
    );
    assert_eq!(f.rows("SELECT v, writetime(v) FROM u"), ["5 | 9"]);
}

#[test]
fn a_batch_of_the_protocol_takes_plain_writes_only() {
    let f = fixture();
    let refused = |cql: &str, kind| {
        let plan = f.plan(cql).unwrap();
        let StatementPlan::Modify(plan) = &plan else {
            panic!("{plan:?}");
        };
        let entries = vec![(plan, Vec::new())];
        let parameters = ExecutionParameters::default();
        crate::block_on(modify::execute_batch(
            &f.database,
            kind,
            entries,
            &parameters,
        ))
        .unwrap_err()
        .message
    };
    assert_eq!(
        refused("TRUNCATE t", TextBatchKind::Logged),
        "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed."
    );
    assert_eq!(
        refused("INSERT INTO t (k) VALUES (1)", TextBatchKind::Counter),
        "Cannot include non-counter statement in a counter batch"
    );
}
