//! The driver's names of the types that a key column may have.

use scylla::frame::response::result::NativeType;
use value::CqlType;

/// Pairs of the same type: ours, and the driver's.
static PAIRS: [(CqlType, NativeType); 20] = [
    (CqlType::Ascii, NativeType::Ascii),
    (CqlType::Bigint, NativeType::BigInt),
    (CqlType::Blob, NativeType::Blob),
    (CqlType::Boolean, NativeType::Boolean),
    (CqlType::Counter, NativeType::Counter),
    (CqlType::Date, NativeType::Date),
    (CqlType::Decimal, NativeType::Decimal),
    (CqlType::Double, NativeType::Double),
    (CqlType::Duration, NativeType::Duration),
    (CqlType::Float, NativeType::Float),
    (CqlType::Inet, NativeType::Inet),
    (CqlType::Int, NativeType::Int),
    (CqlType::Smallint, NativeType::SmallInt),
    (CqlType::Text, NativeType::Text),
    (CqlType::Time, NativeType::Time),
    (CqlType::Timestamp, NativeType::Timestamp),
    (CqlType::Timeuuid, NativeType::Timeuuid),
    (CqlType::Tinyint, NativeType::TinyInt),
    (CqlType::Uuid, NativeType::Uuid),
    (CqlType::Varint, NativeType::Varint),
];

/// The type that the driver calls so; `None` if a later driver has more types.
pub(super) fn of_driver(native: &NativeType) -> Option<CqlType> {
    let pair = PAIRS.iter().find(|(_, known)| known == native);
    pair.map(|(ours, _)| ours.clone())
}

/// The type as the driver calls it; `None` for a type that has parameters.
pub(super) fn for_driver(cql_type: &CqlType) -> Option<NativeType> {
    let pair = PAIRS.iter().find(|(known, _)| known == cql_type);
    pair.map(|(_, native)| native.clone())
}
