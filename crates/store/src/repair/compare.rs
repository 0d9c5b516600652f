//! Comparing one range: digests first, rows only where those differ.

use std::collections::HashSet;
use std::time::Duration;

use tasks::Task;
use tokio::sync::mpsc;

use super::digest::Fingerprint;
use super::index_side::{Gone, IndexSide, fingerprint};
use super::table_side::TableSide;
use crate::identity::TokenRange;
use crate::keys::PrimaryKey;
use crate::present::Present;

/// A row that looks different. It may have been written a moment ago, and be on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspect {
    /// Its key.
    pub key: PrimaryKey,
    /// The range in which it was found.
    pub range: TokenRange,
    /// What the table held.
    pub in_table: Option<Fingerprint>,
    /// What the index held.
    pub in_index: Option<Fingerprint>,
    /// When it was found, a time since the epoch.
    pub found: Duration,
}

/// What is compared.
pub struct Sides {
    /// By the clock that the times of the log go by.
    pub present: Present,
    /// One side.
    pub table: TableSide,
    /// The other.
    pub index: IndexSide,
}

impl Sides {
    /// Compares a range, and tells of each row that looks different. `task` counts rows.
    pub async fn compare(
        &self,
        range: TokenRange,
        task: &Task,
        suspects: &mpsc::Sender<Suspect>,
    ) -> Result<(), Gone> {
        let table = self.table.digest(range, task).await;
        if table == self.index.digest(range).await? {
            return Ok(());
        }
        self.compare_rows(range, suspects).await
    }

    async fn compare_rows(
        &self,
        range: TokenRange,
        suspects: &mpsc::Sender<Suspect>,
    ) -> Result<(), Gone> {
        let suspect = |key, in_table, in_index| Suspect {
            key,
            range,
            in_table,
            in_index,
            found: self.present.now(),
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
                    suspects.send(suspect).await.map_err(|_| Gone)?;
                }
            }
        }
        let index_alone: Vec<PrimaryKey> = index_alone.into_iter().collect();
        let known = self.index.known(&index_alone).await?;
        for (key, known) in index_alone.into_iter().zip(known) {
            if let Some(known) = known {
                let suspect = suspect(key, None, Some(fingerprint(&known)));
                suspects.send(suspect).await.map_err(|_| Gone)?;
            }
        }
        Ok(())
    }
}
