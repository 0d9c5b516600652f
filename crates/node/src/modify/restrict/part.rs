//! One relation: what it restricts its columns to.

use cql::ast::{Comparand, Operator, Relation};
use cql::error::CqlError;
use cql::types::CqlType;
use storage::catalog::Column;

use crate::bind::{PrepareContext, prepare_in_list, prepare_term};
use crate::modify::target::{EdgePlan, KeyPart, KeyValues};

pub(super) fn names(columns: &[&Column]) -> Vec<String> {
    columns.iter().map(|column| column.name.clone()).collect()
}

/// The type and the name of the place that the right side of a relation stands for.
fn place(columns: &[&Column]) -> (CqlType, String) {
    match columns {
        [column] => (column.cql_type.clone(), column.name.clone()),
        _ => (
            CqlType::Tuple(
                columns
                    .iter()
                    .map(|column| column.cql_type.clone())
                    .collect(),
            ),
            format!("({})", names(columns).join(", ")),
        ),
    }
}

pub(super) fn equal_part(
    columns: &[&Column],
    relation: &Relation,
    ctx: &mut PrepareContext,
) -> Result<KeyPart, CqlError> {
    let (cql_type, name) = place(columns);
    let values = match (relation.operator, &relation.comparand) {
        (Operator::Eq, Comparand::Term(term)) => {
            KeyValues::One(prepare_term(term, &cql_type, &name, ctx)?)
        }
        (Operator::In, comparand) => {
            KeyValues::Many(prepare_in_list(comparand, &cql_type, &name, ctx)?)
        }
        _ => return Err(unsupported(columns, relation.operator)),
    };
    Ok(KeyPart {
        columns: names(columns),
        values,
        is_tuple: columns.len() > 1,
    })
}

pub(super) fn edge(
    columns: &[&Column],
    relation: &Relation,
    ctx: &mut PrepareContext,
) -> Result<EdgePlan, CqlError> {
    let (cql_type, name) = place(columns);
    let Comparand::Term(term) = &relation.comparand else {
        return Err(unsupported(columns, relation.operator));
    };
    if cql_type == CqlType::Duration {
        return Err(CqlError::invalid(
            "Slice restrictions are not supported on duration columns",
        ));
    }
    Ok(EdgePlan {
        columns: names(columns),
        term: prepare_term(term, &cql_type, &name, ctx)?,
        inclusive: matches!(relation.operator, Operator::LtEq | Operator::GtEq),
    })
}

pub(super) fn put_once(place: &mut Option<KeyPart>, part: KeyPart) -> Result<(), CqlError> {
    if place.is_some() {
        return Err(more_than_one(&part.columns, operator_of(&part)));
    }
    *place = Some(part);
    Ok(())
}

pub(super) fn operator_of(part: &KeyPart) -> Operator {
    match part.values {
        KeyValues::One(_) => Operator::Eq,
        KeyValues::Many(_) => Operator::In,
    }
}

pub(super) fn more_than_one(columns: &[String], operator: Operator) -> CqlError {
    let what = match operator {
        Operator::In => "a IN",
        _ => "an Equal",
    };
    CqlError::invalid(format!(
        "{} cannot be restricted by more than one relation if it includes {what}",
        columns.join(", ")
    ))
}

pub(super) fn unsupported(columns: &[&Column], operator: Operator) -> CqlError {
    let sign = match operator {
        Operator::Eq => "=",
        Operator::NotEq => "!=",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        Operator::In => "IN",
        Operator::NotIn => "NOT IN",
        Operator::Contains => "CONTAINS",
        Operator::ContainsKey => "CONTAINS KEY",
        Operator::Like => "LIKE",
        Operator::IsNotNull => "IS NOT NULL",
    };
    CqlError::invalid(format!(
        "Unsupported \"{sign}\" relation on column {}",
        names(columns).join(", ")
    ))
}
