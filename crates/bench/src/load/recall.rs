//! Judges how many of the expected rows an answer has.

use std::collections::HashSet;

use annulus_bench::data::TrueNeighbours;

/// Judges answers by the true neighbours of the queries.
#[derive(Clone, Debug)]
pub struct AnswerJudge {
    /// The ids expected for each query, sorted.
    expected: Vec<Box<[i64]>>,
    /// The number of rows of an answer that count.
    k: usize,
}

impl AnswerJudge {
    /// Makes a judge of answers of up to `k` rows. The rows `except` may or may not be in the
    /// table, so they are not expected.
    pub fn new(neighbours: &TrueNeighbours, k: usize, except: &HashSet<i64>) -> AnswerJudge {
        let expected = (0..neighbours.len()).map(|query| {
            let nearest = &neighbours.of(query)[..k.min(neighbours.per_query)];
            let mut ids: Vec<i64> = nearest
                .iter()
                .copied()
                .filter(|id| !except.contains(id))
                .collect();
            ids.sort_unstable();
            ids.into_boxed_slice()
        });
        AnswerJudge {
            expected: expected.collect(),
            k,
        }
    }

    /// The share of the expected rows that are among the first `k` of an answer; `None` if no row
    /// is expected. The answer must be nearest first. It is cut off and sorted on the way.
    pub fn recall(&self, query: usize, answer: &mut Vec<i64>) -> Option<f64> {
        let expected = &self.expected[query];
        if expected.is_empty() {
            return None;
        }
        answer.truncate(self.k);
        answer.sort_unstable();
        answer.dedup();
        let found = answer
            .iter()
            .filter(|id| expected.binary_search(id).is_ok());
        Some(found.count() as f64 / expected.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expected_row_counts_once() {
        let neighbours = TrueNeighbours {
            per_query: 4,
            ids: vec![9, 3, 7, 1],
        };
        let judge = AnswerJudge::new(&neighbours, 3, &HashSet::new());
        assert_eq!(judge.recall(0, &mut vec![3, 9, 7]), Some(1.0));
        assert_eq!(judge.recall(0, &mut vec![3, 3, 1]), Some(1.0 / 3.0));
        assert_eq!(judge.recall(0, &mut vec![]), Some(0.0));
        // Rows beyond those requested do not count.
        assert_eq!(judge.recall(0, &mut vec![3, 4, 5, 9, 7]), Some(1.0 / 3.0));
        let judge = AnswerJudge::new(&neighbours, 3, &HashSet::from([9, 3]));
        assert_eq!(judge.recall(0, &mut vec![7, 9, 1]), Some(1.0));
        let judge = AnswerJudge::new(&neighbours, 1, &HashSet::from([9]));
        assert_eq!(judge.recall(0, &mut vec![9]), None);
    }
}
