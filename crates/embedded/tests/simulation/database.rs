//! The database of the index service, with faults: reads fail or take a while, and the follower of
//! the log breaks off, so that hints come late and twice.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use embedded::Embedded;
use store::database::{
    FetchedRow, IndexIdentity, IndexName, LogFacts, LogHead, LogRun, Piece, PrimaryKey, RowPage,
    RowReader, SchemaFollower, SourceDatabase, SourceTable, TableIdentity, TablePart, TokenRange,
};
use uuid::Uuid;

use crate::Broken;
use crate::clock::pass;
use crate::random::Random;

/// A database with the faults above.
pub struct Faulty {
    inner: Embedded,
    random: Arc<Mutex<Random>>,
    broken: Broken,
}

impl Faulty {
    pub fn new(inner: Embedded, seed: u64, broken: Broken) -> Faulty {
        Faulty {
            inner,
            random: Arc::new(Mutex::new(Random::new(seed))),
            broken,
        }
    }
}

fn below(random: &Mutex<Random>, end: u64) -> u64 {
    let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
    random.below(end)
}

/// Waits a while, often not at all.
async fn pause(random: &Mutex<Random>) {
    if below(random, 4) == 0 {
        let millis = below(random, 120);
        pass(millis).await;
    }
}

#[async_trait]
impl SourceDatabase for Faulty {
    fn clock(&self) -> Arc<dyn clock::Clock> {
        self.inner.clock()
    }

    fn schema(&self) -> Box<dyn SchemaFollower> {
        self.inner.schema()
    }

    fn has_index(&self, name: &IndexName) -> bool {
        self.inner.has_index(name)
    }

    fn is_current(&self, index: &IndexIdentity) -> bool {
        self.inner.is_current(index)
    }

    fn keeps_all(&self, index: &IndexIdentity) -> bool {
        self.inner.keeps_all(index)
    }

    fn renamed(&self, index: &IndexIdentity) -> Option<IndexIdentity> {
        self.inner.renamed(index)
    }

    async fn log(&self, table: &TableIdentity) -> anyhow::Result<Option<LogFacts>> {
        pause(&self.random).await;
        self.inner.log(table).await
    }

    fn log_head(&self, table: &TableIdentity) -> Option<Arc<dyn LogHead>> {
        self.inner.log_head(table)
    }

    fn log_readers(&self) -> Vec<String> {
        self.inner.log_readers()
    }

    async fn follow(&self, reader: usize, run: LogRun) -> anyhow::Result<()> {
        if self.broken == Broken::LogIsNotRead {
            std::future::pending::<()>().await;
        }
        let within = Duration::from_millis(1_000 + below(&self.random, 60_000));
        match tokio::time::timeout(within, self.inner.follow(reader, run)).await {
            Ok(ended) => ended,
            Err(_) => anyhow::bail!("a simulated fault"),
        }
    }

    fn rows(&self, reader: &RowReader, page_bytes: usize) -> Arc<dyn SourceTable> {
        Arc::new(FaultyRows {
            inner: self.inner.rows(reader, page_bytes),
            random: self.random.clone(),
            broken: self.broken,
            first: Mutex::default(),
        })
    }

    async fn pieces(
        &self,
        table: &TableIdentity,
        range: TokenRange,
        pieces_min: usize,
    ) -> Vec<Piece> {
        self.inner.pieces(table, range, pieces_min).await
    }

    async fn shards(&self) -> BTreeMap<Uuid, usize> {
        self.inner.shards().await
    }
}

struct FaultyRows {
    inner: Arc<dyn SourceTable>,
    random: Arc<Mutex<Random>>,
    broken: Broken,
    /// The first reading of each key, if it is told for ever.
    first: Mutex<HashMap<PrimaryKey, Option<FetchedRow>>>,
}

impl FaultyRows {
    fn may_fail(&self) -> anyhow::Result<()> {
        match below(&self.random, 20) {
            0 => anyhow::bail!("a simulated fault"),
            _ => Ok(()),
        }
    }

    /// The row that is told where `row` was read.
    fn told(&self, key: &PrimaryKey, row: Option<&FetchedRow>) -> Option<FetchedRow> {
        let first = || {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            let first = first.entry(key.clone()).or_insert_with(|| row.cloned());
            first.clone()
        };
        match self.broken {
            Broken::RowsAreNotReadAgain => first(),
            Broken::ValuesAreNotReadAgain => {
                let mut told = row?.clone();
                if let Some(first) = first() {
                    told.cells.truncate(1);
                    told.cells.extend(first.cells.into_iter().skip(1));
                }
                Some(told)
            }
            _ => row.cloned(),
        }
    }
}

#[async_trait]
impl SourceTable for FaultyRows {
    fn reader(&self) -> &RowReader {
        self.inner.reader()
    }

    async fn page(&self, part: &TablePart, from: Option<Bytes>) -> anyhow::Result<RowPage> {
        pause(&self.random).await;
        self.may_fail()?;
        let page = self.inner.page(part, from).await?;
        pause(&self.random).await;
        Ok(page)
    }

    async fn by_key(&self, keys: &[PrimaryKey]) -> anyhow::Result<Vec<FetchedRow>> {
        pause(&self.random).await;
        self.may_fail()?;
        let rows = self.inner.by_key(keys).await?;
        pause(&self.random).await;
        let told = keys.iter().filter_map(|key| {
            let row = rows.iter().find(|row| row.key == *key);
            self.told(key, row)
        });
        Ok(told.collect())
    }

    fn keys_at_a_time(&self) -> usize {
        self.inner.keys_at_a_time()
    }
}
