//! Quantisation of floats to levels.

use crate::kernels::lanes::{I8_TOP, LANES, NIBBLE_BYTES, NIBBLES, U4_MIDDLE, U4_TOP, sum_lanes};

/// The level of a value; the lowest if it is NaN.
fn level(value: f32, factor: f32, middle: f32, bottom: f32, top: f32) -> f32 {
    let place = value * factor + middle;
    place.max(bottom).min(top).round_ties_even()
}

pub(super) fn max_abs(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |max, value| value.abs().max(max))
}

pub(super) fn quantize_i8(values: &[f32], factor: f32, out: &mut [i8]) -> i32 {
    assert_eq!(values.len(), out.len(), "one byte for each value");
    let mut sum = 0;
    for (&value, out) in values.iter().zip(out) {
        *out = level(value, factor, 0.0, -I8_TOP, I8_TOP) as i8;
        sum += i32::from(*out);
    }
    sum
}

pub(super) fn quantize_u4(values: &[f32], factor: f32, out: &mut [u8]) -> f32 {
    assert_eq!(values.len(), 2 * out.len(), "one nibble for each value");
    let (values, []) = values.as_chunks::<NIBBLES>() else {
        panic!("whole blocks of nibbles")
    };
    let mut lanes = [0.0; LANES];
    // Low nibbles are summed in the lower half of the lanes, high ones in the upper.
    let (low_lanes, high_lanes) = lanes.split_at_mut(LANES / 2);
    let nibble = |value: f32, lane: &mut f32| {
        let nibble = level(value, factor, U4_MIDDLE, 0.0, U4_TOP);
        *lane += value * (nibble - U4_MIDDLE);
        nibble as u8
    };
    for (values, out) in values.iter().zip(out.chunks_mut(NIBBLE_BYTES)) {
        let (low, high) = values.split_at(NIBBLE_BYTES);
        for (j, out) in out.iter_mut().enumerate() {
            let lane = j % (LANES / 2);
            *out =
                nibble(low[j], &mut low_lanes[lane]) | nibble(high[j], &mut high_lanes[lane]) << 4;
        }
    }
    sum_lanes(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_round_to_even_and_are_cut() {
        let mut bytes = [0; 8];
        let values = [0.5, 1.5, -2.5, 1e30, -1e30, 127.4, -127.4, f32::NAN];
        let sum = quantize_i8(&values, 1.0, &mut bytes);
        assert_eq!(bytes, [0, 2, -2, 127, -127, 127, -127, -127]);
        assert_eq!(sum, -127);
    }
}
