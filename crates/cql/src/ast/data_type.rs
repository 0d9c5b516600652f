//! Types as written in a statement, in which a user type is a name.
//!
//! A [`DataType`] becomes a [`CqlType`] once it is known what the names mean. The rules on which
//! type may be in which are checked then.

use std::fmt;
use std::sync::Arc;

use value::identifier::Identifier;
use value::{CqlType, UserType};

use super::TableName;
use crate::error::CqlError;

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub enum DataType {
    /// A type without parameters.
    Simple(CqlType),
    /// `list<element>`.
    List(Box<DataType>),
    /// `set<element>`.
    Set(Box<DataType>),
    /// `map<key, value>`.
    Map(Box<DataType>, Box<DataType>),
    /// `tuple<a, b>`.
    Tuple(Vec<DataType>),
    /// `vector<element, dimensions>`.
    Vector(Box<DataType>, u16),
    /// `frozen<type>`.
    Frozen(Box<DataType>),
    /// A user type, by its name.
    UserType(TableName),
}

/// Finds the user type of a name. It gives the error for a name that has none.
pub type UserTypes<'a> = dyn Fn(&TableName) -> Result<Arc<UserType>, CqlError> + 'a;

/// The user types where there are none: every name is unknown.
///
/// # Errors
/// Always.
pub fn no_user_types(name: &TableName) -> Result<Arc<UserType>, CqlError> {
    Err(unknown_type(name))
}

/// The error "Unknown type x".
pub fn unknown_type(name: &TableName) -> CqlError {
    let keyspace = match &name.keyspace {
        Some(keyspace) => format!("{keyspace}."),
        None => String::new(),
    };
    CqlError::invalid(format!("Unknown type {keyspace}{}", name.name))
}

/// Writes the type as CQL.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Simple(cql_type) => write!(f, "{cql_type}"),
            DataType::List(element) => write!(f, "list<{element}>"),
            DataType::Set(element) => write!(f, "set<{element}>"),
            DataType::Map(key, value) => write!(f, "map<{key}, {value}>"),
            DataType::Tuple(elements) => {
                f.write_str("tuple<")?;
                for (position, element) in elements.iter().enumerate() {
                    let separator = if position == 0 { "" } else { ", " };
                    write!(f, "{separator}{element}")?;
                }
                f.write_str(">")
            }
            DataType::Vector(element, dimensions) => write!(f, "vector<{element}, {dimensions}>"),
            DataType::Frozen(inner) => write!(f, "frozen<{inner}>"),
            DataType::UserType(name) => {
                if let Some(keyspace) = &name.keyspace {
                    write!(f, "{}.", Identifier(keyspace))?;
                }
                write!(f, "{}", Identifier(&name.name))
            }
        }
    }
}

impl DataType {
    /// The type that is meant. Collections and user types within another collection must be frozen:
    /// by the word `frozen`, or because they are in something frozen.
    ///
    /// # Errors
    /// An unknown user type, and a type that can't exist.
    pub fn resolve(&self, user_types: &UserTypes<'_>) -> Result<CqlType, CqlError> {
        self.resolve_within(user_types, false)
    }

    /// `is_frozen` says whether something around the type freezes it.
    fn resolve_within(
        &self,
        user_types: &UserTypes<'_>,
        is_frozen: bool,
    ) -> Result<CqlType, CqlError> {
        match self {
            DataType::Simple(cql_type) => Ok(cql_type.clone()),
            DataType::List(element) => Ok(CqlType::List {
                element: Box::new(element.parameter("list", user_types, is_frozen)?),
                frozen: is_frozen,
            }),
            DataType::Set(element) => {
                let element = element.parameter("set", user_types, is_frozen)?;
                no_durations(&element, "Durations are not allowed inside sets", || {
                    format!("set<{element}>")
                })?;
                Ok(CqlType::Set {
                    element: Box::new(element),
                    frozen: is_frozen,
                })
            }
            DataType::Map(key, value) => {
                let key = key.parameter("map", user_types, is_frozen)?;
                let value = value.parameter("map", user_types, is_frozen)?;
                no_durations(&key, "Durations are not allowed as map keys", || {
                    format!("map<{key}, {value}>")
                })?;
                Ok(CqlType::Map {
                    key: Box::new(key),
                    value: Box::new(value),
                    frozen: is_frozen,
                })
            }
            DataType::Tuple(elements) => {
                let elements = elements.iter();
                let elements = elements
                    .map(|element| element.resolve_within(user_types, true))
                    .collect::<Result<Vec<_>, _>>()?;
                for element in &elements {
                    no_counter(element, "tuples")?;
                }
                Ok(CqlType::Tuple(elements))
            }
            DataType::Vector(element, dimensions) => {
                // A vector is always one cell, so its element needn't be frozen and keeps its type
                // as written.
                let element = element.resolve_within(user_types, false)?;
                no_counter(&element, "vectors")?;
                Ok(CqlType::Vector {
                    element: Box::new(element),
                    dimensions: *dimensions,
                })
            }
            DataType::Frozen(inner) => match inner.resolve_within(user_types, true)? {
                inner @ (CqlType::List { .. }
                | CqlType::Set { .. }
                | CqlType::Map { .. }
                | CqlType::Tuple(_)
                | CqlType::UserType { .. }
                | CqlType::Vector { .. }) => Ok(inner),
                other => Err(CqlError::invalid(format!(
                    "frozen<> is only allowed on collections, tuples, vectors and user types (got \
                     {other})"
                ))),
            },
            DataType::UserType(name) => Ok(CqlType::UserType {
                definition: user_types(name)?,
                frozen: is_frozen,
            }),
        }
    }

    /// The type as a parameter of a collection, whose kind is `kind`.
    fn parameter(
        &self,
        kind: &str,
        user_types: &UserTypes<'_>,
        is_frozen: bool,
    ) -> Result<CqlType, CqlError> {
        let parameter = self.resolve_within(user_types, is_frozen)?;
        no_counter(&parameter, "collections")?;
        if parameter.is_multi_cell() {
            let what = match parameter {
                CqlType::UserType { .. } => "UDTs",
                _ => "collections",
            };
            return Err(CqlError::invalid(format!(
                "Non-frozen {what} are not allowed inside collections: write frozen<{parameter}> \
                 inside the {kind}"
            )));
        }
        Ok(parameter)
    }
}

fn no_counter(element: &CqlType, place: &str) -> Result<(), CqlError> {
    if *element == CqlType::Counter {
        return Err(CqlError::invalid(format!(
            "Counters are not allowed inside {place}"
        )));
    }
    Ok(())
}

/// Refuses durations in the elements of a set or the keys of a map. These are stored sorted, and
/// durations have no order.
fn no_durations(
    element: &CqlType,
    message: &str,
    whole: impl FnOnce() -> String,
) -> Result<(), CqlError> {
    if element.holds_durations_even_in_vectors() {
        return Err(CqlError::invalid(format!("{message}: {}", whole())));
    }
    Ok(())
}
