//! Types in the metadata of a result: an `[option]` with the code of the type and its parameters.
//!
//! A type without a code is sent as code 0 (custom) with its marshal name. These types are vectors
//! and, as in Cassandra, durations in version 4. Version 5 has a code for durations.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use value::{CqlType, UserType};

use super::header::ProtocolVersion;
use super::marshal::{MAX_TYPE_DEPTH, marshal_name, parse_marshal_name};
use super::reader::{BodyReader, DecodeError};
use super::writer::BodyWriter;

const CUSTOM: u16 = 0x0000;
/// Since version 5.
const DURATION: u16 = 0x0015;
const LIST: u16 = 0x0020;
const MAP: u16 = 0x0021;
const SET: u16 = 0x0022;
const USER_TYPE: u16 = 0x0030;
const TUPLE: u16 = 0x0031;

/// The codes of the types without parameters.
static SIMPLE: [(u16, CqlType); 19] = [
    (0x0001, CqlType::Ascii),
    (0x0002, CqlType::Bigint),
    (0x0003, CqlType::Blob),
    (0x0004, CqlType::Boolean),
    (0x0005, CqlType::Counter),
    (0x0006, CqlType::Decimal),
    (0x0007, CqlType::Double),
    (0x0008, CqlType::Float),
    (0x0009, CqlType::Int),
    (0x000B, CqlType::Timestamp),
    (0x000C, CqlType::Uuid),
    (0x000D, CqlType::Text),
    (0x000E, CqlType::Varint),
    (0x000F, CqlType::Timeuuid),
    (0x0010, CqlType::Inet),
    (0x0011, CqlType::Date),
    (0x0012, CqlType::Time),
    (0x0013, CqlType::Smallint),
    (0x0014, CqlType::Tinyint),
];

/// The code of a type without parameters; 0, custom, for any other type and for durations.
pub fn type_code(cql_type: &CqlType) -> u16 {
    let simple = SIMPLE.iter().find(|(_, known)| known == cql_type);
    simple.map_or(CUSTOM, |(code, _)| *code)
}

/// Appends a type.
pub(super) fn put_type(out: &mut BytesMut, cql_type: &CqlType, version: ProtocolVersion) {
    match cql_type {
        CqlType::Duration if version == ProtocolVersion::V5 => out.put_u16(DURATION),
        CqlType::List { element, .. } => {
            out.put_u16(LIST);
            put_type(out, element, version);
        }
        CqlType::Set { element, .. } => {
            out.put_u16(SET);
            put_type(out, element, version);
        }
        CqlType::Map { key, value, .. } => {
            out.put_u16(MAP);
            put_type(out, key, version);
            put_type(out, value, version);
        }
        CqlType::Tuple(elements) => {
            out.put_u16(TUPLE);
            out.put_short_count(elements.len());
            for element in elements {
                put_type(out, element, version);
            }
        }
        CqlType::UserType { definition, .. } => {
            out.put_u16(USER_TYPE);
            out.put_string(&definition.keyspace);
            out.put_string(&definition.name);
            out.put_short_count(definition.field_names.len());
            for (name, field_type) in definition.fields() {
                out.put_string(name);
                put_type(out, field_type, version);
            }
        }
        simple => {
            let code = type_code(simple);
            out.put_u16(code);
            if code == CUSTOM {
                out.put_string(&marshal_name(cql_type));
            }
        }
    }
}

/// Reads a type. The wire doesn't say whether a collection or user type is frozen. An inner one is
/// read as frozen, which it must be, and the outermost as not frozen.
///
/// # Errors
/// If the type is unknown or nests too deep.
pub(super) fn read_type(reader: &mut BodyReader) -> Result<CqlType, DecodeError> {
    read_nested_type(reader, 0)
}

