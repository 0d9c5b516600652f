//! Reads of a CDC log wait for the writes that could still add rows to what they read.
//!
//! A reader of the log goes from window to window of `cdc$time` and never back. So a read first
//! asks the storage to settle the log up to the end of the window; after that no row can come to
//! lie in it.
//!
//! A reader that comes again and again finds nothing most times. To one that does nothing else (it
//! [follows logs](crate::query::Parameters::follows_logs)) an answer without rows is given only when
//! there is something to come back for, or after a while: the answer is as true as it was, and an idle
//! database is idle.

use std::time::Duration;

use cql::error::CqlError;
use cql::value::timeuuid;
use storage::Storage;
use storage::catalog::{Table, TableId};
use storage::read::{ClusteringBound, ClusteringSlice};
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use crate::clock::StatementClock;
use crate::failure::storage_error;
use crate::system;

/// How long an answer waits: a reader says how far it is by what it was answered, and a node that stops answers what it was asked.
const PATIENCE: Duration = Duration::from_millis(200);
/// A window of a log that ended so shortly ago ends at what is the present to its reader.
const PRESENT: Duration = Duration::from_secs(1);

/// What a follower of a log waits for that is answered without rows.
pub(super) enum Awaited {
    /// A row of a log at or after a time, in microseconds since the epoch.
    Rows { log: TableId, from_micros: i64 },
    /// A change of the schema, which alone brings streams.
    Streams(watch::Receiver<()>),
}

impl Awaited {
    /// What there is to wait for, as of before the read; nothing for a reader that is behind, and wants to go on.
    pub(super) fn by(
        storage: &Storage,
        table: &Table,
        slices: &[ClusteringSlice],
        clock: &StatementClock,
    ) -> Option<Awaited> {
        if table.log_of.is_some() {
            let end = end_micros(slices)?;
            // The reader goes by the machine's clock, which may be behind.
            let now = clock.micros() - clock.lead_micros();
            let is_present = now - end < PRESENT.as_micros() as i64;
            return is_present.then_some(Awaited::Rows {
                log: table.id,
                from_micros: end.saturating_sub(1),
            });
        }
        let newer = !slices.is_empty() && slices.iter().all(are_newer);
        (newer && system::tells_of_streams(table))
            .then(|| Awaited::Streams(storage.schema_changes()))
    }

    /// Waits for it, for a while.
    pub(super) async fn wait(self, storage: &Storage) {
        // Whether it came or not, there is nothing more to say.
        let _ = match self {
            Awaited::Rows { log, from_micros } => {
                timeout(PATIENCE, storage.log_growth(log, from_micros)).await
            }
            Awaited::Streams(mut changes) => {
                let changed = async { drop(changes.changed().await) };
                timeout(PATIENCE, changed).await
            }
        };
    }
}

/// Settles the log up to the last `cdc$time` that the slices hold, or to the present if they are
/// open or reach beyond it.
pub(super) async fn settle(
    storage: &Storage,
    slices: &[ClusteringSlice],
    clock: &StatementClock,
) -> Result<(), CqlError> {
    let until = end_micros(slices).map_or(clock.micros(), |end| end.min(clock.micros()));
    storage.settle_log(until).await.map_err(storage_error)
}

/// The first microsecond behind all slices; `None` if they have no end.
fn end_micros(slices: &[ClusteringSlice]) -> Option<i64> {
    let ends: Option<Vec<i64>> = slices.iter().map(|slice| end_of(&slice.end)).collect();
    ends?.into_iter().max()
}

/// Whether a slice of a table with the latest first is of what is later than something. Of what is earlier, streams that
/// come will be none.
fn are_newer(slice: &ClusteringSlice) -> bool {
    let is_open = |bound| matches!(bound, &ClusteringBound::Unbounded);
    is_open(&slice.start) && !is_open(&slice.end)
}

