//! The part of a target that one relation gives: a key part or a bound.

use cql::ast::{Comparand, Operator, Relation, Term};
use cql::error::CqlError;
use query::bind::{
    PrepareContext, PreparedInList, PreparedTerm, prepare_in_list, prepare_row, prepare_term,
};
use schema::Column;
use value::CqlType;

use crate::modify::target::{EdgePlan, KeyPart, KeyValues};

/// The names of columns.
pub(super) fn names(columns: &[&Column]) -> Vec<String> {
    columns.iter().map(|column| column.name.clone()).collect()
}

/// The place that the right side of a relation gives values for: one column, or several columns
/// together as a tuple.
#[derive(Clone, Copy)]
pub(super) struct KeyColumnGroup<'a> {
    /// The columns, at least one.
    pub columns: &'a [&'a Column],
    /// Whether the columns are in parentheses. Then their values are, too, even for one column.
    pub is_tuple: bool,
}

impl KeyColumnGroup<'_> {
    fn term(&self, term: &Term, ctx: &mut PrepareContext) -> Result<PreparedTerm, CqlError> {
        match (self.columns, term) {
            ([column], _) if !self.is_tuple => {
                prepare_term(term, &column.cql_type, &column.name, ctx)
            }
            (columns, Term::Tuple(terms)) => {
                let columns: Vec<_> = columns
                    .iter()
                    .map(|column| (column.name.as_str(), &column.cql_type))
                    .collect();
                prepare_row(terms, &columns, ctx)
            }
            _ => prepare_term(term, &self.tuple_type(), &self.tuple_name(), ctx),
        }
    }

    fn in_list(
        &self,
        comparand: &Comparand,
        ctx: &mut PrepareContext,
    ) -> Result<PreparedInList, CqlError> {
        match (self.columns, comparand) {
            ([column], _) if !self.is_tuple => {
                prepare_in_list(comparand, &column.cql_type, &column.name, ctx)
            }
            (_, Comparand::List(terms)) => terms
                .iter()
                .map(|term| self.term(term, ctx))
                .collect::<Result<_, _>>()
                .map(PreparedInList::Terms),
            _ => {
                let name = self.tuple_name();
                prepare_in_list(comparand, &self.tuple_type(), &name, ctx)
            }
        }
    }

    fn tuple_type(&self) -> CqlType {
        let types = self.columns.iter().map(|column| column.cql_type.clone());
        CqlType::Tuple(types.collect())
    }

    fn tuple_name(&self) -> String {
        format!("({})", names(self.columns).join(","))
    }
}

/// Prepares the part of the key that an equality or an IN gives.
pub(super) fn equal_part(
    place: KeyColumnGroup<'_>,
    relation: &Relation,
    ctx: &mut PrepareContext,
) -> Result<KeyPart, CqlError> {
    let values = match (relation.operator, &relation.comparand) {
        (Operator::Eq, Comparand::Term(term)) => KeyValues::One(place.term(term, ctx)?),
        (Operator::In, comparand) => KeyValues::Many(place.in_list(comparand, ctx)?),
        _ => return Err(unsupported(place.columns, relation.operator)),
    };
    Ok(KeyPart {
        columns: names(place.columns),
        values,
        is_tuple: place.is_tuple,
    })
}

/// Prepares a bound.
pub(super) fn edge(
    place: KeyColumnGroup<'_>,
    relation: &Relation,
    ctx: &mut PrepareContext,
) -> Result<EdgePlan, CqlError> {
    let columns = place.columns;
    let Comparand::Term(term) = &relation.comparand else {
        return Err(unsupported(columns, relation.operator));
    };
    if matches!(columns, [column] if column.cql_type == CqlType::Duration) {
        return Err(CqlError::invalid(
            "Slice restrictions are not supported on duration columns",
        ));
    }
    Ok(EdgePlan {
        columns: names(columns),
        term: place.term(term, ctx)?,
        is_tuple: place.is_tuple,
        inclusive: matches!(relation.operator, Operator::LtEq | Operator::GtEq),
    })
}

/// Puts a part into an empty place. A place that has a part already is an error.
pub(super) fn put_once(place: &mut Option<KeyPart>, part: KeyPart) -> Result<(), CqlError> {
    if place.is_some() {
        return Err(more_than_one(&part.columns, operator_of(&part)));
    }
    *place = Some(part);
    Ok(())
}

/// The operator that the part was made of, `=` or `IN`.
pub(super) fn operator_of(part: &KeyPart) -> Operator {
    match part.values {
        KeyValues::One(_) => Operator::Eq,
        KeyValues::Many(_) => Operator::In,
    }
}

/// The error for columns that are restricted by more than an equality or IN.
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

/// The error for an operator that is not supported.
pub(super) fn unsupported(columns: &[&Column], operator: Operator) -> CqlError {
    CqlError::invalid(format!(
        "Unsupported \"{}\" relation on column {}",
        operator.as_str(),
        names(columns).join(", ")
    ))
}
