//! Follows the schema of a cluster by looking at it again and again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tokio::time::Instant;
use uuid::Uuid;

use super::discovery_error::DiscoveryError;
use super::poll::{DiscoveryRound, IndexDiscovery};
use super::session::{DbHandle, DbSession};
use crate::database::{DiscoveredIndexes, SchemaFollower};
use crate::identity::IndexName;

/// The number of looks in a row without an answer after which the session counts as lost.
const SILENCES_MAX: u32 = 3;

/// The longest time of a look. After that it counts as one without an answer.
const ROUND_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of looks in a row that left something open, after which [`OPEN_PAUSE`] applies.
const OPEN_MAX: u32 = 10;

/// The shortest pause between two looks after [`OPEN_MAX`] looks that left something open.
const OPEN_PAUSE: Duration = Duration::from_secs(1);

/// The names of the indexes that the last look found, described or not.
pub(super) type Known = Arc<ArcSwap<HashSet<IndexName>>>;

/// Follows the schema of a cluster.
pub(super) struct ClusterSchema {
    db: DbHandle,
    interval: Duration,
    known: Known,
    discovery: IndexDiscovery,
    /// The generation of the session that the last look used.
    generation: u64,
    /// The number of looks in a row without an answer.
    silences: u32,
    /// When the last look ended.
    looked: Option<Instant>,
    /// Whether some index of the last look could not be described or taken in.
    is_open: bool,
    /// The number of looks in a row before the last that left something open.
    open: u32,
}

impl ClusterSchema {
    /// A schema that hasn't been looked at yet. `interval` is the pause between two looks.
    /// Indexes on texts are left out unless `takes_texts`.
    pub(super) fn new(
        db: DbHandle,
        interval: Duration,
        takes_texts: bool,
        known: Known,
    ) -> ClusterSchema {
        ClusterSchema {
            db,
            interval,
            known,
            discovery: IndexDiscovery::new(takes_texts),
            generation: 0,
            silences: 0,
            looked: None,
            is_open: false,
            open: 0,
        }
    }

    /// Waits until it is time for another look.
    async fn pause(&self) {
        let pause = match self.open {
            OPEN_MAX.. => self.interval.max(OPEN_PAUSE),
            _ => self.interval,
        };
        if let Some(looked) = self.looked {
            tokio::time::sleep_until(looked + pause).await;
        }
    }

    async fn poll(&mut self, session: &DbSession) -> Option<DiscoveredIndexes> {
        if session.generation != self.generation {
            self.generation = session.generation;
            self.silences = 0;
            self.discovery.forget();
        }
        let round = tokio::time::timeout(ROUND_TIMEOUT, self.discovery.poll(session))
            .await
            .unwrap_or_else(|_| Err(DiscoveryError::Unreachable("no answer".to_owned())));
        self.looked = Some(Instant::now());
        if let Err(DiscoveryError::Unreachable(error)) = &round {
            self.silences += 1;
            let silences = self.silences;
            tracing::debug!(error, silences, "the schema can't be read");
            return None;
        }
        self.silences = 0;
        match round {
            Ok(DiscoveryRound::Indexes(discovered)) => return Some(discovered),
            Ok(DiscoveryRound::Unchanged | DiscoveryRound::Unsettled) => {}
            Err(error) => tracing::warn!(%error, "the schema can't be read"),
        }
        None
    }
}

#[async_trait]
impl SchemaFollower for ClusterSchema {
    async fn changed(&mut self) -> DiscoveredIndexes {
        loop {
            self.pause().await;
            let session = self.db.current().await;
            if let Some(discovered) = self.poll(&session).await {
                self.open = if self.is_open { self.open + 1 } else { 0 };
                self.is_open = !discovered.unclear.is_empty();
                let names = discovered.indexes.keys().chain(&discovered.unclear);
                self.known.store(Arc::new(names.cloned().collect()));
                return discovered;
            }
            if self.silences >= SILENCES_MAX {
                self.db.report_lost(session.generation);
                self.db.replaced(session.generation).await;
                self.looked = None;
            }
        }
    }

    fn request_again(&mut self) {
        self.is_open = true;
        self.discovery.forget();
    }

    fn truncated_ms(
        &mut self,
        table: Uuid,
        told_ms: Option<i64>,
        saved_ms: Option<i64>,
    ) -> Option<i64> {
        // A single node's answer is exact, even if its clock was set back in between.
        if self.discovery.one_node() {
            return told_ms;
        }
        let latest_ms = self.discovery.latest_truncation(table, saved_ms);
        told_ms.max(latest_ms)
    }
}
