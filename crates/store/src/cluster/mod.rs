//! The database interface ([`SourceDatabase`]) over CQL, for a cluster or a gateway. The official
//! client libraries send the queries that the contract gives.
//!
//! ```text
//!   session: opened, lost, opened again      session_target: addresses, credentials, TLS
//!   schema -> look -> schema_statements, describe       log_facts
//!   rows -> statement                         follower -> consumer, reports
//! ```

mod consumer;
mod describe;
mod discovery_error;
mod follower;
mod log_facts;
mod native_type;
mod poll;
mod reports;
mod rows;
mod schema_changes;
mod schema_statements;
mod session;
mod session_target;
mod statement;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rows::CqlRows;
use schema_changes::{ClusterSchema, Known};
use scylla::cluster::ClusterState;
use scylla::routing::Token;
use session::DbHandle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::database::{
    LogFacts, LogHead, LogRun, Piece, SchemaFollower, SourceDatabase, SourceTable, split,
};
use crate::identity::{IndexName, TableIdentity, TokenRange};
use crate::indexes::IndexEngine;
use crate::options::ReaderOptions;
use crate::rows::RowReader;
pub(crate) use session_target::SessionTarget;

/// A database that is reached by CQL: a cluster, or a gateway.
pub(crate) struct RemoteDatabase {
    db: DbHandle,
    /// The readers of a log. Each of them reads every log.
    readers: Vec<ReaderOptions>,
    /// The pause between two looks at the schema.
    discovery_interval: Duration,
    /// Whether indexes on texts are built.
    takes_texts: bool,
    known: Known,
}

impl RemoteDatabase {
    /// A cluster at `targets`, and a future that keeps a session to it open until the token is
    /// cancelled. The future reports to `engine` whether there is a session. Indexes on texts are
    /// left out unless `takes_texts`.
    pub(crate) fn new(
        targets: watch::Receiver<SessionTarget>,
        engine: Arc<IndexEngine>,
        readers: Vec<ReaderOptions>,
        discovery_interval: Duration,
        takes_texts: bool,
        cancel: CancellationToken,
    ) -> (RemoteDatabase, impl Future<Output = ()> + Send + use<>) {
        let (db, keep_open) = session::start(targets, engine, cancel);
        let cluster = RemoteDatabase {
            db,
            readers,
            discovery_interval,
            takes_texts,
            known: Known::default(),
        };
        (cluster, keep_open)
    }

    async fn state(&self) -> Arc<ClusterState> {
        self.db.current().await.session.get_cluster_state()
    }
}

#[async_trait]
impl SourceDatabase for RemoteDatabase {
    fn session_counters(&self) -> BTreeMap<String, u64> {
        self.db.counters()
    }

    fn schema(&self) -> Box<dyn SchemaFollower> {
        Box::new(ClusterSchema::new(
            self.db.clone(),
            self.discovery_interval,
            self.takes_texts,
            self.known.clone(),
        ))
    }

    fn has_index(&self, name: &IndexName) -> bool {
        self.known.load().contains(name)
    }

    async fn log(&self, table: &TableIdentity) -> anyhow::Result<Option<LogFacts>> {
        let db = self.db.current().await;
        Ok(log_facts::log_facts(&db, table).await?)
    }

    fn log_head(&self, _: &TableIdentity) -> Option<Arc<dyn LogHead>> {
        None
    }

    fn log_readers(&self) -> Vec<String> {
        let names = self.readers.iter().map(|reader| reader.name.clone());
        names.collect()
    }

    async fn follow(&self, reader: usize, run: LogRun) -> anyhow::Result<()> {
        let db = self.db.current().await;
        // The last reader is the quickest, and one is enough to tell positions.
        let is_quickest = reader + 1 == self.readers.len();
        tokio::select! {
            ended = follower::follow(&db, &self.readers[reader], run, is_quickest) => ended,
            () = self.db.replaced(db.generation) => Ok(()),
        }
    }

    fn rows(&self, reader: &RowReader, page_bytes: usize) -> Arc<dyn SourceTable> {
        Arc::new(CqlRows::new(self.db.clone(), reader.clone(), page_bytes))
    }

    async fn pieces(
        &self,
        table: &TableIdentity,
        range: TokenRange,
        pieces_min: usize,
    ) -> Vec<Piece> {
        let state = self.state().await;
        let ring = state.replica_locator().ring();
        let ring: Vec<i64> = ring.iter().map(|(token, _)| token.value()).collect();
        let pieces = split(range, &ring, pieces_min).into_iter();
        let with_nodes = pieces.map(|range| {
            let token = Token::new(range.end);
            let replicas = state.get_token_endpoints(&table.keyspace, &table.table, token);
            let nodes = replicas.iter().map(|(node, _)| node.host_id);
            (range, nodes.collect())
        });
        with_nodes.collect()
    }

    async fn shards(&self) -> BTreeMap<Uuid, usize> {
        let state = self.state().await;
        let nodes = state.get_nodes_info().iter().map(|node| {
            let shards = node
                .sharder()
                .map_or(1, |sharder| usize::from(sharder.nr_shards.get()));
            (node.host_id, shards)
        });
        nodes.collect()
    }
}
