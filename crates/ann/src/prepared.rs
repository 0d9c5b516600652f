//! Vectors on their way into an index, which can be measured before the index holds them.

use crate::IndexError;
use crate::form::{EncodedVector, VectorForm};
use crate::ids::IdEntry;
use crate::neighbour_index::{NeighbourIndex, Workspace};
use crate::vectors::VectorScorer;

/// A vector in the form in which an index keeps its vectors. [`NeighbourIndex::prepare`] makes it.
#[derive(Clone, Debug)]
pub struct IndexableVector {
    /// The bytes are left out where the floats tell them.
    kept: EncodedVector,
    directed: bool,
}

impl IndexableVector {
    /// The bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        size_of::<IndexableVector>()
            + self.kept.bytes.capacity()
            + self.kept.floats.capacity() * size_of::<f32>()
    }

    /// Copies the vector; false if only directions are stored and it has none.
    pub(crate) fn copy_to(&self, form: VectorForm, kept: &mut EncodedVector) -> bool {
        kept.floats.clone_from(&self.kept.floats);
        match form.is_full() {
            true => {
                kept.bytes.clear();
                let floats = kept.floats.iter();
                kept.bytes.extend(floats.flat_map(|x| x.to_le_bytes()));
            }
            false => kept.bytes.clone_from(&self.kept.bytes),
        }
        self.directed
    }
}

impl NeighbourIndex {
    /// Brings a vector into the form of the index. Fails if it is no vector of this index
    /// ([`IndexError::Dimensions`], [`IndexError::NotFinite`]).
    pub fn prepare(&self, vector: &[f32]) -> Result<IndexableVector, IndexError> {
        self.check(vector)?;
        let mut kept = EncodedVector::default();
        let directed = self.form.keep(vector, &mut kept);
        if self.form.is_full() {
            kept.bytes = Vec::new();
        }
        Ok(IndexableVector { kept, directed })
    }

    /// Adds a vector as [`NeighbourIndex::insert`] does.
    pub fn insert_prepared(&self, id: u32, vector: &IndexableVector) -> Result<(), IndexError> {
        self.insert_kept(id, |kept| vector.copy_to(self.form, kept))
    }

    /// Replaces a vector as [`NeighbourIndex::replace`] does.
    pub fn replace_prepared(&self, id: u32, vector: &IndexableVector) -> Result<(), IndexError> {
        self.replace_kept(id, |kept| vector.copy_to(self.form, kept))
    }

    /// The vector of an id as the index keeps it; `None` if it does not hold the id. Elements have
    /// the precision of the index: 1 and -1 where bits are stored. Where only directions are stored
    /// it is a unit vector, or zero.
    pub fn vector(&self, id: u32) -> Option<Vec<f32>> {
        self.with_workspace(|Workspace { participant, .. }| {
            let _pin = participant.pin();
            match self.ids.get(id) {
                IdEntry::Vacant | IdEntry::Reserved => None,
                IdEntry::Undirected => Some(vec![0.0; self.options.dimensions]),
                // SAFETY: the table names filled slots, and the epoch is pinned since before.
                IdEntry::Slot(slot) => Some(unsafe { self.coded(slot) }),
            }
        })
    }

    /// The vector that [`NeighbourIndex::vector`] returns once the index holds the prepared one.
    pub fn vector_of(&self, prepared: &IndexableVector) -> Vec<f32> {
        match prepared.directed {
            false => vec![0.0; self.options.dimensions],
            true if self.form.is_full() => prepared.kept.floats.clone(),
            true => self.widened(&prepared.kept.bytes),
        }
    }

