//! The number of candidates that a query requests from an index.

use crate::options::CandidateOptions;
use crate::{Quantization, SimilarityFunction};

/// The candidates that an index requires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateRule {
    /// The factor from LIMIT to the number of requested candidates, at least 1.
    pub oversampling: f32,
    /// The metric of the index.
    pub metric: SimilarityFunction,
    /// The metric by which candidates are put in order again, from their stored vectors; None if
    /// they are not.
    pub rescoring: Option<SimilarityFunction>,
    /// Whether the index keeps the vectors as they are, so that its scores are theirs.
    pub is_exact: bool,
}

impl CandidateRule {
    /// The candidates that an index requires. `option` finds an option of it by name. Rescoring is
    /// of no use for full vectors.
    pub fn of<'o>(option: impl Fn(&str) -> Option<&'o str>) -> CandidateRule {
        let options = CandidateOptions::read(option);
        let is_quantized = options.quantization != Quantization::F32;
        CandidateRule {
            oversampling: options.oversampling as f32,
            metric: options.similarity,
            rescoring: (is_quantized && options.rescoring).then_some(options.similarity),
            is_exact: !is_quantized,
        }
    }

    /// The number of candidates to request for a LIMIT.
    pub fn wanted(&self, limit: usize) -> usize {
        // The product is taken in f32, as the factor is one: 1.1 times 10 is 11.
        (limit as f32 * self.oversampling).ceil() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[(&str, &'static str)]) -> CandidateRule {
        CandidateRule::of(|name| Some(options.iter().find(|(known, _)| *known == name)?.1))
    }

    #[test]
    fn rescoring_needs_to_be_wanted_and_of_use() {
        assert_eq!(of(&[]).rescoring, None);
        assert_eq!(of(&[("rescoring", "true")]).rescoring, None);
        assert_eq!(of(&[("quantization", "i8")]).rescoring, None);
        let full = of(&[("rescoring", "true"), ("quantization", "F32")]);
        assert_eq!(full.rescoring, None);
        let both = of(&[("rescoring", "TRUE"), ("quantization", "b1")]);
        assert_eq!(both.rescoring, Some(SimilarityFunction::Cosine));
    }

    #[test]
    fn oversampling_is_rounded_up_in_its_own_precision() {
        let candidates = of(&[("oversampling", "1.1")]);
        assert_eq!(candidates.wanted(10), 11);
        for senseless in ["0.5", "NaN", "inf", "x"] {
            assert_eq!(of(&[("oversampling", senseless)]).wanted(10), 10);
        }
    }
}
