//! The form in which vectors are kept, and the way into it.

use crate::distance::squared_norm;
use crate::{Metric, Options, Quantization};

/// The largest finite half float.
const F16_MAX: f32 = 65_504.0;
/// The largest finite bfloat16: seven bits of mantissa, all set, at the largest exponent.
const BF16_MAX: f32 = f32::from_bits(0x7f7f_0000);
/// The largest element of a vector kept as signed bytes.
const I8_MAX: f32 = 127.0;

/// A width of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Float {
    F32,
    F16,
    Bf16,
}

impl Float {
    fn max(self) -> f32 {
        match self {
            Float::F32 => f32::MAX,
            Float::F16 => F16_MAX,
            Float::Bf16 => BF16_MAX,
        }
    }
}

/// What an index keeps of its vectors: as much as its metric needs, as small as was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The direction alone, as a unit vector. Then `1 - a.b` is the cosine distance, at one
    /// product a pair instead of three, and very long and very short vectors need no care.
    Direction(Float),
    /// The direction alone, in bytes, each vector scaled to its largest element.
    ByteDirection,
    /// The vector as it is, cut to what the width can hold.
    Floats(Float),
    /// A bit an element, set when strictly positive, from the low end of each byte.
    Bits,
}

/// A vector in its form, floats not yet narrowed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Code {
    Floats(Vec<f32>),
    Bytes(Vec<i8>),
    Bits(Vec<u8>),
}

impl Form {
    pub(crate) fn of(options: &Options) -> Form {
        let float = match options.quantization {
            Quantization::F32 => Float::F32,
            Quantization::F16 => Float::F16,
            // Bytes lose the length of a vector; where it counts, the next wider form is taken.
            Quantization::Bf16 | Quantization::I8 | Quantization::B1 => Float::Bf16,
        };
        match (options.metric, options.quantization) {
            (Metric::Hamming, _) | (_, Quantization::B1) => Form::Bits,
            (Metric::Cosine, Quantization::I8) => Form::ByteDirection,
            (Metric::Cosine, _) => Form::Direction(float),
            (Metric::Euclidean | Metric::DotProduct, _) => Form::Floats(float),
        }
    }

    /// Bytes of a vector of this many dimensions.
    pub(crate) fn bytes(self, dimensions: usize) -> usize {
        match self {
            Form::Direction(Float::F32) | Form::Floats(Float::F32) => 4 * dimensions,
            Form::Direction(_) | Form::Floats(_) => 2 * dimensions,
            Form::ByteDirection => dimensions,
            Form::Bits => dimensions.div_ceil(8),
        }
    }

    /// None for a vector that has no direction where only the direction is kept. The elements of
    /// `vector` are finite.
    pub(crate) fn encode(self, vector: &[f32]) -> Option<Code> {
        match self {
            Form::Direction(_) => {
                let norm = squared_norm(vector).sqrt();
                let unit = |&x: &f32| (f64::from(x) / norm) as f32;
                (norm > 0.0).then(|| Code::Floats(vector.iter().map(unit).collect()))
            }
            Form::ByteDirection => {
                let largest = vector.iter().fold(0.0f32, |max, x| max.max(x.abs()));
                // Divided first: the largest floats have no room for a factor of 127.
                let byte = |&x: &f32| (x / largest * I8_MAX).round() as i8;
                (largest > 0.0).then(|| Code::Bytes(vector.iter().map(byte).collect()))
            }
            Form::Floats(float) => {
                let max = float.max();
                let cut = |x: &f32| x.clamp(-max, max);
                Some(Code::Floats(vector.iter().map(cut).collect()))
            }
            Form::Bits => Some(Code::Bits(pack(vector))),
        }
    }
}

/// One bit an element, set when strictly positive, from the low end of each byte.
pub(crate) fn pack(vector: &[f32]) -> Vec<u8> {
    let byte = |eight: &[f32]| {
        let bits = eight.iter().enumerate();
        bits.fold(0, |byte, (i, &x)| byte | u8::from(x > 0.0) << i)
    };
    vector.chunks(8).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_fill_bytes_from_the_low_end_and_zero_is_not_positive() {
        assert_eq!(pack(&[1.0, -1.0, 0.0, 2.0]), [0b1001]);
        let mut vector = vec![-1.0; 10];
        vector[9] = f32::MIN_POSITIVE;
        vector[0] = -0.0;
        assert_eq!(pack(&vector), [0, 0b10]);
    }

    #[test]
    fn the_form_keeps_what_the_metric_needs() {
        use Metric::*;
        use Quantization::*;
        let form = |metric, quantization| {
            Form::of(&Options {
                metric,
                quantization,
                ..Options::new(9)
            })
        };
        assert_eq!(form(Cosine, F32), Form::Direction(Float::F32));
        assert_eq!(form(Cosine, F16), Form::Direction(Float::F16));
        assert_eq!(form(Cosine, I8), Form::ByteDirection);
        assert_eq!(form(Euclidean, Bf16), Form::Floats(Float::Bf16));
        assert_eq!(form(DotProduct, I8), Form::Floats(Float::Bf16));
        assert_eq!(form(Hamming, F32), Form::Bits);
        assert_eq!(form(Cosine, B1), Form::Bits);
        assert_eq!(form(Cosine, B1).bytes(9), 2);
        assert_eq!(form(Cosine, F16).bytes(9), 18);
    }

    #[test]
    fn directions_survive_the_longest_and_the_shortest_vectors() {
        for scale in [1.0e38, 1.0, 1.0e-40] {
            let code = Form::Direction(Float::F32).encode(&[scale, -scale]);
            let Some(Code::Floats(unit)) = code else {
                panic!("{scale}: {code:?}")
            };
            assert!((unit[0] - 0.5f32.sqrt()).abs() < 1e-4, "{scale}: {unit:?}");
            assert_eq!(unit[0], -unit[1]);
            let code = Form::ByteDirection.encode(&[scale, -scale]);
            assert_eq!(code, Some(Code::Bytes(vec![127, -127])));
        }
    }

    #[test]
    fn a_zero_vector_has_no_direction() {
        assert_eq!(Form::Direction(Float::F32).encode(&[0.0, -0.0]), None);
        assert_eq!(Form::ByteDirection.encode(&[0.0, -0.0]), None);
        let kept = Form::Floats(Float::F32).encode(&[0.0, 0.0]);
        assert_eq!(kept, Some(Code::Floats(vec![0.0, 0.0])));
    }

    #[test]
    fn what_a_width_cannot_hold_is_cut() {
        let cut = |float| Form::Floats(float).encode(&[f32::MAX, f32::MIN, 1.5]);
        let expected = |max: f32| Some(Code::Floats(vec![max, -max, 1.5]));
        assert_eq!(cut(Float::F16), expected(65_504.0));
        assert_eq!(cut(Float::Bf16), expected(BF16_MAX));
        assert_eq!(cut(Float::F32), expected(f32::MAX));
    }
}
