//! Keeps a session to the database open: opens it, notices its loss, opens another.
//!
//! The driver mends single connections by itself. When the database as a whole doesn't answer, the
//! session is given up. Discovery notices this, as it queries the database all the time. Another
//! session is tried at once and then at growing intervals, so that the service is back soon after
//! the database is.
//!
//! When addresses, credentials or certificates change, a session is opened with the new ones first.
//! The current session stays until then, so a wrong password in a file does no harm.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::session_target::SessionTarget;
use crate::counters::EventCounters;
use crate::indexes::IndexEngine;

/// The longest pause between two tries, as a multiple of the shortest.
const BACK_OFF_MAX: u32 = 10;

/// The number of connections that opening a session may take in addition to one to each contact
/// point: those for the schema and for the shards. The time limit is the connect timeout times the
/// number of all. The driver itself sets no limit to a TLS handshake.
const MORE_CONNECTIONS: usize = 5;

/// The interval at which the same failure is logged.
const NEWS_INTERVAL: Duration = Duration::from_secs(60);

/// A session to the database.
pub(super) struct DbSession {
    /// The driver's session.
    pub session: Arc<Session>,
    /// The number of the session. Prepared statements belong to one session.
    pub generation: u64,
    counts: StatementCounts,
}

/// The statements of a session. Those of the library that reads logs are not among them.
#[derive(Default)]
struct StatementCounts {
    executed: AtomicU64,
    failed: AtomicU64,
}

impl DbSession {
    fn new(session: Session, generation: u64) -> DbSession {
        DbSession {
            session: Arc::new(session),
            generation,
            counts: StatementCounts::default(),
        }
    }

