//! A component is one value of a key, as a byte string whose unsigned order is the order of the
//! values.
//!
//! No component is a prefix of another of its type. So components can be written one after the
//! other, and the encoding of the first columns of a key is a prefix of every key with these
//! values.
//!
//! ```text
//! component  01                          the empty value of a type other than text and blob
//!            02 payload
//! payload of
//!   ascii, blob, inet, text   each byte, with 00 written as 00 FF; then 00 00
//!   tinyint .. bigint, time,
//!   timestamp, counter        fixed length, big-endian, sign bit flipped
//!   date                      as serialised
//!   boolean                   00 or 01
//!   float, double             IEEE bits; all flipped if negative, else the sign bit; NaNs are one
//!   uuid                      version, then the time reordered (v1) or the first half, second half
//!   timeuuid                  time reordered, then the second half with the sign bit of each byte
//!                             flipped
//!   varint                    00 or 01 (negative or not), length in 2 bytes (flipped if negative),
//!                             the shortest two's complement
//!   decimal                   00, 01 or 02 (negative, zero, positive); but for zero: the exponent
//!                             e of 0.ddd * 10^e in 8 bytes with the sign bit flipped, the
//!                             digits in pairs plus one, 00; all of it flipped if negative
//!   list, set                 for each element: 02 component; then 01
//!   map                       for each entry: 02 key-component value-component; then 01
//!   tuple                     for each field of the type: 01 if null, else 02 component
//!   user type                 for each field up to the last that is not null: 01 if null, else
//!                             02 component; then 00. So a type can get further fields, which
//!                             are null in the components that were written before
//!   vector                    the components of its elements
//! ```
//!
//! Every bit of a component of a descending column is flipped. A component begins with 01, 02, FE
//! or FD, so [`AFTER_PREFIX`] after a prefix sorts after every key with that prefix.
//!
//! Values that are equal but differ in bytes (see crate [`value`]) have one encoding, and decoding
//! gives one of them. The bytes as they were given have to be stored elsewhere.

use bytes::Bytes;
use value::{CqlType, UserType, Value};

use super::bits::{ComponentReader, NotOfType, flip};
use super::number;

/// A byte that sorts after everything that can follow a prefix of components.
pub(crate) const AFTER_PREFIX: u8 = 0xff;

pub(super) const EMPTY: u8 = 1;
pub(super) const PRESENT: u8 = 2;
const END: u8 = 1;
const NEXT: u8 = 2;
const NULL: u8 = 1;
/// Sorts before a null, so that a field that is left out sorts before one that follows.
const LAST: u8 = 0;

const SIGN_BITS: u64 = 0x8080_8080_8080_8080;

/// Appends the component of a serialised value.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    cql_type: &CqlType,
    descending: bool,
    value: &[u8],
) -> Result<(), NotOfType> {
    let start = out.len();
    encode_ascending(out, cql_type, value)?;
    if descending {
        flip(&mut out[start..]);
    }
    Ok(())
}

/// Takes a component off the front of `input`; `None` if there is none.
pub(crate) fn decode(input: &mut &[u8], cql_type: &CqlType, descending: bool) -> Option<Bytes> {
    let mut reader = ComponentReader {
        rest: input,
        mask: if descending { 0xff } else { 0 },
    };
    let value = decode_component(&mut reader, cql_type)?;
    *input = reader.rest;
    Some(value)
}

/// Whether decoding may give other bytes than those that were encoded.
pub(crate) fn is_lossy(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::Boolean
        | CqlType::Decimal
        | CqlType::Double
        | CqlType::Float
        | CqlType::Tuple(_)
        | CqlType::UserType { .. }
        | CqlType::Varint => true,
        CqlType::List { element, .. }
        | CqlType::Set { element, .. }
        | CqlType::Vector { element, .. } => is_lossy(element),
        CqlType::Map { key, value, .. } => is_lossy(key) || is_lossy(value),
        _ => false,
    }
}

