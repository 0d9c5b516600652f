//! Parts of columns in a selection: elements and slices of collections, and the times of cells.

use cql::ast::{ArgumentPart, Selector, Term, TimeFunction};
use cql::error::CqlError;
use query::resolve;
use schema::ColumnKind;
use value::CqlType;

use super::column_location::ColumnLocation;
use super::expression::{
    BracketTerms, CellTimeForm, CollectionOperand, ElementSelection, Expression, TimedCells,
    TimedPart,
};
use super::names::selector_excerpt;
use super::projection::{ExpressionBuilder, field_of};

/// A map or set with brackets after it.
struct BracketedCollection<'t> {
    /// The type of a map's keys or of a set's elements.
    key_type: &'t CqlType,
    /// The type of the value under one key.
    value_type: &'t CqlType,
    is_map: bool,
    /// The name of a bind marker in the brackets.
    place_name: String,
}

impl ExpressionBuilder<'_> {
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
        let elements = self.elements(of, text, &cql_type, &ArgumentPart::Element(key.clone()))?;
        Ok((Expression::Elements(elements), result_type))
    }

    /// Resolves `selector[from..to]`.
    ///
    /// # Errors
    /// As [`ExpressionBuilder::element`].
    pub(super) fn slice(
        &mut self,
        selector: &Selector,
        from: Option<&Term>,
        to: Option<&Term>,
    ) -> Result<(Expression, CqlType), CqlError> {
        let (of, cql_type) = self.bracketed_value(selector)?;
        let (from, to) = (from.cloned(), to.cloned());
        let part = ArgumentPart::Slice { from, to };
        let elements = self.elements(of, selector_excerpt(selector), &cql_type, &part)?;
        Ok((Expression::Elements(elements), cql_type))
    }

    /// The map or set before brackets, and its type. A column is not turned into a value, as its
    /// elements are stored separately.
    fn bracketed_value(
        &mut self,
        selector: &Selector,
    ) -> Result<(CollectionOperand, CqlType), CqlError> {
        if let Selector::Column(name) = selector {
            let column = resolve::column(self.table, name)?;
            self.column(column);
            return Ok((
                CollectionOperand::Column(ColumnLocation::of(column)),
                column.cql_type.clone(),
            ));
        }
        let (value, cql_type) = self.selector(selector)?;
        Ok((CollectionOperand::Value(Box::new(value)), cql_type))
    }

    fn elements(
        &mut self,
        of: CollectionOperand,
        text: String,
        cql_type: &CqlType,
        part: &ArgumentPart,
    ) -> Result<ElementSelection, CqlError> {
        let is_slice = matches!(part, ArgumentPart::Slice { .. });
        let BracketedCollection {
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
            ArgumentPart::Element(key) => BracketTerms::One(term(key)?),
            ArgumentPart::Slice { from, to } => BracketTerms::Slice(
                from.as_ref().map(&mut term).transpose()?,
                to.as_ref().map(&mut term).transpose()?,
            ),
            ArgumentPart::Whole | ArgumentPart::Field(_) | ArgumentPart::Nested { .. } => {
                BracketTerms::Slice(None, None)
            }
        };
        Ok(ElementSelection {
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
        part: &ArgumentPart,
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
            ArgumentPart::Field(field) => {
                let (definition, position) = field_of(cql_type, field, || name.to_owned())?;
                match is_multi_cell {
                    true => TimedPart::Field(position),
                    false => TimedPart::FrozenField(definition.clone(), position),
                }
            }
            ArgumentPart::Nested { timed, .. } => return self.cells(function, name, timed),
            ArgumentPart::Element(_) | ArgumentPart::Slice { .. } => {
                let of = CollectionOperand::Column(ColumnLocation::of(column));
                let name = column.name.clone();
                TimedPart::Elements(self.elements(of, name, &column.cql_type, part)?)
            }
            ArgumentPart::Whole if !is_multi_cell => TimedPart::Whole,
            ArgumentPart::Whole => match cql_type.user_type() {
                Some(definition) => TimedPart::Fields(definition.field_names.len()),
                None => TimedPart::AllElements,
            },
        };
        let form = match function {
            TimeFunction::MaxWriteTime => CellTimeForm::Newest,
            TimeFunction::WriteTime | TimeFunction::Ttl => part.form(is_multi_cell),
        };
        self.column(column);
        self.reads_times = true;
        Ok(TimedCells {
            place: ColumnLocation::of(column),
            part,
            form,
        })
    }
}

fn bracketed<'t>(
    name: &str,
    cql_type: &'t CqlType,
    is_slice: bool,
) -> Result<BracketedCollection<'t>, CqlError> {
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
    Ok(BracketedCollection {
        key_type,
        value_type,
        is_map,
        place_name,
    })
}
