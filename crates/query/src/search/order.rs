//! The order of the rows of an answer.
//!
//! An index names rows with their scores. A row that is read a moment later may have another
//! vector, and so another score. It comes where that one belongs. If it is farther away now,
//! others may be nearer that were not named, as they are farther away than all that were.

use std::collections::HashMap;
use std::hash::Hash;

use index::SimilarityFunction;

use crate::nearest::TopScored;

/// The part by which the score of a vector may be less in the index than here, as it is added up in
/// another order.
const ROUNDING: f32 = 1e-5;

/// The number that is added to each rank before orderings are merged, as the field has it: the
/// first ranks count little more than the next ones.
const RANKS_BEFORE: f32 = 60.0;

/// A row that indexes have named.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedKey<K> {
    /// The key of the row.
    pub key: K,
    /// The score by which it comes here: the similarity, as the index has it, or what several ranks
    /// add up to.
    pub score: f32,
}

/// The order in which rows become those of the answer.
pub enum AnswerOrder<T> {
    /// That of the neighbours, in which so many rows were taken.
    Named(usize),
    /// That of the stored vectors of all candidates.
    Rescored {
        /// The metric by which vectors are compared.
        metric: SimilarityFunction,
        /// The best rows so far.
        nearest: TopScored<T>,
        /// The number of rows that were taken.
        taken: usize,
    },
    /// That of the vectors that were read with the rows, which may be others than the index knows.
    Reread {
        /// The metric by which vectors are compared.
        metric: SimilarityFunction,
        /// The rows so far.
        rows: RereadRows<T>,
    },
}

impl<T> AnswerOrder<T> {
    /// The number of rows that are missing of so many, as far as is known; 0 if no later row can
    /// come before one of them.
    pub fn missing(&self, count: usize) -> usize {
        match self {
            AnswerOrder::Named(taken) => count.saturating_sub(*taken),
            AnswerOrder::Rescored { .. } => usize::MAX,
            AnswerOrder::Reread { rows, .. } => match rows.has_receded {
                true => usize::MAX,
                false => count.saturating_sub(rows.scores.len()),
            },
        }
    }
}

/// Rows that were named, with the scores of the vectors that were read with them.
pub struct RereadRows<T> {
    nearest: TopScored<T>,
    scores: Vec<f32>,
    /// Whether one of the rows is farther away than the index has it.
    has_receded: bool,
}

impl<T> RereadRows<T> {
    /// Begins without rows. `count` of them are wanted.
    pub fn new(count: usize) -> RereadRows<T> {
        RereadRows {
            nearest: TopScored::new(count),
            scores: Vec::new(),
            has_receded: false,
        }
    }

    /// Takes the next row. `score` is that of its vector, and the index `named` it by
    /// another one maybe.
    pub fn take(&mut self, row: T, score: f32, named: f32) {
        // A zero vector has no cosine, for which the index has the lowest score.
        let known = if score.is_nan() { 0.0 } else { score };
        self.has_receded |= !is_within(known, named);
        self.scores.push(known);
        self.nearest.push(score, row);
    }

    /// The number of rows that no row can come before that was not named. `reach` is the score of
    /// the last one that was.
    pub fn within(&self, reach: Option<f32>) -> usize {
        let scores = self.scores.iter();
        let within = scores.filter(|score| reach.is_none_or(|reach| is_within(**score, reach)));
        within.count()
    }

    /// The nearest rows.
    pub fn into_nearest(self) -> TopScored<T> {
        self.nearest
    }
}

/// Whether a score is at least as good as another, but for rounding.
fn is_within(score: f32, other: f32) -> bool {
    score >= other - ROUNDING * other.abs()
}

/// Merges the answers to several orderings by the sums of the reciprocals of their rows' ranks. A
/// single answer stays as it is.
pub fn merged<K: Clone + Eq + Hash>(mut answers: Vec<Vec<NamedKey<K>>>) -> Vec<NamedKey<K>> {
    if answers.len() == 1 {
        return answers.remove(0);
    }
    let mut merged: Vec<NamedKey<K>> = Vec::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    for answer in answers {
        for (rank, NamedKey { key, .. }) in answer.into_iter().enumerate() {
            let score = 1.0 / (RANKS_BEFORE + rank as f32 + 1.0);
            match places.get(&key) {
                Some(place) => merged[*place].score += score,
                None => {
                    places.insert(key.clone(), merged.len());
                    merged.push(NamedKey { key, score });
                }
            }
        }
    }
    // Rows of equal scores stay in the order in which they were named.
    merged.sort_by(|a, b| b.score.total_cmp(&a.score));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_several_orderings_name_come_first() {
        let answer = |keys: &[char]| -> Vec<NamedKey<char>> {
            let named = keys.iter().map(|key| NamedKey {
                key: *key,
                score: 0.5,
            });
            named.collect()
        };
        let one = answer(&['a', 'b']);
        assert_eq!(merged(vec![one.clone()]), one);
        let several = merged(vec![one, answer(&['c', 'b', 'd'])]);
        let keys: String = several.iter().map(|named| named.key).collect();
        assert_eq!(keys, "bacd");
    }

    #[test]
    fn a_row_that_is_farther_away_leaves_its_place_open() {
        let mut rows = RereadRows::new(2);
        rows.take('a', 0.9, 0.9);
        assert_eq!((rows.has_receded, rows.within(Some(0.8))), (false, 1));
        rows.take('b', 0.7, 0.8);
        assert_eq!((rows.has_receded, rows.within(Some(0.8))), (true, 1));
        rows.take('c', 0.8, 0.8);
        assert_eq!(rows.within(Some(0.8)), 2);
        let nearest = rows.into_nearest();
        assert_eq!(nearest.into_best().collect::<String>(), "ac");
    }
}
