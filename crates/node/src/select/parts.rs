//! Parts of columns in a selection: elements and slices of collections, and the times of cells.

use cql::ast::{Part, Term, TimeFunction};
use cql::error::CqlError;
use query::resolve;
use schema::{Column, ColumnKind};
use value::CqlType;

use super::expression::{Brackets, Elements, Expression, Form, TimedCells, TimedPart};
use super::place::Place;
use super::projection::{Builder, field_of};

/// A map or set behind which brackets stand.
struct Bracketed<'t> {
    /// The type of a map's keys or of a set's elements.
    key_type: &'t CqlType,
    /// The type of the value under one key.
    value_type: &'t CqlType,
    is_map: bool,
    /// The name of a bind marker in the brackets.
    place_name: String,
}

impl Builder<'_> {
    /// Resolves `column[key]`.
    ///
    /// # Errors
    /// Unknown columns, columns that are neither map nor set, and keys of another type.
    pub(super) fn element(
        &mut self,
        name: &str,
        key: &Term,
    ) -> Result<(Expression, CqlType), CqlError> {
        let column = resolve::column(self.table, name)?;
        let result_type = bracketed(column, false)?.value_type.clone();
        let elements = self.elements(column, &Part::Element(key.clone()))?;
        Ok((Expression::Elements(elements), result_type))
    }

    /// Resolves `column[from..to]`.
    ///
    /// # Errors
    /// As [`Builder::element`].
    pub(super) fn slice(
        &mut self,
        name: &str,
        from: Option<&Term>,
        to: Option<&Term>,
    ) -> Result<(Expression, CqlType), CqlError> {
        let column = resolve::column(self.table, name)?;
        let (from, to) = (from.cloned(), to.cloned());
        let elements = self.elements(column, &Part::Slice { from, to })?;
        Ok((Expression::Elements(elements), column.cql_type.clone()))
    }

    fn elements(&mut self, column: &Column, part: &Part) -> Result<Elements, CqlError> {
        let is_slice = matches!(part, Part::Slice { .. });
        let Bracketed {
            key_type,
            is_map,
            place_name,
            ..
        } = bracketed(column, is_slice)?;
        self.column(column);
        let mut term = |term: &Term| {
            let term = self.named_term(term, key_type, &place_name)?;
            Ok::<_, CqlError>(Box::new(term))
        };
        let brackets = match part {
            Part::Element(key) => Brackets::One(term(key)?),
            Part::Slice { from, to } => Brackets::Slice(
                from.as_ref().map(&mut term).transpose()?,
                to.as_ref().map(&mut term).transpose()?,
            ),
            Part::Whole | Part::Field(_) => Brackets::Slice(None, None),
        };
        Ok(Elements {
            column: column.name.clone(),
            place: Place::of(column),
            key_type: key_type.clone(),
            is_map,
            brackets,
        })
    }

    /// The cells of a column, or of a part of it, whose times a function tells.
    ///
    /// # Errors
    /// Unknown columns, columns of the primary key, and parts that the column doesn't have.
    pub(super) fn cells(
        &mut self,
        function: TimeFunction,
        name: &str,
        part: &Part,
    ) -> Result<TimedCells, CqlError> {
        let column = resolve::column(self.table, name)?;
        if matches!(
            column.kind,
            ColumnKind::PartitionKey { .. } | ColumnKind::Clustering { .. }
        ) {
            return Err(CqlError::invalid(format!(
                "Cannot use selection function {} on PRIMARY KEY part {name}",
                function.name()
            )));
        }
        let cql_type = &column.cql_type;
        let is_multi_cell = cql_type.is_multi_cell();
        let part = match part {
            Part::Field(field) => {
                let (definition, position) = field_of(cql_type, field, || name.to_owned())?;
                match is_multi_cell {
                    true => TimedPart::Field(position),
                    false => TimedPart::FrozenField(definition.clone(), position),
                }
            }
            Part::Element(_) | Part::Slice { .. } => {
                TimedPart::Elements(self.elements(column, part)?)
            }
            Part::Whole if !is_multi_cell => TimedPart::Whole,
            Part::Whole => match cql_type.user_type() {
                Some(definition) => TimedPart::Fields(definition.field_names.len()),
                None => TimedPart::AllElements,
            },
        };
        let form = match function {
            TimeFunction::MaxWriteTime => Form::Newest,
            TimeFunction::WriteTime | TimeFunction::Ttl => part.form(is_multi_cell),
        };
        self.column(column);
        self.reads_times = true;
        Ok(TimedCells {
            place: Place::of(column),
            part,
            form,
        })
    }
}

fn bracketed(column: &Column, is_slice: bool) -> Result<Bracketed<'_>, CqlError> {
    let name = &column.name;
    let (key_type, value_type, is_map, place_name) = match &column.cql_type {
        CqlType::Map { key, value, .. } => (key, value, true, format!("key({name})")),
        CqlType::Set { element, .. } => (element, element, false, format!("value({name})")),
        CqlType::List { .. } => {
            let what = if is_slice { "Slice" } else { "Element" };
            return Err(CqlError::invalid(format!(
                "{what} selection is only allowed on sets and maps, but {name} is a list"
            )));
        }
        other => {
            return Err(CqlError::invalid(match is_slice {
                true => {
                    format!("Invalid slice selection: {name} of type {other} is not a collection")
                }
                false => format!(
                    "Invalid element selection: {name} is of type {other} is not a collection"
                ),
            }));
        }
    };
    Ok(Bracketed {
        key_type,
        value_type,
        is_map,
        place_name,
    })
}
