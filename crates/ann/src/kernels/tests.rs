//! Every set against the scalar one.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{HopKernel, Kernels, PairKernel, half, supported};

/// Codes as they lie in blocks: aligned, apart from each other, each with a line behind it.
pub(super) struct Codes {
    lines: Vec<Line>,
    /// Lines from one code to the next.
    stride: usize,
}

#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Codes {
    /// All codes have the same length, whole lines.
    pub(super) fn new(codes: &[impl AsRef<[u8]>]) -> Codes {
        let length = codes.first().map_or(0, |code| code.as_ref().len());
        let stride = length / 64 + 1;
        let mut lines = Vec::with_capacity(stride * codes.len());
        for code in codes {
            let (code, []) = code.as_ref().as_chunks() else {
                panic!("codes are whole lines")
            };
            lines.extend(code.iter().map(|&line| Line(line)));
            lines.push(Line([0xa5; 64]));
        }
        Codes { lines, stride }
    }

    pub(super) fn pointers(&self) -> Vec<*const u8> {
        let codes = self.lines.chunks(self.stride);
        codes.map(|code| code.as_ptr().cast()).collect()
    }
}

/// What a kernel makes of these codes, none of which is shorter than the query calls for.
fn run<Q, R: Clone + Default>(kernel: HopKernel<Q, R>, query: &[Q], codes: &Codes) -> Vec<R> {
    let codes = codes.pointers();
    let mut out = vec![R::default(); codes.len()];
    // SAFETY: `Codes` holds whole lines, and the tests give codes of the length of their query.
    unsafe { kernel(query, &codes, &mut out) };
    out
}

fn float_bytes(floats: &[f32]) -> Vec<u8> {
    floats
        .iter()
        .flat_map(|float| float.to_ne_bytes())
        .collect()
}

/// The sets beside the scalar one. On a processor without any the tests have nothing to compare.
fn scalar_and_others() -> (&'static Kernels, Vec<&'static Kernels>) {
    let mut sets = supported();
    let scalar = sets.remove(0);
    assert_eq!(scalar.name, "scalar");
    (scalar, sets)
}

/// Elements of many magnitudes, zeros and denormals among them.
fn element() -> impl Strategy<Value = f32> + Clone {
    prop_oneof![
        8 => -1.0f32..1.0,
        2 => -1e4f32..1e4,
        1 => prop_oneof![Just(0.0), Just(-0.0), Just(1e-40), Just(-1e-45), Just(1e-20), Just(3e4)],
    ]
}

fn signed_byte() -> impl Strategy<Value = i8> + Clone {
    prop_oneof![4 => any::<i8>(), 1 => prop_oneof![Just(-128i8), Just(127), Just(0)]]
}

fn byte() -> impl Strategy<Value = u8> + Clone {
    prop_oneof![4 => any::<u8>(), 1 => prop_oneof![Just(0xffu8), Just(0xf0), Just(0x0f), Just(0)]]
}

/// A query and up to nine codes for it; a query has `per_unit` elements for each `unit` bytes.
fn hop<Q: std::fmt::Debug, S: Strategy<Value = Q> + Clone>(
    element: S,
    per_unit: usize,
    unit: usize,
) -> impl Strategy<Value = (Vec<Q>, Vec<Vec<u8>>)> {
    (0..8usize, 0..10usize).prop_flat_map(move |(units, codes)| {
        (
            vec(element.clone(), per_unit * units),
            vec(vec(byte(), unit * units), codes),
        )
    })
}

/// The same, of floats.
fn float_hop() -> impl Strategy<Value = (Vec<f32>, Vec<Vec<f32>>)> {
    (0..9usize, 0..10usize).prop_flat_map(|(lines, codes)| {
        (
            vec(element(), 16 * lines),
            vec(vec(element(), 16 * lines), codes),
        )
    })
}

/// Two vectors of one length, at any alignment to the width of a register.
fn pair<T: std::fmt::Debug>(
    right: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = (Vec<f32>, Vec<T>)> {
    (0..300usize).prop_flat_map(move |n| (vec(element(), n), vec(right.clone(), n)))
}

/// Whether sums of these terms are within the bound that the module states.
fn assert_near(name: &str, sum: f32, terms: impl Iterator<Item = f64> + Clone) {
    let n = terms.clone().count() as f64;
    let exact: f64 = terms.clone().sum();
    let absolute: f64 = terms.map(f64::abs).sum();
    let bound = (n / 16.0 + 8.0) * 2f64.powi(-24) * absolute + n * 2f64.powi(-149);
    let error = (f64::from(sum) - exact).abs();
    assert!(
        error <= bound,
        "{name}: {sum} for {exact}: {error:e} above {bound:e}"
    );
}

fn products<'a>(a: &'a [f32], b: &'a [f32]) -> impl Iterator<Item = f64> + Clone + 'a {
    a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y))
}

