//! The marshal names of types: Cassandra's Java class names, which every driver parses.
//!
//! A type without a code in protocol v4 is sent under this name. The spelling is exactly
//! Cassandra's: the parameters of a type are separated by a bare comma, and the dimension of a
//! vector by a comma between two blanks. A frozen collection is wrapped in `FrozenType(...)`, but
//! not within another frozen type or a tuple, and within a vector only if it is declared frozen.

use std::sync::Arc;

use value::{CqlType, MAX_VECTOR_DIMENSIONS, UserType};

use super::reader::DecodeError;

/// The package of all classes.
const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// The deepest nesting of types that are read.
pub(super) const MAX_TYPE_DEPTH: usize = 32;

/// The classes of the types without parameters.
static SIMPLE: [(&str, CqlType); 20] = [
    ("AsciiType", CqlType::Ascii),
    ("LongType", CqlType::Bigint),
    ("BytesType", CqlType::Blob),
    ("BooleanType", CqlType::Boolean),
    ("CounterColumnType", CqlType::Counter),
    ("SimpleDateType", CqlType::Date),
    ("DecimalType", CqlType::Decimal),
    ("DoubleType", CqlType::Double),
    ("DurationType", CqlType::Duration),
    ("FloatType", CqlType::Float),
    ("InetAddressType", CqlType::Inet),
    ("Int32Type", CqlType::Int),
    ("ShortType", CqlType::Smallint),
    ("UTF8Type", CqlType::Text),
    ("TimeType", CqlType::Time),
    ("TimestampType", CqlType::Timestamp),
    ("TimeUUIDType", CqlType::Timeuuid),
    ("ByteType", CqlType::Tinyint),
    ("UUIDType", CqlType::Uuid),
    ("IntegerType", CqlType::Varint),
];

/// The marshal name of a type: `org.apache.cassandra.db.marshal.Int32Type`.
pub fn marshal_name(cql_type: &CqlType) -> String {
    let mut name = String::new();
    write_name(&mut name, cql_type, false);
    name
}

/// Appends the marshal name of a type. `frozen_already` says whether it is within something frozen;
/// then it isn't wrapped in `FrozenType` again.
fn write_name(name: &mut String, cql_type: &CqlType, frozen_already: bool) {
    let is_freezable = cql_type.is_collection() || cql_type.user_type().is_some();
    let wrapped = is_freezable && !cql_type.is_multi_cell() && !frozen_already;
    if wrapped {
        name.push_str(PACKAGE);
        name.push_str("FrozenType(");
    }
    name.push_str(PACKAGE);
    let within = frozen_already || wrapped;
    match cql_type {
        CqlType::List { element, .. } => {
            name.push_str("ListType");
            write_parameters(name, [element.as_ref()], within);
        }
        CqlType::Set { element, .. } => {
            name.push_str("SetType");
            write_parameters(name, [element.as_ref()], within);
        }
        CqlType::Map { key, value, .. } => {
            name.push_str("MapType");
            write_parameters(name, [key.as_ref(), value.as_ref()], within);
        }
        CqlType::Tuple(elements) => {
            name.push_str("TupleType");
            write_parameters(name, elements, true);
        }
        CqlType::UserType { definition, .. } => {
            name.push_str("UserType(");
            name.push_str(&definition.keyspace);
            name.push(',');
            push_hex(name, &definition.name);
            for (field, field_type) in definition.fields() {
                name.push(',');
                push_hex(name, field);
                name.push(':');
                write_name(name, field_type, within);
            }
            name.push(')');
        }
        CqlType::Vector {
            element,
            dimensions,
        } => {
            name.push_str("VectorType(");
            write_name(name, element, frozen_already);
            name.push_str(" , ");
            name.push_str(&dimensions.to_string());
            name.push(')');
        }
        simple => {
            let class = SIMPLE
                .iter()
                .find(|(_, known)| known == simple)
                .map(|(class, _)| *class);
            name.push_str(class.expect("bug: a type without a marshal class"));
        }
    }
    if wrapped {
        name.push(')');
    }
}

fn write_parameters<'a>(
    name: &mut String,
    parameters: impl IntoIterator<Item = &'a CqlType>,
    frozen_already: bool,
) {
    name.push('(');
    for (position, parameter) in parameters.into_iter().enumerate() {
        if position > 0 {
            name.push(',');
        }
        write_name(name, parameter, frozen_already);
    }
    name.push(')');
}

