//! Reads of a CDC log wait for the writes that could still add rows to what they read.
//!
//! A reader of the log goes from window to window of `cdc$time` and never back. So a read first
//! asks the storage to settle the log up to the end of the window; after that no row can come to
//! lie in it.
//!
//! A reader that comes again and again finds nothing most times. To one that does nothing else
//! ([`Parameters::follows_logs`](crate::query::Parameters::follows_logs)) an answer without rows is given only when there is something to come back for, or after a
//! while: the answer is as true as it was, and an idle database is idle.

use std::time::Duration;

use cql::error::CqlError;
use cql::value::timeuuid;
use storage::Storage;
use storage::catalog::Table;
use storage::read::{ClusteringBound, ClusteringSlice};
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use crate::clock::StatementClock;
use crate::failure::storage_error;
use crate::system;

/// How long an answer without rows of a log waits for a write: a reader says how far it is by what it was answered.
const ROWS_PATIENCE: Duration = Duration::from_millis(200);
/// A window of a log that ended so shortly ago ends at what is the present to its reader.
const PRESENT: Duration = Duration::from_secs(1);
/// How long an answer without newer streams waits for a change of the schema, which alone brings some.
const STREAMS_PATIENCE: Duration = Duration::from_secs(1);

/// What a follower of a log waits for that is answered without rows.
pub(super) enum Awaited {
    /// A row of some log at or after this time, in microseconds since the epoch.
    Rows(i64),
    /// A change of the schema.
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
            let is_present = clock.micros() - end < PRESENT.as_micros() as i64;
            return is_present.then_some(Awaited::Rows(end.saturating_sub(1)));
        }
        system::tells_of_streams(table).then(|| Awaited::Streams(storage.schema_changes()))
    }

    /// Waits for it, for a while.
    pub(super) async fn wait(self, storage: &Storage) {
        // Whether it came or not, there is nothing more to say.
        let _ = match self {
            Awaited::Rows(from_micros) => {
                timeout(ROWS_PATIENCE, storage.log_growth(from_micros)).await
            }
            Awaited::Streams(mut changes) => {
                let changed = async { drop(changes.changed().await) };
                timeout(STREAMS_PATIENCE, changed).await
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

fn end_of(bound: &ClusteringBound) -> Option<i64> {
    let (ClusteringBound::Inclusive(prefix) | ClusteringBound::Exclusive(prefix)) = bound else {
        return None;
    };
    let bytes: [u8; 16] = prefix.first()?.as_ref().try_into().ok()?;
    Some(timeuuid::unix_micros(&Uuid::from_bytes(bytes)).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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

    /// A database with a table that has a log, and its log.
    async fn database(directory: &tempfile::TempDir) -> (Database, Arc<Table>) {
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
        run(
            &database,
            "CREATE TABLE ks.t (p int PRIMARY KEY) WITH cdc = {'enabled': true}",
        )
        .await;
        let catalog = database.storage.catalog();
        let log = catalog.table("ks", "t_scylla_cdc_log").unwrap().clone();
        (database, log)
    }

    async fn run(database: &Database, cql: &str) {
        let parsed = cql::parser::parse_statement(cql).unwrap();
        let plan = query::prepare(database, None, &parsed).unwrap();
        plan.execute(database, Parameters::default()).await.unwrap();
    }

    /// By the runtime's clock, which stands still while anything is done and jumps to the end of what is waited for.
    async fn waited(awaited: Awaited, storage: &Storage) -> Duration {
        let began = tokio::time::Instant::now();
        awaited.wait(storage).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn without_rows_there_is_a_wait_for_a_write_behind_the_window() {
        let directory = tempfile::tempdir().unwrap();
        let (database, log) = database(&directory).await;
        let storage = &database.storage;
        let clock = StatementClock::start();
        let now_ms = clock.micros() / 1_000;
        let by = |table: &Table, slices: &[_]| Awaited::by(storage, table, slices, &clock);
        let rows = || by(&log, &[until(now_ms)]).unwrap();
        assert!(waited(rows(), storage).await >= ROWS_PATIENCE);
        run(&database, "INSERT INTO ks.t (p) VALUES (1)").await;
        assert_eq!(waited(rows(), storage).await, Duration::ZERO);
        // Who is behind goes on, and what has no end has been answered with all that there is.
        assert!(by(&log, &[until(now_ms - 60_000)]).is_none());
        assert!(by(&log, &[]).is_none());
        let catalog = storage.catalog();
        let table = catalog.table("ks", "t").unwrap();
        assert!(by(table, &[until(now_ms)]).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn without_newer_streams_there_is_a_wait_for_a_change_of_the_schema() {
        let directory = tempfile::tempdir().unwrap();
        let (database, _) = database(&directory).await;
        let storage = &database.storage;
        let tables = [
            ("system", "cdc_timestamps"),
            ("system_distributed", "cdc_generation_timestamps"),
        ];
        for (keyspace, name) in tables {
            let table = database.system.table(keyspace, name).unwrap();
            let clock = StatementClock::start();
            let streams = || Awaited::by(storage, table, &[], &clock).unwrap();
            assert!(waited(streams(), storage).await >= STREAMS_PATIENCE);
            let awaited = streams();
            run(&database, "ALTER TABLE ks.t ADD v int").await;
            assert_eq!(waited(awaited, storage).await, Duration::ZERO);
            run(&database, "ALTER TABLE ks.t DROP v").await;
        }
    }
}
