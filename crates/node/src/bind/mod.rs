//! Terms: the values of a statement, checked when it is prepared and evaluated when it runs.
//!
//! [`prepare_term`] checks a term against the type of the place where it stands, notes its bind
//! markers in a [`PrepareContext`], and folds what is constant into bytes.
//! [`PreparedTerm::evaluate`] puts the bound values in and calls the functions.

mod assign;
mod evaluate;
mod in_list;
mod prepare;
#[cfg(test)]
mod tests;
mod text;
mod timeout;

use bytes::Bytes;
use cql::ast;
use cql::error::CqlError;
use cql::types::CqlType;

pub use crate::clock::StatementClock;
pub use assign::{Assignability, assignability, natural_type, own_type, type_assignability};
pub use in_list::{PreparedInList, prepare_in_list};
pub use prepare::{prepare_row, prepare_term};
pub use timeout::Timeout;

use crate::query::ColumnSpec;

/// The value of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Serialised and valid for the term's type.
    Value(Bytes),
    /// Null, written or bound.
    Null,
    /// A bind marker was left unset.
    Unset,
}

/// What is collected while the terms of one statement are prepared.
#[derive(Clone, Debug)]
pub struct PrepareContext {
    /// The keyspace of the table.
    pub keyspace: String,
    /// The table that the markers are said to belong to.
    pub table: String,
    /// By the index of the marker; `None` until its term has been prepared.
    pub variables: Vec<Option<ColumnSpec>>,
}

impl PrepareContext {
    /// For a statement on a table, with as many bind markers as `Parsed::markers` has.
    pub fn new(keyspace: &str, table: &str, markers: usize) -> Self {
        PrepareContext {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            variables: vec![None; markers],
        }
    }

    /// Notes what a marker stands for; a named one keeps its own name.
    pub fn note(&mut self, marker: &ast::BindMarker, spec_name: &str, cql_type: &CqlType) {
        let spec = ColumnSpec {
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
            name: marker.name.clone().unwrap_or_else(|| spec_name.to_owned()),
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
    /// If a marker stands where no term was prepared: its type is not known.
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

/// A term that fits its place: checked against a type, with what is constant folded.
#[derive(Clone, Debug)]
pub struct PreparedTerm {
    /// The type of the place; what the term evaluates to is valid for it.
    pub cql_type: CqlType,
    /// The name of the place, for messages.
    name: String,
    node: prepare::Node,
}

impl PreparedTerm {
    /// The index of the bind marker that the term is, if it is just that.
    pub fn marker(&self) -> Option<u16> {
        match self.node {
            prepare::Node::Marker(index) => Some(index),
            _ => None,
        }
    }

    /// The value, if it is known before execution.
    pub fn constant(&self) -> Option<&Bound> {
        match &self.node {
            prepare::Node::Constant(bound) => Some(bound),
            _ => None,
        }
    }
}