fn read_nested_type(reader: &mut BodyReader, depth: usize) -> Result<CqlType, DecodeError> {
    const WHAT: &str = "a type";
    if depth > MAX_TYPE_DEPTH {
        return Err(DecodeError::Invalid(format!(
            "a type nested more than {MAX_TYPE_DEPTH} deep"
        )));
    }
    let inner = |reader: &mut BodyReader| read_nested_type(reader, depth + 1);
    let frozen = depth > 0;
    match reader.u16(WHAT)? {
        CUSTOM => parse_marshal_name(&reader.string(WHAT)?),
        LIST => Ok(CqlType::List {
            element: Box::new(inner(reader)?),
            frozen,
        }),
        SET => Ok(CqlType::Set {
            element: Box::new(inner(reader)?),
            frozen,
        }),
        MAP => Ok(CqlType::Map {
            key: Box::new(inner(reader)?),
            value: Box::new(inner(reader)?),
            frozen,
        }),
        TUPLE => {
            let count = usize::from(reader.u16(WHAT)?);
            let mut elements = Vec::with_capacity(reader.capacity(count, 2));
            for _ in 0..count {
                elements.push(inner(reader)?);
            }
            Ok(CqlType::Tuple(elements))
        }
        USER_TYPE => {
            let (keyspace, name) = (reader.string(WHAT)?, reader.string(WHAT)?);
            let count = usize::from(reader.u16(WHAT)?);
            let mut field_names = Vec::with_capacity(reader.capacity(count, 4));
            let mut field_types = Vec::with_capacity(reader.capacity(count, 4));
            for _ in 0..count {
                field_names.push(reader.string(WHAT)?);
                field_types.push(inner(reader)?);
            }
            let definition = UserType {
                keyspace,
                name,
                field_names,
                field_types,
            };
            Ok(CqlType::UserType {
                definition: Arc::new(definition),
                frozen,
            })
        }
        DURATION => Ok(CqlType::Duration),
        code => SIMPLE
            .iter()
            .find(|(known, _)| *known == code)
            .map(|(_, cql_type)| cql_type.clone())
            .ok_or_else(|| DecodeError::Invalid(format!("unknown type code {code:#06x}"))),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const VERSIONS: [ProtocolVersion; 2] = [ProtocolVersion::V4, ProtocolVersion::V5];

    fn encoded(cql_type: &CqlType, version: ProtocolVersion) -> Bytes {
        let mut out = BytesMut::new();
        put_type(&mut out, cql_type, version);
        out.freeze()
    }

    #[test]
    fn every_simple_type_leads_back() {
        for ((code, cql_type), version) in SIMPLE.clone().into_iter().zip(VERSIONS.iter().cycle()) {
            let bytes = encoded(&cql_type, *version);
            assert_eq!(bytes, code.to_be_bytes().to_vec());
            assert_eq!(read_type(&mut BodyReader::new(bytes)), Ok(cql_type));
        }
    }

    #[test]
    fn vectors_are_custom_and_so_are_durations_in_version_4() {
        let vector = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: 3,
        };
        let name = "org.apache.cassandra.db.marshal.VectorType(org.apache.cassandra.db.marshal.FloatType , 3)";
        for version in VERSIONS {
            let bytes = encoded(&vector, version);
            assert_eq!(&bytes[..4], &[0, 0, 0, name.len() as u8]);
            assert_eq!(&bytes[4..], name.as_bytes());
            assert_eq!(read_type(&mut BodyReader::new(bytes)), Ok(vector.clone()));
        }
        let durations = VERSIONS.map(|version| encoded(&CqlType::Duration, version));
        assert_eq!(
            &durations[0][4..],
            b"org.apache.cassandra.db.marshal.DurationType"
        );
        assert_eq!(&durations[1][..], [0, 0x15]);
        for bytes in durations {
            assert_eq!(
                read_type(&mut BodyReader::new(bytes)),
                Ok(CqlType::Duration)
            );
        }
    }

    #[test]
    fn collections_nest() {
        let cql_type = CqlType::Map {
            key: Box::new(CqlType::Text),
            value: Box::new(CqlType::List {
                element: Box::new(CqlType::Tuple(vec![CqlType::Int, CqlType::Duration])),
                frozen: true,
            }),
            frozen: false,
        };
        for version in VERSIONS {
            let bytes = encoded(&cql_type, version);
            assert_eq!(
                &bytes[..12],
                &[0, 0x21, 0, 0x0D, 0, 0x20, 0, 0x31, 0, 2, 0, 9]
            );
            assert_eq!(read_type(&mut BodyReader::new(bytes)), Ok(cql_type.clone()));
        }
        assert_eq!(
            &encoded(&cql_type, ProtocolVersion::V5)[12..],
            &[0, 0x15],
            "the duration within"
        );
    }

    #[test]
    fn deep_nesting_and_unknown_codes_are_refused() {
        let deep = Bytes::from([0u8, 0x20].repeat(100_000));
        assert!(matches!(
            read_type(&mut BodyReader::new(deep)),
            Err(DecodeError::Invalid(_))
        ));
        let unknown = Bytes::from_static(&[0, 0x7F]);
        assert!(matches!(
            read_type(&mut BodyReader::new(unknown)),
            Err(DecodeError::Invalid(_))
        ));
    }
}
