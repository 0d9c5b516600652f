//! Codes of a few bits a dimension, which a walk reads instead of vectors, and estimates of
//! distances from them.
//!
//! A search reads the codes of some thousand vectors and the full vectors of the best few, so the
//! speed of a search is that of reading codes. A [`Codebook`] makes them. For [`Kind::Nibbles`] and
//! [`Kind::Bytes`] vectors are first centred by the mean of a sample, as real embeddings lie in a
//! cone far from the origin and codes should be spent on what tells them apart; then they are
//! rotated at random, so that no dimension matters more than another. For images of digits that
//! halves the neighbours that codes alone miss; for embeddings of texts it changes little, and
//! costs little.
//!
//! | kind | bits a dimension | estimates |
//! | --- | --- | --- |
//! | [`Kind::Nibbles`] | 4 | off by some `0.11 / sqrt(d)` of the lengths' product |
//! | [`Kind::Bytes`] | 8 | off by some `0.012 / sqrt(d)` of it |
//! | [`Kind::Floats`] | 32 | exact |
//! | [`Kind::Bits`] | 1 | exact: the Hamming distance |
//!
//! A code lies at the start of its node's block, its [`Meta`] a little behind it.
//! [`Codebook::estimate`] takes many blocks at once, so that memory is asked for early.

mod bits;
mod bytes;
mod estimate;
mod floats;
mod nibbles;
mod query;
mod rotation;
mod space;
#[cfg(test)]
mod tests;

use crate::Metric;
use crate::kernels::kernels;
pub(crate) use query::Query;
use rotation::Rotation;

/// Bytes from the end of a block's code to its [`Meta`].
pub(crate) const META_OFFSET: usize = 8;
/// The seed of rotations. Any number would do, but it must stay the same for codebooks to repeat.
const SEED: u64 = 0x616e_6e75_6c75_7321;

/// A kind of codes: how many bits are spent on a dimension, and on what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Four bits.
    Nibbles,
    /// Eight bits.
    Bytes,
    /// The vector itself: for few dimensions.
    Floats,
    /// One bit, set when the element is strictly positive: for [`Metric::Hamming`] alone.
    Bits,
}

impl Kind {
    /// Bytes of a code, a multiple of 64.
    pub(crate) fn code_bytes(self, dimensions: usize) -> usize {
        match self {
            Kind::Nibbles => nibbles::code_bytes(dimensions),
            Kind::Bytes => bytes::code_bytes(dimensions),
            Kind::Floats => floats::code_bytes(dimensions),
            Kind::Bits => bits::code_bytes(dimensions),
        }
    }

    /// Whether a codebook is made for vectors like those of a sample.
    pub(crate) fn is_trained(self) -> bool {
        matches!(self, Kind::Nibbles | Kind::Bytes)
    }
}

/// The numbers that estimates need beside the code. They lie in the block's header.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Meta {
    /// The value of a level's step; 0 for floats and bits.
    pub(crate) scale: f32,
    /// `|x - mean|^2`; 0 for bits. The mean is 0 for floats.
    pub(crate) norm: f32,
    /// `|x|^2`; 0 for bits.
    pub(crate) raw_norm: f32,
}

/// The parts of a codebook, which are all that a snapshot keeps of it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Parts {
    pub(crate) kind: Kind,
    /// The metric that codes are compared by: [`Metric::Hamming`] if and only if the kind is
    /// [`Kind::Bits`].
    pub(crate) metric: Metric,
    /// Number of dimensions, at least 1.
    pub(crate) dimensions: usize,
    /// The seed of the rotation.
    pub(crate) seed: u64,
    /// The mean of the sample, finite, one element a dimension; empty for floats and bits.
    pub(crate) mean: Vec<f32>,
}

/// Turns vectors into codes, and estimates how far codes are from queries. Immutable once made.
///
/// Vectors are finite and, for the cosine, of length 1. If their squared lengths overflow an `f32`,
/// estimates are infinite.
pub(crate) struct Codebook {
    parts: Parts,
    /// The rotation of nibbles and bytes.
    rotation: Option<Rotation>,
    code_bytes: usize,
}

