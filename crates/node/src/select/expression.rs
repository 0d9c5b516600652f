//! Expressions, which compute the selected values of a row.

mod composed;
mod elements;
mod times;

use std::cell::Cell;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
pub(super) use composed::{COMPOSED_BYTES_MAX, CompositeExpression, CompositeKind};
use cql::error::CqlError;
pub(super) use elements::{BracketTerms, CollectionOperand, ElementSelection};
use query::functions::{ScalarFunction, TypeCast};
use query::statement_clock::StatementClock;
use storage::read::Row;
pub(super) use times::{CellTimeForm, TimedCells, TimedPart};
use value::{
    CqlType, UserType,
    token::{Partitioner, routing_key},
};

use super::column_location::{ColumnLocation, ValueShape, put_bytes, put_null};

/// A selected value, not yet computed.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    Column {
        /// The place of the column.
        place: ColumnLocation,
        /// The form of the column's value.
        shape: ValueShape,
    },
    /// The write timestamps of cells.
    WriteTime(TimedCells),
    /// The time that cells have left to live.
    Ttl(TimedCells),
    /// The time of a cell, or null if a part deep within its value is null, or a slice without
    /// elements.
    IfPresent {
        part: Box<Expression>,
        is_slice: bool,
        time: Box<Expression>,
    },
    /// A term, by its position in [`super::projection::ResolvedSelection::terms`].
    Term(usize),
    /// A call of a scalar function.
    Function {
        function: ScalarFunction,
        arguments: Vec<Expression>,
    },
    /// `token(...)`: the hash of values of the partition key's columns.
    Token {
        partitioner: Partitioner,
        /// The values, one for each column of the partition key; empty for the row's own key.
        arguments: Vec<Expression>,
    },
    /// `CAST(argument AS type)`.
    Cast {
        cast: TypeCast,
        argument: Box<Expression>,
    },
    /// `map[key]`, `set[element]` or a slice of either.
    Elements(ElementSelection),
    /// `argument.field`, of a user type.
    Field {
        definition: Arc<UserType>,
        /// The position of the field.
        position: usize,
        argument: Box<Expression>,
    },
    /// A tuple, a collection, a vector or a value of a user type, put together of others.
    Composed(CompositeExpression),
    /// An aggregate, by its position in [`super::projection::ResolvedSelection::aggregates`].
    Aggregate(usize),
    /// A value that a search gives of the row, by its position in
    /// [`super::projection::ResolvedSelection::searches`].
    Hit(usize),
}

/// The content of a row of the answer.
#[derive(Clone, Debug)]
pub(super) enum OutputColumns {
    /// The values of its columns.
    Values(Vec<Expression>),
    /// One column, the text of a JSON object with these fields.
    Json(Vec<JsonField>),
}

/// A field of the JSON object that a row becomes.
#[derive(Clone, Debug)]
pub(super) struct JsonField {
    /// The name as JSON text.
    pub name: String,
    /// The type of the value.
    pub cql_type: CqlType,
    /// The value.
    pub value: Expression,
}

/// The inputs that an expression is computed from.
#[derive(Clone, Copy)]
pub(super) struct EvaluationContext<'a> {
    /// The row; `None` for aggregates over no row.
    pub row: Option<&'a Row>,
    /// The values of the projection's terms; `None` for null.
    pub terms: &'a [Option<Bytes>],
    /// The values of the projection's aggregates; `None` for null.
    pub aggregates: &'a [Option<Bytes>],
    /// The values that searches give of the row; `None` for null.
    pub hits: &'a [Option<Bytes>],
    /// The time at which the statement runs.
    pub clock: &'a StatementClock,
    /// The bytes that composed values of the row may still take.
    pub composed_bytes: &'a Cell<usize>,
}

impl Expression {
    /// Appends the length of the value in 4 bytes, big-endian, then the value; the length of null
    /// is -1.
    ///
    /// # Errors
    /// As [`Expression::evaluate`].
    pub(super) fn put(
        &self,
        scope: EvaluationContext<'_>,
        out: &mut BytesMut,
    ) -> Result<(), CqlError> {
        match (self, scope.row) {
            (Expression::Column { place, shape }, Some(row)) => place.content(row).put(*shape, out),
            (Expression::WriteTime(cells), Some(row)) if cells.is_whole() => {
                match cells.place.live_cell(row) {
                    Some(cell) => {
                        out.put_i32(8);
                        out.put_i64(cell.timestamp);
                    }
                    None => put_null(out),
                }
            }
            _ => match self.evaluate(scope)? {
                Some(value) => put_bytes(out, &value),
                None => put_null(out),
            },
        }
        Ok(())
    }

    /// The serialised value; `None` for null.
    ///
    /// # Errors
    /// If a function or a cast in the expression fails.
    pub(super) fn evaluate(&self, scope: EvaluationContext<'_>) -> Result<Option<Bytes>, CqlError> {
        match self {
            Expression::Column { place, shape } => Ok(scope
                .row
                .and_then(|row| place.content(row).to_bytes(*shape))),
            Expression::WriteTime(cells) => match scope.row {
                Some(row) => cells.written(row, scope),
                None => Ok(None),
            },
            Expression::Ttl(cells) => match scope.row {
                Some(row) => cells.left(row, scope, scope.clock),
                None => Ok(None),
            },
            Expression::IfPresent {
                part,
                is_slice,
                time,
            } => {
                // A collection begins with the number of its elements.
                let is_present = |value: &Bytes| !is_slice || !value.starts_with(&[0; 4]);
                match part.evaluate(scope)?.filter(is_present) {
                    Some(_) => time.evaluate(scope),
                    None => Ok(None),
                }
            }
            Expression::Term(position) => Ok(scope.terms[*position].clone()),
            Expression::Function {
                function,
                arguments,
            } => {
                let values = evaluate_all(arguments, scope)?;
                function.evaluate(&values, scope.clock)
            }
            Expression::Token {
                partitioner,
                arguments,
            } => token(*partitioner, arguments, scope),
            Expression::Cast { cast, argument } => match argument.evaluate(scope)? {
                Some(value) => cast.apply(&value),
                None => Ok(None),
            },
            Expression::Elements(elements) => elements.evaluate(scope),
            Expression::Field {
                definition,
                position,
                argument,
            } => Ok(argument.evaluate(scope)?.and_then(|value| {
                let field = definition.split(&value).ok()?[*position]?;
                Some(value.slice_ref(field))
            })),
            Expression::Composed(composed) => composed.evaluate(scope),
            Expression::Aggregate(position) => Ok(scope.aggregates[*position].clone()),
            Expression::Hit(position) => Ok(scope.hits.get(*position).cloned().flatten()),
        }
    }
}

fn evaluate_all(
    expressions: &[Expression],
    scope: EvaluationContext<'_>,
) -> Result<Vec<Option<Bytes>>, CqlError> {
    expressions
        .iter()
        .map(|expression| expression.evaluate(scope))
        .collect()
}

fn token(
    partitioner: Partitioner,
    arguments: &[Expression],
    scope: EvaluationContext<'_>,
) -> Result<Option<Bytes>, CqlError> {
    let token = if arguments.is_empty() {
        scope.row.map(|row| row.partition.token)
    } else {
        let values = evaluate_all(arguments, scope)?;
        let key: Option<Vec<Bytes>> = values.into_iter().collect();
        key.map(|key| partitioner.token(&routing_key(&key)))
    };
    Ok(token.map(|token| Bytes::copy_from_slice(&token.0.to_be_bytes())))
}
