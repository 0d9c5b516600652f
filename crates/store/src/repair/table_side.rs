//! What the table holds, by token range and by key.

use std::hash::RandomState;
use std::sync::Arc;

use tasks::Task;

use super::digest::{Digest, Fingerprint};
use crate::database::{Database, Part, Rows};
use crate::identity::TokenRange;
use crate::items::Hashing;
use crate::keys::PrimaryKey;
use crate::pages::{Pages, rows_of};
use crate::rows::{ReadRow, RowReader};

/// About how much a page should hold.
const PAGE_BYTES: usize = 1 << 20;

/// A row of the table, as far as it is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Its key.
    pub key: PrimaryKey,
    /// What the index is to hold of it; nothing, if there is no vector that can be indexed.
    pub fingerprint: Option<Fingerprint>,
}

/// The table's side of a comparison.
pub struct TableSide {
    reads: Arc<dyn Rows>,
    hashing: Hashing,
    /// Of digests.
    hasher: RandomState,
}

impl TableSide {
    /// `reader`: reads the one vector column of the index.
    pub fn new(
        database: &dyn Database,
        reader: &RowReader,
        (hashing, hasher): (Hashing, RandomState),
    ) -> TableSide {
        TableSide {
            reads: database.rows(reader, PAGE_BYTES),
            hashing,
            hasher,
        }
    }

    /// The digest of a range.
    pub async fn digest(&self, range: TokenRange, task: &Task) -> Digest {
        let mut digest = Digest::default();
        let mut pages = self.pages(range);
        while let Some(rows) = pages.next().await {
            task.add(rows.len() as u64);
            for row in self.rows(rows) {
                if let Some(fingerprint) = row.fingerprint {
                    digest.add(&self.hasher, &row.key, fingerprint);
                }
            }
        }
        digest
    }

    /// The rows of a range, page by page.
    pub fn pages(&self, range: TokenRange) -> Pages {
        Pages::new(&self.reads, Part::Range(range))
    }

    /// The rows of some keys, in no order; a row that isn't there is told as one without a vector.
    pub async fn by_key(&self, keys: &[PrimaryKey]) -> Vec<TableRow> {
        self.rows(rows_of(&*self.reads, keys).await)
    }

    /// How many keys [`TableSide::by_key`] is to be given at most.
    pub fn keys_at_a_time(&self) -> usize {
        self.reads.keys_at_a_time()
    }

    /// What is compared of rows.
    pub fn rows(&self, rows: Vec<ReadRow>) -> Vec<TableRow> {
        let rows = rows.into_iter().map(|row| TableRow {
            fingerprint: row
                .cells
                .first()
                .and_then(|cell| Fingerprint::of(cell, &self.hashing)),
            key: row.key,
        });
        rows.collect()
    }
}
