//! Parts of columns in a selection: elements and slices of collections, and the times of cells.

use cql::ast::{Part, Selector, Term, TimeFunction};
use cql::error::CqlError;
use query::resolve;
use schema::ColumnKind;
use value::CqlType;

use super::expression::{Brackets, Elements, Expression, Form, Of, TimedCells, TimedPart};
use super::names::selector_excerpt;
use super::place::Place;
use super::projection::{Builder, field_of};

/// A map or set with brackets after it.
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
    /// Resolves `selector[key]`.
    ///
    /// # Errors
    /// Selectors that fail, those of neither map nor set, and keys of another type.
    pub(super) fn element(
        &mut self,
        selector: &Selector,
        key: &Term,
    ) -> Result<(Expression, CqlType), CqlError> {
        let (of, cql_type) = self.bracketed_value(selector)?;
        let text = selector_excerpt(selector);
        let result_type = bracketed(&text, &cql_type, false)?.value_type.clone();
        let elements = self.elements(of, text, &cql_type, &Part::Element(key.clone()))?;
        Ok((Expression::Elements(elements), result_type))
    }

    /// Resolves `selector[from..to]`.
    ///
    /// # Errors
    /// As [`Builder::element`].
    pub(super) fn slice(
        &mut self,
        selector: &Selector,
        from: Option<&Term>,
        to: Option<&Term>,
    ) -> Result<(Expression, CqlType), CqlError> {
        let (of, cql_type) = self.bracketed_value(selector)?;
        let (from, to) = (from.cloned(), to.cloned());
        let part = Part::Slice { from, to };
        let elements = self.elements(of, selector_excerpt(selector), &cql_type, &part)?;
        Ok((Expression::Elements(elements), cql_type))
    }

    /// The map or set before brackets, and its type. A column is not turned into a value, as its
    /// elements are stored separately.
    fn bracketed_value(&mut self, selector: &Selector) -> Result<(Of, CqlType), CqlError> {
        if let Selector::Column(name) = selector {
            let column = resolve::column(self.table, name)?;
            self.column(column);
            return Ok((Of::Column(Place::of(column)), column.cql_type.clone()));
        }
        let (value, cql_type) = self.selector(selector)?;
        Ok((Of::Value(Box::new(value)), cql_type))
    }

    fn elements(
        &mut self,
        of: Of,
        text: String,
        cql_type: &CqlType,
        part: &Part,
    ) -> Result<Elements, CqlError> {
        let is_slice = matches!(part, Part::Slice { .. });
        let Bracketed {
            key_type,
            is_map,
            place_name,
            ..
        } = bracketed(&text, cql_type, is_slice)?;
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
            Part::Whole | Part::Field(_) | Part::Nested { .. } => Brackets::Slice(None, None),
        };
        Ok(Elements {
            text,
            of,
            key_type: key_type.clone(),
            is_map,
            brackets,
        })
    }

    /// The cells of a column, or of a part of it, whose times a function returns.
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
            Part::Nested { timed, .. } => return self.cells(function, name, timed),
            Part::Element(_) | Part::Slice { .. } => {
                let of = Of::Column(Place::of(column));
                let name = column.name.clone();
                TimedPart::Elements(self.elements(of, name, &column.cql_type, part)?)
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

fn bracketed<'t>(
    name: &str,
    cql_type: &'t CqlType,
    is_slice: bool,
) -> Result<Bracketed<'t>, CqlError> {
    let (key_type, value_type, is_map, place_name) = match cql_type {
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
