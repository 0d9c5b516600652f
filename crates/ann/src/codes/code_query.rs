//! Queries: one side of a comparison, prepared so that each code costs one integer product and a
//! few multiplications.
//!
//! With `D = sum c[i] * level[i]`, which the kernels compute, an estimate of nibbles or bytes is
//!
//! ```text
//! base + norm_weight * norm - scale * (step * D - bias)
//! ```
//!
//! where `norm` and `scale` are the code's and the rest is the query's; `base` is that of the
//! code's centre.

use super::space::EstimateKind;
use super::{CodeKind, CodeMeta, Codebook, ORIGIN, bits, bytes, floats, nibbles, squared_norm};
use crate::DistanceMetric;
use crate::kernels::kernels;

/// A bound of the relative error of sums of `f32` in codes and estimates.
const ROUNDING: f32 = 1e-5;

/// A bound of what is lost where squares are smaller than floats can say.
const TINIEST: f32 = 1e-35;

/// The largest level of a query.
const LEVEL_MAX: f32 = 127.0;

/// A prepared query and the buffers it is made in. If it is reused, nothing is allocated twice.
#[derive(Default)]
pub(crate) struct CodeQuery {
    /// For floats, the vector that the kernels read; for nibbles and bytes, the vector that the
    /// levels were made of.
    pub(super) vector: Vec<f32>,
    /// The vector in signed bytes, for nibbles and bytes.
    pub(super) levels: Vec<i8>,
    /// The vector's bits.
    pub(super) bits: Vec<u8>,
    /// The levels of a code that becomes a query.
    code: Vec<u8>,
    /// The length of what the levels leave out of the vector, for [`Codebook::bound`].
    rounded: f32,
    /// The length of a code of scale 1 whose levels are all the farthest, for [`Codebook::bound`].
    farthest: f32,
    /// Products with the codes of one call.
    pub(super) products: Vec<i32>,
    /// Differing bits of the codes of one call.
    pub(super) differences: Vec<u32>,
    pub(super) terms: EstimateTerms,
    pub(super) space: EstimateKind,
    /// The base of each centre, by its number; NaN if it is not known yet. Empty where there are no
    /// centres but the origin.
    pub(super) bases: Vec<f32>,
    /// The reach of each centre whose base is known.
    reaches: Vec<CentreLengths>,
    /// How bases are computed.
    basis: CentreBasis,
}

/// By how much estimates of codes from the origin may be too large.
#[derive(Clone, Copy)]
pub(crate) struct EstimateMargins {
    of_error: f32,
    of_scale: f32,
}

impl EstimateMargins {
    #[inline(always)]
    pub(crate) fn of(&self, meta: &CodeMeta) -> f32 {
        // Floats and bits have neither an error nor a scale.
        self.of_error * meta.error + self.of_scale * meta.scale
    }
}

/// The lengths around a centre that bound an estimate, so that none is computed for each code.
#[derive(Clone, Copy, Default)]
struct CentreLengths {
    /// The length of the centre's point.
    centre: f32,
    /// The distance from the centre to the query; the query's length where products are estimated.
    query: f32,
}

/// How the base of a centre follows from `vector`.
#[derive(Clone, Copy, Default)]
struct CentreBasis {
    /// The squared length of `vector`.
    squared: f32,
    /// The length of `vector`, once [`Codebook::prepare_bound`] was called.
    length: f32,
    /// Whether the base is of a product: `-2 q.mean - 2 q.c`. Otherwise it is `|q - c|^2`.
    is_product: bool,
    /// A part of squared distances that is due to the error of a query's own code.
    own_error: f32,
}

/// The terms of the formula above, by which a product of levels becomes an estimate.
#[derive(Clone, Copy, Default)]
pub(super) struct EstimateTerms {
    base: f32,
    norm_weight: f32,
    step: f32,
    bias: f32,
}

impl EstimateTerms {
    /// Makes the terms. `level` is the value of a query's level, `sum` that of all levels, and
    /// `centre` the code of a zero.
    fn new(base: f32, norm_weight: f32, level: f32, sum: i32, centre: f32) -> EstimateTerms {
        let step = 2.0 * level;
        EstimateTerms {
            base,
            norm_weight,
            step,
            bias: step * centre * sum as f32,
        }
    }

    #[inline]
    pub(super) fn estimate(&self, product: i32, meta: &CodeMeta, base: f32) -> f32 {
        let product = self.step * product as f32 - self.bias;
        base + self.norm_weight * meta.norm - meta.scale * product
    }

    pub(super) fn base(&self) -> f32 {
        self.base
    }
}

