//! The form in which full vectors are stored, and the conversion to it.

use crate::kernels::{half, kernels};
use crate::{DistanceMetric, NeighbourIndexOptions, VectorQuantization};

/// The largest finite half float.
const F16_MAX: f32 = 65_504.0;
/// The largest finite bfloat16: seven bits of mantissa, all set, at the largest exponent.
const BF16_MAX: f32 = f32::from_bits(0x7f7f_0000);
/// The largest element of a vector stored as signed bytes.
const I8_MAX: f32 = 127.0;

/// A width of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatWidth {
    F32,
    F16,
    Bf16,
}

impl FloatWidth {
    /// A bound of the share of a direction's length that is lost to this width.
    pub(crate) fn rounding(self) -> f32 {
        match self {
            FloatWidth::F32 => f32::EPSILON,
            // Twice half a bit, for the sake of elements too small for all of their bits.
            FloatWidth::F16 => 1.0 / 1_024.0,
            FloatWidth::Bf16 => 1.0 / 256.0,
        }
    }

    fn max(self) -> f32 {
        match self {
            FloatWidth::F32 => f32::MAX,
            FloatWidth::F16 => F16_MAX,
            FloatWidth::Bf16 => BF16_MAX,
        }
    }
}

/// The form of an index's vectors: as much as its metric needs, as small as was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VectorForm {
    /// Only the direction, as a unit vector. The cosine distance is then `1 - a.b`, at one product
    /// a pair instead of three, and very long and very short vectors need no care.
    Direction(FloatWidth),
    /// Only the direction, in bytes, each vector scaled to its largest element.
    ByteDirection,
    /// The vector as it is, cut to what the width can hold.
    Floats(FloatWidth),
    /// A bit an element, set when strictly positive, from the low end of each byte.
    Bits,
}

/// A vector on its way into the index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EncodedVector {
    /// The vector in its form, little-endian.
    pub bytes: Vec<u8>,
    /// The vector that the bytes tell as floats of full width, from which its code is made. Its
    /// length is 1, but for the rounding of the form, where only the direction is stored.
    pub floats: Vec<f32>,
}

/// The position of the first element that is NaN or infinite; None if all are finite.
pub fn first_not_finite(vector: &[f32]) -> Option<usize> {
    // Mostly there is none. A loop without an early exit checks a register of elements at a time.
    let finite = vector.iter().map(|element| element.is_finite());
    match finite.fold(true, |all, this| all & this) {
        true => None,
        false => vector.iter().position(|element| !element.is_finite()),
    }
}

impl VectorForm {
    pub(crate) fn of(options: &NeighbourIndexOptions) -> VectorForm {
        let float = match options.quantization {
            VectorQuantization::F32 => FloatWidth::F32,
            VectorQuantization::F16 => FloatWidth::F16,
            // Bytes lose the length of a vector; where it counts, the next wider form is taken.
            VectorQuantization::Bf16 | VectorQuantization::I8 | VectorQuantization::B1 => {
                FloatWidth::Bf16
            }
        };
        match (options.metric, options.quantization) {
            (DistanceMetric::Hamming, _) | (_, VectorQuantization::B1) => VectorForm::Bits,
            (DistanceMetric::Cosine, VectorQuantization::I8) => VectorForm::ByteDirection,
            (DistanceMetric::Cosine, _) => VectorForm::Direction(float),
            (DistanceMetric::Euclidean | DistanceMetric::DotProduct, _) => {
                VectorForm::Floats(float)
            }
        }
    }

    /// Bytes of a vector of this many dimensions.
    pub(crate) fn bytes(self, dimensions: usize) -> usize {
        match self {
            VectorForm::Direction(FloatWidth::F32) | VectorForm::Floats(FloatWidth::F32) => {
                4 * dimensions
            }
            VectorForm::Direction(_) | VectorForm::Floats(_) => 2 * dimensions,
            VectorForm::ByteDirection => dimensions,
            VectorForm::Bits => dimensions.div_ceil(8),
        }
    }

    /// Whether the floats of a [`EncodedVector`] vector are all that its bytes tell.
    pub(crate) fn is_full(self) -> bool {
        matches!(
            self,
            VectorForm::Direction(FloatWidth::F32) | VectorForm::Floats(FloatWidth::F32)
        )
    }

