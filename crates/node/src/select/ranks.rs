//! Neighbours in the order of the vectors that were read with their rows.
//!
//! The index names rows with their scores. A row that is read a moment later may have another
//! vector, and so another score. It stands where that one belongs. If it is farther away now,
//! others may lie before it that were not named, as they are farther away than all that were.

use query::Nearest;
use storage::read::Row;

use super::collector::Progress;

/// The part by which the score of a vector may be less in the index than here, as it is added up in
/// another order.
const ROUNDING: f32 = 1e-5;

/// The rows that were named, with the scores of their vectors.
pub(super) struct Ranks {
    limit: usize,
    nearest: Nearest<Row>,
    scores: Vec<f32>,
    /// Whether one of the rows is farther away than the index has told.
    has_receded: bool,
}

impl Ranks {
    /// Begins without rows. `limit` of them are wanted.
    pub(super) fn new(limit: usize) -> Ranks {
        Ranks {
            limit,
            nearest: Nearest::new(limit),
            scores: Vec::new(),
            has_receded: false,
        }
    }

    /// Takes the next row. `score` is that of its vector, and the index has `told` another one
    /// maybe. The rows are enough as soon as none that comes later can stand before one of them.
    pub(super) fn take(&mut self, row: Row, score: f32, told: f32) -> Progress {
        // A zero vector has no cosine, which the index tells as the lowest score.
        let known = if score.is_nan() { 0.0 } else { score };
        self.has_receded |= !is_within(known, told);
        self.scores.push(known);
        self.nearest.push(score, row);
        match !self.has_receded && self.scores.len() == self.limit {
            true => Progress::Finished,
            false => Progress::Unfinished,
        }
    }

    /// The number of rows that no row can stand before that was not named. `reach` is the score of
    /// the last one that was.
    pub(super) fn within(&self, reach: Option<f32>) -> usize {
        let scores = self.scores.iter();
        let within = scores.filter(|score| reach.is_none_or(|reach| is_within(**score, reach)));
        within.count()
    }

    /// The nearest rows, in their order.
    pub(super) fn into_best(self) -> impl Iterator<Item = Row> {
        self.nearest.into_best()
    }
}

/// Whether a score is at least as good as another, but for rounding.
fn is_within(score: f32, other: f32) -> bool {
    score >= other - ROUNDING * other.abs()
}
