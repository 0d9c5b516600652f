//! The workloads of a comparison: a table, a statement, its values, and the number of rows that
//! must come back.

use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;
use scylla::value::CqlValue;

/// Floats of a vector.
const DIMENSIONS: usize = 384;
/// Bytes of a text.
const TEXT_BYTES: usize = 100;
/// Rows of one partition of the tables that are read by slices and scans.
const PARTITION_ROWS: u32 = 100;
/// Rows of each value of an indexed column.
const ROWS_OF_A_VALUE: u32 = 10;
/// Rows that a batch writes.
const BATCH_ROWS: usize = 10;
/// The least number of rows to be read.
pub const ROWS_LEAST: u32 = 10 * PARTITION_ROWS;

/// How much is read and written.
#[derive(Clone, Copy)]
pub struct RunSize {
    /// The rows of the tables that are read.
    pub rows: u32,
    /// The statements of a round.
    pub requests: u32,
}

/// A table, with the rows that are in it before the first round.
#[derive(Clone)]
pub struct FilledTable {
    /// The name within the keyspace `compare`. Workloads of one name share the table.
    pub name: &'static str,
    /// The statements that make it.
    pub create: Vec<String>,
    /// The rows.
    pub fill: Option<TableFill>,
}

/// The rows of a table, written by one statement many times.
#[derive(Clone)]
pub struct TableFill {
    /// The INSERT, or a batch of them.
    pub statement: String,
    /// How often it is executed.
    pub times: u32,
    /// The values of the execution of that number.
    pub values: Arc<dyn Fn(u32) -> Vec<CqlValue>>,
}

/// The answer that is expected.
#[derive(Clone, Copy)]
pub enum ExpectedAnswer {
    /// That many rows. A condition answers with one.
    Rows(usize),
    /// That many rows over all pages; the rate is of rows.
    Scan(usize),
}

/// Makes the values of a statement, by chance or by its number, which rises over all rounds.
pub type Values = dyn Fn(&mut StdRng, u64) -> Vec<CqlValue>;

/// One line of the comparison.
pub struct Workload {
    /// The line's name.
    pub name: String,
    /// The table.
    pub table: FilledTable,
    /// The statement.
    pub statement: String,
    /// The values of each statement.
    pub values: Box<Values>,
    /// The statements of a round.
    pub requests: u32,
    /// The rows to come back.
    pub answer: ExpectedAnswer,
}

impl Workload {
    /// The operations of a round: statements, or rows of a scan.
    pub fn operations(&self) -> f64 {
        let requests = f64::from(self.requests);
        match self.answer {
            ExpectedAnswer::Scan(rows) => requests * rows as f64,
            ExpectedAnswer::Rows(_) => requests,
        }
    }
}

/// A line of the table to write.
struct ResultLine<'a> {
    name: &'a str,
    statement: String,
    requests: u32,
    answer: ExpectedAnswer,
}

impl ResultLine<'_> {
    fn of(
        self,
        table: &FilledTable,
        values: impl Fn(&mut StdRng, u64) -> Vec<CqlValue> + 'static,
    ) -> Workload {
        Workload {
            name: self.name.to_owned(),
            table: table.clone(),
            statement: self.statement,
            values: Box::new(values),
            requests: self.requests.max(1),
            answer: self.answer,
        }
    }
}

/// All workloads, those of a table one after the other.
pub fn all(size: RunSize) -> Vec<Workload> {
    let mut all = Vec::new();
    all.extend(by_key(size, "texts", "text", "100 bytes of text", text));
    let floats = format!("vector<float, {DIMENSIONS}>");
    all.extend(by_key(size, "vectors", &floats, "384 floats", vector));
    all.extend(batches(size));
    all.extend(conditions(size));
    all.extend(partitions(size));
    all.extend(indexes(size));
    all
}

fn bigint(n: impl Into<u64>) -> CqlValue {
    CqlValue::BigInt(i64::try_from(n.into()).unwrap_or(i64::MAX))
}

fn int(n: u32) -> CqlValue {
    CqlValue::Int(i32::try_from(n).unwrap_or(i32::MAX))
}

fn text() -> CqlValue {
    CqlValue::Text("x".repeat(TEXT_BYTES))
}

fn vector() -> CqlValue {
    let floats = (0..DIMENSIONS).map(|n| CqlValue::Float((n as f32).sin()));
    CqlValue::Vector(floats.collect())
}

/// Writes and reads of rows by their keys.
fn by_key(
    size: RunSize,
    table: &'static str,
    kind: &str,
    payload_name: &str,
    payload: fn() -> CqlValue,
) -> [Workload; 2] {
    let (rows, requests) = (size.rows, size.requests);
    let row = move |id: u64| vec![bigint(id), CqlValue::Int(1), payload()];
    let insert = format!("INSERT INTO compare.{table} (id, n, payload) VALUES (?, ?, ?)");
    let create =
        format!("CREATE TABLE compare.{table} (id bigint PRIMARY KEY, n int, payload {kind})");
    let of_rows = FilledTable {
        name: table,
        create: vec![create],
        fill: Some(TableFill {
            statement: insert.clone(),
            times: rows,
            values: Arc::new(move |id| row(u64::from(id))),
        }),
    };
    let line = |name, statement, rows| ResultLine {
        name,
        statement,
        requests,
        answer: ExpectedAnswer::Rows(rows),
    };
    let select = format!("SELECT n, payload FROM compare.{table} WHERE id = ?");
    [
        line(&format!("insert, {payload_name}"), insert, 0)
            .of(&of_rows, move |_, number| row(u64::from(rows) + number)),
        line(&format!("point read, {payload_name}"), select, 1).of(&of_rows, move |random, _| {
            vec![bigint(random.random_range(0..rows))]
        }),
    ]
}

