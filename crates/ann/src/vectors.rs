//! Full vectors by slot, and their distances from a query.
//!
//! The graph proposes slots; the distances of an answer are measured here, from vectors as they are
//! stored. First all proposed vectors are *ranked*, with sums of `f32`. Then those of the answer
//! are *measured*, with sums of `f64`, so that finite vectors have finite distances, equal vectors
//! the distance 0, and the order of additions shows only far below the precision of an `f32`.

use parking_lot::Mutex;

use crate::DistanceMetric;
use crate::dirty_segments::DirtySegments;
use crate::epoch::{Epochs, Mark};
use crate::form::{EncodedVector, FloatWidth, VectorForm};
use crate::kernels::kernels;
use crate::memory::{GrowError, RecordArray, RecordPlacement, RetiredChunk};
use crate::snapshot::SlotShape;

/// The distance of every vector with a direction from a query without one, under
/// [`DistanceMetric::Cosine`].
pub(crate) const FROM_UNDIRECTED: f32 = 1.0;

/// The distance of a vector without direction from a query with one, under
/// [`DistanceMetric::Cosine`]: the next float after the largest distance, so that it comes after
/// all others.
const TO_UNDIRECTED: f32 = 2.0f32.next_up();

/// A rank of a direction that no other one has, but for rounding.
const RANK_BEYOND: f32 = 2.0;

/// A bound of the relative error of ranks, which are sums of `f32`.
const RANK_ROUNDING: f32 = 1e-5;

/// Vectors at least this long start on a cache line of their own.
const LINE: usize = 64;

/// The stored vectors.
pub(crate) struct StoredVectors {
    bytes: usize,
    array: RecordArray,
    /// Marks of the segments that a snapshot has to rewrite.
    written: DirtySegments,
    /// Chunks of a snapshot that were copied. A search may still look at each until its mark has
    /// passed.
    retired: Mutex<Vec<(Mark, RetiredChunk)>>,
}

impl StoredVectors {
    pub(crate) fn new(
        form: VectorForm,
        dimensions: usize,
        place: RecordPlacement,
    ) -> StoredVectors {
        let bytes = form.bytes(dimensions);
        let stride = match bytes {
            0..LINE => bytes.next_multiple_of(size_of::<f32>()),
            _ => bytes.next_multiple_of(LINE),
        };
        StoredVectors {
            bytes,
            array: RecordArray::new(stride, place),
            written: DirtySegments::new(SlotShape::segment_slots_of(stride as u32)),
            retired: Mutex::default(),
        }
    }

    pub(crate) fn array(&self) -> &RecordArray {
        &self.array
    }

    pub(crate) fn array_mut(&mut self) -> &mut RecordArray {
        &mut self.array
    }

    /// Bytes from one vector to the next.
    pub(crate) fn stride(&self) -> usize {
        self.array.stride()
    }

    /// The marks of segments that were written to since the last snapshot.
    pub(crate) fn written(&self) -> &DirtySegments {
        &self.written
    }

    /// Makes room for a slot that may be written to. A chunk that is in a snapshot is copied for
    /// that.
    pub(crate) fn ensure(&self, slot: u32, epochs: &Epochs) -> Result<(), GrowError> {
        self.array.ensure(slot)?;
        let copied = self.array.make_writable(slot)?;
        let mut retired = self.retired.lock();
        retired.extend(copied.map(|old| (epochs.advance(), old)));
        retired.retain(|(mark, _)| !epochs.passed(*mark));
        Ok(())
    }

    /// Writes the vector of a slot.
    ///
    /// # Safety
    /// There is [room](StoredVectors::ensure) for the slot, and no one else has it.
    pub(crate) unsafe fn write(&self, slot: u32, kept: &[u8]) {
        debug_assert_eq!(kept.len(), self.bytes);
        self.written.mark(slot);
        // SAFETY: the caller's promise; a record is at least that long.
        unsafe {
            let record = self.array.get_unchecked(slot);
            record.copy_from_nonoverlapping(kept.as_ptr(), kept.len());
        }
    }

    /// The vector of a slot.
    ///
    /// # Safety
    /// The slot has been written, and is not given away while the slice is in use.
    pub(crate) unsafe fn get(&self, slot: u32) -> &[u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.array.get_unchecked(slot), self.bytes) }
    }
}

