//! The options of an index, and their allowed values.

use std::ops::RangeInclusive;

use crate::DistanceMetric;
use crate::codes::CodeKind;
use crate::form::{FloatWidth, VectorForm};

/// The form in which a vector is stored. Distances in answers are those of the stored form,
/// measured from the query as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorQuantization {
    /// Four bytes an element, exact.
    F32,
    /// Two bytes an element, 11 significant bits; elements beyond ±65504 are stored as ±65504.
    F16,
    /// Two bytes an element, 8 significant bits, the range of `F32`.
    Bf16,
    /// One byte an element, scaled to the largest element of its vector. The scale is not stored,
    /// so the vector's length is lost, which only [`DistanceMetric::Cosine`] can do without. Under
    /// the Euclidean distance and the dot product vectors are stored as
    /// [`VectorQuantization::Bf16`] instead.
    I8,
    /// One bit an element, set when strictly positive; forces [`DistanceMetric::Hamming`].
    B1,
}

/// The codes by which walks compare vectors. They decide how much memory an index needs and how
/// wide walks have to be. Answers are always measured from the vectors as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeChoice {
    /// Floats up to 64 dimensions, half bytes above.
    Auto,
    /// Four bits an element, after a rotation, with a scale for each vector.
    Nibbles,
    /// Eight bits an element, after a rotation, with a scale for each vector.
    Bytes,
    /// The elements themselves.
    Floats,
}

/// The most dimensions for which [`CodeChoice::Auto`] takes floats. So many floats take as many
/// bytes as the half bytes of embeddings that are common today. Half bytes of fewer dimensions also
/// keep too little of a vector.
const AUTO_FLOATS_MAX: usize = 64;

impl CodeChoice {
    /// The kind of code that vectors in this form get.
    pub(crate) fn kind(self, form: VectorForm, dimensions: usize) -> CodeKind {
        match (form, self) {
            (VectorForm::Bits, _) => CodeKind::Bits,
            (_, CodeChoice::Floats) => CodeKind::Floats,
            (_, CodeChoice::Auto) if dimensions <= AUTO_FLOATS_MAX => CodeKind::Floats,
            (_, CodeChoice::Auto | CodeChoice::Nibbles) => CodeKind::Nibbles,
            (_, CodeChoice::Bytes) => CodeKind::Bytes,
        }
    }
}

impl CodeKind {
    /// Whether a code holds all of a vector in this form.
    pub(crate) fn is_exact(self, form: VectorForm) -> bool {
        let floats = [
            VectorForm::Direction(FloatWidth::F32),
            VectorForm::Floats(FloatWidth::F32),
        ];
        self == CodeKind::Bits || self == CodeKind::Floats && floats.contains(&form)
    }
}

/// The place of full vectors, from which answers are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorPlacement {
    /// A nameless file that is mapped into memory. Its pages stay in memory while there is room,
    /// and the system may take them back at any time.
    File,
    /// Memory that the system can only swap out.
    Memory,
}

/// The options of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NeighbourIndexOptions {
    /// Elements of a vector, 1 to 16,000.
    pub dimensions: usize,
    /// The measure of distances. It is always [`DistanceMetric::Hamming`] if vectors are stored as
    /// [`VectorQuantization::B1`].
    pub metric: DistanceMetric,
    /// The form in which a vector is stored. Under [`DistanceMetric::Hamming`] it is always one bit
    /// an element.
    pub quantization: VectorQuantization,
    /// The codes by which walks compare vectors. They have no meaning under
    /// [`DistanceMetric::Hamming`].
    pub codes: CodeChoice,
    /// The place of full vectors.
    pub placement: VectorPlacement,
    /// The `m` of HNSW, 1 to 512: a vector is linked with about twice as many others.
    pub max_connections: usize,
    /// The `ef_construction` of HNSW, 1 to 4096: candidates retained while a vector looks for its
    /// links.
    pub build_beam_width: usize,
    /// The `ef` of HNSW, 1 to 4096: the fewest candidates retained during a search. The index walks
    /// wider where that is needed for good recall (see the crate's page).
    pub search_beam_width: usize,
}

/// An option outside of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} is {value}, out of the valid range [{min} - {max}]")]
pub struct OptionOutOfRange {
    /// The name of the field of [`NeighbourIndexOptions`].
    pub option: &'static str,
    /// The value that was requested.
    pub value: usize,
    /// The smallest allowed value.
    pub min: usize,
    /// The largest allowed value.
    pub max: usize,
}

impl NeighbourIndexOptions {
    /// Allowed [`NeighbourIndexOptions::dimensions`].
    pub const DIMENSIONS: RangeInclusive<usize> = 1..=16_000;
    /// Allowed [`NeighbourIndexOptions::max_connections`].
    pub const MAX_CONNECTIONS: RangeInclusive<usize> = 1..=512;
    /// Allowed [`NeighbourIndexOptions::build_beam_width`] and
    /// [`NeighbourIndexOptions::search_beam_width`].
    pub const BEAM_WIDTH: RangeInclusive<usize> = 1..=4096;

    /// The defaults of `CREATE CUSTOM INDEX`: cosine, full floats, `m` 16, `ef_construction` 128,
    /// `ef` 64.
    pub fn new(dimensions: usize) -> NeighbourIndexOptions {
        NeighbourIndexOptions {
            dimensions,
            metric: DistanceMetric::Cosine,
            quantization: VectorQuantization::F32,
            codes: CodeChoice::Auto,
            placement: VectorPlacement::File,
            max_connections: 16,
            build_beam_width: 128,
            search_beam_width: 64,
        }
    }

    /// Fails if a value is outside of its range.
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
    pub(crate) fn in_effect(self) -> NeighbourIndexOptions {
        match self.quantization {
            VectorQuantization::B1 => NeighbourIndexOptions {
                metric: DistanceMetric::Hamming,
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
    type Field = fn(&mut NeighbourIndexOptions, usize);

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
                let mut options = NeighbourIndexOptions::new(3);
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
        let asked = NeighbourIndexOptions {
            quantization: VectorQuantization::B1,
            ..NeighbourIndexOptions::new(8)
        };
        assert_eq!(asked.in_effect().metric, DistanceMetric::Hamming);
        assert_eq!(
            NeighbourIndexOptions::new(8).in_effect(),
            NeighbourIndexOptions::new(8)
        );
    }
}
