//! The options of an index, and their allowed values.

use std::ops::RangeInclusive;

use crate::Metric;
use crate::codes::Kind;
use crate::form::{Float, Form};

/// The form in which a vector is stored. Distances in answers are those of the stored form,
/// measured from the query as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantization {
    /// Four bytes an element, exact.
    F32,
    /// Two bytes an element, 11 significant bits; elements beyond ±65504 are stored as ±65504.
    F16,
    /// Two bytes an element, 8 significant bits, the range of `F32`.
    Bf16,
    /// One byte an element, scaled to the largest element of its vector. The scale is not stored,
    /// so the vector's length is lost, which only [`Metric::Cosine`] can do without. Under the
    /// Euclidean distance and the dot product vectors are stored as [`Quantization::Bf16`] instead.
    I8,
    /// One bit an element, set when strictly positive; forces [`Metric::Hamming`].
    B1,
}

/// The codes by which walks compare vectors. They decide how much memory an index needs and how
/// wide walks have to be. Answers are always measured from the vectors as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codes {
    /// Floats up to 64 dimensions, half bytes above.
    Auto,
    /// Four bits an element, after a rotation, with a scale for each vector.
    Nibbles,
    /// Eight bits an element, after a rotation, with a scale for each vector.
    Bytes,
    /// The elements themselves.
    Floats,
}

/// The most dimensions for which [`Codes::Auto`] takes floats. So many floats take as many bytes as
/// the half bytes of embeddings that are common today. Half bytes of fewer dimensions also keep too
/// little of a vector.
const AUTO_FLOATS_MAX: usize = 64;

impl Codes {
    /// The kind of code that vectors in this form get.
    pub(crate) fn kind(self, form: Form, dimensions: usize) -> Kind {
        match (form, self) {
            (Form::Bits, _) => Kind::Bits,
            (_, Codes::Floats) => Kind::Floats,
            (_, Codes::Auto) if dimensions <= AUTO_FLOATS_MAX => Kind::Floats,
            (_, Codes::Auto | Codes::Nibbles) => Kind::Nibbles,
            (_, Codes::Bytes) => Kind::Bytes,
        }
    }
}

impl Kind {
    /// Whether a code holds all of a vector in this form.
    pub(crate) fn is_exact(self, form: Form) -> bool {
        let floats = [Form::Direction(Float::F32), Form::Floats(Float::F32)];
        self == Kind::Bits || self == Kind::Floats && floats.contains(&form)
    }
}

/// The place of full vectors, from which answers are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// A nameless file that is mapped into memory. Its pages stay in memory while there is room,
    /// and the system may take them back at any time.
    File,
    /// Memory that the system can only swap out.
    Memory,
}

/// The options of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Elements of a vector, 1 to 16,000.
    pub dimensions: usize,
    /// The measure of distances. It is always [`Metric::Hamming`] if vectors are stored as
    /// [`Quantization::B1`].
    pub metric: Metric,
    /// The form in which a vector is stored. Under [`Metric::Hamming`] it is always one bit an
    /// element.
    pub quantization: Quantization,
    /// The codes by which walks compare vectors. They have no meaning under [`Metric::Hamming`].
    pub codes: Codes,
    /// The place of full vectors.
    pub placement: Placement,
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
    /// The name of the field of [`Options`].
    pub option: &'static str,
    /// The value that was requested.
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
            codes: Codes::Auto,
            placement: Placement::File,
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