fn encode_ascending(out: &mut Vec<u8>, cql_type: &CqlType, value: &[u8]) -> Result<(), NotOfType> {
    let holds_empty = matches!(cql_type, CqlType::Ascii | CqlType::Blob | CqlType::Text);
    if value.is_empty() && !holds_empty {
        out.push(EMPTY);
        return Ok(());
    }
    out.push(PRESENT);
    match cql_type {
        CqlType::Ascii | CqlType::Blob | CqlType::Inet | CqlType::Text => {
            encode_escaped(out, value);
        }
        CqlType::Tinyint => fixed::<1>(out, value, true)?,
        CqlType::Smallint => fixed::<2>(out, value, true)?,
        CqlType::Int => fixed::<4>(out, value, true)?,
        CqlType::Bigint | CqlType::Counter | CqlType::Time | CqlType::Timestamp => {
            fixed::<8>(out, value, true)?;
        }
        CqlType::Date => fixed::<4>(out, value, false)?,
        CqlType::Boolean => match value {
            [byte] => out.push(u8::from(*byte != 0)),
            _ => return Err(NotOfType),
        },
        CqlType::Float => out.extend_from_slice(&ordered_float(value)?),
        CqlType::Double => out.extend_from_slice(&ordered_double(value)?),
        CqlType::Timeuuid => {
            let (upper, lower) = halves(value)?;
            out.extend_from_slice(&time_first(upper).to_be_bytes());
            out.extend_from_slice(&(lower ^ SIGN_BITS).to_be_bytes());
        }
        CqlType::Uuid => encode_uuid(out, value)?,
        CqlType::Varint => number::encode_varint(out, value)?,
        CqlType::Decimal => number::encode_decimal(out, value)?,
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            for item in value::split_elements(value).map_err(|_| NotOfType)? {
                out.push(NEXT);
                encode_ascending(out, element, &item)?;
            }
            out.push(END);
        }
        CqlType::Map {
            key: key_type,
            value: value_type,
            ..
        } => {
            for (key, item) in value::split_entries(value).map_err(|_| NotOfType)? {
                out.push(NEXT);
                encode_ascending(out, key_type, &key)?;
                encode_ascending(out, value_type, &item)?;
            }
            out.push(END);
        }
        CqlType::Tuple(types) => encode_tuple(out, types, value)?,
        CqlType::UserType { definition, .. } => encode_user_type(out, definition, value)?,
        CqlType::Vector { element, .. } => {
            for item in vector_elements(cql_type, element, value)? {
                encode_ascending(out, element, &item)?;
            }
        }
        // No key column may be of this type.
        CqlType::Duration => return Err(NotOfType),
    }
    Ok(())
}

/// The bits of a float, in an order in which unsigned numbers compare as floats do.
fn ordered_float(value: &[u8]) -> Result<[u8; 4], NotOfType> {
    let number = f32::from_be_bytes(value.try_into().map_err(|_| NotOfType)?);
    let bits = if number.is_nan() {
        f32::NAN.to_bits() & (u32::MAX >> 1)
    } else {
        number.to_bits()
    };
    let flipped = if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    };
    Ok(flipped.to_be_bytes())
}

/// The bits of a double, as [`ordered_float`] has those of a float.
fn ordered_double(value: &[u8]) -> Result<[u8; 8], NotOfType> {
    let number = f64::from_be_bytes(value.try_into().map_err(|_| NotOfType)?);
    let bits = if number.is_nan() {
        f64::NAN.to_bits() & (u64::MAX >> 1)
    } else {
        number.to_bits()
    };
    let flipped = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    Ok(flipped.to_be_bytes())
}

fn encode_uuid(out: &mut Vec<u8>, value: &[u8]) -> Result<(), NotOfType> {
    let (upper, lower) = halves(value)?;
    let version = (upper >> 12 & 0xf) as u8;
    out.push(version);
    let first = if version == 1 {
        time_first(upper)
    } else {
        upper
    };
    out.extend_from_slice(&first.to_be_bytes());
    out.extend_from_slice(&lower.to_be_bytes());
    Ok(())
}

