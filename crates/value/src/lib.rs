//! The one system of CQL's types and values: their bytes, their order, their text and their tokens.
//!
//! Every room that holds or shows a value uses this crate, so that a value means the same in a
//! statement, on disk, in a filter, in a key of the index service and in JSON. It knows no
//! statement, no frame and no table.
//!
//! A *serialised* value is the byte string of the native protocol (v4, section 6), without its
//! length. Storage keeps cells in this form, so most values are never decoded.
//!
//! Two serialised values can be equal to [`compare()`] and differ in bytes: decimals of different
//! scale (`1.0`, `1.00`), varints with superfluous leading bytes, true booleans other than 1, NaNs
//! of different payload, and tuples and user types that leave out trailing nulls. Partition keys
//! are equal by their bytes, clustering keys and everything else by [`compare()`].

#![warn(clippy::unwrap_used)]

mod calendar;
mod canonical;
mod collection;
mod compare;
mod deserialize;
mod duration;
mod elements;
mod from_json;
pub mod identifier;
mod json;
mod key_json;
mod like;
mod literal;
mod normal;
mod numeric;
pub mod predicate;
mod serialize;
mod shift;
mod text;
pub mod timeuuid;
pub mod token;
mod types;
mod user_type;
mod validate;
mod vint;
mod zones;

use std::net::IpAddr;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use bytes::Bytes;
use num_bigint::BigInt;
use uuid::Uuid;

pub use calendar::iso_timestamp;
pub use canonical::{canonical, canonical_values_or_nulls};
pub use collection::{
    join_elements, join_entries, join_vector, split_elements, split_entries,
    split_nullable_elements,
};
pub use compare::compare;
pub use duration::{NoDuration, parse_duration, resembles_duration};
pub use from_json::{from_json, json_column, json_fields};
pub use json::{json_string, json_text, put_json};
pub use key_json::{KeyError, KeyJson, from_key_json, to_key_json};
pub use like::LikePattern;
pub use literal::{Literal, from_literal};
pub use normal::clustering_form;
pub use shift::{shift_date, shift_timestamp};
pub use types::{CqlType, MAX_VECTOR_DIMENSIONS};
pub use user_type::{TOO_LARGE, UserType};
pub use validate::{finite_vector, validate};

/// The longest varint, and the longest unscaled part of a decimal, in bytes: about 39,000 digits.
///
/// Printing and comparing such numbers takes time that grows with the square of their length.
/// Without a limit one value could occupy a core for hours.
pub const MAX_NUMERIC_BYTES: usize = 16 * 1024;

/// The nanoseconds of a day. Every `time` is smaller.
const NANOSECONDS_PER_DAY: i64 = 86_400_000_000_000;

/// A decoded, non-null value.
#[expect(missing_docs, reason = "the variants are CQL's own names of its types")]
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Ascii(String),
    Bigint(i64),
    Blob(Bytes),
    Boolean(bool),
    Counter(i64),
    /// Days, with 1970-01-01 at 2^31.
    Date(u32),
    /// The scale fits an `i32`.
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
    /// Trailing fields that the serialised form leaves out are left out here too.
    Tuple(Vec<Option<Value>>),
    /// Trailing fields that the serialised form leaves out are left out here too.
    UserType {
        definition: Arc<UserType>,
        fields: Vec<Option<Value>>,
    },
    /// A `vector<float, n>`.
    FloatVector(Vec<f32>),
    /// A vector of anything else.
    Vector(Vec<Value>),
    /// A value of no bytes, which is neither null nor a number. It is a legacy of Thrift that the
    /// protocol still allows for bigint, boolean, counter, decimal, double, float, inet, int,
    /// timestamp, timeuuid, uuid and varint. It sorts before every other value.
    Empty,
}

/// The reason why bytes or a constant are no value of a type, as a text for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub String);

impl ValueError {
    fn new(message: impl Into<String>) -> Self {
        ValueError(message.into())
    }

    /// Adds the type around the element that this error is about.
    fn inside(self, outer: &CqlType) -> Self {
        ValueError(format!("in a {outer}: {}", self.0))
    }
}

impl Value {
    /// Serialises the value.
    ///
    /// # Panics
    /// If the scale of a decimal doesn't fit an `i32`, which no value read or parsed here has.
    pub fn serialize(&self) -> Bytes {
        serialize::serialize(self)
    }

    /// Reads a serialised value. Sets and maps come out in order even if `bytes` holds them out
    /// of order, as a client may send them.
    ///
    /// # Errors
    /// If `bytes` is no value of `cql_type`, with a sentence naming both.
    pub fn deserialize(cql_type: &CqlType, bytes: &[u8]) -> Result<Value, ValueError> {
        deserialize::deserialize(cql_type, bytes)
    }

    /// Writes the value as CQL text, in quotes where a literal needs them. `DESCRIBE` and error
    /// messages print this text. [`Value::Empty`] becomes `''`.
    pub fn to_literal(&self) -> String {
        text::to_literal(self)
    }
}
