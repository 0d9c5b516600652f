//! The recall of ordinary searches, against a scan of the index's own full vectors.
//!
//! Rows of the index are the queries. All vectors are measured with each of them, in pieces of
//! about a millisecond for each few queries, so that other work gets on. Neither links nor codes
//! have a part in that. Then each query is searched for in the ordinary way, and its answer is
//! compared with the nearest of all.
//!
//! Rows change meanwhile. So what the scan has found is measured again at the moment of the search,
//! together with the changes that the graph does not have yet, and a row that is as near as the
//! last of the nearest counts as found whichever it is.

use filter_columns::IdSet;

use super::{AsVector, FreshDistances, VectorIndex};
use crate::indexes::fresh::LoadedChanges;
use crate::indexes::request::{IndexSearch, StructureError, StructureQuery};
use crate::indexes::surrounding_rows::SurroundingRows;

/// The number of nearest rows that are compared.
const COMPARED: usize = 10;

/// The number of nearest vectors that the scan retains, as some of them may have changed or gone
/// when the answer is compared.
const RETAINED: usize = 2 * COMPARED;

/// About the number of elements of vectors that one scan measures.
const ELEMENTS_AT_ONCE: usize = 1 << 19;

/// The fewest and the most ids of one scan.
const IDS_AT_ONCE: (usize, usize) = (64, 8_192);

/// Rows as queries, and the nearest rows of each among the vectors that were measured so far.
pub(crate) struct RecallBatch {
    queries: Vec<SampledQuery>,
    /// The ids whose vectors are to be measured, from `next` on.
    ids: IdSet,
    next: u32,
    /// The ids that were fresh at the beginning. The graph may take them in behind the scan, so
    /// they are measured after all others.
    late: IdSet,
}

/// A row as a query.
struct SampledQuery {
    id: u32,
    vector: Vec<f32>,
    /// The nearest vectors that were measured so far, nearest first.
    nearest: Vec<ann::Neighbour>,
}

/// The outcome of one query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueryRecall {
    /// The share of the nearest rows that the search has found.
    pub share: f64,
    /// Whether the answer begins with the row itself, or with one that is as near.
    pub finds_itself: bool,
}

impl RecallBatch {
    /// Whether queries are left to be judged.
    pub(crate) fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// Takes the next ids to measure, `count` at most; an empty set once none is left.
    fn take_ids(&mut self, count: usize) -> IdSet {
        loop {
            if let Some(first) = self.ids.next_from(self.next) {
                let end = first.saturating_add(count as u32);
                self.next = end;
                let ids = (first..end).filter(|id| self.ids.contains(*id));
                return ids.collect();
            }
            if self.late.is_empty() {
                return IdSet::default();
            }
            self.ids = std::mem::take(&mut self.late);
            self.next = 0;
        }
    }
}

impl VectorIndex {
    /// Takes the vectors of rows as queries. Rows that have none are left out.
    pub(crate) fn begin_recall<V: AsVector>(
        &self,
        rows: &SurroundingRows<'_, V>,
        sampled: &[u32],
    ) -> RecallBatch {
        let fresh = rows.fresh.now();
        let changed = LoadedChanges::by_id(&fresh);
        let query = |id: &u32| {
            let vector = self.vector_now(*id, &changed)?;
            Some(SampledQuery {
                id: *id,
                vector,
                nearest: Vec::new(),
            })
        };
        RecallBatch {
            queries: sampled.iter().filter_map(query).collect(),
            ids: self.ann.ids(),
            next: 0,
            late: fresh.newest().ids,
        }
    }

    /// Measures the next piece of all vectors with each query. Returns whether there was any left.
    pub(crate) fn scan_for_recall(&self, batch: &mut RecallBatch) -> Result<bool, StructureError> {
        let (fewest, most) = IDS_AT_ONCE;
        let count = ELEMENTS_AT_ONCE / self.ann.options().dimensions.max(1);
        let ids = batch.take_ids(count.clamp(fewest, most));
        if ids.is_empty() {
            return Ok(false);
        }
        for query in &mut batch.queries {
            let found = self.ann.scan(&query.vector, RETAINED, &ids)?;
            let is_old = |known: &ann::Neighbour| found.iter().any(|new| new.id == known.id);
            query.nearest.retain(|known| !is_old(known));
            query.nearest.extend(found);
            sort(&mut query.nearest);
            query.nearest.truncate(RETAINED);
        }
        Ok(true)
    }

