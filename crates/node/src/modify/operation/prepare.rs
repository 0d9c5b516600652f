//! Preparation of operations from the assignments of UPDATE and INSERT and the targets of DELETE.

use cql::ast::{Assignment, DeleteTarget, Term};
use cql::error::CqlError;
use query::bind::{PrepareContext, prepare_term, term_text};
use query::resolve;
use schema::{Column, Table};
use value::{CqlType, UserType};

use super::{CollectionKind, ColumnAction, ColumnOperation, CounterDirection, is_key};

impl ColumnOperation {
    /// Prepares `column = term`, of UPDATE or INSERT.
    ///
    /// # Errors
    /// A term that does not fit the column.
    pub fn set(column: &Column, term: &Term, ctx: &mut PrepareContext) -> Result<Self, CqlError> {
        if column.cql_type == CqlType::Counter {
            return Err(CqlError::invalid(format!(
                "Cannot set the value of counter column {} (counters can only be \
                 incremented/decremented, not set)",
                column.name
            )));
        }
        let term = prepare_term(term, &column.cql_type, &column.name, ctx)?;
        let action = match CollectionKind::of(&column.cql_type) {
            Some(collection) if column.cql_type.is_multi_cell() => {
                ColumnAction::Replace(collection, term)
            }
            None if column.cql_type.is_multi_cell() => match column.cql_type.user_type() {
                Some(definition) => ColumnAction::ReplaceFields(definition.clone(), term),
                None => ColumnAction::Set(term),
            },
            _ => ColumnAction::Set(term),
        };
        Ok(ColumnOperation::new(column, action))
    }

    /// Prepares an assignment of UPDATE. The caller looks up `column`, and checks that it is not
    /// part of the primary key.
    ///
    /// # Errors
    /// Assignments that the column's type does not have, and terms that don't fit.
    pub fn assign(
        column: &Column,
        assignment: &Assignment,
        ctx: &mut PrepareContext,
    ) -> Result<Self, CqlError> {
        let action = match assignment {
            Assignment::Set { value, .. } => return ColumnOperation::set(column, value, ctx),
            Assignment::SetElement { key, value, .. } => set_element(column, key, value, ctx)?,
            Assignment::SetField { field, value, .. } => set_field(column, field, value, ctx)?,
            Assignment::Add { value, .. } if column.cql_type == CqlType::Counter => {
                count(column, CounterDirection::Plus, value, ctx)?
            }
            Assignment::Subtract { value, .. } if column.cql_type == CqlType::Counter => {
                count(column, CounterDirection::Minus, value, ctx)?
            }
            Assignment::Add { value, .. } => {
                let collection = multi_cell(column, "+", value)?;
                let term = prepare_term(value, &column.cql_type, &column.name, ctx)?;
                ColumnAction::Add(collection, term)
            }
            Assignment::Prepend { value, .. } => {
                let collection = multi_cell(column, "+", value)?;
                if collection != CollectionKind::List {
                    return Err(CqlError::invalid(format!(
                        "Invalid operation ({0} = ... + {0}) for non list column {0}",
                        column.name
                    )));
                }
                ColumnAction::Prepend(prepare_term(value, &column.cql_type, &column.name, ctx)?)
            }
            Assignment::Subtract { value, .. } => {
                let collection = multi_cell(column, "-", value)?;
                let removed = match &column.cql_type {
                    CqlType::Map { key, .. } => CqlType::Set {
                        element: key.clone(),
                        frozen: false,
                    },
                    other => other.clone(),
                };
                ColumnAction::Remove(
                    collection,
                    prepare_term(value, &removed, &column.name, ctx)?,
                )
            }
        };
        Ok(ColumnOperation::new(column, action))
    }

    /// Prepares a target of DELETE.
    ///
    /// # Errors
    /// Unknown columns and those of the primary key, elements of columns that have none, and terms
    /// that don't fit.
    pub fn delete(
        table: &Table,
        target: &DeleteTarget,
        ctx: &mut PrepareContext,
    ) -> Result<Self, CqlError> {
        let name = target.column();
        let column = resolve::column(table, name)?;
        if is_key(column) {
            return Err(CqlError::invalid(format!(
                "Invalid identifier {name} for deletion (should not be a PRIMARY KEY part)"
            )));
        }
        let action = match target {
            DeleteTarget::Column(_) => ColumnAction::Delete,
            DeleteTarget::Field { field, .. } => delete_field(column, field)?,
            DeleteTarget::Element { key, .. } => {
                let Some(collection) = CollectionKind::of(&column.cql_type) else {
                    return Err(CqlError::invalid(format!(
                        "Invalid deletion operation for non collection column {name}"
                    )));
                };
                if !column.cql_type.is_multi_cell() {
                    return Err(CqlError::invalid(format!(
                        "Invalid deletion operation for frozen collection column {name}"
                    )));
                }
                let (key_type, place) = path(column);
                ColumnAction::DeleteElement(collection, prepare_term(key, &key_type, &place, ctx)?)
            }
        };
        Ok(ColumnOperation::new(column, action))
    }
}