fn push_hex(name: &mut String, text: &str) {
    for byte in text.bytes() {
        let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
        name.push(digit(byte >> 4));
        name.push(digit(byte & 0xf));
    }
}

/// Reads a marshal name, with or without its package. Blanks may be around a comma.
///
/// # Errors
/// If the name is malformed, has an unknown class, or nests too deep.
pub fn parse_marshal_name(name: &str) -> Result<CqlType, DecodeError> {
    let mut parser = TypeClassParser {
        whole: name,
        rest: name,
    };
    let cql_type = parser.parse_type(0, false)?;
    if parser.rest.trim_start().is_empty() {
        Ok(cql_type)
    } else {
        Err(parser.error("ends after its type"))
    }
}

struct TypeClassParser<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl<'a> TypeClassParser<'a> {
    fn error(&self, why: &str) -> DecodeError {
        // Only the beginning of the name is shown, as it may be as long as a frame.
        let shown = &self.whole[..self.whole.floor_char_boundary(200)];
        let position = self.whole.len() - self.rest.len();
        DecodeError::Invalid(format!("type class '{shown}' {why} at byte {position}"))
    }

    fn parse_type(&mut self, depth: usize, frozen: bool) -> Result<CqlType, DecodeError> {
        if depth > MAX_TYPE_DEPTH {
            return Err(self.error("nests too deep"));
        }
        let class = self.word();
        let class = class.strip_prefix(PACKAGE).unwrap_or(class);
        match class {
            "FrozenType" | "ReversedType" => {
                self.expect('(')?;
                let inner = self.parse_type(depth + 1, frozen || class == "FrozenType")?;
                self.expect(')')?;
                Ok(inner)
            }
            "ListType" | "SetType" => {
                self.expect('(')?;
                let element = Box::new(self.parse_type(depth + 1, true)?);
                self.expect(')')?;
                Ok(match class {
                    "ListType" => CqlType::List { element, frozen },
                    _ => CqlType::Set { element, frozen },
                })
            }
            "MapType" => {
                self.expect('(')?;
                let key = Box::new(self.parse_type(depth + 1, true)?);
                self.expect(',')?;
                let value = Box::new(self.parse_type(depth + 1, true)?);
                self.expect(')')?;
                Ok(CqlType::Map { key, value, frozen })
            }
            "TupleType" => {
                self.expect('(')?;
                let mut elements = vec![self.parse_type(depth + 1, true)?];
                while self.expect(',').is_ok() {
                    elements.push(self.parse_type(depth + 1, true)?);
                }
                self.expect(')')?;
                Ok(CqlType::Tuple(elements))
            }
            "UserType" => self.user_type(depth, frozen),
            "VectorType" => {
                self.expect('(')?;
                let element = Box::new(self.parse_type(depth + 1, false)?);
                self.expect(',')?;
                let dimensions = self.word().parse().unwrap_or(0);
                if !(1..=MAX_VECTOR_DIMENSIONS).contains(&dimensions) {
                    return Err(self.error("has no valid vector dimension"));
                }
                self.expect(')')?;
                Ok(CqlType::Vector {
                    element,
                    dimensions,
                })
            }
            _ => SIMPLE
                .iter()
                .find(|(known, _)| *known == class)
                .map(|(_, cql_type)| cql_type.clone())
                .ok_or_else(|| self.error("has an unknown class")),
        }
    }

