//! Types, with the rules on which type may lie in which.

use value::{CqlType, MAX_VECTOR_DIMENSIONS};

use super::cursor::{Cursor, Parse, is_word};
use super::lexer::Kind;
use super::names::unquoted;
use crate::ast::TableName;
use crate::error::CqlError;

impl Cursor<'_> {
    /// Whether the current token can begin a type.
    pub(super) fn at_type(&self) -> bool {
        self.at_name() || is_word(&self.current(), "SET")
    }

    /// Parses a type that a column can have. Collections within it must be frozen: by the word
    /// `frozen`, or because they lie in something frozen.
    pub(super) fn cql_type(&mut self) -> Parse<CqlType> {
        self.nested(|cursor| cursor.type_here(false))
    }

    /// Parses a type. `inside_frozen` says whether something around it freezes it.
    fn type_here(&mut self, inside_frozen: bool) -> Parse<CqlType> {
        let token = self.current();
        if token.kind == Kind::String {
            return Err(CqlError::invalid(format!(
                "Unknown type {}: types given by a Java class name are not supported",
                token.text
            )));
        }
        if token.kind == Kind::QuotedName {
            return Err(unknown_type(&TableName {
                keyspace: None,
                name: unquoted(&token),
            }));
        }
        if is_word(&token, "SET") {
            // `set` is the only type whose name is a reserved word.
            self.take()?;
            return self.set(inside_frozen);
        }
        let name = self.qualified_name("a type")?;
        if name.keyspace.is_some() {
            return Err(unknown_type(&name));
        }
        if let Some(native) = native_type(&name.name) {
            return Ok(native);
        }
        match name.name.as_str() {
            "frozen" => self.frozen(),
            "list" => {
                let [element] = self.collection_parameters("list", inside_frozen)?;
                Ok(CqlType::List {
                    element: Box::new(element),
                    frozen: inside_frozen,
                })
            }
            "map" => {
                let [key, value] = self.collection_parameters("map", inside_frozen)?;
                no_durations(&key, "Durations are not allowed as map keys", || {
                    format!("map<{key}, {value}>")
                })?;
                Ok(CqlType::Map {
                    key: Box::new(key),
                    value: Box::new(value),
                    frozen: inside_frozen,
                })
            }
            "tuple" => {
                self.expect_symbol("<")?;
                let elements = self.separated(|cursor| cursor.inner_type(true))?;
                self.expect_symbol(">")?;
                for element in &elements {
                    no_counter(element, "tuples")?;
                }
                Ok(CqlType::Tuple(elements))
            }
            "vector" => self.vector(),
            _ => Err(unknown_type(&name)),
        }
    }

    /// Parses what follows the word `set`.
    fn set(&mut self, frozen: bool) -> Parse<CqlType> {
        let [element] = self.collection_parameters("set", frozen)?;
        no_durations(&element, "Durations are not allowed inside sets", || {
            format!("set<{element}>")
        })?;
        Ok(CqlType::Set {
            element: Box::new(element),
            frozen,
        })
    }

    fn inner_type(&mut self, inside_frozen: bool) -> Parse<CqlType> {
        self.nested(|cursor| cursor.type_here(inside_frozen))
    }

    fn frozen(&mut self) -> Parse<CqlType> {
        self.expect_symbol("<")?;
        let inner = self.inner_type(true)?;
        self.expect_symbol(">")?;
        match inner {
            CqlType::List { .. }
            | CqlType::Set { .. }
            | CqlType::Map { .. }
            | CqlType::Tuple(_)
            | CqlType::Vector { .. } => Ok(inner),
            other => Err(CqlError::invalid(format!(
                "frozen<> is only allowed on collections, tuples and vectors (got {other})"
            ))),
        }
    }

    /// Parses the `N` types in angle brackets after `kind`.
    fn collection_parameters<const N: usize>(
        &mut self,
        kind: &str,
        inside_frozen: bool,
    ) -> Parse<[CqlType; N]> {
        let mut parameters = Vec::with_capacity(N);
        self.expect_symbol("<")?;
        for position in 0..N {
            if position > 0 {
                self.expect_symbol(",")?;
            }
            let parameter = self.inner_type(inside_frozen)?;
            no_counter(&parameter, "collections")?;
            if parameter.is_multi_cell() {
                return Err(CqlError::invalid(format!(
                    "Non-frozen collections are not allowed inside collections: \
                     write frozen<{parameter}> inside the {kind}"
                )));
            }
            parameters.push(parameter);
        }
        self.expect_symbol(">")?;
        // Exactly N types were pushed, so this can't fail.
        parameters
            .try_into()
            .map_err(|_| CqlError::server("a collection type has lost its parameters"))
    }

    /// Parses what follows the word `vector`: `<element, n>`.
    fn vector(&mut self) -> Parse<CqlType> {
        self.expect_symbol("<")?;
        // A vector is always one cell, so its element needn't be frozen and keeps its type as
        // written.
        let element = self.inner_type(false)?;
        no_counter(&element, "vectors")?;
        self.expect_symbol(",")?;
        let negative = self.at_symbol("-");
        if negative {
            self.take()?;
        }
        let token = self.current();
        if token.kind != Kind::Integer {
            return Err(self.expected("the number of dimensions"));
        }
        self.take()?;
        self.expect_symbol(">")?;
        let zero = token.text.bytes().all(|digit| digit == b'0');
        if negative || zero {
            return Err(CqlError::invalid(
                "Vectors must have a dimension greater than 0",
            ));
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
        Ok(CqlType::Vector {
            element: Box::new(element),
            dimensions,
        })
    }
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

fn unknown_type(name: &TableName) -> CqlError {
    let keyspace = match &name.keyspace {
        Some(keyspace) => format!("{keyspace}."),
        None => String::new(),
    };
    CqlError::invalid(format!("Unknown type {keyspace}{}", name.name))
}

fn no_counter(element: &CqlType, place: &str) -> Parse<()> {
    if *element == CqlType::Counter {
        return Err(CqlError::invalid(format!(
            "Counters are not allowed inside {place}"
        )));
    }
    Ok(())
}

/// Refuses durations in the elements of a set or the keys of a map. These are kept sorted, and
/// durations have no order.
fn no_durations(element: &CqlType, message: &str, whole: impl FnOnce() -> String) -> Parse<()> {
    if element.holds_durations_even_in_vectors() {
        return Err(CqlError::invalid(format!("{message}: {}", whole())));
    }
    Ok(())
}