fn count(
    column: &Column,
    sign: CounterDirection,
    value: &Term,
    ctx: &mut PrepareContext,
) -> Result<ColumnAction, CqlError> {
    let term = prepare_term(value, &column.cql_type, &column.name, ctx)?;
    Ok(ColumnAction::Count { sign, term })
}

/// The kind of collection of a column whose elements can be changed one by one. Other columns are
/// an error.
fn multi_cell(column: &Column, sign: &str, value: &Term) -> Result<CollectionKind, CqlError> {
    let (name, value) = (&column.name, term_text(value));
    match CollectionKind::of(&column.cql_type) {
        None => Err(CqlError::invalid(format!(
            "Invalid operation ({name} = {name} {sign} {value}) for non counter column {name}"
        ))),
        Some(_) if !column.cql_type.is_multi_cell() => Err(CqlError::invalid(format!(
            "Invalid operation ({name} = {name} {sign} {value}) for frozen collection column {name}"
        ))),
        Some(collection) => Ok(collection),
    }
}

fn set_field(
    column: &Column,
    field: &str,
    value: &Term,
    ctx: &mut PrepareContext,
) -> Result<ColumnAction, CqlError> {
    let name = &column.name;
    let refused = |what: &str| {
        CqlError::invalid(format!(
            "Invalid operation ({name}.{field} = {}) for {what} column {name}",
            term_text(value)
        ))
    };
    let Some(definition) = column.cql_type.user_type() else {
        return Err(refused("non-UDT"));
    };
    if !column.cql_type.is_multi_cell() {
        return Err(refused("frozen UDT"));
    }
    let position = field_position(definition, name, field)?;
    let cql_type = &definition.field_types[position];
    let term = prepare_term(value, cql_type, &format!("{name}.{field}"), ctx)?;
    Ok(ColumnAction::SetField(position, term))
}

fn delete_field(column: &Column, field: &str) -> Result<ColumnAction, CqlError> {
    let name = &column.name;
    let Some(definition) = column.cql_type.user_type() else {
        return Err(CqlError::invalid(format!(
            "Invalid deletion operation for non-UDT column {name}"
        )));
    };
    if !column.cql_type.is_multi_cell() {
        return Err(CqlError::invalid(format!(
            "Frozen UDT column {name} does not support field deletions"
        )));
    }
    field_position(definition, name, field).map(ColumnAction::DeleteField)
}

fn field_position(definition: &UserType, column: &str, field: &str) -> Result<usize, CqlError> {
    definition.position(field).ok_or_else(|| {
        CqlError::invalid(format!(
            "UDT column {column} does not have a field named {field}"
        ))
    })
}

fn set_element(
    column: &Column,
    key: &Term,
    value: &Term,
    ctx: &mut PrepareContext,
) -> Result<ColumnAction, CqlError> {
    let name = &column.name;
    let refused = |what: String| {
        CqlError::invalid(format!(
            "Invalid operation ({name}[{}] = {}) for {what} column {name}",
            term_text(key),
            term_text(value)
        ))
    };
    let Some(collection) = CollectionKind::of(&column.cql_type) else {
        return Err(refused("non collection".to_owned()));
    };
    if !column.cql_type.is_multi_cell() {
        return Err(refused("frozen collection".to_owned()));
    }
    let value_type = match &column.cql_type {
        CqlType::List { element, .. } => element,
        CqlType::Map { value, .. } => value,
        _ => return Err(refused(collection.name().to_owned())),
    };
    let (key_type, place) = path(column);
    Ok(ColumnAction::SetElement {
        collection,
        key: prepare_term(key, &key_type, &place, ctx)?,
        value: prepare_term(value, value_type, &format!("value({name})"), ctx)?,
    })
}

/// The type of the term in the brackets after a collection, and the name of its place.
fn path(column: &Column) -> (CqlType, String) {
    match &column.cql_type {
        CqlType::Map { key, .. } => ((**key).clone(), format!("key({})", column.name)),
        CqlType::Set { element, .. } => ((**element).clone(), format!("value({})", column.name)),
        _ => (CqlType::Int, format!("idx({})", column.name)),
    }
}
