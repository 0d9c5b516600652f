//! A database in the same process whose logs are never followed.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use clock::Clock;
use embedded::Embedded;
use store::database::{
    IndexName, LogFacts, LogHead, LogRun, Piece, RowReader, SchemaFollower, SourceDatabase,
    SourceTable, TableIdentity, TokenRange,
};
use uuid::Uuid;

/// A database whose indexes miss every write after their scan.
pub struct Deaf(pub Embedded);

#[async_trait]
impl SourceDatabase for Deaf {
    fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock()
    }

    fn schema(&self) -> Box<dyn SchemaFollower> {
        self.0.schema()
    }

    fn has_index(&self, name: &IndexName) -> bool {
        self.0.has_index(name)
    }

    async fn log(&self, table: &TableIdentity) -> anyhow::Result<Option<LogFacts>> {
        self.0.log(table).await
    }

    /// The end of the log is not known, as a search would wait in vain until the index has read up
    /// to it.
    fn log_head(&self, _: &TableIdentity) -> Option<Arc<dyn LogHead>> {
        None
    }

    fn log_readers(&self) -> Vec<String> {
        Vec::new()
    }

    async fn follow(&self, _: usize, _: LogRun) -> anyhow::Result<()> {
        std::future::pending().await
    }

    fn rows(&self, reader: &RowReader, page_bytes: usize) -> Arc<dyn SourceTable> {
        self.0.rows(reader, page_bytes)
    }

    async fn pieces(
        &self,
        table: &TableIdentity,
        range: TokenRange,
        pieces_min: usize,
    ) -> Vec<Piece> {
        self.0.pieces(table, range, pieces_min).await
    }

    async fn shards(&self) -> BTreeMap<Uuid, usize> {
        self.0.shards().await
    }
}
