//! The timeout of a statement: values that it can't be, and its end.

use super::*;

#[test]
fn wrong_timeouts_are_explained() {
    refuses_restrictions(&[
        (
            "r = 1 ALLOW FILTERING USING TIMEOUT 'hey'",
            "Invalid STRING constant (hey) for \"[timeout]\" of type duration",
        ),
        (
            "r = 1 ALLOW FILTERING USING TIMEOUT 5",
            "Invalid INTEGER constant (5) for \"[timeout]\" of type duration",
        ),
        (
            "r = 1 ALLOW FILTERING USING TIMEOUT -10ms",
            "Timeout values must be non-negative",
        ),
        (
            "r = 1 ALLOW FILTERING USING TIMEOUT 3us",
            "Timeout values cannot have a granularity finer than milliseconds",
        ),
        (
            "r = 1 ALLOW FILTERING USING TIMEOUT 1d",
            "Timeout values cannot be expressed in days or longer units",
        ),
    ]);
}

#[test]
fn a_bound_timeout_is_a_duration_that_a_statement_can_take() {
    let f = Fixture::new().with(&["CREATE TABLE timed (k int PRIMARY KEY)"]);
    let query = "SELECT k FROM timed USING TIMEOUT ?";
    let duration = |months, days, nanoseconds| {
        let value = Value::Duration {
            months,
            days,
            nanoseconds,
        };
        [BoundValue::Value(value.serialize())]
    };
    assert!(f.bound(query, &duration(0, 0, 5_000_000)).is_empty());
    assert!(f.bound(query, &[BoundValue::Unset]).is_empty());
    for (value, text) in [
        (duration(0, 0, -5_000_000), "must be non-negative"),
        (duration(0, 1, 0), "in days or longer"),
        (duration(0, 0, 1), "finer than milliseconds"),
        ([BoundValue::Null], "cannot be null"),
    ] {
        let message = f.refused(query, &value);
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn a_statement_without_time_fails_with_a_timeout() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (k int PRIMARY KEY, v int)",
        "INSERT INTO t (k, v) VALUES (1, 1) USING TIMEOUT 1h",
    ]);
    assert_eq!(fixture.rows("SELECT v FROM t USING TIMEOUT 1h"), ["1"]);
    let error = |cql: &str| fixture.execute(cql, Default::default()).err().unwrap();
    let late = error("SELECT v FROM t USING TIMEOUT 0ms");
    assert!(matches!(
        late.kind,
        ErrorKind::ReadTimeout { block_for: 1, .. }
    ));
    assert_eq!(
        late.message,
        "Operation timed out for ks.t - received only 0 responses from 1 CL=ONE."
    );
    for (write, expected) in [
        (
            "INSERT INTO t (k, v) VALUES (2, 1) USING TIMEOUT 0ms",
            "SIMPLE",
        ),
        ("DELETE FROM t USING TIMEOUT 0ms WHERE k = 1", "SIMPLE"),
        (
            "UPDATE t USING TIMEOUT 0ms SET v = 2 WHERE k = 1 IF v = 1",
            "CAS",
        ),
        (
            "BEGIN BATCH USING TIMEOUT 0ms INSERT INTO t (k, v) VALUES (2, 1); APPLY BATCH",
            "BATCH",
        ),
    ] {
        let late = error(write);
        assert!(
            matches!(late.kind, ErrorKind::WriteTimeout { write_type, .. } if write_type == expected),
            "{write}: {late:?}"
        );
    }
    let late = error("TRUNCATE t USING TIMEOUT 0ms");
    assert_eq!(late.kind, ErrorKind::TruncateError);
    for timeout in ["'hey'", "-10ms", "1d"] {
        let refused = error(&format!("TRUNCATE t USING TIMEOUT {timeout}"));
        assert_eq!(refused.kind, ErrorKind::Invalid, "{timeout}");
    }
    assert_eq!(fixture.rows("SELECT k, v FROM t"), ["1 | 1"]);
    fixture.run("TRUNCATE t USING TIMEOUT 1h");
    assert!(fixture.rows("SELECT k, v FROM t").is_empty());
}
