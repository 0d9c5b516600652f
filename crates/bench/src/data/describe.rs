//! Describes an array: shape, lengths of its vectors, and counts of odd ones.

use std::collections::HashSet;
use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_128;

use super::array::{NumberArray, NumberValues, VectorRows};

/// The largest difference from 1 of a length that counts as 1. Unit vectors stored with few bits
/// differ by so much.
const UNIT_TOLERANCE: f64 = 0.01;

/// Describes an array in a few lines.
pub fn describe(array: NumberArray) -> String {
    let mut text = format!(
        "{} rows of {} elements, {}{}\n",
        array.rows(),
        array.columns,
        array.stored_as,
        if array.ids.is_some() {
            ", with ids"
        } else {
            ""
        }
    );
    let integers = match &array.values {
        NumberValues::Integers(values) => values.iter().min().zip(values.iter().max()),
        NumberValues::Floats(_) => None,
    };
    if let Some((least, most)) = integers {
        writeln!(text, "integers from {least} to {most}").expect("a string takes any text");
    }
    let facts = VectorFacts::of(&array.into_vectors());
    facts.write(&mut text, metric_hint(&facts));
    text
}

/// The counts and lengths of a set of vectors.
#[derive(Debug, PartialEq)]
struct VectorFacts {
    rows: usize,
    /// Shortest, mean and longest Euclidean length of the finite vectors.
    lengths: Option<[f64; 3]>,
    not_finite: usize,
    zero: usize,
    /// Vectors that are equal to an earlier one.
    duplicates: usize,
    whole_numbers: bool,
}

impl VectorFacts {
    fn of(vectors: &VectorRows) -> VectorFacts {
        let mut facts = VectorFacts {
            rows: vectors.len(),
            lengths: None,
            not_finite: 0,
            zero: 0,
            duplicates: 0,
            whole_numbers: vectors.values.iter().all(|value| value.fract() == 0.0),
        };
        let (mut least, mut sum, mut most) = (f64::INFINITY, 0.0, 0.0_f64);
        let mut seen: HashSet<u128> = HashSet::with_capacity(vectors.len());
        let mut bytes = Vec::with_capacity(vectors.dimensions * 4);
        for row in vectors.rows() {
            bytes.clear();
            row.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
            if !seen.insert(xxh3_128(&bytes)) {
                facts.duplicates += 1;
            }
            if row.iter().any(|value| !value.is_finite()) {
                facts.not_finite += 1;
                continue;
            }
            let square: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            let length = square.sqrt();
            if length == 0.0 {
                facts.zero += 1;
            }
            (least, sum, most) = (least.min(length), sum + length, most.max(length));
        }
        let finite = facts.rows - facts.not_finite;
        if finite > 0 {
            facts.lengths = Some([least, sum / finite as f64, most]);
        }
        facts
    }

    fn write(&self, text: &mut String, hint: &str) {
        if let Some([least, mean, most]) = self.lengths {
            let line = format!("lengths {least:.4} to {most:.4}, mean {mean:.4}\n");
            text.push_str(&line);
        }
        let counts = format!(
            "{} not finite (NaN or infinite), {} zero, {} duplicates\n",
            self.not_finite, self.zero, self.duplicates
        );
        text.push_str(&counts);
        text.push_str("metric: ");
        text.push_str(hint);
        text.push('\n');
    }
}

fn metric_hint(facts: &VectorFacts) -> &'static str {
    match facts.lengths {
        _ if facts.whole_numbers => "whole numbers are pixels or counts (euclidean), or ids",
        Some([least, _, most]) if least >= 1.0 - UNIT_TOLERANCE && most <= 1.0 + UNIT_TOLERANCE => {
            "all of length 1, so cosine, dot_product and euclidean give one order; cosine is usual"
        }
        Some([least, _, most]) if most <= least * (1.0 + UNIT_TOLERANCE) => {
            "all of one length, so cosine, dot_product and euclidean give one order"
        }
        Some(_) => "lengths differ, so the metrics give different orders; ask the set's maker",
        None => "unknown, as no vector is finite",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_rows_are_counted() {
        let rows = [
            [3.0, 4.0],
            [0.0, 0.0],
            [f32::NAN, 1.0],
            [3.0, 4.0],
            [0.5, 0.0],
        ];
        let array = NumberArray::new(2, NumberValues::Floats(rows.concat()), "float32").unwrap();
        let facts = VectorFacts::of(&array.clone().into_vectors());
        assert_eq!((facts.not_finite, facts.zero, facts.duplicates), (1, 1, 1));
        assert_eq!(facts.lengths, Some([0.0, 2.625, 5.0]));
        let text = describe(array);
        assert!(text.contains("5 rows of 2 elements, float32"), "{text}");
        assert!(text.contains("lengths differ"), "{text}");
    }

    #[test]
    fn unit_vectors_and_whole_numbers_are_told() {
        let floats = NumberValues::Floats(vec![0.6, 0.8, 1.0, 0.0]);
        let text = describe(NumberArray::new(2, floats, "float32").unwrap());
        assert!(text.contains("length 1"), "{text}");
        let integers = NumberValues::Integers(vec![3, 250]);
        let text = describe(NumberArray::new(2, integers, "uint8").unwrap());
        assert!(text.contains("integers from 3 to 250"), "{text}");
        assert!(text.contains("euclidean"), "{text}");
    }
}