    /// Counts a statement by its answer, and returns that.
    pub(super) fn counted<T, E>(&self, answer: Result<T, E>) -> Result<T, E> {
        self.counts.executed.fetch_add(1, Ordering::Relaxed);
        if answer.is_err() {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

/// A handle that gives the current session.
#[derive(Clone)]
pub(super) struct DbHandle {
    sessions: watch::Receiver<Option<Arc<DbSession>>>,
    lost: mpsc::Sender<u64>,
}

impl DbHandle {
    /// The current session; waits while there is none. Never returns once the service stops.
    pub(super) async fn current(&self) -> Arc<DbSession> {
        let mut sessions = self.sessions.clone();
        loop {
            if let Some(db) = sessions.borrow_and_update().clone() {
                return db;
            }
            if sessions.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The facts about the current session, by name; none while there is no session.
    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let Some(db) = self.sessions.borrow().clone() else {
            return BTreeMap::new();
        };
        let state = db.session.get_cluster_state();
        let nodes = state.get_nodes_info();
        let connected = nodes.iter().filter(|node| node.is_connected());
        // The driver keeps one connection to each shard, and one more for the schema.
        let shards = connected.clone().map(|node| {
            let sharder = node.sharder();
            sharder.map_or(1, |sharder| u64::from(sharder.nr_shards.get()))
        });
        let connections = shards.sum::<u64>() + u64::from(connected.clone().next().is_some());
        let connected = connected.count();
        let counts = [
            ("sessions", db.generation),
            ("nodes", nodes.len() as u64),
            ("nodes_connected", connected as u64),
            ("total-connections", connections),
            ("statements", db.counts.executed.load(Ordering::Relaxed)),
            (
                "statements_failed",
                db.counts.failed.load(Ordering::Relaxed),
            ),
        ];
        let counts = counts.into_iter();
        counts
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }

    /// Waits until the session with the number `generation` is no longer the current one. Never
    /// ends once the service stops.
    pub(super) async fn replaced(&self, generation: u64) {
        let mut sessions = self.sessions.clone();
        let replaced =
            |db: &Option<Arc<DbSession>>| db.as_ref().is_none_or(|db| db.generation != generation);
        if sessions.wait_for(replaced).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Reports that the database doesn't answer on the session with the number `generation`.
    pub(super) fn report_lost(&self, generation: u64) {
        // A report that finds no room is not needed, as another one waits.
        let _ = self.lost.try_send(generation);
    }
}

/// Returns the handle of a session and a future that keeps the session open until the token is
/// cancelled.
pub(super) fn start(
    targets: watch::Receiver<SessionTarget>,
    engine: Arc<IndexEngine>,
    cancel: CancellationToken,
) -> (DbHandle, impl Future<Output = ()>) {
    let (sessions, receiver) = watch::channel(None);
    let ended = sessions.clone();
    let (lost_sender, lost) = mpsc::channel(1);
    let handle = DbHandle {
        sessions: receiver,
        lost: lost_sender,
    };
    let keeper = ReconnectTask {
        targets,
        engine,
        sessions,
        lost,
        generation: 0,
    };
    (handle, async move {
        cancel.run_until_cancelled(keeper.run()).await;
        // Handles outlive the service. The driver of a session that they still had would go on
        // talking to the database, and complain when that stops.
        ended.send_replace(None);
    })
}

/// Keeps a session open.
struct ReconnectTask {
    targets: watch::Receiver<SessionTarget>,
    engine: Arc<IndexEngine>,
    sessions: watch::Sender<Option<Arc<DbSession>>>,
    lost: mpsc::Receiver<u64>,
    /// The number of the session that was opened last.
    generation: u64,
}

impl ReconnectTask {
    async fn run(mut self) {
        self.engine.set_connected(false);
        loop {
            let session = self.open().await;
            let is_behind_gateways = log_version(&session).await;
            self.engine.set_behind_gateways(is_behind_gateways);
            self.generation += 1;
            let db = DbSession::new(session, self.generation);
            self.sessions.send_replace(Some(Arc::new(db)));
            self.engine.set_connected(true);
            self.wait().await;
        }
    }

    /// Opens a session to the current target, however long it takes. Starts again when the target
    /// changes.
    async fn open(&mut self) -> Session {
        loop {
            let target = self.targets.borrow_and_update().clone();
            let counters = self.engine.metrics().counters().clone();
            let opened = connect(&target, &counters);
            tokio::pin!(opened);
            loop {
                tokio::select! {
                    session = &mut opened => return session,
                    () = changed(&mut self.targets) => break,
                    generation = lost(&mut self.lost) => {
                        if generation == self.generation {
                            self.give_up();
                        }
                    }
                }
            }
        }
    }

    /// Waits until another session is needed.
    async fn wait(&mut self) {
        loop {
            tokio::select! {
                () = changed(&mut self.targets) => {
                    tracing::info!("the database's address or credentials changed; connecting anew");
                    return;
                }
                generation = lost(&mut self.lost) => {
                    if generation == self.generation {
                        self.give_up();
                        return;
                    }
                }
            }
        }
    }

    fn give_up(&mut self) {
        if self.sessions.send_replace(None).is_some() {
            tracing::warn!("the database does not answer; connecting again");
            self.engine.set_connected(false);
        }
    }
}

/// Waits for the next report of a loss. Never returns once no handle is left.
async fn lost(lost: &mut mpsc::Receiver<u64>) -> u64 {
    match lost.recv().await {
        Some(generation) => generation,
        None => std::future::pending().await,
    }
}

/// Waits for the next change of the target. Never returns once nothing can change it.
async fn changed(targets: &mut watch::Receiver<SessionTarget>) {
    if targets.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Tries to open a session until it succeeds.
async fn connect(target: &SessionTarget, counters: &EventCounters) -> Session {
    let mut told: Option<(Instant, String)> = None;
    let mut pause = target.options.reconnect_interval;
    loop {
        let error = match open_in_time(target).await {
            Ok(session) => {
                counters.count_named(|| "session-create-success".to_owned());
                return session;
            }
            Err(error) => error,
        };
        counters.count_named(|| "session-create-failure".to_owned());
        let news = told
            .as_ref()
            .is_none_or(|(when, what)| *what != error || when.elapsed() >= NEWS_INTERVAL);
        if news {
            tracing::warn!(error, contact_points = ?target.options.contact_points, "no session to the database");
            told = Some((Instant::now(), error));
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(BACK_OFF_MAX * target.options.reconnect_interval);
    }
}

/// Tries once to open a session, for a limited time.
async fn open_in_time(target: &SessionTarget) -> Result<Session, String> {
    let options = &target.options;
    let connections = options.contact_points.len() + MORE_CONNECTIONS;
    let connections = u32::try_from(connections).unwrap_or(u32::MAX);
    let time = options.connect_timeout.saturating_mul(connections);
    match tokio::time::timeout(time, target.open()).await {
        Ok(opened) => opened.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no session was open after {time:?}")),
    }
}

/// Logs the version of the database. A database that isn't ScyllaDB has none.
///
/// Returns whether the database is Apache Cassandra with gateways. It refuses this query, which
/// every ScyllaDB answers.
async fn log_version(session: &Session) -> bool {
    const VERSION: &str = "SELECT version FROM system.versions WHERE key = 'local'";
    let answer = session.query_unpaged(VERSION, ()).await;
    let is_refused = matches!(
        &answer,
        Err(ExecutionError::LastAttemptError(
            RequestAttemptError::DbError(DbError::Invalid, _)
        ))
    );
    let rows = answer
        .ok()
        .and_then(|answer| answer.into_rows_result().ok());
    let version = rows.and_then(|rows| rows.maybe_first_row::<(Option<String>,)>().ok()??.0);
    match version {
        Some(version) => tracing::info!(version, "connected to the database"),
        None => tracing::info!("connected to a database that has no system.versions"),
    }
    is_refused
}

#[cfg(test)]
mod tests {
    use net::tls::authority::TestAuthority;

    use super::*;
    use crate::options::DatabaseOptions;

    #[tokio::test]
    async fn a_database_that_never_shakes_hands_is_given_up() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let options = DatabaseOptions {
            contact_points: vec![silent.local_addr().unwrap().to_string()],
            connect_timeout: Duration::from_millis(20),
            certificate_authorities: Some(TestAuthority::new().pem()),
            ..DatabaseOptions::default()
        };
        let target = SessionTarget::new(options).unwrap();
        let opened = tokio::time::timeout(Duration::from_secs(20), open_in_time(&target));
        let error = opened.await.expect("it ends").err().unwrap();
        assert!(error.contains("no session was open after 120ms"), "{error}");
    }
}
