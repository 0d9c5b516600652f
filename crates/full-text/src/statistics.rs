//! The statistics of documents that scores need, and the formula of a score: BM25.

use std::collections::HashMap;

/// How fast a term's further occurrences lose weight.
const K1: f32 = 1.2;
/// How far a document's length counts, from not at all (0) to in full (1).
const B: f32 = 0.75;

/// The numbers of live documents that the scores of a query depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryStatistics {
    /// The documents, also those without a term.
    pub documents: u64,
    /// The sum of their lengths.
    pub tokens: u64,
    /// For each exact term of the query the documents that have it.
    pub frequencies: HashMap<String, u64>,
}

impl QueryStatistics {
    /// The weight of a term by its rarity: `ln(1 + (N - df + 0.5) / (df + 0.5))`.
    pub fn idf(&self, term: &str) -> f32 {
        let frequency = self.frequencies.get(term).copied().unwrap_or(0);
        // A document that changes while they are counted may be in one number and not in another.
        let without = self.documents.saturating_sub(frequency);
        let ratio = (without as f32 + 0.5) / (frequency as f32 + 0.5);
        (1.0 + ratio).ln()
    }

    /// The average length of a document. It is 1 where there are none, so that a text that is not
    /// in the index has a score, too.
    pub fn average_length(&self) -> f32 {
        match self.documents == 0 || self.tokens == 0 {
            true => 1.0,
            false => self.tokens as f32 / self.documents as f32,
        }
    }

    /// The score of a term or a phrase that occurs `frequency` times in a document of `length`
    /// tokens. `idf` is the term's, or the sum of those of a phrase's terms.
    pub fn term_score(&self, idf: f32, boost: f32, frequency: u32, length: u32) -> f32 {
        let weight = idf * (1.0 + K1) * boost;
        let norm = K1 * (1.0 - B + B * length as f32 / self.average_length());
        let frequency = frequency as f32;
        weight * (frequency / (frequency + norm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics() -> QueryStatistics {
        QueryStatistics {
            documents: 10,
            tokens: 80,
            frequencies: HashMap::from([("rare".to_owned(), 1), ("common".to_owned(), 10)]),
        }
    }

    #[test]
    fn idf_is_that_of_the_formula() {
        let statistics = statistics();
        let of = |frequency: f64| (1.0 + (10.0 - frequency + 0.5) / (frequency + 0.5)).ln();
        for (term, frequency) in [("rare", 1.0), ("common", 10.0), ("absent", 0.0)] {
            let found = f64::from(statistics.idf(term));
            assert!((found - of(frequency)).abs() < 1e-6, "{term}: {found}");
        }
        assert!(statistics.idf("common") > 0.0);
    }

    #[test]
    fn a_score_is_that_of_the_formula() {
        let statistics = statistics();
        let (k1, b) = (1.2, 0.75);
        for (frequency, length) in [(1_u32, 8_u32), (3, 8), (1, 40), (2, 2)] {
            let norm = k1 * (1.0 - b + b * f64::from(length) / 8.0);
            let frequency_part = f64::from(frequency) * (k1 + 1.0) / (f64::from(frequency) + norm);
            let expected = f64::from(statistics.idf("rare")) * frequency_part * 2.5;
            let found = statistics.term_score(statistics.idf("rare"), 2.5, frequency, length);
            assert!(
                (f64::from(found) - expected).abs() < 1e-5,
                "{found} {expected}"
            );
        }
    }

    #[test]
    fn an_empty_index_gives_finite_scores() {
        let statistics = QueryStatistics::default();
        let score = statistics.term_score(statistics.idf("word"), 1.0, 1, 5);
        assert!(score.is_finite() && score > 0.0, "{score}");
        let of_empty_texts = QueryStatistics {
            documents: 3,
            ..QueryStatistics::default()
        };
        let score = of_empty_texts.term_score(of_empty_texts.idf("word"), 1.0, 1, 5);
        assert!(score.is_finite() && score > 0.0, "{score}");
    }
}
