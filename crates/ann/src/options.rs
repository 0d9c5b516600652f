//! What an index is made with, and which values are allowed.

use std::ops::RangeInclusive;

use crate::Metric;

/// What a vector is kept as. Distances in answers are those of the kept form, measured from the
/// query as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantization {
    /// Four bytes an element, exact.
    F32,
    /// Two bytes an element, 11 significant bits; elements beyond ±65504 are kept as ±65504.
    F16,
    /// Two bytes an element, 8 significant bits, the range of `F32`.
    Bf16,
    /// One byte an element, scaled to the largest element of its vector. A scale of its own loses
    /// the vector's length, which only [`Metric::Cosine`] can do without: the Euclidean distance
    /// and the dot product are kept as [`Quantization::Bf16`] instead.
    I8,
    /// One bit an element, set when strictly positive; forces [`Metric::Hamming`].
    B1,
}

/// What an index is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Elements of a vector, 1 to 16,000.
    pub dimensions: usize,
    /// How distances are measured; [`Metric::Hamming`] whatever is asked if vectors are kept as
    /// [`Quantization::B1`].
    pub metric: Metric,
    /// What a vector is kept as. Under [`Metric::Hamming`] it is one bit an element in any case.
    pub quantization: Quantization,
    /// The `m` of HNSW: links of a node on the upper levels, and half of those on the lowest;
    /// 1 to 512.
    pub max_connections: usize,
    /// The `ef_construction` of HNSW: candidates kept while a vector looks for its links; 1 to 4096.
    pub build_beam_width: usize,
    /// The `ef` of HNSW: candidates kept during a search, at the least; 1 to 4096. The index walks
    /// wider where that is needed for good recall (see the crate's page).
    pub search_beam_width: usize,
}

/// An option outside of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} is {value}, out of the valid range [{min} - {max}]")]
pub struct OptionOutOfRange {
    /// The field of [`Options`].
    pub option: &'static str,
    /// What was asked for.
    pub value: usize,
    /// The smallest allowed value.
    pub min: usize,
    /// The largest allowed value.
    pub max: usize,
}

impl Options {
    /// Allowed [`Options::dimensions`].
    pub const DIMENSIONS: RangeInclusive<usize> = 1..=16_000;
    /// Allowed [`Options::max_connections`].
    pub const MAX_CONNECTIONS: RangeInclusive<usize> = 1..=512;
    /// Allowed [`Options::build_beam_width`] and [`Options::search_beam_width`].
    pub const BEAM_WIDTH: RangeInclusive<usize> = 1..=4096;

    /// The defaults of `CREATE CUSTOM INDEX`: cosine, full floats, `m` 16, `ef_construction` 128,
    /// `ef` 64.
    pub fn new(dimensions: usize) -> Options {
        Options {
            dimensions,
            metric: Metric::Cosine,
            quantization: Quantization::F32,
            max_connections: 16,
            build_beam_width: 128,
            search_beam_width: 64,
        }
    }

    /// Refuses a value outside of its range.
    pub fn validate(&self) -> Result<(), OptionOutOfRange> {
        let checks = [
            ("dimensions", self.dimensions, Self::DIMENSIONS),
            (
                "max_connections",
                self.max_connections,
                Self::MAX_CONNECTIONS,
            ),
            ("build_beam_width", self.build_beam_width, Self::BEAM_WIDTH),
            (
                "search_beam_width",
                self.search_beam_width,
                Self::BEAM_WIDTH,
            ),
        ];
        for (option, value, range) in checks {
            if !range.contains(&value) {
                let (min, max) = range.into_inner();
                return Err(OptionOutOfRange {
                    option,
                    value,
                    min,
                    max,
                });
            }
        }
        Ok(())
    }

    /// The options in effect: one-bit vectors have only the Hamming distance.
    pub(crate) fn in_effect(self) -> Options {
        match self.quantization {
            Quantization::B1 => Options {
                metric: Metric::Hamming,
                ..self
            },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets one field, so that one loop can check them all.
    type Field = fn(&mut Options, usize);

    #[test]
    fn every_range_is_enforced_at_both_ends() {
        let fields: [(&str, Field, usize); 4] = [
            ("dimensions", |o, v| o.dimensions = v, 16_000),
            ("max_connections", |o, v| o.max_connections = v, 512),
            ("build_beam_width", |o, v| o.build_beam_width = v, 4096),
            ("search_beam_width", |o, v| o.search_beam_width = v, 4096),
        ];
        for (option, set, max) in fields {
            for (value, allowed) in [(0, false), (1, true), (max, true), (max + 1, false)] {
                let mut options = Options::new(3);
                set(&mut options, value);
                let expected = match allowed {
                    true => Ok(()),
                    false => Err(OptionOutOfRange {
                        option,
                        value,
                        min: 1,
                        max,
                    }),
                };
                assert_eq!(options.validate(), expected, "{option} = {value}");
            }
        }
    }

    #[test]
    fn one_bit_vectors_force_the_hamming_distance() {
        let asked = Options {
            quantization: Quantization::B1,
            ..Options::new(8)
        };
        assert_eq!(asked.in_effect().metric, Metric::Hamming);
        assert_eq!(Options::new(8).in_effect(), Options::new(8));
    }
}
