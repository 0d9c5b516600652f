//! The order of values.

use std::cmp::Ordering;

use crate::CqlType;
use crate::elements::{CollectionElements, MapEntries, TupleFields, VectorElements};
use crate::{ValueError, numeric};

/// Compares two serialised values in the order of the database: numbers by value, texts by bytes,
/// timeuuids by time and then bytes, uuids by version and then time or bytes.
///
/// An empty value comes before every other. Bytes that are no values of the type get some order,
/// without a panic.
pub fn compare(cql_type: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().cmp(&b.len());
    }
    match cql_type {
        // These compare by bytes: dates are unsigned, times are never negative, and durations have
        // no order of their own.
        CqlType::Ascii
        | CqlType::Blob
        | CqlType::Date
        | CqlType::Duration
        | CqlType::Inet
        | CqlType::Text
        | CqlType::Time => a.cmp(b),
        CqlType::Bigint | CqlType::Counter | CqlType::Timestamp => by(a, b, |a, b| {
            i64::from_be_bytes(a).cmp(&i64::from_be_bytes(b))
        }),
        CqlType::Int => by(a, b, |a, b| {
            i32::from_be_bytes(a).cmp(&i32::from_be_bytes(b))
        }),
        CqlType::Smallint => by(a, b, |a, b| {
            i16::from_be_bytes(a).cmp(&i16::from_be_bytes(b))
        }),
        CqlType::Tinyint => by(a, b, |[a], [b]: [u8; 1]| (a as i8).cmp(&(b as i8))),
        CqlType::Boolean => by(a, b, |[a], [b]: [u8; 1]| (a != 0).cmp(&(b != 0))),
        CqlType::Double => by(a, b, |a, b| {
            float(f64::from_be_bytes(a), f64::from_be_bytes(b))
        }),
        CqlType::Float => by(a, b, |a, b| {
            float(f32::from_be_bytes(a).into(), f32::from_be_bytes(b).into())
        }),
        CqlType::Timeuuid => by(a, b, timeuuid),
        CqlType::Uuid => by(a, b, uuid),
        CqlType::Varint => numeric::compare_varints(a, b),
        CqlType::Decimal => numeric::compare_decimals(a, b),
        CqlType::List { element, .. } => lists(
            element,
            CollectionElements::of_list(a),
            CollectionElements::of_list(b),
        )
        .unwrap_or_else(|_| a.cmp(b)),
        CqlType::Set { element, .. } => lists(
            element,
            CollectionElements::of_set(a),
            CollectionElements::of_set(b),
        )
        .unwrap_or_else(|_| a.cmp(b)),
        CqlType::Map { key, value, .. } => maps(key, value, a, b).unwrap_or_else(|_| a.cmp(b)),
        CqlType::Tuple(types) => tuples(types, a, b).unwrap_or_else(|_| a.cmp(b)),
        CqlType::UserType { definition, .. } => {
            tuples(&definition.field_types, a, b).unwrap_or_else(|_| a.cmp(b))
        }
        CqlType::Vector {
            element,
            dimensions,
        } => {
            let elements = |bytes| Ok(VectorElements::new(element, *dimensions, bytes));
            lists(element, elements(a), elements(b)).unwrap_or_else(|_| a.cmp(b))
        }
    }
}

/// Compares values of `N` bytes by `order`, and values of another length by their bytes.
fn by<const N: usize>(
    a: &[u8],
    b: &[u8],
    order: impl Fn([u8; N], [u8; N]) -> Ordering,
) -> Ordering {
    match (a.try_into(), b.try_into()) {
        (Ok(a), Ok(b)) => order(a, b),
        _ => a.cmp(b),
    }
}

/// Compares floats as Java does: negative zero comes before zero, and every NaN after infinity.
fn float(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.total_cmp(&b),
        (a_is_nan, b_is_nan) => a_is_nan.cmp(&b_is_nan),
    }
}

fn halves(uuid: [u8; 16]) -> (u64, u64) {
    let whole = u128::from_be_bytes(uuid);
    ((whole >> 64) as u64, whole as u64)
}

/// The upper half of a version 1 UUID, with the parts of its time from the highest to the lowest.
fn time_first(upper: u64) -> u64 {
    upper << 48 | (upper << 16 & 0xffff_0000_0000) | upper >> 32
}

/// Compares timeuuids by time, then by the bytes of clock sequence and node as signed numbers. The
/// signed bytes are an old mistake of Cassandra that data on disk depends on.
fn timeuuid(a: [u8; 16], b: [u8; 16]) -> Ordering {
    /// The sign bits of all bytes. With them flipped, an unsigned comparison compares signed bytes.
    const SIGN_BITS: u64 = 0x8080_8080_8080_8080;
    let ((a_upper, a_lower), (b_upper, b_lower)) = (halves(a), halves(b));
    time_first(a_upper)
        .cmp(&time_first(b_upper))
        .then((a_lower ^ SIGN_BITS).cmp(&(b_lower ^ SIGN_BITS)))
}

/// Compares UUIDs by version, then by time if the version is 1, then by bytes.
fn uuid(a: [u8; 16], b: [u8; 16]) -> Ordering {
    let version = |uuid: &[u8; 16]| uuid[6] >> 4;
    let ((a_upper, a_lower), (b_upper, b_lower)) = (halves(a), halves(b));
    version(&a).cmp(&version(&b)).then_with(|| {
        let upper = if version(&a) == 1 {
            time_first(a_upper).cmp(&time_first(b_upper))
        } else {
            a_upper.cmp(&b_upper)
        };
        upper.then(a_lower.cmp(&b_lower))
    })
}

/// Compares lists element by element, then by length.
fn lists<'a, I: Iterator<Item = Result<&'a [u8], ValueError>>>(
    element: &CqlType,
    a: Result<I, ValueError>,
    b: Result<I, ValueError>,
) -> Result<Ordering, ValueError> {
    let (mut a, mut b) = (a?, b?);
    loop {
        let order = match (a.next(), b.next()) {
            (Some(a), Some(b)) => compare(element, a?, b?),
            (a, b) => return Ok(a.is_some().cmp(&b.is_some())),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
}

/// Compares maps entry by entry, each by key and then by value, then by length.
fn maps(key: &CqlType, value: &CqlType, a: &[u8], b: &[u8]) -> Result<Ordering, ValueError> {
    let (mut a, mut b) = (MapEntries::new(a)?, MapEntries::new(b)?);
    loop {
        let order = match (a.next(), b.next()) {
            (Some(a), Some(b)) => {
                let ((a_key, a_value), (b_key, b_value)) = (a?, b?);
                compare(key, a_key, b_key).then_with(|| compare(value, a_value, b_value))
            }
            (a, b) => return Ok(a.is_some().cmp(&b.is_some())),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
}

/// Compares tuples field by field. Null comes before everything else, and a field that is left out
/// counts as null.
fn tuples(types: &[CqlType], a: &[u8], b: &[u8]) -> Result<Ordering, ValueError> {
    let (mut a, mut b) = (
        TupleFields::new(types.len(), a),
        TupleFields::new(types.len(), b),
    );
    for cql_type in types {
        let a = a.next().transpose()?.flatten();
        let b = b.next().transpose()?.flatten();
        let order = match (a, b) {
            (Some(a), Some(b)) => compare(cql_type, a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}
