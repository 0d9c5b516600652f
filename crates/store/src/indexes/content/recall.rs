//! The check of an index's recall.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use filter_columns::IdSet;

use super::IndexContent;
use crate::indexes::request::StructureError;
use crate::indexes::surrounding_rows::SurroundingRows;
use crate::indexes::vector::recall::{QueryRecall, RecallBatch};

impl IndexContent {
    /// Draws `count` rows of the index by chance, or takes all if there are no more.
    pub(crate) fn sample(&self, count: usize) -> Vec<u32> {
        drawn(&self.known_ids(), count)
    }

    /// Takes the vectors of rows as queries.
    ///
    /// # Errors
    /// If the index has no vectors.
    pub(crate) fn begin_recall(&self, sampled: &[u32]) -> Result<RecallBatch, StructureError> {
        let _epoch = self.epoch.load_full();
        let vectors = self.structure.vectors()?;
        Ok(vectors.begin_recall(&self.rows_around(), sampled))
    }

    /// Measures the next piece of all vectors with each query. Returns whether there was any left.
    ///
    /// # Errors
    /// If the index has no vectors, or is at fault.
    pub(crate) fn scan_for_recall(&self, batch: &mut RecallBatch) -> Result<bool, StructureError> {
        let scanned = self.structure.vectors()?.scan_for_recall(batch);
        self.look_for_damage();
        scanned
    }

    /// Searches for the next query, and compares the answer with the nearest of all; `None` if its
    /// row has changed meanwhile. Rows that have expired by `now_s`, in seconds since the epoch,
    /// don't count.
    ///
    /// # Errors
    /// If the index has no vectors, or is at fault.
    pub(crate) fn judge_recall(
        &self,
        batch: &mut RecallBatch,
        now_s: u32,
    ) -> Result<Option<QueryRecall>, StructureError> {
        // Held from before the first id is seen until its key has been looked up.
        let _epoch = self.epoch.load_full();
        let judged = self
            .structure
            .vectors()?
            .judge_recall(&self.rows_around(), batch, now_s);
        self.look_for_damage();
        judged
    }

    fn rows_around(&self) -> SurroundingRows<'_, super::PreparedValue> {
        SurroundingRows {
            keys: &self.keys,
            fresh: &self.fresh,
            schema: &self.schema,
        }
    }
}

/// Draws `count` ids of a set, each with the same chance (Floyd's sampling), in ascending order.
fn drawn(ids: &IdSet, count: usize) -> Vec<u32> {
    if count >= ids.len() {
        return ids.iter().collect();
    }
    let random = RandomState::new();
    let mut places = BTreeSet::new();
    for last in ids.len() - count..ids.len() {
        let place = random.hash_one(last) % (last as u64 + 1);
        if !places.insert(place as usize) {
            places.insert(last);
        }
    }
    let at_places = ids
        .iter()
        .enumerate()
        .filter(|(place, _)| places.contains(place));
    at_places.map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::indexes::tests::{identity, in_memory, insert};
    use crate::indexes::{ChangeBlock, ChangeBlocks, FreshChange};
    use crate::observed::IndexableValue;

    /// An index of rows in a line, one apart, whose keys are their ids.
    fn in_line(rows: u32) -> IndexContent {
        let identity = identity("idx");
        let index = IndexContent::new(&identity.options, identity.keys.clone(), &in_memory());
        let index = index.unwrap();
        for id in 0..rows {
            insert(&index, id, &[id as f32, 0.0]);
            name(&index, id);
        }
        index
    }

    fn name(index: &IndexContent, id: u32) {
        let key = identity("idx").keys.encode([id.to_string().as_bytes()]);
        index.keys_mut().insert(id, key);
    }

    fn judged(index: &IndexContent, batch: &mut RecallBatch) -> Vec<QueryRecall> {
        let mut judged = Vec::new();
        while !batch.is_empty() {
            judged.extend(index.judge_recall(batch, 0).unwrap());
        }
        judged
    }

    /// The outcomes of all rows of an index as queries.
    fn of_all(index: &IndexContent) -> Vec<QueryRecall> {
        let mut batch = index.begin_recall(&index.sample(usize::MAX)).unwrap();
        while index.scan_for_recall(&mut batch).unwrap() {}
        judged(index, &mut batch)
    }

    fn publish(index: &IndexContent, changes: &[(u32, Option<[f32; 2]>)]) {
        let changes = changes.iter().map(|(id, vector)| FreshChange {
            id: *id,
            value: vector.map(|vector| {
                let vector = IndexableValue::Vector(vector.to_vec());
                index.prepare(&vector).unwrap()
            }),
        });
        let blocks = vec![Arc::new(ChangeBlock::new(changes.collect()))];
        index.publish(ChangeBlocks { first: 0, blocks }, &[]);
    }

    const WHOLE: QueryRecall = QueryRecall {
        share: 1.0,
        finds_itself: true,
    };

    #[test]
    fn a_sample_has_each_row_once_and_all_if_there_are_few() {
        let ids: IdSet = (0..1000).map(|id| 3 * id).collect();
        let sample = drawn(&ids, 100);
        assert_eq!(sample.len(), 100);
        assert!(sample.is_sorted_by(|a, b| a < b));
        assert!(sample.iter().all(|id| ids.contains(*id)));
        assert_ne!(sample, drawn(&ids, 100));
        assert_eq!(drawn(&ids, 5000).len(), 1000);
        assert_eq!(drawn(&IdSet::default(), 5), [0u32; 0]);
    }

    #[test]
    fn searches_of_a_sound_index_find_all() {
        let index = in_line(700);
        let outcomes = of_all(&index);
        assert_eq!(outcomes.len(), 700);
        assert!(outcomes.iter().all(|outcome| *outcome == WHOLE));
    }

    #[test]
    fn rows_that_come_after_the_scan_are_no_misses() {
        let index = in_line(30);
        let mut batch = index.begin_recall(&[0]).unwrap();
        while index.scan_for_recall(&mut batch).unwrap() {}
        for id in 30..35 {
            insert(&index, id, &[0.5, 0.0]);
            name(&index, id);
        }
        // They displace some of the rows that the scan has found, and are nearer.
        assert_eq!(judged(&index, &mut batch), [WHOLE]);
    }

    #[test]
    fn ties_and_rows_fewer_than_ten_do_not_lower_recall() {
        let index = in_line(0);
        for id in 0..25 {
            insert(&index, id, &[1.0, 1.0]);
            name(&index, id);
        }
        assert_eq!(of_all(&index), vec![WHOLE; 25]);
        assert_eq!(of_all(&in_line(3)), vec![WHOLE; 3]);
        assert!(of_all(&in_line(0)).is_empty());
    }

    #[test]
    fn rows_that_the_graph_does_not_have_yet_are_compared_too() {
        let index = in_line(20);
        let changes = [(3, Some([100.0, 0.0])), (4, None), (20, Some([5.5, 0.0]))];
        publish(&index, &changes);
        index.keys_mut().remove(4);
        name(&index, 20);
        let outcomes = of_all(&index);
        // All but the removed row.
        assert_eq!(outcomes, vec![WHOLE; 20]);
    }

    #[test]
    fn a_row_that_changes_meanwhile_is_no_query_any_more() {
        let index = in_line(20);
        let mut batch = index.begin_recall(&[3, 4, 5]).unwrap();
        while index.scan_for_recall(&mut batch).unwrap() {}
        publish(&index, &[(3, Some([100.0, 0.0])), (4, None)]);
        index.keys_mut().remove(4);
        assert_eq!(judged(&index, &mut batch), [WHOLE]);
    }
}
