//! The right side of `IN`.

use cql::ast::Comparand;
use cql::error::CqlError;
use cql::wire::BoundValue;
use value::{CqlType, split_elements};

use super::prepare::invalid_value;
use super::{PrepareContext, PreparedTerm, StatementClock, TermValue, prepare_term};

/// The values of an `IN`.
#[derive(Clone, Debug)]
pub enum PreparedInList {
    /// `IN ?`: one term, which is a list of all values.
    Whole(PreparedTerm),
    /// `IN (a, b)`: one term for each value.
    Terms(Vec<PreparedTerm>),
}

/// Prepares the right side of `name IN ...`, whose values are of type `cql_type`.
///
/// # Errors
/// As [`prepare_term`].
pub fn prepare_in_list(
    comparand: &Comparand,
    cql_type: &CqlType,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<PreparedInList, CqlError> {
    match comparand {
        Comparand::List(terms) => terms
            .iter()
            .map(|term| prepare_term(term, cql_type, name, ctx))
            .collect::<Result<_, _>>()
            .map(PreparedInList::Terms),
        Comparand::Term(term) => {
            let whole = CqlType::List {
                element: Box::new(cql_type.frozen()),
                frozen: false,
            };
            prepare_term(term, &whole, &format!("in({name})"), ctx).map(PreparedInList::Whole)
        }
        Comparand::None => Err(CqlError::invalid(format!("IN needs values for {name}"))),
    }
}

impl PreparedInList {
    /// The type of the values; that of null for an empty list, which has none.
    pub fn value_type(&self) -> CqlType {
        match self {
            PreparedInList::Terms(terms) => terms
                .first()
                .map_or(CqlType::Boolean, |term| term.cql_type.clone()),
            PreparedInList::Whole(term) => match &term.cql_type {
                CqlType::List { element, .. } => (**element).clone(),
                other => other.clone(),
            },
        }
    }

    /// The index of the bind marker of `IN ?`; `None` for `IN (a, b)`.
    pub fn marker(&self) -> Option<u16> {
        match self {
            PreparedInList::Whole(term) => term.marker(),
            PreparedInList::Terms(_) => None,
        }
    }

    /// The values as [`PreparedInList::evaluate`] gives them, where a list that is bound to `IN ?`
    /// may have nulls in it: those of a condition, which may compare with null.
    ///
    /// # Errors
    /// As [`PreparedInList::evaluate`], but for nulls in the list.
    pub fn evaluate_with_nulls(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Vec<TermValue>, CqlError> {
        let PreparedInList::Whole(term) = self else {
            return self.evaluate(values, clock);
        };
        let bound = term
            .marker()
            .and_then(|index| values.get(usize::from(index)));
        let Some(BoundValue::Value(bytes)) = bound else {
            return self.evaluate(values, clock);
        };
        let values = value::canonical_values_or_nulls(&self.value_type(), bytes)
            .map_err(|error| invalid_value(&term.name, &error.0))?;
        let values = values.into_iter();
        Ok(values
            .map(|value| value.map_or(TermValue::Null, TermValue::Value))
            .collect())
    }

    /// The values, in the order written, with repeats.
    ///
    /// # Errors
    /// As [`PreparedTerm::evaluate`], and for a null or unset list.
    pub fn evaluate(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Vec<TermValue>, CqlError> {
        match self {
            PreparedInList::Terms(terms) => terms
                .iter()
                .map(|term| term.evaluate(values, clock))
                .collect(),
            PreparedInList::Whole(term) => match term.evaluate(values, clock)? {
                TermValue::Value(bytes) => Ok(split_elements(&bytes)
                    .map_err(|error| CqlError::invalid(error.0))?
                    .into_iter()
                    .map(TermValue::Value)
                    .collect()),
                TermValue::Null => Err(CqlError::invalid(format!(
                    "Invalid null value for {}",
                    term.name
                ))),
                TermValue::Unset => Err(CqlError::invalid(format!(
                    "Invalid unset value for {}",
                    term.name
                ))),
            },
        }
    }
}