fn encode_tuple(out: &mut Vec<u8>, types: &[CqlType], mut rest: &[u8]) -> Result<(), NotOfType> {
    for cql_type in types {
        let field = if rest.is_empty() {
            None
        } else {
            let (length, behind) = rest.split_first_chunk::<4>().ok_or(NotOfType)?;
            match usize::try_from(i32::from_be_bytes(*length)) {
                Ok(length) => {
                    let (field, behind) = behind.split_at_checked(length).ok_or(NotOfType)?;
                    rest = behind;
                    Some(field)
                }
                Err(_) => {
                    rest = behind;
                    None
                }
            }
        };
        match field {
            Some(field) => {
                out.push(NEXT);
                encode_ascending(out, cql_type, field)?;
            }
            None => out.push(NULL),
        }
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(NotOfType)
    }
}

fn encode_user_type(
    out: &mut Vec<u8>,
    definition: &UserType,
    value: &[u8],
) -> Result<(), NotOfType> {
    let fields = definition.split(value).map_err(|_| NotOfType)?;
    let last = fields.iter().rposition(Option::is_some);
    let fields = &fields[..last.map_or(0, |last| last + 1)];
    for (field, cql_type) in fields.iter().zip(&definition.field_types) {
        match field {
            Some(field) => {
                out.push(NEXT);
                encode_ascending(out, cql_type, field)?;
            }
            None => out.push(NULL),
        }
    }
    out.push(LAST);
    Ok(())
}

fn vector_elements(
    cql_type: &CqlType,
    element: &CqlType,
    value: &[u8],
) -> Result<Vec<Bytes>, NotOfType> {
    if let Some(length) = element.fixed_length() {
        return Ok(value.chunks(length).map(Bytes::copy_from_slice).collect());
    }
    match Value::deserialize(cql_type, value) {
        Ok(Value::Vector(elements)) => Ok(elements.iter().map(Value::serialize).collect()),
        _ => Err(NotOfType),
    }
}

/// Appends bytes with 00 escaped, and a terminator that sorts before every continuation.
pub(super) fn encode_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn fixed<const N: usize>(out: &mut Vec<u8>, value: &[u8], signed: bool) -> Result<(), NotOfType> {
    let mut bytes: [u8; N] = value.try_into().map_err(|_| NotOfType)?;
    if signed {
        bytes[0] ^= 0x80;
    }
    out.extend_from_slice(&bytes);
    Ok(())
}

fn halves(value: &[u8]) -> Result<(u64, u64), NotOfType> {
    let whole = u128::from_be_bytes(value.try_into().map_err(|_| NotOfType)?);
    Ok(((whole >> 64) as u64, whole as u64))
}

/// The first half of a version 1 UUID with its time in order: high, middle, low.
fn time_first(upper: u64) -> u64 {
    upper << 48 | (upper << 16 & 0xffff_0000_0000) | upper >> 32
}

fn time_last(ordered: u64) -> u64 {
    ordered << 32 | (ordered >> 16 & 0xffff_0000) | ordered >> 48
}

fn decode_component(reader: &mut ComponentReader<'_>, cql_type: &CqlType) -> Option<Bytes> {
    match reader.byte()? {
        EMPTY => return Some(Bytes::new()),
        PRESENT => {}
        _ => return None,
    }
    let signed = |mut bytes: Vec<u8>| {
        bytes[0] ^= 0x80;
        Bytes::from(bytes)
    };
    Some(match cql_type {
        CqlType::Ascii | CqlType::Blob | CqlType::Inet | CqlType::Text => reader.escaped()?,
        CqlType::Tinyint => signed(reader.bytes(1)?),
        CqlType::Smallint => signed(reader.bytes(2)?),
        CqlType::Int => signed(reader.bytes(4)?),
        CqlType::Bigint | CqlType::Counter | CqlType::Time | CqlType::Timestamp => {
            signed(reader.bytes(8)?)
        }
        CqlType::Date => reader.bytes(4)?.into(),
        CqlType::Boolean => reader.bytes(1)?.into(),
        CqlType::Float => {
            let bits = float_bits(u32::from_be_bytes(reader.array()?));
            Bytes::copy_from_slice(&bits.to_be_bytes())
        }
        CqlType::Double => {
            let bits = double_bits(u64::from_be_bytes(reader.array()?));
            Bytes::copy_from_slice(&bits.to_be_bytes())
        }
        CqlType::Timeuuid => {
            let upper = time_last(u64::from_be_bytes(reader.array()?));
            let lower = u64::from_be_bytes(reader.array()?) ^ SIGN_BITS;
            join_halves(upper, lower)
        }
        CqlType::Uuid => decode_uuid(reader)?,
        CqlType::Varint => number::decode_varint(reader)?,
        CqlType::Decimal => number::decode_decimal(reader)?,
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            let mut elements = Vec::new();
            while reader.byte()? == NEXT {
                elements.push(decode_component(reader, element)?);
            }
            value::join_elements(elements.iter().map(Bytes::as_ref))
        }
        CqlType::Map { key, value, .. } => {
            let mut entries = Vec::new();
            while reader.byte()? == NEXT {
                entries.push((
                    decode_component(reader, key)?,
                    decode_component(reader, value)?,
                ));
            }
            value::join_entries(entries.iter().map(|(key, value)| (&key[..], &value[..])))
        }
        CqlType::Tuple(types) => decode_tuple(reader, types)?,
        CqlType::UserType { definition, .. } => decode_user_type(reader, definition)?,
        CqlType::Vector {
            element,
            dimensions,
        } => decode_vector(reader, element, *dimensions)?,
        CqlType::Duration => return None,
    })
}

