//! Writes on their way to the storage.
//!
//! A write of a client waits for the committer no longer than its limit. If it has not begun by
//! then, the client gets a timeout and the write is never carried out. Once it has begun, it is
//! answered when it is done, however long that takes.

use std::time::Duration;

use cql::error::CqlError;
use storage::StorageError;
use storage::mutation::{AtomicWrite, WriteOutcome};

use crate::database::CqlDatabase;
use crate::statement::{ExecutionParameters, deadline, storage_error};

/// The limit of a write.
pub(super) struct WriteDeadline {
    /// The time that the statement gives itself (`USING TIMEOUT`).
    pub own: Option<Duration>,
    /// The kind of write, in the words of the protocol.
    pub write_type: &'static str,
}

/// Hands a write to the storage, and waits for its outcome.
///
/// # Errors
/// Failures of the storage, and a write that does not begin in time.
pub(super) async fn hand_over(
    database: &CqlDatabase,
    write: AtomicWrite,
    parameters: &ExecutionParameters,
    limit: WriteDeadline,
) -> Result<WriteOutcome, CqlError> {
    let of_condition = write.condition.as_ref().map(|condition| condition.table);
    let of_mutation = write.mutations.first().map(|mutation| mutation.table);
    let table = of_condition.or(of_mutation);
    let by_default = match parameters.presence.is_of_client() {
        true => database.timeouts.write,
        false => None,
    };
    let (storage, told_s) = (&database.storage, parameters.client_now_s);
    let outcome = match limit.own.or(by_default) {
        Some(within) => Box::pin(storage.write_within(within, write, told_s)).await,
        None => Box::pin(storage.write_at(write, told_s)).await,
    };
    outcome.map_err(|error| {
        let catalog = database.storage.catalog();
        let table = table.and_then(|table| catalog.table_by_id(table));
        match (&error, table) {
            (StorageError::Late, Some(table)) => {
                deadline::write_timeout(table, parameters, limit.write_type)
            }
            _ => storage_error(error),
        }
    })
}

#[cfg(test)]
mod tests {
    use cpu_scheduler::{CpuScheduler, SchedulerOptions, WorkClass};
    use cql::error::ErrorKind;
    use storage::{Storage, StorageOptions};

    use super::*;
    use crate::planner;
    use crate::statement::{ClientPresence, DefaultTimeouts, ExecutionOutcome, ExecutionResult};
    use crate::system::SystemTables;

    async fn run(
        database: &CqlDatabase,
        cql: &str,
        presence: &ClientPresence,
    ) -> Result<ExecutionResult, CqlError> {
        let parsed = cql::parser::parse_statement(cql)?;
        let plan = planner::prepare(database, None, &parsed)?;
        let parameters = ExecutionParameters {
            presence: presence.clone(),
            ..ExecutionParameters::default()
        };
        plan.execute(database, parameters).await
    }

    #[tokio::test]
    async fn a_write_that_does_not_begin_in_time_is_a_timeout_and_never_carried_out() {
        let directory = tempfile::tempdir().unwrap();
        let turns = CpuScheduler::new(SchedulerOptions {
            at_once_max: Some(1),
            ..SchedulerOptions::of_threads(1)
        });
        let options = StorageOptions {
            cpu_scheduler: turns.clone(),
            ..StorageOptions::default()
        };
        let database = CqlDatabase {
            storage: Storage::open(directory.path(), options).unwrap(),
            system: SystemTables::new(),
            stores: store_api::IndexServices::disabled(),
            access: Default::default(),
            timeouts: DefaultTimeouts {
                write: Some(Duration::ZERO),
                ..DefaultTimeouts::default()
            },
        };
        let own = ClientPresence::default();
        for cql in [
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
            "CREATE TABLE ks.n (k int PRIMARY KEY, n counter)",
        ] {
            run(&database, cql, &own).await.unwrap();
        }

        let client = ClientPresence::of_client();
        // Without a turn the committer begins nothing.
        let held = turns.try_acquire(WorkClass::Query).unwrap();
        for (cql, expected) in [
            ("INSERT INTO ks.t (k, v) VALUES (1, 1)", "SIMPLE"),
            ("INSERT INTO ks.t (k, v) VALUES (2, 1) IF NOT EXISTS", "CAS"),
            ("UPDATE ks.n SET n = n + 1 WHERE k = 1", "COUNTER"),
            (
                "BEGIN BATCH INSERT INTO ks.t (k, v) VALUES (3, 1); APPLY BATCH",
                "BATCH",
            ),
        ] {
            let error = run(&database, cql, &client).await.unwrap_err();
            let ErrorKind::WriteTimeout { write_type, .. } = error.kind else {
                panic!("{cql}: {error}");
            };
            assert_eq!(write_type, expected, "{cql}");
        }
        // Whether its client waits for it or not, a write that can begin is carried out.
        client.end();
        drop(held);
        let longer = "INSERT INTO ks.t (k, v) VALUES (4, 1) USING TIMEOUT 1h";
        run(&database, longer, &client).await.unwrap();
        for (cql, expected) in [("SELECT k FROM ks.t", 1), ("SELECT k FROM ks.n", 0)] {
            let answer = run(&database, cql, &own).await.unwrap();
            let ExecutionOutcome::Rows(rows) = answer.outcome else {
                panic!("no rows");
            };
            assert_eq!(rows.count, expected, "{cql}");
        }
    }
}