/// Batches of one partition and of several.
fn batches(size: RunSize) -> [Workload; 2] {
    let table = FilledTable {
        name: "batched",
        create: vec![
            "CREATE TABLE compare.batched (p bigint, c int, n int, PRIMARY KEY (p, c))".to_owned(),
        ],
        fill: None,
    };
    let insert = "INSERT INTO compare.batched (p, c, n) VALUES (?, ?, ?);".repeat(BATCH_ROWS);
    let line = |name, kind| ResultLine {
        name,
        statement: format!("BEGIN {kind} {insert} APPLY BATCH"),
        requests: size.requests / 5,
        answer: ExpectedAnswer::Rows(0),
    };
    let rows = |row: fn(u64, u64) -> [CqlValue; 3]| {
        move |_: &mut StdRng, number| {
            (0..BATCH_ROWS as u64)
                .flat_map(|of_batch| row(number, of_batch))
                .collect()
        }
    };
    [
        line("batch, 10 rows of one partition", "UNLOGGED BATCH").of(
            &table,
            rows(|number, row| [bigint(number), int(row as u32), int(1)]),
        ),
        line("logged batch, 10 partitions", "BATCH").of(
            &table,
            rows(|number, row| [bigint(number * BATCH_ROWS as u64 + row), int(0), int(1)]),
        ),
    ]
}

/// Conditional writes.
fn conditions(size: RunSize) -> [Workload; 2] {
    let table = FilledTable {
        name: "conditional",
        create: vec!["CREATE TABLE compare.conditional (id bigint PRIMARY KEY, n int)".to_owned()],
        fill: None,
    };
    let line = |name, statement: &str| ResultLine {
        name,
        statement: statement.to_owned(),
        requests: size.requests / 5,
        answer: ExpectedAnswer::Rows(1),
    };
    [
        line(
            "insert, IF NOT EXISTS",
            "INSERT INTO compare.conditional (id, n) VALUES (?, 0) IF NOT EXISTS",
        )
        .of(&table, |_, number| vec![bigint(number)]),
        line(
            "update, IF of a column",
            "UPDATE compare.conditional SET n = ? WHERE id = ? IF n >= 0",
        )
        .of(&table, |_, number| vec![int(1), bigint(number)]),
    ]
}

/// Reads of partitions and of the whole table.
fn partitions(size: RunSize) -> [Workload; 3] {
    let partitions = size.rows / PARTITION_ROWS;
    let insert = "INSERT INTO compare.parts (p, c, n, payload) VALUES (?, ?, ?, ?);";
    let table = FilledTable {
        name: "parts",
        create: vec![
            "CREATE TABLE compare.parts (p bigint, c int, n int, payload text, PRIMARY KEY (p, c))"
                .to_owned(),
        ],
        fill: Some(TableFill {
            statement: format!(
                "BEGIN UNLOGGED BATCH {} APPLY BATCH",
                insert.repeat(PARTITION_ROWS as usize)
            ),
            times: partitions,
            values: Arc::new(|p| {
                (0..PARTITION_ROWS)
                    .flat_map(|c| [bigint(p), int(c), int(c), text()])
                    .collect()
            }),
        }),
    };
    let partition = move |random: &mut StdRng, _| vec![bigint(random.random_range(0..partitions))];
    let line = |name, statement: &str, requests, answer| ResultLine {
        name,
        statement: statement.to_owned(),
        requests,
        answer,
    };
    let slice = "SELECT c, n, payload FROM compare.parts WHERE p = ? AND c >= 40 AND c < 60";
    let whole = "SELECT c, n, payload FROM compare.parts WHERE p = ? ORDER BY c DESC";
    let scan = "SELECT p, c, n, payload FROM compare.parts";
    let all = ExpectedAnswer::Scan((partitions * PARTITION_ROWS) as usize);
    [
        line(
            "slice, 20 rows",
            slice,
            size.requests,
            ExpectedAnswer::Rows(20),
        )
        .of(&table, partition),
        line(
            "partition backwards, 100 rows",
            whole,
            size.requests / 5,
            ExpectedAnswer::Rows(PARTITION_ROWS as usize),
        )
        .of(&table, partition),
        line("scan of the table, rows", scan, 2, all).of(&table, |_, _| Vec::new()),
    ]
}

/// Reads by secondary indexes.
fn indexes(size: RunSize) -> Vec<Workload> {
    let values = size.rows / ROWS_OF_A_VALUE;
    let of = |name: &'static str, line: &str, index: &str| {
        let table = FilledTable {
            name,
            create: vec![
                format!(
                    "CREATE TABLE compare.{name} (id bigint PRIMARY KEY, city int, payload text)"
                ),
                format!("CREATE {index}"),
            ],
            fill: Some(TableFill {
                statement: format!(
                    "INSERT INTO compare.{name} (id, city, payload) VALUES (?, ?, ?)"
                ),
                times: values * ROWS_OF_A_VALUE,
                values: Arc::new(move |id| vec![bigint(id), int(id % values), text()]),
            }),
        };
        ResultLine {
            name: line,
            statement: format!("SELECT id, payload FROM compare.{name} WHERE city = ?"),
            requests: size.requests / 5,
            answer: ExpectedAnswer::Rows(ROWS_OF_A_VALUE as usize),
        }
        .of(&table, move |random, _| {
            vec![int(random.random_range(0..values))]
        })
    };
    vec![
        of(
            "by_index",
            "read by an index, 10 rows",
            "INDEX ON compare.by_index (city)",
        ),
        of(
            "by_sai",
            "read by an SAI index, 10 rows",
            "INDEX ON compare.by_sai (city) USING 'sai'",
        ),
    ]
}