impl CodeQuery {
    /// The squared length of the centred vector that a query of distances was made of; 0 for floats
    /// and bits.
    pub(crate) fn squared_length(&self) -> f32 {
        self.terms.base
    }

    /// The base of a centre that is [known](Codebook::know_base).
    #[inline(always)]
    pub(super) fn base_of(&self, centre: u32) -> f32 {
        self.bases.get(centre as usize).copied().unwrap_or(f32::NAN)
    }
}

impl Codebook {
    /// Makes a query whose estimates rank codes as the metric does: the squared distance for
    /// Euclidean and cosine (whose vectors have length 1), `-2 a.b` for the dot product, the number
    /// of differing bits for Hamming. Estimates of small distances may come out below 0.
    pub(crate) fn prepare(&self, vector: &[f32], query: &mut CodeQuery) {
        let product = self.parts.metric == DistanceMetric::DotProduct;
        let centred = matches!(self.parts.kind, CodeKind::Nibbles | CodeKind::Bytes);
        if product && centred {
            self.prepare_product(vector, query);
        } else {
            self.prepare_distance(vector, query);
        }
        query.space = if product {
            EstimateKind::Product
        } else {
            EstimateKind::Metric
        };
    }

    /// Makes a query that finds and chooses the neighbours of a new vector: estimates are of the
    /// squared distance and never below 0, or `-2 a.b` for the dot product.
    pub(crate) fn prepare_link(&self, vector: &[f32], query: &mut CodeQuery) {
        self.prepare_distance(vector, query);
        query.space = self.linking_space(|| squared_norm(vector));
    }

    /// Makes a query like that of [`Codebook::prepare_link`] from a code instead of its vector.
    /// Both sides of an estimate are then rounded, so it is off by half as much again.
    pub(crate) fn prepare_code(&self, code: &[u8], meta: &CodeMeta, query: &mut CodeQuery) {
        assert_eq!(code.len(), self.code_bytes);
        query.bases.clear();
        match self.parts.kind {
            CodeKind::Nibbles | CodeKind::Bytes if self.centres.len() > 0 => {
                self.prepare_decoded(code, meta, query);
            }
            CodeKind::Nibbles => {
                query.levels.resize(self.padded_dimensions(), 0);
                let sum = nibbles::unpack(code, self.parts.dimensions, &mut query.levels);
                // The levels of a nibble are doubled, to be whole.
                query.terms =
                    EstimateTerms::new(meta.norm, 1.0, meta.scale / 2.0, sum, nibbles::CENTRE);
            }
            CodeKind::Bytes => {
                query.levels.resize(self.padded_dimensions(), 0);
                let sum = bytes::unpack(code, self.parts.dimensions, &mut query.levels);
                query.terms = EstimateTerms::new(meta.norm, 1.0, meta.scale, sum, bytes::CENTRE);
            }
            CodeKind::Floats => {
                query.vector.clear();
                query.vector.extend(floats::decode(code));
            }
            CodeKind::Bits => {
                query.bits.clear();
                query.bits.extend_from_slice(code);
            }
        }
        query.space = self.linking_space(|| meta.raw_norm);
    }

    /// Makes a query of distances of the vector that a code of nibbles or bytes describes.
    fn prepare_decoded(&self, code: &[u8], meta: &CodeMeta, query: &mut CodeQuery) {
        let dimensions = self.parts.dimensions;
        query.code.resize(self.padded_dimensions(), 0);
        self.levels_of(code, &mut query.code);
        let middle = self.middle();
        let levels = query.code[..dimensions].iter();
        query.vector.clear();
        let coded = levels.map(|&level| meta.scale * (f32::from(level) - middle));
        query.vector.extend(coded);
        query.vector.resize(self.padded_dimensions(), 0.0);
        if let Some(point) = self.centres.point(meta.centre) {
            for (x, c) in query.vector.iter_mut().zip(point) {
                *x += c;
            }
        }
        let squared = squared_norm(&query.vector);
        let own_error = meta.error * meta.error;
        self.quantize(squared - own_error, 1.0, query);
        query.basis = CentreBasis {
            squared,
            own_error,
            ..CentreBasis::default()
        };
    }

    /// The squared distance that the estimate of a code means. The query is one that finds links.
    pub(crate) fn squared_distance(
        &self,
        query: &CodeQuery,
        estimate: f32,
        meta: &CodeMeta,
    ) -> f32 {
        match query.space {
            EstimateKind::Inner { own } => estimate + own + meta.raw_norm,
            _ => estimate,
        }
    }