    /// Brings a vector of finite elements into its form; false if only the direction is stored and
    /// the vector has none.
    pub(crate) fn keep(self, vector: &[f32], kept: &mut EncodedVector) -> bool {
        let directed = self.keep_query(vector, kept);
        let EncodedVector { bytes, floats } = kept;
        match self {
            VectorForm::Direction(FloatWidth::F16 | FloatWidth::Bf16)
            | VectorForm::Floats(FloatWidth::F16 | FloatWidth::Bf16) => {
                self.widen(bytes, floats);
            }
            VectorForm::ByteDirection if directed => {
                let direction = |&byte: &u8| f64::from(byte as i8);
                let norm = bytes.iter().map(|b| direction(b).powi(2)).sum::<f64>();
                let norm = norm.sqrt();
                floats.clear();
                floats.extend(bytes.iter().map(|b| (direction(b) / norm) as f32));
            }
            _ => {}
        }
        directed
    }

    /// Prepares a query as [`VectorForm::keep`] does a vector, but for the floats: they are those
    /// of the query as it was given, or of its direction, whatever is lost in the form.
    pub(crate) fn keep_query(self, vector: &[f32], kept: &mut EncodedVector) -> bool {
        let EncodedVector { bytes, floats } = kept;
        bytes.clear();
        floats.clear();
        match self {
            VectorForm::Direction(_) | VectorForm::ByteDirection => {
                let norm = (kernels().dot_f64)(vector, vector).sqrt();
                if norm == 0.0 {
                    return false;
                }
                floats.extend(vector.iter().map(|&x| (f64::from(x) / norm) as f32));
            }
            VectorForm::Floats(_) | VectorForm::Bits => floats.extend_from_slice(vector),
        }
        match self {
            VectorForm::Direction(float) | VectorForm::Floats(float) => float.narrow(floats, bytes),
            VectorForm::ByteDirection => {
                let largest = (kernels().max_abs)(vector);
                // Divided first: the largest floats have no room for a factor of 127.
                let byte = |&x: &f32| (x / largest * I8_MAX).round() as i8;
                bytes.extend(vector.iter().map(|x| byte(x) as u8));
            }
            VectorForm::Bits => bytes.extend(vector.chunks(8).map(pack)),
        }
        true
    }

    /// The floats of a stored vector: 1 and -1 where bits are stored, eight for each byte.
    pub(crate) fn widen(self, bytes: &[u8], floats: &mut Vec<f32>) {
        floats.clear();
        match self {
            VectorForm::Direction(float) | VectorForm::Floats(float) => float.widen(bytes, floats),
            VectorForm::ByteDirection => floats.extend(bytes.iter().map(|&b| f32::from(b as i8))),
            VectorForm::Bits => {
                let bits = bytes
                    .iter()
                    .flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
                floats.extend(bits.map(|bit| if bit == 1 { 1.0 } else { -1.0 }));
            }
        }
    }
}

impl FloatWidth {
    /// Adds the bytes of floats, cut to what this width can hold.
    fn narrow(self, floats: &[f32], bytes: &mut Vec<u8>) {
        let max = self.max();
        let floats = floats.iter().map(|x| x.clamp(-max, max));
        match self {
            FloatWidth::F32 => bytes.extend(floats.flat_map(f32::to_le_bytes)),
            FloatWidth::F16 => {
                bytes.extend(floats.flat_map(|x| half::f32_to_f16(x).to_le_bytes()));
            }
            FloatWidth::Bf16 => {
                bytes.extend(floats.flat_map(|x| half::f32_to_bf16(x).to_le_bytes()));
            }
        }
    }

    fn widen(self, bytes: &[u8], floats: &mut Vec<f32>) {
        let (fours, twos) = (bytes.as_chunks::<4>().0, bytes.as_chunks::<2>().0);
        let two = |two: &[u8; 2]| u16::from_le_bytes(*two);
        match self {
            FloatWidth::F32 => floats.extend(fours.iter().map(|x| f32::from_le_bytes(*x))),
            FloatWidth::F16 => floats.extend(twos.iter().map(|x| half::f16_to_f32(two(x)))),
            FloatWidth::Bf16 => floats.extend(twos.iter().map(|x| half::bf16_to_f32(two(x)))),
        }
    }
}