    /// Searches for the next query in the ordinary way, and compares the answer with the nearest of
    /// all. `None` if the row has gone or has another vector by now.
    pub(crate) fn judge_recall<V: AsVector>(
        &self,
        rows: &SurroundingRows<'_, V>,
        batch: &mut RecallBatch,
        now_s: u32,
    ) -> Result<Option<QueryRecall>, StructureError> {
        let Some(query) = batch.queries.pop() else {
            return Ok(None);
        };
        let search = IndexSearch {
            query: StructureQuery::Vector(&query.vector),
            limit: COMPARED,
            now_s,
            filter: None,
            tenant: None,
            returned: None,
            exact: false,
            keys: None,
        };
        let answer = self.search(rows, &query.vector, &search)?;
        let found = answer.rows();
        let fresh = rows.fresh.now();
        if self.vector_now(query.id, &fresh.by_id()).as_ref() != Some(&query.vector) {
            return Ok(None);
        }
        let mut nearest = self.measure_again(&query, &fresh)?;
        let keys = rows.keys.read();
        nearest.retain(|neighbour| keys.found(neighbour.id, now_s).is_some());
        sort(&mut nearest);
        let named = |neighbour: &ann::Neighbour| {
            let key = keys.shown(neighbour.id)?;
            Some((neighbour.distance, key))
        };
        let own = nearest.iter().find(|nearest| nearest.id == query.id);
        let Some(own) = own.and_then(named) else {
            return Ok(None);
        };
        let nearest: Vec<_> = nearest.iter().filter_map(named).take(COMPARED).collect();
        let found: Vec<_> = found
            .iter()
            .map(|row| (row.scored.measured, row.key))
            .collect();
        Ok(Some(compared(own, &nearest, &found)))
    }

    /// The nearest vectors of a query that the scan has found, as far as they are still there, and
    /// its own and all fresh ones, with their present distances, in no order.
    fn measure_again<V: AsVector>(
        &self,
        query: &SampledQuery,
        fresh: &LoadedChanges<V>,
    ) -> Result<Vec<ann::Neighbour>, StructureError> {
        let FreshDistances {
            hidden, vectors, ..
        } = self.measure(fresh.newest(), &query.vector)?;
        let ids = query.nearest.iter().map(|nearest| nearest.id);
        let ids = ids.chain([query.id]).filter(|id| !hidden.contains(*id));
        let ids: IdSet = ids.collect();
        let mut nearest = self.ann.scan(&query.vector, ids.len(), &ids)?;
        nearest.extend(vectors);
        Ok(nearest)
    }
}

/// Compares the answer of a search with the nearest rows, of which there is at least one, and with
/// the row that is the query. Rows are distances and keys, nearest first.
fn compared(own: (f32, &[u8]), nearest: &[(f32, &[u8])], found: &[(f32, &[u8])]) -> QueryRecall {
    let farthest = nearest.last().map_or(own.0, |(distance, _)| *distance);
    let is_near = |key: &[u8]| nearest.iter().any(|(_, of_nearest)| *of_nearest == key);
    let hits = found
        .iter()
        .filter(|(distance, key)| *distance <= farthest || is_near(key))
        .count();
    let wanted = nearest.len().max(1);
    QueryRecall {
        share: hits.min(wanted) as f64 / wanted as f64,
        finds_itself: found
            .first()
            .is_some_and(|(distance, key)| *distance <= own.0 || *key == own.1),
    }
}

/// Puts the nearest first.
fn sort(neighbours: &mut [ann::Neighbour]) {
    neighbours.sort_unstable_by(|a, b| {
        let by_distance = a.distance.total_cmp(&b.distance);
        by_distance.then(a.id.cmp(&b.id))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(ids: &[u32], late: &[u32]) -> RecallBatch {
        RecallBatch {
            queries: Vec::new(),
            ids: ids.iter().copied().collect(),
            next: 0,
            late: late.iter().copied().collect(),
        }
    }

    #[test]
    fn rows_that_are_farther_than_the_nearest_count_as_missed() {
        let own = (0.0, &b"own"[..]);
        let nearest: [(f32, &[u8]); 4] = [own, (1.0, b"a"), (2.0, b"b"), (2.0, b"c")];
        let outcome = |found: &[(f32, &[u8])]| {
            let outcome = compared(own, &nearest, found);
            (outcome.share, outcome.finds_itself)
        };
        assert_eq!(outcome(&nearest), (1.0, true));
        // One that is as near as the last is as good, and a key decides where rounding would.
        assert_eq!(
            outcome(&[own, (1.0, b"a"), (2.0, b"d"), (2.1, b"c")]),
            (1.0, true)
        );
        assert_eq!(
            outcome(&[(1.0, b"a"), (2.0, b"b"), (2.5, b"e"), (3.0, b"f")]),
            (0.5, false)
        );
        assert_eq!(outcome(&[(0.0, b"copy")]), (0.25, true));
        assert_eq!(outcome(&[]), (0.0, false));
    }

    #[test]
    fn every_id_is_measured_and_the_late_ones_after_all_others() {
        let mut batch = batch(&[0, 1, 2, 70, 200_000], &[1, 9]);
        let mut taken = Vec::new();
        loop {
            let ids = batch.take_ids(2);
            if ids.is_empty() {
                break;
            }
            taken.push(ids.iter().collect::<Vec<_>>());
        }
        assert_eq!(
            taken,
            [
                vec![0, 1],
                vec![2],
                vec![70],
                vec![200_000],
                vec![1],
                vec![9]
            ]
        );
    }
}
