//! The session to the database: opened, lost, opened again.
//!
//! The driver mends single connections by itself. When the database as a whole doesn't answer,
//! which discovery notices as it asks all the time, the session is given up and another is opened
//! at once and then at intervals, so that the service is back as soon as the database is.

mod pages;
mod statement;

use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::options::DatabaseOptions;

pub use pages::Pages;
pub use statement::Statement;

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

    /// Waits until that session is no longer the current one.
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
    options: DatabaseOptions,
    engine: Arc<Engine>,
    cancel: CancellationToken,
) -> (DbHandle, impl Future<Output = ()>) {
    let (sessions, receiver) = watch::channel(None);
    let (lost_sender, lost) = mpsc::channel(1);
    let handle = DbHandle {
        sessions: receiver,
        lost: lost_sender,
    };
    let keep = keep_open(options, engine, sessions, lost);
    (handle, async move {
        cancel.run_until_cancelled(keep).await;
    })
}

async fn keep_open(
    options: DatabaseOptions,
    engine: Arc<Engine>,
    sessions: watch::Sender<Option<Arc<Db>>>,
    mut lost: mpsc::Receiver<u64>,
) {
    let mut generation = 0;
    loop {
        engine.set_connected(false);
        let session = connect(&options).await;
        generation += 1;
        log_version(&session).await;
        engine.set_connected(true);
        sessions.send_replace(Some(Arc::new(Db {
            session: Arc::new(session),
            generation,
        })));
        loop {
            match lost.recv().await {
                Some(reported) if reported == generation => break,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
        tracing::warn!("the database does not answer; connecting again");
        sessions.send_replace(None);
    }
}

/// Tries until it succeeds.
async fn connect(options: &DatabaseOptions) -> Session {
    let mut failures = 0u32;
    loop {
        match build(options).await {
            Ok(session) => return session,
            Err(error) => {
                // The first failure is news, and then one a minute or so.
                if failures.is_multiple_of(60) {
                    tracing::warn!(%error, contact_points = ?options.contact_points, "no session to the database");
                }
                failures += 1;
                tokio::time::sleep(options.reconnect_interval).await;
            }
        }
    }
}

async fn build(options: &DatabaseOptions) -> Result<Session, scylla::errors::NewSessionError> {
    let profile = ExecutionProfile::builder()
        .consistency(options.consistency)
        .request_timeout(Some(options.request_timeout))
        .build();
    let mut builder = SessionBuilder::new()
        .known_nodes(&options.contact_points)
        .connection_timeout(options.connect_timeout)
        .tcp_nodelay(true)
        .schema_agreement_timeout(Duration::from_secs(60))
        .default_execution_profile_handle(profile.into_handle());
    if let Some(connections) = options.connections {
        builder = builder.pool_size(PoolSize::PerHost(connections));
    }
    if let Some(credentials) = &options.credentials {
        builder = builder.user(&credentials.user, &credentials.password);
    }
    builder.build().await
}

/// The version is for the log alone; a database that isn't ScyllaDB has none.
async fn log_version(session: &Session) {
    const VERSION: &str = "SELECT version FROM system.versions WHERE key = 'local'";
    let version = async {
        let rows = session
            .query_unpaged(VERSION, ())
            .await
            .ok()?
            .into_rows_result()
            .ok()?;
        rows.maybe_first_row::<(Option<String>,)>().ok()??.0
    };
    match version.await {
        Some(version) => tracing::info!(version, "connected to the database"),
        None => tracing::info!("connected to a database that has no system.versions"),
    }
}
