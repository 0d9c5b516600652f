//! Types, as they are written.

use value::{CqlType, MAX_VECTOR_DIMENSIONS};

use super::cursor::{Parse, TokenCursor, is_word};
use super::lexer::TokenKind;
use crate::ast::data_type::{DataType, no_user_types};
use crate::error::CqlError;

impl TokenCursor<'_> {
    /// Whether the current token can begin a type.
    pub(super) fn at_type(&self) -> bool {
        self.at_name() || is_word(&self.current(), "SET")
    }

    /// Parses a type that is no user type and holds none.
    pub(super) fn cql_type(&mut self) -> Parse<CqlType> {
        self.data_type()?.resolve(&no_user_types)
    }

    /// Parses a type.
    pub(super) fn data_type(&mut self) -> Parse<DataType> {
        self.nested(Self::type_here)
    }

    fn type_here(&mut self) -> Parse<DataType> {
        let token = self.current();
        if token.kind == TokenKind::String {
            return Err(CqlError::invalid(format!(
                "Unknown type {}: types given by a Java class name are not supported",
                token.text
            )));
        }
        if is_word(&token, "SET") {
            // `set` is the only type whose name is a reserved word.
            self.take()?;
            let [element] = self.type_parameters()?;
            return Ok(DataType::Set(element));
        }
        let name = self.qualified_name("a type")?;
        if token.kind == TokenKind::QuotedName || name.keyspace.is_some() {
            return Ok(DataType::UserType(name));
        }
        if let Some(native) = native_type(&name.name) {
            return Ok(DataType::Simple(native));
        }
        match name.name.as_str() {
            "frozen" => self
                .type_parameters()
                .map(|[inner]| DataType::Frozen(inner)),
            "list" => self
                .type_parameters()
                .map(|[element]| DataType::List(element)),
            "map" => {
                let [key, value] = self.type_parameters()?;
                Ok(DataType::Map(key, value))
            }
            "tuple" => {
                self.expect_symbol("<")?;
                let elements = self.separated(Self::data_type)?;
                self.expect_symbol(">")?;
                Ok(DataType::Tuple(elements))
            }
            "vector" => self.vector(),
            _ => Ok(DataType::UserType(name)),
        }
    }

    /// Parses `N` types in angle brackets.
    fn type_parameters<const N: usize>(&mut self) -> Parse<[Box<DataType>; N]> {
        let mut parameters = Vec::with_capacity(N);
        self.expect_symbol("<")?;
        for position in 0..N {
            if position > 0 {
                self.expect_symbol(",")?;
            }
            parameters.push(Box::new(self.data_type()?));
        }
        self.expect_symbol(">")?;
        // Exactly N types were pushed, so this can't fail.
        parameters
            .try_into()
            .map_err(|_| CqlError::server("a collection type has lost its parameters"))
    }

    /// Parses what follows the word `vector`: `<element, n>`.
    fn vector(&mut self) -> Parse<DataType> {
        self.expect_symbol("<")?;
        let element = Box::new(self.data_type()?);
        self.expect_symbol(",")?;
        let negative = self.at_symbol("-");
        if negative {
            self.take()?;
        }
        let token = self.current();
        if token.kind != TokenKind::Integer {
            return Err(self.expected("the number of dimensions"));
        }
        self.take()?;
        self.expect_symbol(">")?;
        let zero = token.text.bytes().all(|digit| digit == b'0');
        if negative || zero {
            let sign = if negative { "-" } else { "" };
            return Err(CqlError::invalid(format!(
                "Vectors must have a dimension greater than 0: vectors may only have positive dimensions; given {sign}{}",
                token.text
            )));
        }
        let dimensions = token
            .text
            .parse::<u16>()
            .ok()
            .filter(|dimensions| *dimensions <= MAX_VECTOR_DIMENSIONS)
            .ok_or_else(|| {
                CqlError::invalid(format!(
                    "Vectors must have a dimension less than or equal to {MAX_VECTOR_DIMENSIONS}"
                ))
            })?;
        Ok(DataType::Vector(element, dimensions))
    }
}

/// Whether a word is the name of one of CQL's own types, so that no user type can have it.
pub fn is_type_name(name: &str) -> bool {
    matches!(name, "frozen" | "list" | "map" | "set" | "tuple" | "vector")
        || native_type(name).is_some()
}

fn native_type(name: &str) -> Option<CqlType> {
    Some(match name {
        "ascii" => CqlType::Ascii,
        "bigint" => CqlType::Bigint,
        "blob" => CqlType::Blob,
        "boolean" => CqlType::Boolean,
        "counter" => CqlType::Counter,
        "date" => CqlType::Date,
        "decimal" => CqlType::Decimal,
        "double" => CqlType::Double,
        "duration" => CqlType::Duration,
        "float" => CqlType::Float,
        "inet" => CqlType::Inet,
        "int" => CqlType::Int,
        "smallint" => CqlType::Smallint,
        "text" | "varchar" => CqlType::Text,
        "time" => CqlType::Time,
        "timestamp" => CqlType::Timestamp,
        "timeuuid" => CqlType::Timeuuid,
        "tinyint" => CqlType::Tinyint,
        "uuid" => CqlType::Uuid,
        "varint" => CqlType::Varint,
        _ => return None,
    })
}
