//! Walk codes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{
    Codes, assert_near, byte, element, float_bytes, products, run, scalar_and_others, signed_byte,
    squares,
};
use crate::kernels::supported;

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

/// A query of floats and up to nine codes for it.
fn float_hop() -> impl Strategy<Value = (Vec<f32>, Vec<Vec<f32>>)> {
    (0..9usize, 0..10usize).prop_flat_map(|(lines, codes)| {
        (
            vec(element(), 16 * lines),
            vec(vec(element(), 16 * lines), codes),
        )
    })
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
}

/// The largest sums that an index can need: of 16,000 dimensions, filled up to whole lines.
#[test]
fn extreme_codes_do_not_overflow() {
    const DIMENSIONS: usize = 16_384;
    let sums = [(0xff, -128), (0xff, 127), (0x00, -128)];
    for (byte, element) in sums {
        let query = [element; DIMENSIONS];
        let codes = |bytes| Codes::new(&[vec![byte; bytes], vec![0; bytes]]);
        let (nibbles, bytes) = (codes(DIMENSIONS / 2), codes(DIMENSIONS));
        let sum = DIMENSIONS as i32 * i32::from(element);
        for set in supported() {
            let expected = |level: u8| [sum * i32::from(level), 0];
            let nibble = byte & 0xf;
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
        }
    }
}
