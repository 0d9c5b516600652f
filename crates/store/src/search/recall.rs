//! The check of an index's recall: rows of a sample are searched for, and the answers are compared
//! with a scan of all vectors ([`crate::indexes`]).
//!
//! It is work in the background, in pieces of some milliseconds. It goes on only while somebody
//! waits for the result: once the future is dropped, no other piece begins.

use std::sync::Arc;
use std::time::Duration;

use store_api::types::MeasuredRecall;
use tasks::Task;

use super::{SearchError, VectorSearcher};
use crate::compute::ServiceStopping;
use crate::indexes::{IndexHandle, QueryRecall, RecallBatch, StructureError};

/// The number of queries for which vectors are measured together, so that each is read from the
/// disk once for all of them.
const QUERIES_AT_ONCE: usize = 64;

/// The number of queries that are searched for in one piece.
const SEARCHES_OF_A_PIECE: usize = 8;

/// The longest wait until the index has taken up what was written before the check.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(10);

/// The quantile of the normal distribution for an interval of 95 %.
const NORMAL_QUANTILE: f64 = 1.959_964;

/// The outcomes of all queries up to now.
#[derive(Clone, Copy, Debug, Default)]
struct RecallTotal {
    queries: usize,
    shares: f64,
    found_themselves: usize,
}

impl RecallTotal {
    fn add(&mut self, outcome: QueryRecall) {
        self.queries += 1;
        self.shares += outcome.share;
        self.found_themselves += usize::from(outcome.finds_itself);
    }

    fn report(self) -> MeasuredRecall {
        if self.queries == 0 {
            return MeasuredRecall::default();
        }
        let queries = self.queries as f64;
        let recall = self.shares / queries;
        let (low, high) = interval(recall, queries);
        MeasuredRecall {
            recall: Some(recall),
            low: Some(low),
            high: Some(high),
            self_recall: Some(self.found_themselves as f64 / queries),
            queries: self.queries,
        }
    }
}

/// The interval that has the mean of all rows with 95 % confidence, if that of `rows` drawn ones is
/// `mean` (Wilson's formula). Each row counts as one trial, as if its share were all or nothing.
/// Its ten neighbours are no trials of their own, as they are found or missed together. Shares vary
/// less than that, so the interval is rather too wide.
fn interval(mean: f64, rows: f64) -> (f64, f64) {
    let squared = NORMAL_QUANTILE * NORMAL_QUANTILE;
    let shrunk = 1.0 + squared / rows;
    let middle = (mean + squared / (2.0 * rows)) / shrunk;
    let variance = mean * (1.0 - mean) / rows + squared / (4.0 * rows * rows);
    let half = NORMAL_QUANTILE * variance.max(0.0).sqrt() / shrunk;
    // The mean is in it, whatever rounding says.
    let low = (middle - half).clamp(0.0, mean.clamp(0.0, 1.0));
    let high = (middle + half).clamp(mean.clamp(0.0, 1.0), 1.0);
    (low, high)
}

impl VectorSearcher {
    /// Measures the recall of an index of vectors with so many of its rows as queries, and shows it
    /// among the metrics. `None` if it was requested that the task stop.
    pub(crate) async fn measure_recall(
        &self,
        index: &Arc<IndexHandle>,
        queries: usize,
        task: &Task,
    ) -> Result<Option<MeasuredRecall>, SearchError> {
        let freshness = &index.freshness;
        if !freshness.wait_for_acknowledged(TAKEN_UP_WITHIN).await {
            return Err(SearchError::Behind(index.identity.name.clone()));
        }
        let content = index.content.clone();
        let sample = self
            .compute
            .long_background(move |_| content.sample(queries));
        let sample = sample.await.map_err(stopping)?;
        task.set_total(sample.len() as u64);
        let mut total = RecallTotal::default();
        for ids in sample.chunks(QUERIES_AT_ONCE) {
            let (content, sampled) = (index.content.clone(), ids.to_vec());
            let begun = self
                .compute
                .long_background(move |_| content.begin_recall(&sampled));
            let batch = begun.await.map_err(stopping)??;
            let Some(mut batch) = self.scan_for_recall(index, batch, task).await? else {
                return Ok(None);
            };
            while !batch.is_empty() {
                if task.abort_requested() {
                    return Ok(None);
                }
                let judged = self.judge_some(index, batch, total).await?;
                (batch, total) = judged;
            }
            task.add(ids.len() as u64);
        }
        let measured = total.report();
        let at_s = self.engine.now().as_secs();
        index.last_recall.set(&measured, at_s);
        if let Some(recall) = measured.recall {
            let (metrics, now_s) = (self.engine.metrics(), self.engine.now_s());
            metrics.set_recall(&index.identity.name, recall, now_s);
        }
        Ok(Some(measured))
    }

