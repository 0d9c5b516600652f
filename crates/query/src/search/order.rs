//! The order of the rows of an answer of one search.
//!
//! An index names rows with their scores. A row that is read a moment later may have another
//! value, and so another score. It comes where that one belongs. If it is worse now, others may be
//! better that were not named, as they are worse than all that were.

use crate::nearest::TopScored;

/// The part by which a score may be less in the index than here, as it is added up in another
/// order.
const ROUNDING: f32 = 1e-5;

/// A row that indexes have named.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedKey<K> {
    /// The key of the row.
    pub key: K,
    /// The score, as the index has it.
    pub score: f32,
}

/// A row with its score.
pub struct ScoredRow<T> {
    /// The row.
    pub row: T,
    /// The score by which it comes where it comes.
    pub score: f32,
}

/// The order in which rows become those of the answer.
pub enum AnswerOrder<T> {
    /// That of the index, in which so many rows were taken.
    Named(usize),
    /// That of the stored vectors of all candidates.
    Rescored {
        /// The best rows so far.
        best: TopScored<ScoredRow<T>>,
        /// The number of rows that were taken.
        taken: usize,
    },
    /// That of the values that were read with the rows, which may be others than the index knows.
    Reread(RereadRows<T>),
}

impl<T> AnswerOrder<T> {
    /// The number of rows that are missing of so many, as far as is known; 0 if no later row can
    /// come before one of them.
    pub fn missing(&self, count: usize) -> usize {
        match self {
            AnswerOrder::Named(taken) => count.saturating_sub(*taken),
            AnswerOrder::Rescored { .. } => usize::MAX,
            AnswerOrder::Reread(rows) => match rows.has_receded {
                true => usize::MAX,
                false => count.saturating_sub(rows.scores.len()),
            },
        }
    }
}

/// Rows that were named, with the scores of the values that were read with them.
pub struct RereadRows<T> {
    best: TopScored<ScoredRow<T>>,
    scores: Vec<f32>,
    /// Whether one of the rows is worse than the index has it.
    has_receded: bool,
}

impl<T> RereadRows<T> {
    /// Begins without rows. `count` of them are wanted.
    pub fn new(count: usize) -> RereadRows<T> {
        RereadRows {
            best: TopScored::new(count),
            scores: Vec::new(),
            has_receded: false,
        }
    }

    /// Takes the next row. `score` is that of its value, and the index `named` it by another one
    /// maybe.
    pub fn take(&mut self, row: T, score: f32, named: f32) {
        // A zero vector has no cosine, for which the index has the lowest score.
        let known = if score.is_nan() { 0.0 } else { score };
        self.has_receded |= !is_within(known, named);
        self.scores.push(known);
        self.best.push(score, ScoredRow { row, score });
    }

    /// The number of rows that no row can come before that was not named. `reach` is the score of
    /// the last one that was.
    pub fn within(&self, reach: Option<f32>) -> usize {
        let scores = self.scores.iter();
        let within = scores.filter(|score| reach.is_none_or(|reach| is_within(**score, reach)));
        within.count()
    }

    /// The best rows.
    pub fn into_best(self) -> TopScored<ScoredRow<T>> {
        self.best
    }
}

/// Whether a score is at least as good as another, but for rounding.
fn is_within(score: f32, other: f32) -> bool {
    score >= other - ROUNDING * other.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_farther_away_leaves_its_place_open() {
        let mut rows = RereadRows::new(2);
        rows.take('a', 0.9, 0.9);
        assert_eq!((rows.has_receded, rows.within(Some(0.8))), (false, 1));
        rows.take('b', 0.7, 0.8);
        assert_eq!((rows.has_receded, rows.within(Some(0.8))), (true, 1));
        rows.take('c', 0.8, 0.8);
        assert_eq!(rows.within(Some(0.8)), 2);
        let best = rows.into_best().into_best();
        assert_eq!(best.map(|scored| scored.row).collect::<String>(), "ac");
    }
}
