//! The full scan: every row of a table, in parallel by token range.

use std::sync::Arc;

use futures::StreamExt;
use tasks::Task;
use tokio::sync::mpsc;

use super::pages::TablePager;
use crate::database::{SourceDatabase, SourceTable, TablePart};
use crate::identity::TokenRange;
use crate::indexes::{IndexEngine, IndexHandle};
use crate::items::ReadSequencer;
use crate::long_work;
use crate::message::RowBatch;
use crate::options::ScanOptions;
use crate::rows::{RowReader, joined};

/// The number of rows handed over at a time, for each thread that puts them into the index. It is
/// enough to keep the threads busy. It is small enough for changes from the log, each of which
/// waits for one such batch at most.
const BATCH_ROWS_A_THREAD: usize = 32;

/// The scan of a table for one index.
pub(crate) struct TableScan {
    /// The database that has the table.
    pub database: Arc<dyn SourceDatabase>,
    /// The table, and the one vector column of the index.
    pub reader: RowReader,
    /// The sequencer that numbers the reads.
    pub sequencer: Arc<ReadSequencer>,
    /// The index that gets the rows.
    pub index: Arc<IndexHandle>,
    /// The engine, which gets the progress.
    pub engine: Arc<IndexEngine>,
    /// The options for concurrency and sizes.
    pub options: ScanOptions,
    /// The number of threads that share the rows of a batch.
    pub compute_threads: usize,
}

impl TableScan {
    /// Reads all rows of the index's part of the ring and hands them over. A full channel holds the
    /// scan up. A closed channel ends it with `None`. The scan's task is a child of `build`.
    pub(crate) async fn run(self, out: mpsc::Sender<RowBatch>, build: &Task) -> Option<()> {
        self.index.metrics.scans.inc();
        let reads = self.database.rows(&self.reader, self.options.page_bytes);
        let whole = self.index.identity.range;
        let table = &self.reader.table;
        let pieces = self.database.pieces(table, whole, self.options.ranges_min);
        let ranges = pieces.await.into_iter().map(|(range, _)| range);
        let ranges: Vec<TokenRange> = ranges.collect();
        let concurrency = match self.options.concurrency {
            0 => 3 * self.database.shards().await.values().sum::<usize>().max(1),
            concurrency => concurrency,
        };
        let task = build.child(long_work::scan(&self.index.identity, ranges.len()));
        let mut done = futures::stream::iter(ranges)
            .map(|range| self.range(&reads, range, &out, &task))
            .buffer_unordered(concurrency);
        let mut covered = 0;
        while let Some(range) = done.next().await {
            covered += range?.width();
            task.add(1);
            let per_cent = 100.0 * covered as f64 / whole.width() as f64;
            self.engine.progressed(&self.index, per_cent);
        }
        drop(done);
        task.done();
        Some(())
    }

    /// Reads a range, and returns it when all its rows have been handed over.
    async fn range(
        &self,
        reads: &Arc<dyn SourceTable>,
        range: TokenRange,
        out: &mpsc::Sender<RowBatch>,
        scan: &Task,
    ) -> Option<TokenRange> {
        let task = scan.child(long_work::scan_of_range(&self.index.identity, range));
        let batch_rows = BATCH_ROWS_A_THREAD * self.compute_threads;
        let mut pages = TablePager::new(reads, TablePart::Range(range));
        let columns: Vec<usize> = (0..self.reader.columns.len()).collect();
        let required = self.index.identity.local_filters();
        loop {
            // The number is taken before the page is requested.
            let issue = self.sequencer.issue();
            let Some(rows) = pages.next().await else {
                task.done();
                return Some(range);
            };
            self.index.metrics.scanned_rows.inc_by(rows.len() as u64);
            task.add(rows.len() as u64);
            let mut rows = joined(&rows, &columns, required).into_iter();
            loop {
                let batch: Vec<_> = rows.by_ref().take(batch_rows).collect();
                if batch.is_empty() {
                    break;
                }
                let batch = RowBatch {
                    issue: issue.clone(),
                    rows: batch,
                    noticed_us: Vec::new(),
                };
                out.send(batch).await.ok()?;
            }
        }
    }
}