    /// Whether links are chosen by products, which are no distances.
    pub(crate) fn links_by_product(&self) -> bool {
        self.parts.metric == DistanceMetric::DotProduct
    }

    /// Computes what [`Codebook::bound`] needs of the query: its length, and what its levels leave
    /// out of its vector.
    pub(crate) fn prepare_bound(&self, query: &mut CodeQuery) {
        query.basis.length = query.basis.squared.sqrt();
        let level = query.terms.step / 2.0;
        let elements = query.vector.iter().zip(&query.levels);
        let off = elements.map(|(x, &l)| (f64::from(*x) - f64::from(level) * f64::from(l)).powi(2));
        (query.rounded, query.farthest) = match self.parts.kind {
            CodeKind::Nibbles | CodeKind::Bytes => (
                off.sum::<f64>().sqrt() as f32,
                self.middle() * (self.parts.dimensions as f32).sqrt(),
            ),
            CodeKind::Floats | CodeKind::Bits => (0.0, 0.0),
        };
    }

    /// Makes sure that the base of a centre is known, if the query is for codes that have centres.
    #[inline(always)]
    pub(super) fn know_base(&self, query: &mut CodeQuery, centre: u32) {
        if query.base_of(centre).is_nan() {
            self.compute_base(query, centre);
        }
    }

    #[cold]
    fn compute_base(&self, query: &mut CodeQuery, centre: u32) {
        let all = self.centres.len() + 1;
        if query.bases.len() < all {
            query.bases.resize(all, f32::NAN);
            query.reaches.resize(all, CentreLengths::default());
        }
        let CentreBasis {
            is_product,
            own_error,
            ..
        } = query.basis;
        let base = match self.centres.point(centre) {
            None => query.terms.base,
            Some(point) if is_product => {
                query.terms.base - 2.0 * (kernels().dot_f32)(&query.vector, point)
            }
            Some(point) => (kernels().squared_l2_f32)(&query.vector, point) - own_error,
        };
        let at = centre as usize;
        if let (Some(known), Some(reach)) = (query.bases.get_mut(at), query.reaches.get_mut(at)) {
            *known = base;
            let squared = match is_product {
                true => query.basis.squared,
                false => base + own_error,
            };
            let point = self.centres.point(centre);
            *reach = CentreLengths {
                centre: point.map_or(0.0, |point| squared_norm(point).sqrt()),
                query: squared.max(0.0).sqrt(),
            };
        }
    }

    /// The squared length from a centre to a query whose base is known: that of the query itself
    /// where products are estimated.
    fn squared_to(&self, query: &mut CodeQuery, centre: u32) -> f32 {
        let squared = self.squared_from(query, centre);
        match query.basis.is_product {
            true => query.basis.squared,
            false => squared + query.basis.own_error,
        }
    }

    /// How near a centre is to a query: its squared distance, or a term of products.
    pub(crate) fn base(&self, query: &mut CodeQuery, centre: u32) -> f32 {
        self.know_base(query, centre);
        query.base_of(centre)
    }

    /// The doubts of all codes of a query, for a scan.
    pub(crate) fn doubts(&self, query: &CodeQuery, deviations: f32) -> EstimateMargins {
        let dimensions = self.parts.dimensions as f32;
        let level = query.terms.step / 2.0;
        let length = self.deviation_in_levels() * dimensions.sqrt();
        EstimateMargins {
            of_error: 2.0 * deviations * (query.basis.squared / dimensions).sqrt(),
            of_scale: 2.0 * deviations * level / 12f32.sqrt() * length,
        }
    }

    /// The squared distance from a query's vector to a centre. The query is one of distances.
    pub(crate) fn squared_from(&self, query: &mut CodeQuery, centre: u32) -> f32 {
        if centre == ORIGIN {
            return query.terms.base;
        }
        self.know_base(query, centre);
        query.base_of(centre)
    }

    /// The standard deviation of the estimate of a code.
    ///
    /// The part left out has the length `error`, in a direction that the rotation has made
    /// random; the query's own rounding is spread evenly over each level.
    pub(crate) fn deviation(&self, query: &mut CodeQuery, meta: &CodeMeta) -> f32 {
        if meta.error == 0.0 {
            return 0.0;
        }
        let dimensions = self.parts.dimensions as f32;
        let of_code = self.squared_to(query, meta.centre) * meta.error * meta.error / dimensions;
        let level = query.terms.step / 2.0;
        let length = meta.scale * self.deviation_in_levels();
        let of_query = level * level / 12.0 * length * length * dimensions;
        2.0 * (of_code + of_query).sqrt()
    }

