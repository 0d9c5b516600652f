//! Full vectors.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{
    Codes, assert_near, element, float_bytes, products, run, scalar_and_others, signed_byte,
    squares,
};
use crate::kernels::{Kernels, PairKernel, half, supported};

/// Two vectors of one length, at any alignment to the width of a register.
fn pair<T: std::fmt::Debug>(
    right: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = (Vec<f32>, Vec<T>)> {
    (0..300usize).prop_flat_map(move |n| (vec(element(), n), vec(right.clone(), n)))
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
