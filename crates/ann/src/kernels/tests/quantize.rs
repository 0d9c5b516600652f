//! Quantisation of floats to levels.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{element, scalar_and_others};
use crate::kernels::{Kernels, supported};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

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
            let mut nibbles = vec![0; blocks.len() / 2];
            let nibble_sum = (set.quantize_u4)(&blocks, factor, &mut nibbles);
            let max = (set.max_abs)(&values);
            let sums = (signed_sum, nibble_sum.to_bits(), max.to_bits());
            (signed, nibbles, sums)
        };
        let expected = quantised(scalar);
        for set in others {
            prop_assert_eq!(quantised(set), expected.clone(), "{}", set.name);
        }
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
        let mut nibbles = [1; 64];
        (set.quantize_u4)(&values, 1.0, &mut nibbles);
        assert_eq!(nibbles, [0; 64], "{}", set.name);
    }
}