/// Packs up to eight elements into a byte: one bit each, set when strictly positive, from the low
/// end.
pub(crate) fn pack(eight: &[f32]) -> u8 {
    let bits = eight.iter().enumerate();
    bits.fold(0, |byte, (i, &x)| byte | u8::from(x > 0.0) << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(form: VectorForm, vector: &[f32]) -> Option<EncodedVector> {
        let mut kept = EncodedVector::default();
        form.keep(vector, &mut kept).then_some(kept)
    }

    fn bytes(form: VectorForm, vector: &[f32]) -> Vec<u8> {
        keep(form, vector).expect("a direction").bytes
    }

    fn floats(form: VectorForm, vector: &[f32]) -> Vec<f32> {
        let mut floats = Vec::new();
        form.widen(&bytes(form, vector), &mut floats);
        floats
    }

    #[test]
    fn the_first_element_that_is_no_finite_number_is_named() {
        let mut vector = vec![f32::MAX; 37];
        assert_eq!(first_not_finite(&vector), None);
        for (at, element) in [(36, f32::NAN), (17, f32::INFINITY), (3, f32::NEG_INFINITY)] {
            vector[at] = element;
            assert_eq!(first_not_finite(&vector), Some(at));
        }
        assert_eq!(first_not_finite(&[]), None);
    }

    #[test]
    fn bits_fill_bytes_from_the_low_end_and_zero_is_not_positive() {
        assert_eq!(bytes(VectorForm::Bits, &[1.0, -1.0, 0.0, 2.0]), [0b1001]);
        let mut vector = vec![-1.0; 10];
        vector[9] = f32::MIN_POSITIVE;
        vector[0] = -0.0;
        assert_eq!(bytes(VectorForm::Bits, &vector), [0, 0b10]);
    }

    #[test]
    fn the_form_keeps_what_the_metric_needs() {
        use DistanceMetric::*;
        use VectorQuantization::*;
        let form = |metric, quantization| {
            VectorForm::of(&NeighbourIndexOptions {
                metric,
                quantization,
                ..NeighbourIndexOptions::new(9)
            })
        };
        assert_eq!(form(Cosine, F32), VectorForm::Direction(FloatWidth::F32));
        assert_eq!(form(Cosine, F16), VectorForm::Direction(FloatWidth::F16));
        assert_eq!(form(Cosine, I8), VectorForm::ByteDirection);
        assert_eq!(form(Euclidean, Bf16), VectorForm::Floats(FloatWidth::Bf16));
        assert_eq!(form(DotProduct, I8), VectorForm::Floats(FloatWidth::Bf16));
        assert_eq!(form(Hamming, F32), VectorForm::Bits);
        assert_eq!(form(Cosine, B1), VectorForm::Bits);
        assert_eq!(form(Cosine, B1).bytes(9), 2);
        assert_eq!(form(Cosine, F16).bytes(9), 18);
    }

    #[test]
    fn directions_survive_the_longest_and_the_shortest_vectors() {
        for scale in [1.0e38, 1.0, 1.0e-40] {
            let unit = floats(VectorForm::Direction(FloatWidth::F32), &[scale, -scale]);
            assert!((unit[0] - 0.5f32.sqrt()).abs() < 1e-4, "{scale}: {unit:?}");
            assert_eq!(unit[0], -unit[1]);
            let signed = floats(VectorForm::ByteDirection, &[scale, -scale]);
            assert_eq!(signed, [127.0, -127.0]);
        }
    }

    #[test]
    fn a_zero_vector_has_no_direction() {
        assert_eq!(
            keep(VectorForm::Direction(FloatWidth::F32), &[0.0, -0.0]),
            None
        );
        assert_eq!(keep(VectorForm::ByteDirection, &[0.0, -0.0]), None);
        assert_eq!(
            floats(VectorForm::Floats(FloatWidth::F32), &[0.0, 0.0]),
            [0.0, 0.0]
        );
    }

    #[test]
    fn elements_beyond_a_width_are_clamped() {
        let cut = |float| floats(VectorForm::Floats(float), &[f32::MAX, f32::MIN, 1.5]);
        assert_eq!(cut(FloatWidth::F16), [65_504.0, -65_504.0, 1.5]);
        assert_eq!(cut(FloatWidth::Bf16), [BF16_MAX, -BF16_MAX, 1.5]);
        assert_eq!(cut(FloatWidth::F32), [f32::MAX, f32::MIN, 1.5]);
    }
}
