//! Compares one range: digests first, and rows only if the digests differ.

use std::collections::HashSet;
use std::time::Duration;

use tasks::Task;
use tokio::sync::mpsc;

use super::digest::RowFingerprint;
use super::index_side::{IndexDropped, IndexSide, fingerprint};
use super::table_side::TableSide;
use crate::identity::TokenRange;
use crate::keys::PrimaryKey;
use crate::present::TimeSource;

/// A row that differs between table and index at first look. It may have been written a moment ago,
/// and its change may not have reached the index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SuspectRow {
    /// The primary key of the row.
    pub key: PrimaryKey,
    /// The range in which it was found.
    pub range: TokenRange,
    /// The row in the table; `None` if it was not there or had no vector.
    pub in_table: Option<RowFingerprint>,
    /// The row in the index; `None` if it was not there.
    pub in_index: Option<RowFingerprint>,
    /// The time at which the difference was found, since the epoch.
    pub seen_at: Duration,
}

/// The table and the index that are compared.
pub(super) struct BothSides {
    /// The present by the clock of the log's times.
    pub present: TimeSource,
    /// The table's side.
    pub table: TableSide,
    /// The index's side.
    pub index: IndexSide,
}

impl BothSides {
    /// Compares a range, and sends each row that differs to `suspects`. `task` counts the rows that
    /// were read from the table.
    pub(super) async fn compare(
        &self,
        range: TokenRange,
        task: &Task,
        suspects: &mpsc::Sender<SuspectRow>,
    ) -> Result<(), IndexDropped> {
        let table = self.table.digest(range, task).await;
        if table == self.index.digest(range).await? {
            return Ok(());
        }
        self.compare_rows(range, suspects).await
    }

    async fn compare_rows(
        &self,
        range: TokenRange,
        suspects: &mpsc::Sender<SuspectRow>,
    ) -> Result<(), IndexDropped> {
        let suspect = |key, in_table, in_index| SuspectRow {
            key,
            range,
            in_table,
            in_index,
            seen_at: self.present.now(),
        };
        let mut index_alone: HashSet<PrimaryKey> =
            self.index.keys(range).await.into_iter().collect();
        let mut pages = self.table.pages(range);
        while let Some(rows) = pages.next().await {
            let rows = self.table.rows(rows);
            let keys: Vec<PrimaryKey> = rows.iter().map(|row| row.key.clone()).collect();
            let known = self.index.known(&keys).await?;
            for (row, known) in rows.into_iter().zip(known) {
                index_alone.remove(&row.key);
                let in_index = known.as_ref().map(fingerprint);
                if row.fingerprint != in_index {
                    let suspect = suspect(row.key, row.fingerprint, in_index);
                    suspects.send(suspect).await.map_err(|_| IndexDropped)?;
                }
            }
        }
        let index_alone: Vec<PrimaryKey> = index_alone.into_iter().collect();
        let known = self.index.known(&index_alone).await?;
        for (key, known) in index_alone.into_iter().zip(known) {
            if let Some(known) = known {
                let suspect = suspect(key, None, Some(fingerprint(&known)));
                suspects.send(suspect).await.map_err(|_| IndexDropped)?;
            }
        }
        Ok(())
    }
}
