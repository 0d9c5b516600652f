//! Reads the rows that the table holds, by token range and by key.

use std::hash::RandomState;
use std::sync::Arc;

use tasks::Task;

use super::digest::{RowFingerprint, RowSetDigest};
use crate::database::{SourceDatabase, SourceTable, TablePart};
use crate::feed::{TablePager, rows_of};
use crate::identity::TokenRange;
use crate::items::ValueHasher;
use crate::keys::PrimaryKey;
use crate::observed::ReadCell;
use crate::rows::{FetchedRow, RowReader};

/// The aim for the size of a page.
const PAGE_BYTES: usize = 1 << 20;

/// A row of the table, as far as it is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableRow {
    /// The primary key of the row.
    pub key: PrimaryKey,
    /// The vector that the index is to hold; `None` if there is none that can be indexed.
    pub fingerprint: Option<RowFingerprint>,
}

/// The table's side of a comparison.
pub(super) struct TableSide {
    reads: Arc<dyn SourceTable>,
    hashing: ValueHasher,
    /// Hashes the rows of digests.
    hasher: RandomState,
    /// The number of columns after that of the vectors that must have values.
    required: usize,
}

impl TableSide {
    /// The side of the table of `reader`, which reads the columns that the index observes. The
    /// first `required` of them after that of the vectors must have values.
    pub(super) fn new(
        database: &dyn SourceDatabase,
        (reader, required): (&RowReader, usize),
        (hashing, hasher): (ValueHasher, RandomState),
    ) -> TableSide {
        TableSide {
            reads: database.rows(reader, PAGE_BYTES),
            hashing,
            hasher,
            required,
        }
    }

    /// Returns the digest of the rows that the table holds in a range. `task` counts all rows read.
    pub(super) async fn digest(&self, range: TokenRange, task: &Task) -> RowSetDigest {
        let mut digest = RowSetDigest::default();
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

    /// Reads the rows of a range, page by page.
    pub(super) fn pages(&self, range: TokenRange) -> TablePager {
        TablePager::new(&self.reads, TablePart::Range(range))
    }

    /// Reads the rows of some keys, in no order. A row that doesn't exist is returned as one
    /// without a vector.
    pub(super) async fn by_key(&self, keys: &[PrimaryKey]) -> Vec<TableRow> {
        self.rows(rows_of(&*self.reads, keys).await)
    }

    /// The most keys that [`TableSide::by_key`] may be given.
    pub(super) fn keys_at_a_time(&self) -> usize {
        self.reads.keys_at_a_time()
    }

    /// Reduces rows to the parts that are compared.
    pub(super) fn rows(&self, rows: Vec<FetchedRow>) -> Vec<TableRow> {
        let rows = rows.into_iter().map(|row| TableRow {
            fingerprint: RowFingerprint::of(
                &ReadCell::joined(row.cells.into_iter(), self.required),
                &self.hashing,
            ),
            key: row.key,
        });
        rows.collect()
    }
}