    /// The distances of vectors from a query, in their order. They are those that searches answer
    /// with once the index holds the vectors. Fails if the query is no vector of this index.
    pub fn measure<'a>(
        &self,
        query: &[f32],
        vectors: impl IntoIterator<Item = &'a IndexableVector>,
    ) -> Result<Vec<f32>, IndexError> {
        self.check(query)?;
        let mut kept = EncodedVector::default();
        // A query without direction is measured as such by the scorer.
        self.form.keep_query(query, &mut kept);
        let mut scorer = VectorScorer::new(self.form, self.options.metric, query, &kept);
        let vectors = vectors.into_iter();
        let distances = vectors.map(|vector| {
            let measured = match vector.directed {
                false => scorer.undirected_distance(),
                true if self.form.is_full() => scorer.measure_floats(&vector.kept.floats),
                true => scorer.measure(&vector.kept.bytes),
            };
            scorer.distance(measured)
        });
        Ok(distances.collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::{DistanceMetric, NeighbourIndex, NeighbourIndexOptions, VectorQuantization};

    /// Checks that a stored vector is the one that was given, as far as its form can represent.
    fn check_kept(kept: &[f32], given: &[f32], options: &NeighbourIndexOptions) {
        assert_eq!(kept.len(), given.len());
        let length = given.iter().map(|x| x * x).sum::<f32>().sqrt();
        let is_bits = options.metric == DistanceMetric::Hamming
            || options.quantization == VectorQuantization::B1;
        for (kept, given) in kept.iter().zip(given) {
            let (expected, error) = match options.metric {
                _ if is_bits => (if *given > 0.0 { 1.0 } else { -1.0 }, 0.0),
                DistanceMetric::Cosine if length == 0.0 => (0.0, 0.0),
                DistanceMetric::Cosine => (given / length, 0.01),
                _ => (*given, 0.1),
            };
            assert!(
                (kept - expected).abs() <= error,
                "{kept} {expected} {options:?}"
            );
        }
    }

    #[test]
    fn a_vector_has_the_same_distance_before_and_after_it_is_in() {
        use DistanceMetric::*;
        use VectorQuantization::*;
        let element = |at: usize| (at * 7919 % 31) as f32 - 15.0;
        let vector = |from: usize| -> Vec<f32> { (from..from + 19).map(element).collect() };
        let mut vectors: Vec<Vec<f32>> = (0..40).map(|row| vector(row * 23)).collect();
        vectors.push(vec![0.0; 19]);
        for metric in [Cosine, Euclidean, DotProduct, Hamming] {
            for quantization in [F32, F16, Bf16, I8, B1] {
                let options = NeighbourIndexOptions {
                    metric,
                    quantization,
                    ..NeighbourIndexOptions::new(19)
                };
                let index = NeighbourIndex::new(options).expect("valid options");
                let prepare = |vector: &Vec<f32>| index.prepare(vector).expect("a vector");
                let prepared: Vec<_> = vectors.iter().map(prepare).collect();
                let queries = [vector(5), vector(800), vec![0.0; 19]];
                let measure = |query: &Vec<f32>| index.measure(query, &prepared).expect("a query");
                let before: Vec<Vec<f32>> = queries.iter().map(measure).collect();
                for (id, vector) in (0..).zip(&prepared) {
                    index.insert_prepared(id, vector).expect("an insert");
                }
                for (id, (vector, prepared)) in (0..).zip(vectors.iter().zip(&prepared)) {
                    let kept = index.vector(id).expect("it is held");
                    assert_eq!(
                        kept,
                        index.vector_of(prepared),
                        "{metric:?} {quantization:?}"
                    );
                    check_kept(&kept, vector, index.options());
                }
                assert_eq!(index.vector(41), None);
                let replaced = index.prepare(&vectors[1]).expect("a vector");
                index.replace_prepared(0, &replaced).expect("it is held");
                index.replace_prepared(0, &prepared[0]).expect("it is held");
                for (query, before) in queries.iter().zip(before) {
                    let found = index.search(query, vectors.len()).expect("an answer");
                    assert_eq!(found.len(), vectors.len());
                    for neighbour in found {
                        let distance = before[neighbour.id as usize];
                        assert_eq!(
                            neighbour.distance, distance,
                            "{metric:?} {quantization:?} {}",
                            neighbour.id
                        );
                    }
                }
            }
        }
    }
}
