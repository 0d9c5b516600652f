//! Distances by the book: the kernels that score every answer.
//!
//! They add in `f64`, so that finite vectors have finite sums (a product of two `f32` fits), equal
//! vectors have distance 0, and the order of additions shows only far below `f32`'s precision.
//! Sums are kept in lanes, which the compiler turns into vector instructions.

/// Sums kept side by side; eight `f64` fill the widest vector register.
const LANES: usize = 8;

/// `a.b`
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    sum(a, b, |x, y| x * y)
}

/// `|a - b|^2`
pub(crate) fn squared_l2(a: &[f32], b: &[f32]) -> f64 {
    sum(a, b, |x, y| (x - y) * (x - y))
}

/// `|a|^2`
pub(crate) fn squared_norm(a: &[f32]) -> f64 {
    dot(a, a)
}

/// `1 - cos(a, b)`, in [0, 2]. `a_squared` is `|a|^2`; neither vector is zero.
pub(crate) fn cosine(a: &[f32], a_squared: f64, b: &[f32]) -> f64 {
    let lengths = (a_squared * squared_norm(b)).sqrt();
    // Rounding may carry the quotient of parallel vectors a little past 1.
    (1.0 - dot(a, b) / lengths).clamp(0.0, 2.0)
}

/// Differing bits.
pub(crate) fn hamming(a: &[u8], b: &[u8]) -> u32 {
    debug_assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum()
}

/// Adds `term` over the pairs of two vectors of one length.
#[inline]
fn sum(a: &[f32], b: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let (a_body, a_rest) = a.as_chunks::<LANES>();
    let (b_body, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [0.0f64; LANES];
    for (x, y) in a_body.iter().zip(b_body) {
        for lane in 0..LANES {
            lanes[lane] += term(f64::from(x[lane]), f64::from(y[lane]));
        }
    }
    let rest = a_rest
        .iter()
        .zip(b_rest)
        .map(|(&x, &y)| term(f64::from(x), f64::from(y)));
    lanes.into_iter().chain(rest).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pair() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
        (0usize..40).prop_flat_map(|n| {
            let vector = || proptest::collection::vec(-100.0f32..100.0, n);
            (vector(), vector())
        })
    }

    proptest! {
        #[test]
        fn lanes_add_what_a_plain_loop_adds((a, b) in pair()) {
            let mut dots = 0.0;
            let mut squares = 0.0;
            for i in 0..a.len() {
                let (x, y) = (f64::from(a[i]), f64::from(b[i]));
                dots += x * y;
                squares += (x - y) * (x - y);
            }
            prop_assert!((dot(&a, &b) - dots).abs() < 1e-6);
            prop_assert!((squared_l2(&a, &b) - squares).abs() < 1e-6);
        }

        #[test]
        fn a_vector_is_at_distance_zero_from_itself((a, _) in pair()) {
            prop_assume!(squared_norm(&a) > 0.0);
            prop_assert_eq!(squared_l2(&a, &a), 0.0);
            prop_assert!(cosine(&a, squared_norm(&a), &a) < 1e-12);
        }
    }

    #[test]
    fn cosine_of_opposite_vectors_is_two() {
        let (a, b) = ([0.1f32, 0.2, 0.7], [-0.3f32, -0.6, -2.1]);
        let d = cosine(&a, squared_norm(&a), &b);
        assert!((2.0 - d).abs() < 1e-6 && d <= 2.0);
    }

    #[test]
    fn the_largest_floats_do_not_overflow() {
        let (a, b) = ([f32::MAX; 64], [f32::MIN; 64]);
        assert!(dot(&a, &b).is_finite());
        assert!(squared_l2(&a, &b).is_finite());
        assert_eq!(cosine(&a, squared_norm(&a), &b), 2.0);
    }

    #[test]
    fn hamming_counts_bits() {
        assert_eq!(hamming(&[0b1010, 0xff], &[0b0110, 0x0f]), 2 + 4);
        assert_eq!(hamming(&[], &[]), 0);
    }
}