/// A query, ready to be measured against stored vectors.
pub(crate) struct VectorScorer<'a> {
    form: VectorForm,
    metric: DistanceMetric,
    query: &'a [f32],
    /// The query that ranks are computed from. Its length is 1 where only directions are stored, so
    /// that neither a very long query nor a very short one makes all ranks alike.
    ranking: &'a [f32],
    squared: f64,
    /// The query as it would be stored, from which Hamming distances are measured.
    kept: &'a [u8],
    widened: Vec<f32>,
    /// A vector of zeros, where the lengths of stored directions are off by the rounding of their
    /// form.
    zeros: Vec<f32>,
    is_exact: bool,
}

impl<'a> VectorScorer<'a> {
    /// Prepares a query. `kept` is the query as it would be stored.
    pub(crate) fn new(
        form: VectorForm,
        metric: DistanceMetric,
        query: &'a [f32],
        kept: &'a EncodedVector,
    ) -> VectorScorer<'a> {
        VectorScorer {
            form,
            metric,
            query,
            ranking: match form {
                VectorForm::Direction(_) => &kept.floats,
                _ => query,
            },
            squared: (kernels().dot_f64)(query, query),
            kept: &kept.bytes,
            widened: Vec::new(),
            zeros: match form {
                VectorForm::Direction(FloatWidth::F16 | FloatWidth::Bf16) => vec![0.0; query.len()],
                _ => Vec::new(),
            },
            is_exact: false,
        }
    }

    /// Makes ranks those of an exact search: they have the order of [`VectorScorer::measure`], but
    /// for their [rounding](VectorScorer::rounding).
    pub(crate) fn exactly(self, is_exact: bool) -> VectorScorer<'a> {
        VectorScorer { is_exact, ..self }
    }

    /// A number that orders vectors as [`VectorScorer::measure`] does, except those that sums of
    /// `f32` cannot tell apart.
    pub(crate) fn rank(&mut self, bytes: &[u8]) -> f32 {
        if self.is_exact
            && let Some(rank) = self.exact_rank(bytes)
        {
            return rank;
        }
        let kernels = kernels();
        let rank = match (self.form, self.metric) {
            (VectorForm::Bits, _) => (kernels.hamming)(self.kept, bytes) as f32,
            (VectorForm::ByteDirection, _) => return self.measure(bytes),
            (
                VectorForm::Direction(float) | VectorForm::Floats(float),
                DistanceMetric::Euclidean,
            ) => match float {
                FloatWidth::F32 => (kernels.squared_l2_f32)(self.ranking, floats(bytes)),
                FloatWidth::F16 => (kernels.squared_l2_f16)(self.ranking, halves(bytes)),
                FloatWidth::Bf16 => (kernels.squared_l2_bf16)(self.ranking, halves(bytes)),
            },
            (VectorForm::Direction(float) | VectorForm::Floats(float), _) => {
                let product = match float {
                    FloatWidth::F32 => (kernels.dot_f32)(self.ranking, floats(bytes)),
                    FloatWidth::F16 => (kernels.dot_f16)(self.ranking, halves(bytes)),
                    FloatWidth::Bf16 => (kernels.dot_bf16)(self.ranking, halves(bytes)),
                };
                -self.scale() * product / self.length(bytes)
            }
        };
        match rank.is_finite() {
            true => rank,
            // A sum of `f32` has left the floats on its way, though the distance may be among them.
            false => self.measure(bytes),
        }
    }

    /// The length of a direction; 1 where that is known, and where lengths count.
    fn length(&self, bytes: &[u8]) -> f32 {
        let squared = match self.form {
            VectorForm::Direction(FloatWidth::F16) => {
                (kernels().squared_l2_f16)(&self.zeros, halves(bytes))
            }
            VectorForm::Direction(FloatWidth::Bf16) => {
                (kernels().squared_l2_bf16)(&self.zeros, halves(bytes))
            }
            _ => return 1.0,
        };
        squared.sqrt()
    }

    /// The rank of an exact search, where sums of `f32` are too coarse: products cancel out.
    fn exact_rank(&mut self, bytes: &[u8]) -> Option<f32> {
        if !matches!(
            (self.form, self.metric),
            (VectorForm::Floats(_), DistanceMetric::DotProduct)
        ) {
            return None;
        }
        let kept = match self.form.is_full() {
            true => floats(bytes),
            false => {
                self.form.widen(bytes, &mut self.widened);
                &self.widened[..]
            }
        };
        let product = (kernels().dot_f64)(self.query, kept);
        let rank = (-f64::from(self.scale()) * product) as f32;
        Some(rank.clamp(f32::MIN, f32::MAX))
    }

    /// The estimate that a [rank](VectorScorer::rank) is the true value of (see [`crate::codes`]):
    /// a squared distance, of directions where only those are stored, a number of bits, or `-2
    /// a.b`.
    pub(crate) fn estimate(&self, rank: f32) -> f32 {
        match (self.form, self.metric) {
            (VectorForm::Bits, _) | (_, DistanceMetric::Euclidean | DistanceMetric::Hamming) => {
                rank
            }
            (VectorForm::ByteDirection, _) => 2.0 * rank,
            (VectorForm::Direction(_), _) => 2.0 + 2.0 * rank,
            // Ranks are of half the product.
            (VectorForm::Floats(_), _) => 4.0 * rank,
        }
    }

    /// A bound of the rounding of ranks about this one, if a search is exact; 0 otherwise.
    pub(crate) fn rounding(&self, rank: f32, is_exact: bool) -> f32 {
        match (is_exact, self.form) {
            (false, _) | (_, VectorForm::Bits) => 0.0,
            (true, VectorForm::Direction(float)) => {
                // A direction that is longer than 1 by a share seems farther by that share.
                let share = float.rounding();
                RANK_ROUNDING + share * (1.0 + rank) + share * share
            }
            (true, VectorForm::ByteDirection) => RANK_ROUNDING,
            (true, VectorForm::Floats(_)) => RANK_ROUNDING * rank.abs() + f32::MIN_POSITIVE,
        }
    }

    /// The factor of distances before they become `f32`. Half a dot product is a float wherever a
    /// score is, which is half of it too.
    fn scale(&self) -> f32 {
        match self.metric {
            DistanceMetric::DotProduct => 0.5,
            _ => 1.0,
        }
    }

    /// The distance for an answer, from what [`VectorScorer::measure`] returned.
    pub(crate) fn distance(&self, measured: f32) -> f32 {
        // Beyond the floats the largest float is returned, as infinity has no place in an answer.
        (measured / self.scale()).clamp(f32::MIN, f32::MAX)
    }

    /// The distance of a vector without direction: 0 from a query that has none either.
    pub(crate) fn undirected_distance(&self) -> f32 {
        match self.squared {
            0.0 => 0.0,
            _ => TO_UNDIRECTED,
        }
    }

    /// The rank of a vector without direction for a query with one: after all others.
    pub(crate) fn undirected_rank(&self) -> f32 {
        match self.form {
            VectorForm::ByteDirection => TO_UNDIRECTED,
            _ => RANK_BEYOND,
        }
    }

    /// The [scaled](VectorScorer::distance) distance from a stored vector: by the metric's formula,
    /// finite, and in [0, 2] for the cosine.
    pub(crate) fn measure(&mut self, bytes: &[u8]) -> f32 {
        match self.form {
            VectorForm::Bits => (kernels().hamming)(self.kept, bytes) as f32,
            form if form.is_full() => self.measure_floats(floats(bytes)),
            form => {
                let mut widened = std::mem::take(&mut self.widened);
                form.widen(bytes, &mut widened);
                let measured = self.measure_floats(&widened);
                self.widened = widened;
                measured
            }
        }
    }

    /// Measures as [`VectorScorer::measure`] does, from the floats of a stored vector.
    pub(crate) fn measure_floats(&self, kept: &[f32]) -> f32 {
        let kernels = kernels();
        let distance = match self.metric {
            DistanceMetric::Euclidean => (kernels.squared_l2_f64)(self.query, kept),
            DistanceMetric::DotProduct => 1.0 - (kernels.dot_f64)(self.query, kept),
            DistanceMetric::Cosine | DistanceMetric::Hamming if self.squared == 0.0 => {
                f64::from(FROM_UNDIRECTED)
            }
            DistanceMetric::Cosine | DistanceMetric::Hamming => {
                let lengths = (self.squared * (kernels.dot_f64)(kept, kept)).sqrt();
                // Rounding may carry the quotient of parallel vectors a little past 1.
                (1.0 - (kernels.dot_f64)(self.query, kept) / lengths).clamp(0.0, 2.0)
            }
        };
        ((distance * f64::from(self.scale())) as f32).clamp(f32::MIN, f32::MAX)
    }
}

/// The floats of a record of an array.
fn floats(bytes: &[u8]) -> &[f32] {
    // SAFETY: every four bytes are a float.
    let (before, floats, after) = unsafe { bytes.align_to() };
    debug_assert!(before.is_empty() && after.is_empty(), "records are aligned");
    floats
}

/// The half floats of a record of an array.
fn halves(bytes: &[u8]) -> &[u16] {
    // SAFETY: every two bytes are a number.
    let (before, halves, after) = unsafe { bytes.align_to() };
    debug_assert!(before.is_empty() && after.is_empty(), "records are aligned");
    halves
}
