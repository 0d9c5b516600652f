//! A CDC log as the official library reads it, with its rows as text.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clock::{Clock, SystemClock};
use futures::future::RemoteHandle;
use scylla::client::session::Session;
use scylla::response::query_result::QueryResult;
use scylla::value::{CqlValue, Row};
use scylla_cdc::consumer::{CDCRow, CDCRowSchema, Consumer, ConsumerFactory, OperationType};
use scylla_cdc::log_reader::{CDCLogReader, CDCLogReaderBuilder};
use uuid::Uuid;

/// The pause after a window was read.
const SLEEP: Duration = Duration::from_millis(20);

/// A row of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRow {
    pub stream: String,
    pub time: Uuid,
    pub batch_sequence: i32,
    pub end_of_batch: bool,
    /// The operation, then `name=value` for set columns, `-name` for deleted columns, `name-{..}`
    /// for deleted elements, by name, and then the `ttl`.
    pub text: String,
}

/// Reads a log from some time up to now, in the order of time.
pub async fn read(
    session: &Arc<Session>,
    keyspace: &str,
    table: &str,
    since: SystemTime,
) -> Vec<LogRow> {
    in_order(delivered(session, keyspace, table, since).await)
}

/// Reads a log from some time up to now, in the order in which the library delivers it.
pub async fn delivered(
    session: &Arc<Session>,
    keyspace: &str,
    table: &str,
    since: SystemTime,
) -> Vec<LogRow> {
    let rows = Rows::default();
    let (_reader, handle) = reader(session, keyspace, table, since, &rows)
        .end_timestamp(end())
        .build()
        .await
        .expect("the reader starts");
    handle.await.expect("the log is read to its end");
    taken(&rows)
}

/// Makes log rows, as the library does, of rows that were read without it.
pub fn understood(rows: QueryResult) -> Vec<LogRow> {
    let rows = rows.into_rows_result().expect("rows");
    let schema = CDCRowSchema::new(rows.column_specs());
    let rows = rows.rows::<Row>().expect("any columns do");
    rows.map(|row| LogRow::of(&CDCRow::from_row(row.expect("a row"), &schema)))
        .collect()
}

/// Reads a log from some time on, beside its writers.
pub struct Following {
    rows: Rows,
    reader: CDCLogReader,
    handle: RemoteHandle<anyhow::Result<()>>,
}

impl Following {
    /// Reads up to the present, which the writes of a cluster may not have reached.
    pub async fn start(
        session: &Arc<Session>,
        keyspace: &str,
        table: &str,
        since: SystemTime,
    ) -> Following {
        Following::behind(Duration::ZERO, session, keyspace, table, since).await
    }

    /// Reads up to that interval before the present.
    pub async fn behind(
        interval: Duration,
        session: &Arc<Session>,
        keyspace: &str,
        table: &str,
        since: SystemTime,
    ) -> Following {
        let rows = Rows::default();
        let (reader, handle) = reader(session, keyspace, table, since, &rows)
            .safety_interval(interval)
            .sleep_interval(SLEEP.max(interval / 20))
            .build()
            .await
            .expect("the reader starts");
        Following {
            rows,
            reader,
            handle,
        }
    }

    /// The number of rows that have been read so far.
    pub fn count(&self) -> usize {
        self.rows.lock().expect("no panic").len()
    }

    /// Ends the reading, and returns all rows up to now in the order in which the library delivered
    /// them.
    pub async fn finish(self) -> Vec<LogRow> {
        self.finish_after(Duration::ZERO).await
    }

    /// Goes on for that long and then [ends](Following::finish).
    pub async fn finish_after(mut self, ahead: Duration) -> Vec<LogRow> {
        self.reader.stop_at(end() + ahead);
        self.handle.await.expect("the log is read to its end");
        taken(&self.rows)
    }
}

type Rows = Arc<Mutex<Vec<LogRow>>>;

fn reader(
    session: &Arc<Session>,
    keyspace: &str,
    table: &str,
    since: SystemTime,
    rows: &Rows,
) -> CDCLogReaderBuilder {
    CDCLogReaderBuilder::new()
        .session(Arc::clone(session))
        .keyspace(keyspace)
        .table_name(table)
        .start_timestamp(since_epoch(since))
        .safety_interval(Duration::ZERO)
        .sleep_interval(SLEEP)
        .consumer_factory(Arc::new(Collectors(Arc::clone(rows))))
}