    /// Measures all vectors with the queries of a batch. `None` if it was requested that the task
    /// stop.
    async fn scan_for_recall(
        &self,
        index: &IndexHandle,
        mut batch: RecallBatch,
        task: &Task,
    ) -> Result<Option<RecallBatch>, SearchError> {
        let mut is_more = true;
        while is_more {
            if task.abort_requested() {
                return Ok(None);
            }
            let content = index.content.clone();
            let piece = self.compute.long_background(move |_| {
                let is_more = content.scan_for_recall(&mut batch);
                (batch, is_more)
            });
            let (scanned, result) = piece.await.map_err(stopping)?;
            (batch, is_more) = (scanned, result?);
        }
        Ok(Some(batch))
    }

    /// Searches for some queries of a batch, and adds the outcomes.
    async fn judge_some(
        &self,
        index: &IndexHandle,
        mut batch: RecallBatch,
        mut total: RecallTotal,
    ) -> Result<(RecallBatch, RecallTotal), SearchError> {
        let now_s = match index.freshness.acknowledged_us() {
            Some(_) => self.engine.now_s(),
            // As for searches next to a cluster.
            None => 0,
        };
        let content = index.content.clone();
        let piece = self.compute.long_background(move |_| {
            for _ in 0..SEARCHES_OF_A_PIECE {
                if let Some(outcome) = content.judge_recall(&mut batch, now_s)? {
                    total.add(outcome);
                }
            }
            Ok::<_, StructureError>((batch, total))
        });
        Ok(piece.await.map_err(stopping)??)
    }
}

fn stopping(error: ServiceStopping) -> SearchError {
    SearchError::Internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shares: &[f64]) -> MeasuredRecall {
        let mut total = RecallTotal::default();
        for share in shares {
            total.add(QueryRecall {
                share: *share,
                finds_itself: *share > 0.5,
            });
        }
        total.report()
    }

    #[test]
    fn the_interval_is_that_of_wilson() {
        // As in the tables for 50 of 100, 100 of 100, and none of 10.
        for (mean, rows, low, high) in [
            (0.5, 100.0, 0.4038, 0.5962),
            (1.0, 100.0, 0.9630, 1.0),
            (0.0, 10.0, 0.0, 0.2775),
        ] {
            let interval = interval(mean, rows);
            assert!((interval.0 - low).abs() < 1e-4, "{mean}: {interval:?}");
            assert!((interval.1 - high).abs() < 1e-4, "{mean}: {interval:?}");
        }
    }

    #[test]
    fn recall_is_the_mean_of_all_queries_within_its_interval() {
        let measured = of(&[1.0, 0.9, 0.5, 1.0]);
        let recall = measured.recall.unwrap();
        assert!((recall - 0.85).abs() < 1e-12, "{measured:?}");
        assert!(measured.low.unwrap() < recall && recall < measured.high.unwrap());
        assert_eq!((measured.self_recall, measured.queries), (Some(0.75), 4));
        let whole = of(&[1.0; 50]);
        assert_eq!((whole.recall, whole.high), (Some(1.0), Some(1.0)));
        let narrow = of(&[1.0; 500]);
        assert!(narrow.low.unwrap() > whole.low.unwrap());
    }

    #[test]
    fn no_rows_have_no_recall() {
        let none = of(&[]);
        let shares = [none.recall, none.low, none.high, none.self_recall];
        assert_eq!((shares, none.queries), ([None; 4], 0));
    }
}