fn end_of(bound: &ClusteringBound) -> Option<i64> {
    let (ClusteringBound::Inclusive(prefix) | ClusteringBound::Exclusive(prefix)) = bound else {
        return None;
    };
    let bytes: [u8; 16] = prefix.first()?.as_ref().try_into().ok()?;
    Some(timeuuid::unix_micros(&Uuid::from_bytes(bytes)).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use storage::StorageOptions;

    use super::*;
    use crate::query::{self, Database, Parameters};
    use crate::system::SystemTables;

    fn until(millis: i64) -> ClusteringSlice {
        let uuid = timeuuid::min_for_millis(millis).unwrap();
        ClusteringSlice {
            start: ClusteringBound::Unbounded,
            end: ClusteringBound::Exclusive(vec![Bytes::copy_from_slice(uuid.as_bytes())]),
        }
    }

    #[test]
    fn the_latest_end_counts() {
        assert_eq!(end_micros(&[until(5), until(3)]), Some(5_001));
        let open = ClusteringSlice {
            end: ClusteringBound::Unbounded,
            ..until(1)
        };
        assert_eq!(end_micros(&[until(5), open]), None);
        assert_eq!(end_micros(&[]), None);
    }

    /// A database with a table that has a log.
    async fn database(directory: &tempfile::TempDir) -> Database {
        let storage = Storage::open(&directory.path().join("data"), StorageOptions::default());
        let database = Database {
            storage: storage.unwrap(),
            system: SystemTables::new(),
            stores: store_api::Client::disabled().into(),
        };
        run(
            &database,
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        )
        .await;
        for table in ["t", "other"] {
            let table = format!("CREATE TABLE ks.{table} (p int PRIMARY KEY)");
            run(&database, &(table + " WITH cdc = {'enabled': true}")).await;
        }
        database
    }

    async fn run(database: &Database, cql: &str) {
        let parsed = cql::parser::parse_statement(cql).unwrap();
        let plan = query::prepare(database, None, &parsed).unwrap();
        let parameters = Parameters {
            follows_logs: true,
            ..Parameters::default()
        };
        plan.execute(database, parameters).await.unwrap();
    }

    /// How long a statement of a follower takes, by the runtime's clock: it stands still while anything is done, and jumps to
    /// the end of what is waited for.
    async fn waited(database: &Database, cql: &str) -> Duration {
        let began = tokio::time::Instant::now();
        run(database, cql).await;
        began.elapsed()
    }

    /// What the CDC library asks for, from a minute ago to then.
    fn window(end_ms: i64) -> String {
        format!(
            "SELECT * FROM ks.t_scylla_cdc_log WHERE \"cdc$stream_id\" IN (0x00, 0x01) \
             AND \"cdc$time\" >= minTimeuuid({}) AND \"cdc$time\" < minTimeuuid({end_ms}) BYPASS CACHE",
            end_ms - 60_000
        )
    }

    #[tokio::test(start_paused = true)]
    async fn without_rows_there_is_a_wait_for_a_write_behind_the_window() {
        let directory = tempfile::tempdir().unwrap();
        let database = database(&directory).await;
        let now_ms = StatementClock::start(database.storage.clock()).micros() / 1_000;
        assert!(waited(&database, &window(now_ms)).await >= PATIENCE);
        // Who is behind goes on, and what has no end has been answered with all that there is.
        assert_eq!(
            waited(&database, &window(now_ms - 60_000)).await,
            Duration::ZERO
        );
        let all = "SELECT * FROM ks.t_scylla_cdc_log WHERE \"cdc$stream_id\" = 0x00";
        assert_eq!(waited(&database, all).await, Duration::ZERO);
        let row = "SELECT * FROM ks.t WHERE p = 1";
        assert_eq!(waited(&database, row).await, Duration::ZERO);
        let other = "INSERT INTO ks.other (p) VALUES (1)";
        run(&database, other).await;
        assert!(
            waited(&database, &window(now_ms)).await >= PATIENCE,
            "another log's"
        );
        // The streams are others: there is none of its rows, and the next window may have some.
        run(&database, "INSERT INTO ks.t (p) VALUES (1)").await;
        assert_eq!(waited(&database, &window(now_ms)).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn without_newer_streams_there_is_a_wait_for_a_change_of_the_schema() {
        let directory = tempfile::tempdir().unwrap();
        let database = database(&directory).await;
        let now_ms = StatementClock::start(database.storage.clock()).micros() / 1_000;
        let tablets = "timestamp FROM system.cdc_timestamps WHERE keyspace_name = 'ks' AND table_name = 't' AND timestamp";
        let ring = "time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps' AND time";
        for table in [tablets, ring] {
            let column = table.rsplit(' ').next().unwrap();
            let newer = format!("SELECT {table} > {now_ms} ORDER BY {column} ASC LIMIT 1");
            assert!(waited(&database, &newer).await >= PATIENCE);
            // There were none then, and there will be none.
            let older = format!("SELECT {table} <= 1 ORDER BY {column} DESC LIMIT 1");
            assert_eq!(waited(&database, &older).await, Duration::ZERO);
        }
        let storage = &database.storage;
        let awaited = Awaited::Streams(storage.schema_changes());
        run(&database, "ALTER TABLE ks.t ADD v int").await;
        let began = tokio::time::Instant::now();
        awaited.wait(storage).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
