//! Changes of vectors that have been written.

use crate::random::SplitMixGenerator;

const STREAM: u64 = 0xc4a6;

/// The changes that follow once all vectors of a set are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChurnPattern {
    /// None.
    None,
    /// A random half is deleted.
    HalfDeleted,
    /// A random third gets other vectors of the same kind, and then a random half is deleted.
    ThirdReplacedHalfDeleted,
}

/// The change of one vector.
#[derive(Clone, Debug, PartialEq)]
pub enum VectorChange {
    /// The id gets this vector.
    Replace(u32, Vec<f32>),
    /// The id is deleted.
    Remove(u32),
}

impl ChurnPattern {
    /// The number of vectors that are replaced of so many.
    pub(crate) fn replaced(self, rows: usize) -> usize {
        match self {
            ChurnPattern::ThirdReplacedHalfDeleted => rows / 3,
            ChurnPattern::None | ChurnPattern::HalfDeleted => 0,
        }
    }

    /// Draws the changes of `rows` vectors. `spare` has the vectors that take the place of others.
    pub(crate) fn draw(
        self,
        seed: u64,
        rows: usize,
        spare: Vec<f32>,
        dimensions: usize,
    ) -> Vec<VectorChange> {
        if self == ChurnPattern::None {
            return Vec::new();
        }
        let mut random = SplitMixGenerator::new(seed, STREAM);
        let order = random.permutation(rows);
        let replaced = order.iter().zip(spare.chunks_exact(dimensions));
        let replaced =
            replaced.map(|(id, vector)| VectorChange::Replace(*id as u32, vector.to_vec()));
        let mut changes: Vec<VectorChange> = replaced.collect();
        let order = random.permutation(rows);
        let removed = order[..rows / 2].iter();
        changes.extend(removed.map(|id| VectorChange::Remove(*id as u32)));
        changes
    }
}
