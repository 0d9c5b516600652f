//! Preparation of relations: resolves their names, and fits their terms to the columns.

use cql::ast::{self, ComparisonSubject, Operator, Term};
use cql::error::CqlError;
use schema::Column;
use value::CqlType;
use value::predicate::ComparisonOperator;

use super::single_term::single_term;
use super::text::relation_text;
use super::{ColumnTest, PreparedRelation, RelationKind, token, tuple};
use crate::bind::{PrepareContext, PreparedInList, PreparedTerm, prepare_in_list, prepare_term};
use crate::functions::astra;
use crate::resolve::TableColumns;

/// Prepares a relation.
///
/// # Errors
/// Unknown columns, operators that are not supported, and terms that don't fit their columns.
pub fn prepare(
    table: TableColumns<'_>,
    relation: &ast::Relation,
    ctx: &mut PrepareContext,
) -> Result<PreparedRelation, CqlError> {
    let text = relation_text(relation);
    refuse_operator(relation.operator, &text)?;
    let kind = match &relation.subject {
        ComparisonSubject::Column(name) => {
            let column = table.column(name)?;
            RelationKind::Column {
                test: column_test(column, relation, ctx)?,
                column: column.clone(),
            }
        }
        ComparisonSubject::Element { column, key } => {
            entry(table.column(column)?, key, relation, ctx)?
        }
        ComparisonSubject::Field { column, field } => {
            table.column(column)?;
            return Err(CqlError::syntax(format!(
                "Unsupported restriction: {text}: a field ({column}.{field}) can't be restricted, \
                 only a whole column"
            )));
        }
        ComparisonSubject::Tuple(names) => tuple::prepare(table, names, relation, &text, ctx)?,
        ComparisonSubject::Token(names) => token::prepare(table, names, relation, ctx)?,
        ComparisonSubject::Function(call) => {
            return Err(astra::refused(&call.name).unwrap_or_else(|| {
                CqlError::syntax(format!(
                    "Unsupported restriction: {text}: function {} is not supported in WHERE",
                    call.name
                ))
            }));
        }
    };
    Ok(PreparedRelation {
        text,
        kind,
        indexes: Vec::new(),
    })
}

fn refuse_operator(operator: Operator, text: &str) -> Result<(), CqlError> {
    let message = match operator {
        Operator::NotEq | Operator::NotIn => {
            format!("Unsupported \"{}\" relation: {text}", operator.as_str())
        }
        Operator::IsNotNull => format!("Unsupported restriction: {text}"),
        _ => return Ok(()),
    };
    Err(CqlError::invalid(message))
}

fn column_test(
    column: &Column,
    relation: &ast::Relation,
    ctx: &mut PrepareContext,
) -> Result<ColumnTest, CqlError> {
    let (name, cql_type) = (column.name.as_str(), &column.cql_type);
    let operator = relation.operator;
    match operator {
        Operator::Contains | Operator::ContainsKey => {
            let (part, place) = contained_part(column, operator)?;
            let term = prepare_term(single_term(relation, name)?, &part, &place, ctx)?;
            return Ok(if operator == Operator::Contains {
                ColumnTest::Contains(term)
            } else {
                ColumnTest::ContainsKey(term)
            });
        }
        _ if cql_type.is_multi_cell() && cql_type.user_type().is_some() => {
            return Err(CqlError::invalid(format!(
                "Non-frozen UDT column '{name}' ({cql_type}) cannot be restricted by any relation"
            )));
        }
        _ if cql_type.is_multi_cell() => {
            return Err(CqlError::invalid(format!(
                "Collection column '{name}' ({cql_type}) cannot be restricted by a '{}' relation",
                operator.as_str()
            )));
        }
        _ => {}
    }
    match operator.comparison() {
        None if operator == Operator::Like => {
            if !matches!(cql_type, CqlType::Text | CqlType::Ascii) {
                return Err(CqlError::invalid(format!(
                    "LIKE is allowed only on string types, which {name} is not"
                )));
            }
            prepare_term(single_term(relation, name)?, cql_type, name, ctx).map(ColumnTest::Like)
        }
        None => prepare_in_list(&relation.comparand, cql_type, name, ctx).map(in_test),
        Some(comparison) => {
            if comparison != ComparisonOperator::Eq && cql_type.holds_durations() {
                let what = match cql_type {
                    CqlType::Duration => "duration columns",
                    CqlType::Tuple(_) => "tuples containing durations",
                    CqlType::UserType { .. } => "UDTs containing durations",
                    _ => "collections containing durations",
                };
                return Err(CqlError::invalid(format!(
                    "Slice restrictions are not supported on {what}"
                )));
            }
            let term = prepare_term(single_term(relation, name)?, cql_type, name, ctx)?;
            Ok(ColumnTest::Compare(comparison, term))
        }
    }
}

/// An IN of a list of one value is an equality in all that is allowed of it, as in Cassandra.
fn in_test(list: PreparedInList) -> ColumnTest {
    match list {
        PreparedInList::Terms(terms) => match <[PreparedTerm; 1]>::try_from(terms) {
            Ok([term]) => ColumnTest::Compare(ComparisonOperator::Eq, term),
            Err(terms) => ColumnTest::In(PreparedInList::Terms(terms)),
        },
        whole @ PreparedInList::Whole(_) => ColumnTest::In(whole),
    }
}

/// The type of the value after CONTAINS or CONTAINS KEY, and the name of its place.
fn contained_part(column: &Column, operator: Operator) -> Result<(CqlType, String), CqlError> {
    let name = &column.name;
    match (&column.cql_type, operator) {
        (CqlType::Map { key, .. }, Operator::ContainsKey) => {
            Ok(((**key).clone(), format!("key({name})")))
        }
        (_, Operator::ContainsKey) => Err(CqlError::invalid(format!(
            "Cannot use CONTAINS KEY on non-map column {name}"
        ))),
        (
            CqlType::List { element: part, .. }
            | CqlType::Set { element: part, .. }
            | CqlType::Map { value: part, .. },
            _,
        ) => Ok(((**part).clone(), format!("value({name})"))),
        _ => Err(CqlError::invalid(format!(
            "Cannot use CONTAINS on non-collection column {name}"
        ))),
    }
}

fn entry(
    column: &Column,
    key: &Term,
    relation: &ast::Relation,
    ctx: &mut PrepareContext,
) -> Result<RelationKind, CqlError> {
    let name = &column.name;
    let CqlType::Map {
        key: key_type,
        value: value_type,
        ..
    } = &column.cql_type
    else {
        return Err(CqlError::invalid(match column.cql_type {
            CqlType::List { .. } => format!(
                "Indexes on list entries ({name}[index] = value) are not currently supported."
            ),
            _ => format!("Column {name} cannot be used as a map"),
        }));
    };
    if !column.cql_type.is_multi_cell() {
        return Err(CqlError::invalid(format!(
            "Map-entry equality predicates on frozen map column {name} are not supported"
        )));
    }
    if relation.operator != Operator::Eq {
        return Err(CqlError::invalid(
            "Only EQ relations are supported on map entries",
        ));
    }
    Ok(RelationKind::Entry {
        key: prepare_term(key, key_type, &format!("key({name})"), ctx)?,
        value: prepare_term(
            single_term(relation, name)?,
            value_type,
            &format!("value({name})"),
            ctx,
        )?,
        column: column.clone(),
    })
}
