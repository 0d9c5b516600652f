//! Queries: one side of a comparison, prepared so that each code costs one integer product and a
//! few multiplications.
//!
//! With `D = sum c[i] * level[i]`, which the kernels compute, an estimate of nibbles or bytes is
//!
//! ```text
//! base + norm_weight * norm - scale * (step * D - bias)
//! ```
//!
//! where `norm` and `scale` are the code's and the rest is the query's.

use super::space::Space;
use super::{Codebook, Kind, Meta, bits, bytes, floats, nibbles, squared_norm};
use crate::Metric;
use crate::kernels::kernels;

/// The largest level of a query.
const LEVEL_MAX: f32 = 127.0;

/// A prepared query and the buffers it is made in. If it is kept, nothing is allocated twice.
#[derive(Default)]
pub(crate) struct Query {
    /// For floats, the vector that the kernels read; for nibbles and bytes, the vector that the
    /// levels were made of.
    pub(super) vector: Vec<f32>,
    /// The vector in signed bytes, for nibbles and bytes.
    pub(super) levels: Vec<i8>,
    /// The vector's bits.
    pub(super) bits: Vec<u8>,
    /// Products with the codes of one call.
    pub(super) products: Vec<i32>,
    /// Differing bits of the codes of one call.
    pub(super) differences: Vec<u32>,
    pub(super) terms: Terms,
    pub(super) space: Space,
}

/// The terms of the formula above, by which a product of levels becomes an estimate.
#[derive(Clone, Copy, Default)]
pub(super) struct Terms {
    base: f32,
    norm_weight: f32,
    step: f32,
    bias: f32,
}

impl Terms {
    /// Makes the terms. `level` is the value of a query's level, `sum` that of all levels, and
    /// `centre` the code of a zero.
    fn new(base: f32, norm_weight: f32, level: f32, sum: i32, centre: f32) -> Terms {
        let step = 2.0 * level;
        Terms {
            base,
            norm_weight,
            step,
            bias: step * centre * sum as f32,
        }
    }

    #[inline]
    pub(super) fn estimate(&self, product: i32, meta: &Meta) -> f32 {
        let product = self.step * product as f32 - self.bias;
        self.base + self.norm_weight * meta.norm - meta.scale * product
    }
}

impl Query {
    /// The squared length of the centred vector that a query of distances was made of; 0 for floats
    /// and bits.
    pub(crate) fn squared_length(&self) -> f32 {
        self.terms.base
    }
}

impl Codebook {
    /// Makes a query whose estimates rank codes as the metric does: the squared distance for
    /// Euclidean and cosine (whose vectors have length 1), `-2 a.b` for the dot product, the number
    /// of differing bits for Hamming. Estimates of small distances may come out below 0.
    pub(crate) fn prepare(&self, vector: &[f32], query: &mut Query) {
        let product = self.parts.metric == Metric::DotProduct;
        let centred = matches!(self.parts.kind, Kind::Nibbles | Kind::Bytes);
        if product && centred {
            self.prepare_product(vector, query);
        } else {
            self.prepare_distance(vector, query);
        }
        query.space = if product {
            Space::Product
        } else {
            Space::Metric
        };
    }

    /// Makes a query that finds and chooses the neighbours of a new vector: estimates are of the
    /// squared distance, for the dot product in the lifted space (see [`space`](super::space)), and
    /// never below 0. `longest` is the largest [`Meta::raw_norm`] so far, this vector's included.
    pub(crate) fn prepare_link(&self, vector: &[f32], longest: f32, query: &mut Query) {
        self.prepare_distance(vector, query);
        query.space = self.linking_space(longest, || squared_norm(vector));
    }

    /// Makes a query like that of [`Codebook::prepare_link`] from a code instead of its vector.
    /// Both sides of an estimate are then rounded, so it is off by half as much again.
    pub(crate) fn prepare_code(&self, code: &[u8], meta: &Meta, longest: f32, query: &mut Query) {
        assert_eq!(code.len(), self.code_bytes);
        match self.parts.kind {
            Kind::Nibbles => {
                query.levels.resize(self.padded_dimensions(), 0);
                let sum = nibbles::unpack(code, self.parts.dimensions, &mut query.levels);
                // The levels of a nibble are doubled, to be whole.
                query.terms = Terms::new(meta.norm, 1.0, meta.scale / 2.0, sum, nibbles::CENTRE);
            }
            Kind::Bytes => {
                query.levels.resize(self.padded_dimensions(), 0);
                let sum = bytes::unpack(code, self.parts.dimensions, &mut query.levels);
                query.terms = Terms::new(meta.norm, 1.0, meta.scale, sum, bytes::CENTRE);
            }
            Kind::Floats => {
                query.vector.clear();
                query.vector.extend(floats::decode(code));
            }
            Kind::Bits => {
                query.bits.clear();
                query.bits.extend_from_slice(code);
            }
        }
        query.space = self.linking_space(longest, || meta.raw_norm);
    }

    /// Makes a query of squared distances, or of differing bits.
    fn prepare_distance(&self, vector: &[f32], query: &mut Query) {
        assert_eq!(vector.len(), self.parts.dimensions);
        match self.parts.kind {
            Kind::Nibbles | Kind::Bytes => {
                self.centre_and_rotate(vector, &mut query.vector);
                let norm = squared_norm(&query.vector);
                self.quantize(norm, 1.0, query);
            }
            Kind::Floats => {
                query.vector.clear();
                query.vector.extend_from_slice(vector);
                query.vector.resize(self.padded_dimensions(), 0.0);
            }
            Kind::Bits => {
                query.bits.resize(self.code_bytes, 0);
                bits::encode(vector, &mut query.bits);
            }
        }
    }

    /// Makes a query of products, for codes that are centred: `q.x = q.mean + q.(x - mean)`.
    fn prepare_product(&self, vector: &[f32], query: &mut Query) {
        assert_eq!(vector.len(), self.parts.dimensions);
        let constant = -2.0 * (kernels().dot_f32)(vector, &self.parts.mean);
        query.vector.clear();
        query.vector.extend_from_slice(vector);
        self.rotate_and_pad(&mut query.vector);
        self.quantize(constant, 0.0, query);
    }

    /// Rounds the query's vector to signed bytes.
    fn quantize(&self, base: f32, norm_weight: f32, query: &mut Query) {
        let kernels = kernels();
        let level = (kernels.max_abs)(&query.vector) / LEVEL_MAX;
        let factor = 1.0 / level;
        query.levels.resize(query.vector.len(), 0);
        // A vector of zeros, or one too short or too long for an `f32`, tells nothing apart.
        let sum = if factor.is_normal() {
            (kernels.quantize_i8)(&query.vector, factor, &mut query.levels)
        } else {
            query.levels.fill(0);
            0
        };
        let centre = match self.parts.kind {
            Kind::Nibbles => nibbles::CENTRE,
            _ => bytes::CENTRE,
        };
        query.terms = Terms::new(base, norm_weight, level, sum, centre);
    }

    fn linking_space(&self, longest: f32, raw_norm: impl FnOnce() -> f32) -> Space {
        match self.parts.metric {
            Metric::DotProduct => Space::lifted(longest, raw_norm()),
            Metric::Cosine | Metric::Euclidean | Metric::Hamming => Space::Distance,
        }
    }
}
