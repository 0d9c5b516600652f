//! Values: decoded, serialised, compared.
//!
//! A *serialised* value is the byte string of the native protocol (v4, section 6), without its
//! length. Storage keeps cells in this form, so most values are never decoded on their way.

use std::cmp::Ordering;
use std::net::IpAddr;

use bigdecimal::BigDecimal;
use bytes::Bytes;
use num_bigint::BigInt;
use uuid::Uuid;

use crate::types::CqlType;

/// A decoded, non-null value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Ascii(String),
    Bigint(i64),
    Blob(Bytes),
    Boolean(bool),
    Counter(i64),
    /// Days, with 1970-01-01 at 2^31.
    Date(u32),
    Decimal(BigDecimal),
    Double(f64),
    Duration {
        months: i32,
        days: i32,
        nanoseconds: i64,
    },
    Float(f32),
    Inet(IpAddr),
    Int(i32),
    Smallint(i16),
    Text(String),
    /// Nanoseconds since midnight.
    Time(i64),
    /// Milliseconds since the epoch.
    Timestamp(i64),
    Timeuuid(Uuid),
    Tinyint(i8),
    Uuid(Uuid),
    Varint(BigInt),
    List(Vec<Value>),
    /// Sorted by the element type, without repeats.
    Set(Vec<Value>),
    /// Sorted by key, without repeated keys.
    Map(Vec<(Value, Value)>),
    Tuple(Vec<Option<Value>>),
    /// A `vector<float, n>`.
    FloatVector(Vec<f32>),
    /// A vector of anything else.
    Vector(Vec<Value>),
}

/// Why bytes are no value of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub String);

impl Value {
    /// The serialised form of the value.
    pub fn serialize(&self) -> Bytes {
        todo!()
    }

    /// Reads a serialised value.
    ///
    /// # Errors
    /// If `bytes` is no value of `cql_type`, with a sentence naming both.
    pub fn deserialize(cql_type: &CqlType, bytes: &[u8]) -> Result<Value, ValueError> {
        let _ = (cql_type, bytes);
        todo!()
    }

    /// The value as CQL text, quoted where a literal needs quotes, as `DESCRIBE` and error
    /// messages print it.
    pub fn to_literal(&self) -> String {
        todo!()
    }
}

/// Checks that `bytes` is a serialised value of `cql_type` without decoding it into memory.
///
/// A `vector<float, n>` must have exactly n finite elements: NaN and infinity are refused here,
/// so that they can reach neither a table nor an index.
pub fn validate(cql_type: &CqlType, bytes: &[u8]) -> Result<(), ValueError> {
    let _ = (cql_type, bytes);
    todo!()
}

/// Orders two valid serialised values as the database does (numbers by value, text by bytes,
/// timeuuid by time then bytes, uuid by version then time or bytes).
pub fn compare(cql_type: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    let _ = (cql_type, a, b);
    todo!()
}

/// Reads a serialised collection (list, set) into its serialised elements.
pub fn split_elements(bytes: &[u8]) -> Result<Vec<Bytes>, ValueError> {
    let _ = bytes;
    todo!()
}

/// Reads a serialised map into its serialised entries.
pub fn split_entries(bytes: &[u8]) -> Result<Vec<(Bytes, Bytes)>, ValueError> {
    let _ = bytes;
    todo!()
}

/// Serialises a list or set from serialised elements (a set's already in order).
pub fn join_elements<'a>(elements: impl ExactSizeIterator<Item = &'a [u8]>) -> Bytes {
    let _ = elements.len();
    todo!()
}

/// Serialises a map from serialised entries, already in order of their keys.
pub fn join_entries<'a>(entries: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>) -> Bytes {
    let _ = entries.len();
    todo!()
}
