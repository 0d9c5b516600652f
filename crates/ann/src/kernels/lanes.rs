//! The order of sums and the levels of codes, which all sets share so that they agree.

/// Number of lanes of a sum that is the same on every processor. Element `i` goes to lane
/// `i % LANES`.
pub(super) const LANES: usize = 32;

/// Number of dimensions in a block of nibbles.
pub(super) const NIBBLES: usize = 128;
/// Number of bytes of a block of nibbles.
pub(super) const NIBBLE_BYTES: usize = NIBBLES / 2;

/// The middle of the levels 0..=15.
pub(super) const U4_MIDDLE: f32 = 7.5;
/// The highest of the levels 0..=15.
pub(super) const U4_TOP: f32 = 15.0;
/// The highest level of signed bytes; the lowest is its negative.
pub(super) const I8_TOP: f32 = 127.0;

/// Adds the upper half of the lanes to the lower half, until one is left.
pub(super) fn sum_lanes<T: Copy + std::ops::AddAssign, const N: usize>(mut lanes: [T; N]) -> T {
    let mut half = N / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        for (low, &high) in low.iter_mut().zip(&*high) {
            *low += high;
        }
        half /= 2;
    }
    lanes[0]
}

/// The last elements of a vector, filled up with zeros, which add nothing to any sum.
pub(super) fn padded<T: Copy + Default, const N: usize>(rest: &[T]) -> [T; N] {
    let mut chunk = [T::default(); N];
    chunk[..rest.len()].copy_from_slice(rest);
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_fold_by_halves() {
        assert_eq!(sum_lanes([1, 2, 3, 4, 5, 6, 7, 8]), 36);
        // In this order the large ones meet first, and the small one survives.
        assert_eq!(sum_lanes([1e30f32, 1.0, -1e30, 0.0]), 1.0);
    }
}
