//! Varints and decimals as components of a key, in the layout of [`super::component`].

use bytes::Bytes;
use num_bigint::{BigInt, Sign};

use super::bits::{ComponentReader, NotOfType, flip};

const NEGATIVE: u8 = 0;
const ZERO: u8 = 1;
const POSITIVE: u8 = 2;
const NOT_NEGATIVE: u8 = 1;

/// The most zeros that decoding appends to a decimal whose scale would not fit otherwise. No value
/// has more digits, so only keys that were tampered with need more.
const APPENDED_ZEROS_MAX: i64 = 1 << 16;

pub(super) fn encode_varint(out: &mut Vec<u8>, value: &[u8]) -> Result<(), NotOfType> {
    let shortest = shortest(value);
    let length = u16::try_from(shortest.len()).map_err(|_| NotOfType)?;
    if value[0] >> 7 == 1 {
        out.push(NEGATIVE);
        out.extend_from_slice(&(!length).to_be_bytes());
    } else {
        out.push(NOT_NEGATIVE);
        out.extend_from_slice(&length.to_be_bytes());
    }
    out.extend_from_slice(shortest);
    Ok(())
}

/// Two's complement without the leading bytes that only repeat the sign.
fn shortest(mut value: &[u8]) -> &[u8] {
    while let [first, second, ..] = value {
        let repeats = matches!((first, second >> 7), (0x00, 0) | (0xff, 1));
        if !repeats {
            break;
        }
        value = &value[1..];
    }
    value
}

pub(super) fn decode_varint(reader: &mut ComponentReader<'_>) -> Option<Bytes> {
    let sign = reader.byte()?;
    let length = u16::from_be_bytes(reader.array()?);
    let length = if sign == NEGATIVE { !length } else { length };
    reader.bytes(usize::from(length)).map(Bytes::from)
}

pub(super) fn encode_decimal(out: &mut Vec<u8>, value: &[u8]) -> Result<(), NotOfType> {
    let (scale, unscaled) = value.split_first_chunk::<4>().ok_or(NotOfType)?;
    let scale = i64::from(i32::from_be_bytes(*scale));
    let (sign, mut digits) = BigInt::from_signed_bytes_be(unscaled).to_radix_be(10);
    let class = match sign {
        Sign::NoSign => {
            out.push(ZERO);
            return Ok(());
        }
        Sign::Minus => NEGATIVE,
        Sign::Plus => POSITIVE,
    };
    let exponent = digits.len() as i64 - scale;
    while digits.last() == Some(&0) {
        digits.pop();
    }
    out.push(class);
    let start = out.len();
    out.extend_from_slice(&((exponent as u64) ^ 1 << 63).to_be_bytes());
    for pair in digits.chunks(2) {
        out.push(pair[0] * 10 + pair.get(1).unwrap_or(&0) + 1);
    }
    out.push(0);
    if class == NEGATIVE {
        flip(&mut out[start..]);
    }
    Ok(())
}

pub(super) fn decode_decimal(reader: &mut ComponentReader<'_>) -> Option<Bytes> {
    let sign = match reader.byte()? {
        ZERO => return Some(Bytes::from_static(&[0; 5])),
        NEGATIVE => Sign::Minus,
        POSITIVE => Sign::Plus,
        _ => return None,
    };
    let mask = reader.mask;
    if sign == Sign::Minus {
        reader.mask = !mask;
    }
    let decoded = decode_digits(reader);
    reader.mask = mask;
    let (exponent, mut digits) = decoded?;

    let mut scale = (digits.len() as i64).checked_sub(exponent)?;
    let missing = i64::from(i32::MIN).saturating_sub(scale).max(0);
    if missing > APPENDED_ZEROS_MAX {
        return None;
    }
    digits.resize(digits.len() + missing as usize, 0);
    scale += missing;
    let scale = i32::try_from(scale).ok()?;
    let unscaled = BigInt::from_radix_be(sign, &digits, 10)?;
    Some(
        [&scale.to_be_bytes()[..], &unscaled.to_signed_bytes_be()]
            .concat()
            .into(),
    )
}

/// The exponent and the digits without trailing zeros.
fn decode_digits(reader: &mut ComponentReader<'_>) -> Option<(i64, Vec<u8>)> {
    let exponent = (u64::from_be_bytes(reader.array()?) ^ 1 << 63) as i64;
    let mut digits = Vec::new();
    loop {
        match reader.byte()? {
            0 => break,
            pair @ 1..=100 => digits.extend_from_slice(&[(pair - 1) / 10, (pair - 1) % 10]),
            _ => return None,
        }
    }
    if digits.last() == Some(&0) {
        digits.pop();
    }
    Some((exponent, digits))
}
