//! Codes of a few bits a dimension, which a walk reads instead of vectors, and estimates of
//! distances from them.
//!
//! A search reads the codes of some thousand vectors and the full vectors of the best few, so the
//! speed of a search is that of reading codes. A [`Codebook`] makes them. For [`CodeKind::Nibbles`]
//! and [`CodeKind::Bytes`] vectors are first centred by the mean of a sample, as real embeddings
//! are in a cone far from the origin and codes should be spent on what distinguishes them; then
//! they are rotated at random, so that no dimension matters more than another. For images of digits
//! that halves the neighbours that a search by only the codes misses; for embeddings of texts it
//! changes little, and costs little.
//!
//! | kind | bits a dimension | estimates |
//! | --- | --- | --- |
//! | [`CodeKind::Nibbles`] | 4 | off by some `0.11 / sqrt(d)` of the lengths' product |
//! | [`CodeKind::Bytes`] | 8 | off by some `0.012 / sqrt(d)` of it |
//! | [`CodeKind::Floats`] | 32 | exact |
//! | [`CodeKind::Bits`] | 1 | exact: the Hamming distance |
//!
//! Where vectors are in clusters, codes are taken from [`centres`] within them instead of the mean.
//!
//! A code is at the start of its node's block, its [`CodeMeta`] a little after it.
//! [`Codebook::estimate`] takes many blocks at once, so that memory is prefetched early.

mod bits;
mod bytes;
mod centres;
mod code_query;
mod estimate;
mod floats;
mod nibbles;
mod rotation;
mod space;
#[cfg(test)]
mod tests;

use crate::DistanceMetric;
use crate::kernels::kernels;
use crate::memory::GrowError;
use centres::CentreTable;
pub(crate) use centres::ORIGIN;
pub(crate) use code_query::CodeQuery;
use rotation::Rotation;

/// Bytes from the end of a block's code to its [`CodeMeta`].
pub(crate) const META_OFFSET: usize = 8;
/// The seed of rotations. Any number would do, but it must stay the same for codebooks to repeat.
const SEED: u64 = 0x616e_6e75_6c75_7321;

/// A kind of codes: how many bits are spent on a dimension, and on what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CodeKind {
    /// Four bits.
    Nibbles,
    /// Eight bits.
    Bytes,
    /// The vector itself: for few dimensions.
    Floats,
    /// One bit, set when the element is strictly positive: only for [`DistanceMetric::Hamming`].
    Bits,
}

impl CodeKind {
    /// Bytes of a code, a multiple of 64.
    pub(crate) fn code_bytes(self, dimensions: usize) -> usize {
        match self {
            CodeKind::Nibbles => nibbles::code_bytes(dimensions),
            CodeKind::Bytes => bytes::code_bytes(dimensions),
            CodeKind::Floats => floats::code_bytes(dimensions),
            CodeKind::Bits => bits::code_bytes(dimensions),
        }
    }

    /// Whether a codebook is made for vectors like those of a sample.
    pub(crate) fn is_trained(self) -> bool {
        matches!(self, CodeKind::Nibbles | CodeKind::Bytes)
    }
}

/// The numbers that estimates need in addition to the code. They are in the block's header.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct CodeMeta {
    /// The value of a level's step; 0 for floats and bits.
    pub(crate) scale: f32,
    /// `|r|^2 + 2 c.r'`, where `r` is the vector from its centre `c`, and `r'` is `r` as the code
    /// has it. That is `|x - mean|^2` for the origin, and `|x|^2` for floats; 0 for bits.
    pub(crate) norm: f32,
    /// `|x|^2`; 0 for bits.
    pub(crate) raw_norm: f32,
    /// The centre that the code is taken from.
    pub(crate) centre: u32,
    /// `|r' - r|`, the length of what the code leaves out; 0 for floats and bits.
    pub(crate) error: f32,
}

/// The parts of a codebook, which are all that a snapshot keeps of it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CodebookParts {
    pub(crate) kind: CodeKind,
    /// The metric that codes are compared by: [`DistanceMetric::Hamming`] if and only if the kind
    /// is [`CodeKind::Bits`].
    pub(crate) metric: DistanceMetric,
    /// Number of dimensions, at least 1.
    pub(crate) dimensions: usize,
    /// The seed of the rotation.
    pub(crate) seed: u64,
    /// The mean of the sample, finite, one element a dimension; empty for floats and bits.
    pub(crate) mean: Vec<f32>,
}

impl CodebookParts {
    /// Number of elements of a centre; 0 where codes have none.
    pub(crate) fn centre_elements(&self) -> usize {
        match self.kind.is_trained() {
            true => padded_dimensions(self.kind, self.kind.code_bytes(self.dimensions)),
            false => 0,
        }
    }
}

