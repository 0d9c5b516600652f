//! The session to the database: opened, lost, opened again.
//!
//! The driver mends single connections by itself. When the database as a whole doesn't answer,
//! which discovery notices as it asks all the time, the session is given up and another is opened
//! at once and then at growing intervals, so that the service is back soon after the database is.
//!
//! When addresses, credentials or certificates change, a session is opened with the new ones first.
//! The one that works stays until then: a wrong password in a file takes nothing away.

use std::sync::Arc;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::target::Target;
use crate::engine::Engine;

/// The longest pause between two tries, in the shortest.
const BACK_OFF_MAX: u32 = 10;

/// A session may take as long to open as one connection to each contact point, and so many more:
/// those for the schema and for the shards. The driver itself sets no limit to a TLS handshake.
const MORE_CONNECTIONS: usize = 5;

/// How often the log hears of the same failure.
const NEWS_INTERVAL: Duration = Duration::from_secs(60);

/// A session to the database.
pub struct Db {
    /// The driver's session.
    pub session: Arc<Session>,
    /// Counts the sessions: what is prepared belongs to one.
    pub generation: u64,
}

/// The way to the current session.
#[derive(Clone)]
pub struct DbHandle {
    sessions: watch::Receiver<Option<Arc<Db>>>,
    lost: mpsc::Sender<u64>,
}

impl DbHandle {
    /// The current session; waits while there is none. Never returns once the service stops.
    pub async fn current(&self) -> Arc<Db> {
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

    /// Waits until that session is no longer the current one. Never ends once the service stops.
    pub async fn replaced(&self, generation: u64) {
        let mut sessions = self.sessions.clone();
        let replaced =
            |db: &Option<Arc<Db>>| db.as_ref().is_none_or(|db| db.generation != generation);
        if sessions.wait_for(replaced).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Says that the database doesn't answer on that session.
    pub fn report_lost(&self, generation: u64) {
        // A report that finds no room says what others have said already.
        let _ = self.lost.try_send(generation);
    }
}

/// Keeps a session open until the token is cancelled.
pub fn start(
    targets: watch::Receiver<Target>,
    engine: Arc<Engine>,
    cancel: CancellationToken,
) -> (DbHandle, impl Future<Output = ()>) {
    let (sessions, receiver) = watch::channel(None);
    let (lost_sender, lost) = mpsc::channel(1);
    let handle = DbHandle {
        sessions: receiver,
        lost: lost_sender,
    };
    let keeper = Keeper {
        targets,
        engine,
        sessions,
        lost,
        generation: 0,
    };
    (handle, async move {
        cancel.run_until_cancelled(keeper.run()).await;
    })
}

/// Keeps a session open.
struct Keeper {
    targets: watch::Receiver<Target>,
    engine: Arc<Engine>,
    sessions: watch::Sender<Option<Arc<Db>>>,
    lost: mpsc::Receiver<u64>,
    /// Of the session that was opened last.
    generation: u64,
}

impl Keeper {
    async fn run(mut self) {
        self.engine.set_connected(false);
        loop {
            let session = self.open().await;
            let is_behind_gateways = log_version(&session).await;
            self.engine.set_behind_gateways(is_behind_gateways);
            self.generation += 1;
            self.sessions.send_replace(Some(Arc::new(Db {
                session: Arc::new(session),
                generation: self.generation,
            })));
            self.engine.set_connected(true);
            self.wait().await;
        }
    }

    /// Opens a session to what is the target by then, however long it takes.
    async fn open(&mut self) -> Session {
        loop {
            let target = self.targets.borrow_and_update().clone();
            let opened = connect(&target);
            tokio::pin!(opened);
            loop {
                tokio::select! {
                    session = &mut opened => return session,
                    _ = changed(&mut self.targets) => break,
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

/// The next report of a loss; never, once nobody is left to report.
async fn lost(lost: &mut mpsc::Receiver<u64>) -> u64 {
    match lost.recv().await {
        Some(generation) => generation,
        None => std::future::pending().await,
    }
}

/// The next change of the target; never, once nobody is left to change it.
async fn changed(targets: &mut watch::Receiver<Target>) {
    if targets.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Tries until it succeeds.
async fn connect(target: &Target) -> Session {
    let mut told: Option<(Instant, String)> = None;
    let mut pause = target.options.reconnect_interval;
    loop {
        let error = match open_in_time(target).await {
            Ok(session) => return session,
            Err(error) => error,
        };
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

/// Tries once.
async fn open_in_time(target: &Target) -> Result<Session, String> {
    let options = &target.options;
    let connections = options.contact_points.len() + MORE_CONNECTIONS;
    let connections = u32::try_from(connections).unwrap_or(u32::MAX);
    let time = options.connect_timeout.saturating_mul(connections);
    match tokio::time::timeout(time, target.open()).await {
        Ok(opened) => opened.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no session was open after {time:?}")),
    }
}

/// The version is for the log alone; a database that isn't ScyllaDB has none.
/// True if the database is Apache Cassandra, which is behind gateways: it refuses what every ScyllaDB answers.
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
    use super::*;
    use crate::options::DatabaseOptions;
    use crate::tls::tests::Authority;

    #[tokio::test]
    async fn a_database_that_never_shakes_hands_is_given_up() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let options = DatabaseOptions {
            contact_points: vec![silent.local_addr().unwrap().to_string()],
            connect_timeout: Duration::from_millis(20),
            certificate_authorities: Some(Authority::new().pem()),
            ..DatabaseOptions::default()
        };
        let target = Target::new(options).unwrap();
        let opened = tokio::time::timeout(Duration::from_secs(20), open_in_time(&target));
        let error = opened.await.expect("it ends").err().unwrap();
        assert!(error.contains("no session was open after 120ms"), "{error}");
    }
}
