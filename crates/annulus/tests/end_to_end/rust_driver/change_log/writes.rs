//! Writes of every kind, with the log rows that each has to make.

use scylla::client::session::Session;
use scylla::statement::batch::{Batch, BatchType};

/// A write, in one of the forms that clients send.
pub enum Write {
    Text(String),
    /// A prepared statement with its values.
    Bound(&'static str, &'static [i32]),
    /// A batch of statements, which are prepared if they have values.
    Batch(BatchType, &'static [(&'static str, &'static [i32])]),
}

impl Write {
    pub async fn carry_out(&self, session: &Session) {
        let prepare = async |text: &str| match session.prepare(text).await {
            Ok(statement) => statement,
            Err(error) => panic!("{text}: {error}"),
        };
        let result = match self {
            Write::Text(text) => session.query_unpaged(text.as_str(), ()).await,
            Write::Bound(text, values) => {
                let statement = prepare(text).await;
                session.execute_unpaged(&statement, *values).await
            }
            Write::Batch(kind, statements) => {
                let mut batch = Batch::new(*kind);
                for (text, values) in *statements {
                    match values.is_empty() {
                        true => batch.append_statement(*text),
                        false => batch.append_statement(prepare(text).await),
                    }
                }
                let values: Vec<&[i32]> = statements.iter().map(|(_, values)| *values).collect();
                session.batch(&batch, values).await
            }
        };
        result.expect("it is written");
    }
}

fn text(statement: &str) -> Write {
    Write::Text(statement.to_owned())
}

/// All writes in order, each with the log rows that it has to make. Two neighbours never make the
/// same.
#[expect(
    clippy::too_many_lines,
    reason = "one table: each write with its log rows"
)]
pub fn writes() -> Vec<(Write, Vec<&'static str>)> {
    use Write::{Batch, Bound};
    let large = "x".repeat(6_000);
    let large = format!("INSERT INTO t (p, c, x) VALUES (1, 12, '{large}')");
    vec![
        (
            text("INSERT INTO t (p, c, v) VALUES (1, 1, [1, 2])"),
            vec!["insert c=1 p=1"],
        ),
        (
            Bound("INSERT INTO t (p, c, n) VALUES (1, ?, ?)", &[2, 5]),
            vec!["insert c=2 p=1"],
        ),
        (
            text("UPDATE t SET x = 'b' WHERE p = 1 AND c = 1"),
            vec!["update c=1 p=1"],
        ),
        (
            text("UPDATE t SET v = null WHERE p = 1 AND c = 2"),
            vec!["update c=2 p=1"],
        ),
        (
            text("DELETE x FROM t WHERE p = 1 AND c = 1"),
            vec!["update c=1 p=1"],
        ),
        (
            Bound("UPDATE t SET st = ? WHERE p = ?", &[9, 1]),
            vec!["update p=1"],
        ),
        (
            text("UPDATE t SET s = s + {7} WHERE p = 1 AND c = 3"),
            vec!["update c=3 p=1"],
        ),
        (
            text("INSERT INTO t (p, c, n) VALUES (1, 3, 1) USING TTL 9000"),
            vec!["insert c=3 p=1"],
        ),
        // A timestamp of long ago does not change the order.
        (
            text("INSERT INTO t (p, c, n) VALUES (1, 4, 1) USING TIMESTAMP 1"),
            vec!["insert c=4 p=1"],
        ),
        (
            Bound("UPDATE t SET n = 1 WHERE p IN (1, ?) AND c IN (1, 2)", &[2]),
            vec![
                "update c=1 p=1",
                "update c=2 p=1",
                "update c=1 p=2",
                "update c=2 p=2",
            ],
        ),
        // Conditions.
        (
            Bound(
                "INSERT INTO t (p, c, n) VALUES (1, ?, 1) IF NOT EXISTS",
                &[5],
            ),
            vec!["insert c=5 p=1"],
        ),
        (
            text("UPDATE t SET n = 2 WHERE p = 1 AND c = 5 IF n = 1"),
            vec!["update c=5 p=1"],
        ),
        (
            text("INSERT INTO t (p, c, n) VALUES (1, 5, 1) IF NOT EXISTS"),
            vec!["insert c=5 p=1"],
        ),
        (
            text("DELETE FROM t WHERE p = 1 AND c = 5 IF EXISTS"),
            vec!["delete-row c=5 p=1"],
        ),
        // Batches.
        (
            Batch(
                BatchType::Logged,
                &[
                    ("INSERT INTO t (p, c, n) VALUES (1, ?, ?)", &[6, 1]),
                    ("UPDATE t SET n = 2 WHERE p = 1 AND c = 7", &[]),
                    ("DELETE FROM t WHERE p = 1 AND c = ?", &[4]),
                    ("INSERT INTO t (p, c, n) VALUES (2, 1, 1)", &[]),
                ],
            ),
            vec![
                "insert c=6 p=1",
                "update c=7 p=1",
                "delete-row c=4 p=1",
                "insert c=1 p=2",
            ],
        ),
        (
            Batch(
                BatchType::Unlogged,
                &[
                    ("INSERT INTO t (p, c, n) VALUES (1, 8, 1)", &[]),
                    ("INSERT INTO t (p, c, n) VALUES (1, ?, 1)", &[9]),
                ],
            ),
            vec!["insert c=8 p=1", "insert c=9 p=1"],
        ),
        (
            text(
                "BEGIN BATCH INSERT INTO t (p, c, n) VALUES (1, 10, 1); DELETE FROM t WHERE p = 1 AND c = 9; APPLY BATCH",
            ),
            vec!["insert c=10 p=1", "delete-row c=9 p=1"],
        ),
        (
            Batch(
                BatchType::Unlogged,
                &[
                    (
                        "INSERT INTO t (p, c, n) VALUES (1, 11, 1) IF NOT EXISTS",
                        &[],
                    ),
                    ("UPDATE t SET n = ? WHERE p = 1 AND c = 10", &[2]),
                ],
            ),
            vec!["insert c=11 p=1", "update c=10 p=1"],
        ),
        // A write that is too large for a batch with its log rows.
        (Write::Text(large), vec!["insert c=12 p=1"]),
        // Deletes.
        (
            Bound("DELETE FROM t WHERE p = 1 AND c = ?", &[1]),
            vec!["delete-row c=1 p=1"],
        ),
        (
            Bound("DELETE FROM t WHERE p = 1 AND c >= ? AND c < ?", &[6, 8]),
            vec!["delete-from p=1", "delete-to p=1"],
        ),
        (
            text("DELETE FROM t WHERE p = 1 AND c IN (8, 10)"),
            vec!["delete-row c=8 p=1", "delete-row c=10 p=1"],
        ),
        (
            text("DELETE FROM t WHERE p = 1"),
            vec!["delete-partition p=1"],
        ),
        (
            Bound("DELETE FROM t WHERE p = ?", &[77]),
            vec!["delete-partition p=77"],
        ),
    ]
}