/// The bits of a float by those that [`ordered_float`] makes.
fn float_bits(ordered: u32) -> u32 {
    if ordered >> 31 == 1 {
        ordered & (u32::MAX >> 1)
    } else {
        !ordered
    }
}

/// The bits of a double by those that [`ordered_double`] makes.
fn double_bits(ordered: u64) -> u64 {
    if ordered >> 63 == 1 {
        ordered & (u64::MAX >> 1)
    } else {
        !ordered
    }
}

fn decode_uuid(reader: &mut ComponentReader<'_>) -> Option<Bytes> {
    let version = reader.byte()?;
    let first = u64::from_be_bytes(reader.array()?);
    let lower = u64::from_be_bytes(reader.array()?);
    let upper = match version {
        1 => time_last(first),
        _ => first,
    };
    Some(join_halves(upper, lower))
}

fn decode_user_type(reader: &mut ComponentReader<'_>, definition: &UserType) -> Option<Bytes> {
    let mut out = Vec::new();
    let mut fields = definition.field_types.iter();
    loop {
        match (reader.byte()?, fields.next()) {
            (NEXT, Some(cql_type)) => put_field(&mut out, &decode_component(reader, cql_type)?),
            (NULL, Some(_)) => put_null(&mut out),
            (LAST, _) => break,
            _ => return None,
        }
    }
    if out.is_empty() {
        // A value whose fields are all null is not an empty one.
        put_null(&mut out);
    }
    Some(out.into())
}

fn put_null(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1_i32).to_be_bytes());
}

fn put_field(out: &mut Vec<u8>, field: &[u8]) {
    out.extend_from_slice(&(field.len() as i32).to_be_bytes());
    out.extend_from_slice(field);
}

fn decode_tuple(reader: &mut ComponentReader<'_>, types: &[CqlType]) -> Option<Bytes> {
    let mut out = Vec::new();
    for cql_type in types {
        if reader.byte()? == NEXT {
            put_field(&mut out, &decode_component(reader, cql_type)?);
        } else {
            put_null(&mut out);
        }
    }
    Some(out.into())
}

fn decode_vector(
    reader: &mut ComponentReader<'_>,
    element: &CqlType,
    dimensions: u16,
) -> Option<Bytes> {
    let mut elements = Vec::with_capacity(usize::from(dimensions));
    for _ in 0..dimensions {
        elements.push(decode_component(reader, element)?);
    }
    if element.fixed_length().is_some() {
        return Some(elements.concat().into());
    }
    let values = elements
        .iter()
        .map(|item| Value::deserialize(element, item).ok())
        .collect::<Option<Vec<_>>>()?;
    Some(Value::Vector(values).serialize())
}

fn join_halves(upper: u64, lower: u64) -> Bytes {
    let whole = u128::from(upper) << 64 | u128::from(lower);
    Bytes::copy_from_slice(&whole.to_be_bytes())
}
