//! Integers of variable length: "vint" in section 3 of native protocol v5. The number of leading
//! one bits of the first byte is the number of bytes that follow it. The other bits are the
//! integer, big-endian.

use bytes::BufMut;

/// Appends an unsigned vint, in the fewest bytes that hold it.
pub(crate) fn put_unsigned(out: &mut impl BufMut, value: u64) {
    let bits = 64 - (value | 1).leading_zeros();
    // Each byte holds 7 bits. The ninth holds 8.
    let extra = (bits.div_ceil(7) - 1).min(8);
    let marker = !(0xff_u16 >> extra) as u8;
    if extra == 8 {
        out.put_u8(marker);
        out.put_u64(value);
    } else {
        let bytes = value.to_be_bytes();
        let first = 7 - extra as usize;
        out.put_u8(marker | bytes[first]);
        out.put_slice(&bytes[first + 1..]);
    }
}

/// Appends a signed vint (zigzag, then unsigned).
pub(crate) fn put_signed(out: &mut impl BufMut, value: i64) {
    put_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Takes an unsigned vint off the front of `bytes`; `None` if it is cut short.
pub(crate) fn take_unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    let extra = first.leading_ones() as usize;
    let (body, rest) = rest.split_at_checked(extra)?;
    let high = u64::from(first & (0xff_u16 >> extra) as u8);
    *bytes = rest;
    Some(
        body.iter()
            .fold(high, |value, byte| value << 8 | u64::from(*byte)),
    )
}

/// Takes a signed vint off the front of `bytes`; `None` if it is cut short.
pub(crate) fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let raw = take_unsigned(bytes)?;
    Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unsigned(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_unsigned(&mut out, value);
        out
    }

    #[test]
    fn lengths_grow_by_seven_bits() {
        assert_eq!(unsigned(0), [0x00]);
        assert_eq!(unsigned(0x7f), [0x7f]);
        assert_eq!(unsigned(0x80), [0x80, 0x80]);
        assert_eq!(unsigned(256_000), [0xc3, 0xe8, 0x00]);
        assert_eq!(
            unsigned((1 << 56) - 1),
            [0xfe, 255, 255, 255, 255, 255, 255, 255]
        );
        assert_eq!(unsigned(1 << 56), [0xff, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(unsigned(u64::MAX), [0xff; 9]);
    }

    #[test]
    fn a_cut_integer_is_refused() {
        let whole = unsigned(300_000);
        assert_eq!(take_unsigned(&mut &whole[..2]), None);
        assert_eq!(take_unsigned(&mut &[][..]), None);
    }

    proptest! {
        #[test]
        fn put_integers_are_taken(value: i64, shift in 0..64_u32) {
            let value = value >> shift;
            let mut out = Vec::new();
            put_signed(&mut out, value);
            put_unsigned(&mut out, value as u64);
            let mut rest = &out[..];
            prop_assert_eq!(take_signed(&mut rest), Some(value));
            prop_assert_eq!(take_unsigned(&mut rest), Some(value as u64));
            prop_assert!(rest.is_empty());
        }
    }
}