    /// The most by which the estimate of a code can be off: what the code leaves out may point
    /// straight at the query, and what the query's levels leave out along the code. The last terms
    /// bound the rounding of sums.
    pub(crate) fn bound(&self, query: &mut CodeQuery, meta: &CodeMeta) -> f32 {
        if matches!(self.parts.kind, CodeKind::Bits) {
            return 0.0;
        }
        let reach = self.reach(query, meta.centre);
        let length = meta.raw_norm.sqrt() + self.mean_length + reach.centre;
        let rounding = (query.basis.length + reach.query + length).powi(2);
        let rounding = ROUNDING * rounding + TINIEST;
        if matches!(self.parts.kind, CodeKind::Floats) {
            return rounding;
        }
        // The length of the code is no more than if all its levels were the farthest.
        let coded = (meta.scale * query.farthest).min(length + meta.error);
        2.0 * (reach.query * meta.error + query.rounded * coded) + rounding
    }

    /// The reach of a centre for a query that [bounds](Codebook::prepare_bound) are computed for.
    #[inline(always)]
    fn reach(&self, query: &mut CodeQuery, centre: u32) -> CentreLengths {
        if centre == ORIGIN {
            return CentreLengths {
                centre: 0.0,
                query: query.basis.length,
            };
        }
        self.know_base(query, centre);
        query
            .reaches
            .get(centre as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The level that means zero.
    pub(super) fn middle(&self) -> f32 {
        match self.parts.kind {
            CodeKind::Nibbles => nibbles::CENTRE,
            _ => bytes::CENTRE,
        }
    }

    /// The deviation of a vector's elements, in levels of its code: about that of all codes.
    pub(super) fn deviation_in_levels(&self) -> f32 {
        match self.parts.kind {
            CodeKind::Nibbles => 1.0 / nibbles::STEP,
            _ => bytes::LEVELS / 3.0,
        }
    }

    /// Makes a query of squared distances, or of differing bits.
    fn prepare_distance(&self, vector: &[f32], query: &mut CodeQuery) {
        assert_eq!(vector.len(), self.parts.dimensions);
        match self.parts.kind {
            CodeKind::Nibbles | CodeKind::Bytes => {
                self.centre_and_rotate(vector, &mut query.vector);
                let norm = squared_norm(&query.vector);
                self.quantize(norm, 1.0, query);
                query.basis = CentreBasis {
                    squared: norm,
                    ..CentreBasis::default()
                };
            }
            CodeKind::Floats => {
                query.vector.clear();
                query.vector.extend_from_slice(vector);
                query.vector.resize(self.padded_dimensions(), 0.0);
                query.basis = CentreBasis {
                    squared: squared_norm(vector),
                    ..CentreBasis::default()
                };
            }
            CodeKind::Bits => {
                query.bits.resize(self.code_bytes, 0);
                bits::encode(vector, &mut query.bits);
            }
        }
    }

    /// Makes a query of products, for codes that are centred: `q.x = q.mean + q.(x - mean)`.
    fn prepare_product(&self, vector: &[f32], query: &mut CodeQuery) {
        assert_eq!(vector.len(), self.parts.dimensions);
        let constant = -2.0 * (kernels().dot_f32)(vector, &self.parts.mean);
        query.vector.clear();
        query.vector.extend_from_slice(vector);
        self.rotate_and_pad(&mut query.vector);
        self.quantize(constant, 0.0, query);
        query.basis = CentreBasis {
            squared: squared_norm(vector),
            is_product: true,
            ..CentreBasis::default()
        };
    }

    /// Rounds the query's vector to signed bytes.
    fn quantize(&self, base: f32, norm_weight: f32, query: &mut CodeQuery) {
        let kernels = kernels();
        let level = (kernels.max_abs)(&query.vector) / LEVEL_MAX;
        let factor = 1.0 / level;
        query.levels.resize(query.vector.len(), 0);
        // A vector of zeros, or one too short or too long for an `f32`, distinguishes nothing.
        let sum = if factor.is_normal() {
            (kernels.quantize_i8)(&query.vector, factor, &mut query.levels)
        } else {
            query.levels.fill(0);
            0
        };
        query.terms = EstimateTerms::new(base, norm_weight, level, sum, self.middle());
        query.bases.clear();
    }

    fn linking_space(&self, raw_norm: impl FnOnce() -> f32) -> EstimateKind {
        match self.parts.metric {
            DistanceMetric::DotProduct => EstimateKind::Inner { own: raw_norm() },
            DistanceMetric::Cosine | DistanceMetric::Euclidean | DistanceMetric::Hamming => {
                EstimateKind::Distance
            }
        }
    }
}
