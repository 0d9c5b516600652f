//! Terms: the values of a statement. They are checked when the statement is prepared, and evaluated
//! when it is executed.
//!
//! [`prepare_term`] checks a term against the type of the place where it occurs, notes its bind
//! markers in a [`PrepareContext`], and evaluates constants to bytes. [`PreparedTerm::evaluate`]
//! puts the bound values in and calls the functions.

mod evaluate;
mod in_list;
mod prepare;
#[cfg(test)]
mod tests;
mod text;
mod timeout;
#[cfg(test)]
mod user_type_tests;

use std::sync::Arc;

use bytes::Bytes;
use cql::ast::data_type::no_user_types;
use cql::ast::{self, DataType};
use cql::error::CqlError;
use cql::wire::ColumnSpec;
pub use in_list::{PreparedInList, prepare_in_list};
pub use prepare::{prepare_row, prepare_term};
use schema::Keyspace;
pub use text::term_text;
pub use timeout::StatementTimeout;
use value::CqlType;

use crate::functions::TokenKey;
pub use crate::statement_clock::StatementClock;
use crate::user_types;

/// The value of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermValue {
    /// A value that is serialised and valid for the term's type.
    Value(Bytes),
    /// Null, written in the statement or bound to a marker.
    Null,
    /// The value of a bind marker that was left unset.
    Unset,
}

/// The bind markers of one statement, collected while its terms are prepared.
#[derive(Clone, Debug)]
pub struct PrepareContext {
    /// The keyspace that the specs of the markers name.
    pub keyspace: Arc<str>,
    /// The table that the specs of the markers name.
    pub table: Arc<str>,
    /// The key of the table, of which `token()` takes the values; `None` where there is none.
    pub key: Option<TokenKey>,
    /// The keyspace whose user types are known; `None` if it has none.
    pub types_of: Option<Arc<Keyspace>>,
    /// The specs of the markers, by index; `None` until the marker's term has been prepared.
    pub variables: Vec<Option<ColumnSpec>>,
}

impl PrepareContext {
    /// Makes a context for a statement on a table. `markers` is the number of its bind markers, as
    /// in `Parsed::markers`.
    pub fn new(keyspace: &str, table: &str, markers: usize) -> Self {
        PrepareContext {
            keyspace: keyspace.into(),
            table: table.into(),
            key: None,
            types_of: None,
            variables: vec![None; markers],
        }
    }

    /// The context with the key of the table.
    #[must_use]
    pub fn with_key(self, key: TokenKey) -> Self {
        PrepareContext {
            key: Some(key),
            ..self
        }
    }

    /// The context with the user types of a keyspace.
    #[must_use]
    pub fn with_types_of(self, keyspace: Option<&Arc<Keyspace>>) -> Self {
        PrepareContext {
            types_of: keyspace.cloned(),
            ..self
        }
    }

    /// The type that is meant by a type in the statement.
    ///
    /// # Errors
    /// As [`DataType::resolve`].
    pub fn type_of(&self, data_type: &DataType) -> Result<CqlType, CqlError> {
        data_type.resolve(&|name| match &self.types_of {
            Some(keyspace) => user_types::find(keyspace, name),
            None => no_user_types(name),
        })
    }

    /// Notes the type and the name of a marker's place. A named marker keeps its own name.
    pub fn note(&mut self, marker: &ast::BindMarker, spec_name: &str, cql_type: &CqlType) {
        let spec = ColumnSpec {
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
            name: marker.name.as_deref().unwrap_or(spec_name).into(),
            cql_type: cql_type.clone(),
        };
        let index = usize::from(marker.index);
        if index >= self.variables.len() {
            self.variables.resize(index + 1, None);
        }
        self.variables[index] = Some(spec);
    }

    /// The specs of all markers.
    ///
    /// # Errors
    /// If a marker occurs where no term was prepared, so that its type is not known.
    pub fn finish(self) -> Result<Vec<ColumnSpec>, CqlError> {
        self.variables
            .into_iter()
            .enumerate()
            .map(|(index, spec)| {
                spec.ok_or_else(|| {
                    CqlError::invalid(format!("Cannot infer type of bind marker {index}"))
                })
            })
            .collect()
    }
}

/// A term that has been checked against the type of its place. Constants are evaluated.
#[derive(Clone, Debug)]
pub struct PreparedTerm {
    /// The type of the place. The term's value is valid for it.
    pub cql_type: CqlType,
    /// The name of the place, for messages.
    name: String,
    node: prepare::TermNode,
}

impl PreparedTerm {
    /// The index of the bind marker; `None` if the term is not just a marker.
    pub fn marker(&self) -> Option<u16> {
        match self.node {
            prepare::TermNode::Marker(index) => Some(index),
            _ => None,
        }
    }

    /// The value; `None` if it is not known before execution.
    pub fn constant(&self) -> Option<&TermValue> {
        match &self.node {
            prepare::TermNode::Constant(bound) => Some(bound),
            _ => None,
        }
    }
}