impl Codebook {
    /// Makes the codebook for vectors like those of the sample, some hundred of them. Without a
    /// sample the mean is taken for 0. Floats and bits need no sample.
    pub(crate) fn train<'a>(
        kind: Kind,
        metric: Metric,
        dimensions: usize,
        sample: impl Iterator<Item = &'a [f32]>,
    ) -> Codebook {
        let mean = match kind {
            Kind::Nibbles | Kind::Bytes => mean(dimensions, sample),
            Kind::Floats | Kind::Bits => Vec::new(),
        };
        Codebook::from_parts(Parts {
            kind,
            metric,
            dimensions,
            seed: SEED,
            mean,
        })
    }

    /// Makes the codebook of these [parts](Codebook::parts).
    pub(crate) fn from_parts(parts: Parts) -> Codebook {
        let dimensions = parts.dimensions;
        let bits = parts.kind == Kind::Bits;
        assert_eq!(
            bits,
            parts.metric == Metric::Hamming,
            "bits go with Hamming"
        );
        let code_bytes = parts.kind.code_bytes(dimensions);
        let centred = matches!(parts.kind, Kind::Nibbles | Kind::Bytes);
        let expected = if centred { dimensions } else { 0 };
        assert_eq!(parts.mean.len(), expected, "a mean of other dimensions");
        Codebook {
            rotation: centred.then(|| Rotation::new(dimensions, parts.seed)),
            parts,
            code_bytes,
        }
    }

    /// The parts of this codebook.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The root mean square error of an estimated squared distance, if the product of the two
    /// vectors' lengths is about `lengths`.
    pub(crate) fn error(&self, lengths: f32) -> f32 {
        let of_product = match self.parts.kind {
            Kind::Nibbles => 0.11,
            Kind::Bytes => 0.012,
            Kind::Floats | Kind::Bits => 0.0,
        };
        2.0 * of_product * lengths / (self.parts.dimensions as f32).sqrt()
    }

    /// Bytes of a code, a multiple of 64.
    #[cfg(test)]
    pub(crate) fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// Writes the code of a vector, [`Codebook::code_bytes`] long, and returns its meta. `scratch`
    /// is overwritten; it saves an allocation a call.
    pub(crate) fn encode(&self, vector: &[f32], scratch: &mut Vec<f32>, code: &mut [u8]) -> Meta {
        assert_eq!(vector.len(), self.parts.dimensions);
        assert_eq!(code.len(), self.code_bytes);
        let encode = match self.parts.kind {
            Kind::Nibbles => nibbles::encode,
            Kind::Bytes => bytes::encode,
            Kind::Floats => {
                floats::encode(vector, code);
                let norm = squared_norm(vector);
                return Meta {
                    scale: 0.0,
                    norm,
                    raw_norm: norm,
                };
            }
            Kind::Bits => {
                bits::encode(vector, code);
                return Meta::default();
            }
        };
        self.centre_and_rotate(vector, scratch);
        let norm = squared_norm(scratch);
        Meta {
            scale: encode(scratch, vector.len(), norm, code),
            norm,
            raw_norm: squared_norm(vector),
        }
    }

    /// Centres and rotates a vector, as nibbles and bytes describe it, and adds zeros for the
    /// dimensions that pad a code.
    fn centre_and_rotate(&self, vector: &[f32], residual: &mut Vec<f32>) {
        let centred = vector
            .iter()
            .zip(&self.parts.mean)
            .map(|(x, mean)| x - mean);
        residual.clear();
        residual.extend(centred);
        self.rotate_and_pad(residual);
    }

    fn rotate_and_pad(&self, vector: &mut Vec<f32>) {
        if let Some(rotation) = &self.rotation {
            rotation.apply(vector);
        }
        vector.resize(self.padded_dimensions(), 0.0);
    }

    /// Number of dimensions that a code has room for.
    fn padded_dimensions(&self) -> usize {
        match self.parts.kind {
            Kind::Nibbles => 2 * self.code_bytes,
            Kind::Bytes => self.code_bytes,
            Kind::Floats => self.code_bytes / size_of::<f32>(),
            Kind::Bits => 8 * self.code_bytes,
        }
    }
}

/// The smallest and the largest of this many values of a dimension are left out of its mean.
const TRIMMED_OF: usize = 32;

/// The mean of some vectors, 0 of none. In each dimension a few values that lie far out don't
/// count: for their sake, all other vectors would be coded as if they were one.
fn mean<'a>(dimensions: usize, sample: impl Iterator<Item = &'a [f32]>) -> Vec<f32> {
    let sample: Vec<&[f32]> = sample.collect();
    let trimmed = sample.len() / TRIMMED_OF;
    let mut values = Vec::with_capacity(sample.len());
    let mean = |dimension: usize| {
        values.clear();
        values.extend(sample.iter().map(|vector| vector[dimension]));
        values.sort_unstable_by(f32::total_cmp);
        let middle = &values[trimmed..values.len() - trimmed];
        let sum: f64 = middle.iter().copied().map(f64::from).sum();
        (sum / middle.len().max(1) as f64) as f32
    };
    (0..dimensions).map(mean).collect()
}

fn squared_norm(vector: &[f32]) -> f32 {
    (kernels().dot_f32)(vector, vector)
}