fn squares<'a>(a: &'a [f32], b: &'a [f32]) -> impl Iterator<Item = f64> + Clone + 'a {
    let pairs = a.iter().zip(b);
    pairs.map(|(&x, &y)| (f64::from(x) - f64::from(y)).powi(2))
}

/// The dot product and, where there is one, the squared distance of each set within the bound.
fn check_pair<T: Copy>(
    a: &[f32],
    b: &[T],
    decode: impl Fn(T) -> f32,
    kernels: impl Fn(&Kernels) -> (PairKernel<f32, T, f32>, Option<PairKernel<f32, T, f32>>),
) {
    let decoded: Vec<f32> = b.iter().map(|&y| decode(y)).collect();
    for set in supported() {
        let (dot, squared_l2) = kernels(set);
        assert_near(set.name, dot(a, b), products(a, &decoded));
        if let Some(squared_l2) = squared_l2 {
            assert_near(set.name, squared_l2(a, b), squares(a, &decoded));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn dots_of_nibbles_agree_to_the_bit((query, codes) in hop(signed_byte(), 128, 64)) {
        let (scalar, others) = scalar_and_others();
        let codes = Codes::new(&codes);
        let expected = run(scalar.dots_u4, &query, &codes);
        for set in others {
            prop_assert_eq!(run(set.dots_u4, &query, &codes), expected.clone(), "{}", set.name);
        }
    }

    #[test]
    fn dots_of_bytes_agree_to_the_bit((query, codes) in hop(signed_byte(), 64, 64)) {
        let (scalar, others) = scalar_and_others();
        let codes = Codes::new(&codes);
        let expected = run(scalar.dots_u8, &query, &codes);
        for set in others {
            prop_assert_eq!(run(set.dots_u8, &query, &codes), expected.clone(), "{}", set.name);
        }
    }

    #[test]
    fn sums_over_bits_agree_to_the_bit((query, codes) in hop(signed_byte(), 512, 64)) {
        let (scalar, others) = scalar_and_others();
        let codes = Codes::new(&codes);
        let expected = run(scalar.sums_u1, &query, &codes);
        for set in others {
            prop_assert_eq!(run(set.sums_u1, &query, &codes), expected.clone(), "{}", set.name);
        }
    }

    #[test]
    fn differing_bits_agree((query, codes) in hop(byte(), 64, 64), cut in 0..64usize) {
        let (scalar, others) = scalar_and_others();
        let aligned = Codes::new(&codes);
        let expected = run(scalar.differing_bits, &query, &aligned);
        // The pair kernel takes any length and alignment.
        let cut = cut.min(query.len());
        for set in others {
            let counted = run(set.differing_bits, &query, &aligned);
            prop_assert_eq!(&counted, &expected, "{}", set.name);
            for code in &codes {
                let (a, b) = (&query[cut..], &code[cut..]);
                prop_assert_eq!((set.hamming)(a, b), (scalar.hamming)(a, b), "{}", set.name);
            }
        }
    }

    #[test]
    fn float_codes_are_within_the_bound((query, codes) in float_hop()) {
        let bytes: Vec<_> = codes.iter().map(|code| float_bytes(code)).collect();
        let aligned = Codes::new(&bytes);
        for set in supported() {
            let dots = run(set.dots_f32, &query, &aligned);
            let distances = run(set.squared_l2s_f32, &query, &aligned);
            for ((code, dot), distance) in codes.iter().zip(dots).zip(distances) {
                assert_near(set.name, dot, products(&query, code));
                assert_near(set.name, distance, squares(&query, code));
            }
        }
    }

    #[test]
    fn pairs_of_floats_are_within_the_bound((a, b) in pair(element())) {
        check_pair(&a, &b, |y| y, |k| (k.dot_f32, Some(k.squared_l2_f32)));
    }

    #[test]
    fn half_floats_are_within_the_bound((a, b) in pair(element().prop_map(half::f32_to_f16))) {
        check_pair(&a, &b, half::f16_to_f32, |k| (k.dot_f16, Some(k.squared_l2_f16)));
    }

    #[test]
    fn bfloat16s_are_within_the_bound((a, b) in pair(element().prop_map(half::f32_to_bf16))) {
        check_pair(&a, &b, half::bf16_to_f32, |k| (k.dot_bf16, Some(k.squared_l2_bf16)));
    }

    #[test]
    fn signed_bytes_are_within_the_bound((a, b) in pair(signed_byte())) {
        check_pair(&a, &b, f32::from, |k| (k.dot_i8, None));
    }

    #[test]
    fn answers_agree_to_the_bit((a, b) in pair(element())) {
        let (scalar, others) = scalar_and_others();
        let (dot, squared) = ((scalar.dot_f64)(&a, &b), (scalar.squared_l2_f64)(&a, &b));
        for set in others {
            prop_assert_eq!((set.dot_f64)(&a, &b).to_bits(), dot.to_bits(), "{}", set.name);
            let other = (set.squared_l2_f64)(&a, &b);
            prop_assert_eq!(other.to_bits(), squared.to_bits(), "{}", set.name);
        }
    }

    #[test]
    fn levels_agree_to_the_bit(
        values in vec(element(), 0..300),
        blocks in (0..4usize).prop_flat_map(|n| vec(element(), 128 * n)),
        factor in prop_oneof![0.5f32..300.0, Just(0.0), Just(f32::MAX), Just(f32::INFINITY)],
    ) {
        let (scalar, others) = scalar_and_others();
        let quantised = |set: &Kernels| {
            let mut signed = vec![0; values.len()];
            let signed_sum = (set.quantize_i8)(&values, factor, &mut signed);
            let mut bytes = vec![0; values.len()];
            let byte_sum = (set.quantize_u8)(&values, factor, &mut bytes);
            let mut nibbles = vec![0; blocks.len() / 2];
            let nibble_sum = (set.quantize_u4)(&blocks, factor, &mut nibbles);
            let max = (set.max_abs)(&values);
            let sums = (signed_sum, byte_sum.to_bits(), nibble_sum.to_bits(), max.to_bits());
            (signed, bytes, nibbles, sums)
        };
        let expected = quantised(scalar);
        for set in others {
            prop_assert_eq!(quantised(set), expected.clone(), "{}", set.name);
        }
    }
}

/// The largest sums that an index can ask for: of 16,000 dimensions, filled up to whole lines.
#[test]
fn extreme_codes_do_not_overflow() {
    const DIMENSIONS: usize = 16_384;
    let sums = [(0xff, -128), (0xff, 127), (0x00, -128)];
    for (byte, element) in sums {
        let query = [element; DIMENSIONS];
        let codes = |bytes| Codes::new(&[vec![byte; bytes], vec![0; bytes]]);
        let (nibbles, bytes, bits) = (
            codes(DIMENSIONS / 2),
            codes(DIMENSIONS),
            codes(DIMENSIONS / 8),
        );
        let sum = DIMENSIONS as i32 * i32::from(element);
        for set in supported() {
            let expected = |level: u8| [sum * i32::from(level), 0];
            let (nibble, bit) = (byte & 0xf, byte & 1);
            assert_eq!(
                run(set.dots_u4, &query, &nibbles),
                expected(nibble),
                "{}",
                set.name
            );
            assert_eq!(
                run(set.dots_u8, &query, &bytes),
                expected(byte),
                "{}",
                set.name
            );
            assert_eq!(
                run(set.sums_u1, &query, &bits),
                expected(bit),
                "{}",
                set.name
            );
        }
    }
}

#[test]
fn sums_beyond_the_floats_are_infinite_and_nothing_panics() {
    let (a, b) = (vec![f32::MAX; 80], vec![f32::MIN; 80]);
    let codes = Codes::new(&[float_bytes(&b)]);
    for set in supported() {
        assert_eq!((set.dot_f32)(&a, &b), f32::NEG_INFINITY, "{}", set.name);
        assert_eq!((set.squared_l2_f32)(&a, &b), f32::INFINITY, "{}", set.name);
        assert_eq!(
            run(set.dots_f32, &a, &codes),
            [f32::NEG_INFINITY],
            "{}",
            set.name
        );
        assert_eq!(
            run(set.squared_l2s_f32, &a, &codes),
            [f32::INFINITY],
            "{}",
            set.name
        );
        assert_eq!((set.max_abs)(&b), f32::MAX, "{}", set.name);
        assert!((set.squared_l2_f64)(&a, &b).is_finite(), "{}", set.name);
        let infinite = half::f32_to_f16(f32::MAX);
        assert_eq!(
            (set.dot_f16)(&a, &[infinite; 80]),
            f32::INFINITY,
            "{}",
            set.name
        );
    }
}

#[test]
fn not_a_number_has_the_lowest_level_and_no_size() {
    let values = [f32::NAN; 128];
    for set in supported() {
        assert_eq!((set.max_abs)(&values), 0.0, "{}", set.name);
        let mut signed = [0; 128];
        assert_eq!((set.quantize_i8)(&values, 1.0, &mut signed), -127 * 128);
        assert_eq!(signed, [-127; 128], "{}", set.name);
        let mut bytes = [1; 128];
        (set.quantize_u8)(&values, 1.0, &mut bytes);
        assert_eq!(bytes, [0; 128], "{}", set.name);
        let mut nibbles = [1; 64];
        (set.quantize_u4)(&values, 1.0, &mut nibbles);
        assert_eq!(nibbles, [0; 64], "{}", set.name);
    }
}

#[test]
fn the_choice_is_the_best_set_or_the_one_asked_for() {
    let sets = supported();
    let best = sets[sets.len() - 1].name;
    for set in &sets {
        assert_eq!(super::choose(&sets, Some(set.name)).name, set.name);
    }
    assert_eq!(super::choose(&sets, None).name, best);
    assert_eq!(super::choose(&sets, Some("abacus")).name, best);
}
