//! The rows of an index's map: some that are drawn, with their keys, values and vectors.

use std::borrow::Cow;

use index::score::DistanceAndScore;
use point_map::drawn_places;

use super::IndexContent;
use crate::identity::ColumnPlace;
use crate::indexes::ranked_rows::RankedRows;
use crate::indexes::request::StructureError;
use crate::indexes::returned::ValueOrigin;
use crate::indexes::vector::VectorSpace;
use crate::keys::EncodedValues;

/// The score of a row that no search has found.
const UNRANKED: DistanceAndScore = DistanceAndScore {
    distance: 0.0,
    similarity: 0.0,
    measured: 0.0,
};

/// The drawn rows that were there when they were looked at.
pub(crate) struct SampledRows<'a> {
    /// Their keys, and the values of the columns that the map has.
    pub rows: RankedRows<'a>,
    /// The elements of their vectors, one vector after the other.
    pub elements: Vec<f32>,
}

impl IndexContent {
    /// The space of the vectors.
    ///
    /// # Errors
    /// If the index has none.
    pub(crate) fn vector_space(&self) -> Result<VectorSpace, StructureError> {
        Ok(self.structure.vectors()?.space())
    }

    /// Draws the ids of `count` rows by a seed, or takes all if there are no more, in ascending
    /// order.
    pub(crate) fn drawn_rows(&self, count: usize, seed: u64) -> Vec<u32> {
        let ids = self.known_ids();
        let mut places = drawn_places(ids.len(), count, seed).into_iter().peekable();
        let at_places = ids
            .iter()
            .enumerate()
            .filter(|(place, _)| places.next_if_eq(place).is_some());
        at_places.map(|(_, id)| id).collect()
    }

    /// Adds rows to a sample. Those are left out that have gone, that have expired by `now_s` in
    /// seconds since the epoch, and whose key has no form in JSON.
    ///
    /// # Errors
    /// If the index has no vectors.
    pub(crate) fn sample_rows(
        &self,
        ids: &[u32],
        now_s: u32,
        sampled: &mut SampledRows<'_>,
    ) -> Result<(), StructureError> {
        // Held from before the first vector is read until the keys have been looked up.
        let _epoch = self.hold_ids();
        // Vectors may come from the disk, so no writer waits meanwhile.
        let vectors = self.structure.vectors()?;
        let present = vectors.present_vectors(&self.rows(), ids);
        self.look_for_damage();
        let keys = self.keys();
        for (id, vector) in present {
            let key = keys.found(id, now_s);
            let Some(key) = key.filter(|key| self.schema.has_json(key)) else {
                continue;
            };
            sampled.elements.extend(vector);
            sampled.rows.push(key, UNRANKED);
            for values in sampled.rows.returned() {
                let value = match values.column().source {
                    ValueOrigin::Kept(ColumnPlace::Key(at)) => {
                        EncodedValues::of(key).nth(at).map(Cow::Borrowed)
                    }
                    ValueOrigin::Kept(ColumnPlace::Filter(at)) => keys.filters().value(at, id),
                    ValueOrigin::Indexed => None,
                };
                values.push(value);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use point_map::SampleMetric;

    use super::*;
    use crate::indexes::tests::{identity, in_memory, insert};

    #[test]
    fn drawn_rows_come_with_vectors_and_those_without_a_key_are_left_out() {
        let identity = identity("idx");
        let index = IndexContent::new(&identity.options, identity.keys.clone(), &in_memory());
        let index = index.unwrap();
        for id in 0..50u32 {
            insert(&index, id, &[id as f32, 1.0]);
            let key = identity.keys.encode([id.to_string().as_bytes()]);
            index.keys_mut().insert(id, key);
        }
        index.keys_mut().remove(7);
        assert_eq!(index.drawn_rows(20, 3), index.drawn_rows(20, 3));
        assert_ne!(index.drawn_rows(20, 3), index.drawn_rows(20, 4));
        assert_eq!(index.drawn_rows(20, 3).len(), 20);
        let all = index.drawn_rows(1000, 0);
        assert_eq!(all, (0..50).collect::<Vec<_>>());
        let space = index.vector_space().unwrap();
        assert_eq!(
            (space.dimensions, space.metric),
            (2, SampleMetric::Euclidean)
        );
        let mut sampled = SampledRows {
            rows: RankedRows::with_capacity(&identity.keys, all.len()).returning(Some(&[])),
            elements: Vec::new(),
        };
        index.sample_rows(&all, 0, &mut sampled).unwrap();
        assert_eq!(sampled.rows.rows().len(), 49);
        assert_eq!(sampled.elements.len(), 98);
        assert_eq!(sampled.elements[14..16], [8.0, 1.0]);
    }
}