/// Turns vectors into codes, and estimates how far codes are from queries. Immutable once made.
///
/// Vectors are finite and, for the cosine, of length 1. If their squared lengths overflow an `f32`,
/// estimates are infinite.
pub(crate) struct Codebook {
    parts: CodebookParts,
    /// The rotation of nibbles and bytes.
    rotation: Option<Rotation>,
    centres: CentreTable,
    /// The length of the mean.
    mean_length: f32,
    code_bytes: usize,
}

impl Codebook {
    /// Makes the codebook for vectors like those of the sample, some hundred of them. Without a
    /// sample the mean is taken for 0. Floats and bits need no sample.
    pub(crate) fn train<'a>(
        kind: CodeKind,
        metric: DistanceMetric,
        dimensions: usize,
        sample: impl Iterator<Item = &'a [f32]>,
    ) -> Codebook {
        let mean = match kind {
            CodeKind::Nibbles | CodeKind::Bytes => mean(dimensions, sample),
            CodeKind::Floats | CodeKind::Bits => Vec::new(),
        };
        Codebook::from_parts(CodebookParts {
            kind,
            metric,
            dimensions,
            seed: SEED,
            mean,
        })
    }

    /// Makes the codebook of these [parts](Codebook::parts).
    pub(crate) fn from_parts(parts: CodebookParts) -> Codebook {
        let dimensions = parts.dimensions;
        let bits = parts.kind == CodeKind::Bits;
        assert_eq!(
            bits,
            parts.metric == DistanceMetric::Hamming,
            "bits go with Hamming"
        );
        let code_bytes = parts.kind.code_bytes(dimensions);
        let centred = matches!(parts.kind, CodeKind::Nibbles | CodeKind::Bytes);
        let expected = if centred { dimensions } else { 0 };
        assert_eq!(parts.mean.len(), expected, "a mean of other dimensions");
        Codebook {
            rotation: centred.then(|| Rotation::new(dimensions, parts.seed)),
            centres: CentreTable::new(padded_dimensions(parts.kind, code_bytes)),
            mean_length: squared_norm(&parts.mean).sqrt(),
            parts,
            code_bytes,
        }
    }

    /// Whether codes are taken from centres.
    pub(crate) fn has_centres(&self) -> bool {
        self.parts.kind.is_trained()
    }

    /// The points of all centres, one after the other.
    pub(crate) fn centre_points(&self) -> Vec<f32> {
        let centres = 1..=self.centres.len() as u32;
        let points = centres.filter_map(|centre| self.centres.point(centre));
        points.flatten().copied().collect()
    }

    /// Takes over the points of centres.
    pub(crate) fn restore_centres(&self, points: &[f32]) -> Result<(), GrowError> {
        for point in points.chunks_exact(self.padded_dimensions()) {
            self.centres.ensure_another()?;
            self.centres.add(point, usize::MAX);
        }
        Ok(())
    }

    /// The length of what a code leaves out of its vector, from the code itself. It is taken from
    /// the origin.
    pub(crate) fn error_of(&self, code: &[u8], meta: &CodeMeta) -> f32 {
        if !self.parts.kind.is_trained() {
            return 0.0;
        }
        let mut levels = vec![0; self.padded_dimensions()];
        self.levels_of(code, &mut levels);
        let levels = levels[..self.parts.dimensions].iter();
        let coded = levels.map(|&level| meta.scale * (f32::from(level) - self.middle()));
        let squared: f32 = coded.map(|x| x * x).sum();
        // What is left out is at right angles to the vector.
        (squared - meta.norm).max(0.0).sqrt()
    }

    /// Bytes of a centre.
    pub(crate) fn centre_bytes(&self) -> usize {
        self.padded_dimensions() * size_of::<f32>()
    }

    /// About the squared length of the vector that a code of nibbles or bytes describes, from its
    /// centre.
    pub(crate) fn squared_residual(&self, meta: &CodeMeta) -> f32 {
        let deviation = meta.scale * self.deviation_in_levels();
        deviation * deviation * self.parts.dimensions as f32
    }

    /// Whether a code may be that of a vector of this squared length.
    pub(crate) fn is_as_long(&self, meta: &CodeMeta, raw_norm: f32) -> bool {
        self.parts.kind == CodeKind::Bits || meta.raw_norm.to_bits() == raw_norm.to_bits()
    }

    /// The centres other than the mean.
    pub(crate) fn centres(&self) -> &CentreTable {
        &self.centres
    }

    /// The parts of this codebook.
    pub(crate) fn parts(&self) -> &CodebookParts {
        &self.parts
    }

    /// The root mean square error of an estimated squared distance, if the product of the two
    /// vectors' lengths from the centre of the code is about `lengths`.
    pub(crate) fn error(&self, lengths: f32) -> f32 {
        let of_product = match self.parts.kind {
            CodeKind::Nibbles => 0.11,
            CodeKind::Bytes => 0.012,
            CodeKind::Floats | CodeKind::Bits => 0.0,
        };
        2.0 * of_product * lengths / (self.parts.dimensions as f32).sqrt()
    }

    /// Bytes of a code, a multiple of 64.
    #[cfg(test)]
    pub(crate) fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// Writes the code of a vector from a centre, [`Codebook::code_bytes`] long, and returns its
    /// meta. `scratch` is overwritten; it saves an allocation a call.
    pub(crate) fn encode(
        &self,
        vector: &[f32],
        centre: u32,
        scratch: &mut Vec<f32>,
        code: &mut [u8],
    ) -> CodeMeta {
        assert_eq!(vector.len(), self.parts.dimensions);
        assert_eq!(code.len(), self.code_bytes);
        match self.parts.kind {
            CodeKind::Nibbles | CodeKind::Bytes => {
                self.centre_and_rotate(vector, scratch);
                let raw_norm = squared_norm(vector);
                self.encode_rotated(scratch, raw_norm, centre, code)
            }
            CodeKind::Floats => {
                floats::encode(vector, code);
                let norm = squared_norm(vector);
                CodeMeta {
                    norm,
                    raw_norm: norm,
                    ..CodeMeta::default()
                }
            }
            CodeKind::Bits => {
                bits::encode(vector, code);
                CodeMeta::default()
            }
        }
    }

    /// Writes the code of a vector that is centred, rotated and padded; it is overwritten.
    fn encode_rotated(
        &self,
        vector: &mut [f32],
        raw_norm: f32,
        centre: u32,
        code: &mut [u8],
    ) -> CodeMeta {
        let point = self.centres.point(centre);
        for (x, c) in vector.iter_mut().zip(point.unwrap_or_default()) {
            *x -= c;
        }
        let norm = squared_norm(vector);
        let scale = match self.parts.kind {
            CodeKind::Nibbles => nibbles::encode(vector, self.parts.dimensions, norm, code),
            _ => bytes::encode(vector, self.parts.dimensions, norm, code),
        };
        let middle = self.middle();
        let mut levels = vec![0; vector.len()];
        self.levels_of(code, &mut levels);
        let (mut error, mut along) = (0.0, 0.0);
        for (at, (x, level)) in vector.iter().zip(&levels).enumerate() {
            let coded = scale * (f32::from(*level) - middle);
            let (coded, off) = match at < self.parts.dimensions {
                true => (coded, coded - x),
                false => (0.0, 0.0),
            };
            error += off * off;
            along += coded * point.map_or(0.0, |point| point[at]);
        }
        CodeMeta {
            scale,
            norm: norm + 2.0 * along,
            raw_norm,
            centre: if point.is_some() { centre } else { ORIGIN },
            error: f32::sqrt(error),
        }
    }

    /// Writes the levels of a code of nibbles or bytes, as they are stored.
    fn levels_of(&self, code: &[u8], levels: &mut [u8]) {
        match self.parts.kind {
            CodeKind::Nibbles => nibbles::levels(code, levels),
            _ => levels[..code.len()].copy_from_slice(code),
        }
    }

    /// Adds a centre in the middle of these vectors, if there are fewer than `max` and there is
    /// memory for it.
    pub(crate) fn add_centre<'a>(
        &self,
        vectors: impl Iterator<Item = &'a [f32]>,
        max: usize,
    ) -> Option<u32> {
        let (mut sum, mut count) = (vec![0f64; self.parts.dimensions], 0);
        for vector in vectors {
            let sums = sum.iter_mut().zip(vector);
            sums.for_each(|(sum, &x)| *sum += f64::from(x));
            count += 1;
        }
        let middle: Vec<f32> = sum.iter().map(|x| (x / f64::from(count)) as f32).collect();
        let mut point = Vec::new();
        self.centre_and_rotate(&middle, &mut point);
        self.centres.add(&point, max)
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
        padded_dimensions(self.parts.kind, self.code_bytes)
    }
}

/// Number of dimensions that a code of so many bytes has room for.
fn padded_dimensions(kind: CodeKind, code_bytes: usize) -> usize {
    match kind {
        CodeKind::Nibbles => 2 * code_bytes,
        CodeKind::Bytes => code_bytes,
        CodeKind::Floats => code_bytes / size_of::<f32>(),
        CodeKind::Bits => 8 * code_bytes,
    }
}

/// The smallest and the largest of this many values of a dimension are left out of its mean.
const TRIMMED_OF: usize = 32;

/// The mean of some vectors, 0 of none. In each dimension a few values that are far out don't
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

/// The squared length of a vector.
pub(crate) fn squared_norm(vector: &[f32]) -> f32 {
    (kernels().dot_f32)(vector, vector)
}