/// The present, as the library takes it.
pub fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(SystemClock.now_micros().unsigned_abs())
}

/// The present for the library, which counts in milliseconds and leaves the last one out.
fn end() -> Duration {
    since_epoch(now()) + Duration::from_millis(2)
}

fn taken(rows: &Rows) -> Vec<LogRow> {
    rows.lock().expect("no panic").clone()
}

/// Sorts rows by their time and their place in the batch.
pub fn in_order(mut rows: Vec<LogRow>) -> Vec<LogRow> {
    rows.sort_by_key(|row| {
        let time = row.time.get_timestamp().expect("a timeuuid");
        (
            time.to_unix(),
            row.stream.clone(),
            row.time,
            row.batch_sequence,
        )
    });
    rows
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).expect("a time after 1970")
}

struct Collectors(Rows);

#[async_trait::async_trait]
impl ConsumerFactory for Collectors {
    async fn new_consumer(&self) -> Box<dyn Consumer> {
        Box::new(Collector(Arc::clone(&self.0)))
    }
}

struct Collector(Rows);

#[async_trait::async_trait]
impl Consumer for Collector {
    async fn consume_cdc(&mut self, row: CDCRow<'_>) -> anyhow::Result<()> {
        self.0.lock().expect("no panic").push(LogRow::of(&row));
        Ok(())
    }
}

impl LogRow {
    fn of(row: &CDCRow<'_>) -> LogRow {
        LogRow {
            stream: row.stream_id.to_string(),
            time: row.time,
            batch_sequence: row.batch_seq_no,
            end_of_batch: row.end_of_batch,
            text: text(row),
        }
    }
}

fn text(row: &CDCRow<'_>) -> String {
    let mut words = vec![operation(&row.operation).to_owned()];
    let mut names: Vec<&str> = row.get_non_cdc_column_names().collect();
    names.sort_unstable();
    for name in names {
        if row.column_deletable(name) && row.is_value_deleted(name) {
            words.push(format!("-{name}"));
        }
        if let Some(value) = row.get_value(name) {
            words.push(format!("{name}={}", value_text(value)));
        }
        if row.collection_exists(name) {
            let elements = row.get_deleted_elements(name);
            if !elements.is_empty() {
                words.push(format!("{name}-{{{}}}", joined(elements)));
            }
        }
    }
    if let Some(ttl) = row.ttl {
        words.push(format!("ttl={ttl}"));
    }
    words.join(" ")
}

fn operation(operation: &OperationType) -> &'static str {
    match operation {
        OperationType::PreImage => "before",
        OperationType::RowUpdate => "update",
        OperationType::RowInsert => "insert",
        OperationType::RowDelete => "delete-row",
        OperationType::PartitionDelete => "delete-partition",
        OperationType::RowRangeDelInclLeft => "delete-from",
        OperationType::RowRangeDelExclLeft => "delete-after",
        OperationType::RowRangeDelInclRight => "delete-to",
        OperationType::RowRangeDelExclRight => "delete-before",
        OperationType::PostImage => "after",
    }
}

fn value_text(value: &CqlValue) -> String {
    match value {
        CqlValue::Int(number) => number.to_string(),
        CqlValue::Text(text) => text.clone(),
        CqlValue::Float(number) => number.to_string(),
        // The position of a list's element can't be known before.
        CqlValue::Timeuuid(_) => "?".to_owned(),
        CqlValue::Set(values) => format!("{{{}}}", joined(values)),
        CqlValue::List(values) | CqlValue::Vector(values) => format!("[{}]", joined(values)),
        CqlValue::Map(entries) => {
            let entry = |(key, value): &(CqlValue, CqlValue)| {
                format!("{}:{}", value_text(key), value_text(value))
            };
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries.join(","))
        }
        other => panic!("no text for {other:?}"),
    }
}

fn joined(values: &[CqlValue]) -> String {
    let values: Vec<String> = values.iter().map(value_text).collect();
    values.join(",")
}