    /// Parses what follows `UserType`: the keyspace, then the name and the fields in hexadecimal
    /// digits.
    fn user_type(&mut self, depth: usize, frozen: bool) -> Result<CqlType, DecodeError> {
        self.expect('(')?;
        let keyspace = self.word().to_owned();
        self.expect(',')?;
        let name = self.hexadecimal()?;
        let (mut field_names, mut field_types) = (Vec::new(), Vec::new());
        while self.expect(',').is_ok() {
            field_names.push(self.hexadecimal()?);
            self.expect(':')?;
            field_types.push(self.parse_type(depth + 1, frozen)?);
        }
        self.expect(')')?;
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

    fn hexadecimal(&mut self) -> Result<String, DecodeError> {
        let (pairs, rest) = self.word().as_bytes().as_chunks::<2>();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let bytes = pairs
            .iter()
            .map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8))
            .collect::<Option<Vec<u8>>>();
        bytes
            .filter(|_| rest.is_empty())
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| self.error("has a name that is no text in hexadecimal digits"))
    }

    /// Takes the next class name or number, after any blanks. Empty if none comes here.
    fn word(&mut self) -> &'a str {
        let text = self.rest.trim_start();
        let end = text
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || c == '$'))
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        word
    }

    fn expect(&mut self, wanted: char) -> Result<(), DecodeError> {
        match self.rest.trim_start().strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.error(&format!("has no '{wanted}'"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(element: CqlType, frozen: bool) -> CqlType {
        CqlType::List {
            element: Box::new(element),
            frozen,
        }
    }

    fn short(cql_type: &CqlType) -> String {
        let name = marshal_name(cql_type);
        assert_eq!(parse_marshal_name(&name).as_ref(), Ok(cql_type));
        let short = name.replace(PACKAGE, "");
        assert_eq!(parse_marshal_name(&short).as_ref(), Ok(cql_type));
        short
    }

    #[test]
    fn names_are_spelled_as_cassandra_spells_them() {
        assert_eq!(
            marshal_name(&CqlType::Text),
            "org.apache.cassandra.db.marshal.UTF8Type"
        );
        for (class, cql_type) in SIMPLE.clone() {
            assert_eq!(short(&cql_type), class);
        }
        let vector = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: 1536,
        };
        assert_eq!(short(&vector), "VectorType(FloatType , 1536)");
        let of_lists = |frozen| CqlType::Vector {
            element: Box::new(list(CqlType::Int, frozen)),
            dimensions: 2,
        };
        assert_eq!(
            short(&of_lists(false)),
            "VectorType(ListType(Int32Type) , 2)"
        );
        assert_eq!(
            short(&of_lists(true)),
            "VectorType(FrozenType(ListType(Int32Type)) , 2)"
        );
        assert_eq!(short(&list(CqlType::Int, false)), "ListType(Int32Type)");
        assert_eq!(
            short(&list(CqlType::Int, true)),
            "FrozenType(ListType(Int32Type))"
        );
        assert_eq!(
            short(&list(list(CqlType::Int, true), false)),
            "ListType(FrozenType(ListType(Int32Type)))"
        );
        assert_eq!(
            short(&list(list(CqlType::Int, true), true)),
            "FrozenType(ListType(ListType(Int32Type)))"
        );
        assert_eq!(
            short(&CqlType::Tuple(vec![
                CqlType::Text,
                list(CqlType::Int, true)
            ])),
            "TupleType(UTF8Type,ListType(Int32Type))"
        );
        let user_type = |frozen| CqlType::UserType {
            definition: Arc::new(UserType {
                keyspace: "k".to_owned(),
                name: "ab".to_owned(),
                field_names: vec!["x".to_owned(), "é".to_owned()],
                field_types: vec![CqlType::Int, list(CqlType::Int, frozen)],
            }),
            frozen,
        };
        assert_eq!(
            short(&user_type(false)),
            "UserType(k,6162,78:Int32Type,c3a9:ListType(Int32Type))"
        );
        assert_eq!(
            short(&user_type(true)),
            "FrozenType(UserType(k,6162,78:Int32Type,c3a9:ListType(Int32Type)))"
        );
        assert_eq!(
            short(&CqlType::Map {
                key: Box::new(CqlType::Uuid),
                value: Box::new(vector),
                frozen: false
            }),
            "MapType(UUIDType,VectorType(FloatType , 1536))"
        );
    }

    #[test]
    fn blanks_do_not_matter_but_nonsense_is_refused() {
        for spelling in ["VectorType(FloatType, 3)", "VectorType( FloatType ,3 )"] {
            assert_eq!(
                parse_marshal_name(spelling),
                Ok(CqlType::Vector {
                    element: Box::new(CqlType::Float),
                    dimensions: 3
                })
            );
        }
        for nonsense in [
            "",
            "(",
            "Float",
            "FloatType)",
            "UserType",
            "UserType(k)",
            "UserType(k,6g)",
            "UserType(k,616)",
            "UserType(k,61,62)",
            "UserType(k,61,ff:Int32Type)",
            "ListType",
            "ListType(",
            "ListType()",
            "MapType(UTF8Type)",
            "TupleType()",
            "VectorType(FloatType)",
            "VectorType(FloatType , 0)",
            "VectorType(FloatType , 16001)",
            "VectorType(FloatType , 99999999999999999999)",
            "VectorType(FloatType , 3) , 4",
            "org.apache.FloatType",
        ] {
            assert!(parse_marshal_name(nonsense).is_err(), "{nonsense}");
        }
        assert!(parse_marshal_name(&"ListType(".repeat(100_000)).is_err());
    }
}
