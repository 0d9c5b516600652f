//! The reports of the official library about how far it has read a log, and the positions that
//! follow from them.
//!
//! The library reports the progress of each stream. A search that waits for a write needs a time up
//! to which *all* streams have been read, so it has to be known which streams there are. The tables
//! that the library takes them from tell it, for each generation of streams.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use futures::TryStreamExt;
use scylla::client::session::Session;
use scylla::serialize::row::SerializeRow;
use scylla_cdc::cdc_types::{GenerationTimestamp, StreamID};
use scylla_cdc::checkpoints::{CDCCheckpointSaver, Checkpoint};

use crate::database::LogRun;

/// The streams of a table in a keyspace with tablets.
const OF_TABLETS: &str = "SELECT stream_id FROM system.cdc_streams WHERE keyspace_name = ? \
     AND table_name = ? AND timestamp = ? AND stream_state = 0";

/// The streams of all tables in keyspaces without tablets, some in each row.
const OF_VNODES: &str =
    "SELECT streams FROM system_distributed.cdc_streams_descriptions_v2 WHERE time = ?";

/// Takes in the reports of a run.
pub(super) struct ProgressReports {
    session: Arc<Session>,
    run: Arc<LogRun>,
    /// Whether the indexes of the table hear of positions.
    tells_positions: bool,
    /// The position that was reported last, in microseconds since the epoch.
    told_us: AtomicI64,
}

impl ProgressReports {
    /// The reports of `run`, which reads by `session`. With `tells_positions` the indexes of the
    /// table get the positions.
    pub(super) fn new(
        session: Arc<Session>,
        run: Arc<LogRun>,
        tells_positions: bool,
    ) -> ProgressReports {
        ProgressReports {
            session,
            run,
            tells_positions,
            told_us: AtomicI64::new(i64::MIN),
        }
    }

    /// The streams of a generation; `None` if the database doesn't tell.
    async fn streams(&self, generation: &GenerationTimestamp) -> Option<HashSet<StreamID>> {
        let table = self.run.table();
        let of_table = (&table.keyspace, &table.table, generation);
        let of_tablets = self.rows::<(StreamID,)>(OF_TABLETS, of_table).await;
        let mut streams: HashSet<StreamID> =
            of_tablets.into_iter().flatten().map(|(id,)| id).collect();
        if streams.is_empty() {
            let of_vnodes = self
                .rows::<(Vec<StreamID>,)>(OF_VNODES, (generation,))
                .await;
            streams = of_vnodes
                .into_iter()
                .flatten()
                .flat_map(|(ids,)| ids)
                .collect();
        }
        (!streams.is_empty()).then_some(streams)
    }

    /// The rows of a query; `None` if there is no answer.
    async fn rows<R>(&self, query: &str, values: impl SerializeRow) -> Option<Vec<R>>
    where
        R: for<'f, 'm> scylla::deserialize::row::DeserializeRow<'f, 'm> + 'static,
    {
        let rows = self.session.query_iter(query, values).await.ok()?;
        rows.rows_stream::<R>().ok()?.try_collect().await.ok()
    }
}

#[async_trait]
impl CDCCheckpointSaver for ProgressReports {
    async fn save_checkpoint(&self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        self.run.checkpoints().save_checkpoint(checkpoint).await?;
        if !self.tells_positions {
            return Ok(());
        }
        if let Some(position) = self.run.checkpoints().position()
            && self.told_us.fetch_max(position.time_us, Ordering::Relaxed) < position.time_us
        {
            self.run.send_position(position).await?;
        }
        Ok(())
    }

    async fn save_new_generation(&self, generation: &GenerationTimestamp) -> anyhow::Result<()> {
        let checkpoints = self.run.checkpoints();
        checkpoints.save_new_generation(generation).await?;
        if let Some(streams) = self.streams(generation).await {
            checkpoints.expect(streams);
        }
        Ok(())
    }

    async fn load_last_generation(&self) -> anyhow::Result<Option<GenerationTimestamp>> {
        Ok(None)
    }

    async fn load_last_checkpoint(
        &self,
        _: &StreamID,
    ) -> anyhow::Result<Option<std::time::Duration>> {
        Ok(None)
    }
}
