//! The values of relations: their terms, evaluated with the bound values.

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::BoundValue;
use schema::Column;
use value::split_elements;

use crate::bind::{PreparedTerm, StatementClock, TermValue};
use crate::relation::{
    ColumnTest, PreparedRelation, RelationKind, TupleList, TupleTerm, TupleTest,
};

/// The most partitions, and the most slices of all partitions together, that a query may name: it
/// reads each of them by its key. INs on several columns multiply.
const COMBINATIONS_MAX: usize = 10_000;

/// The inputs of an execution that terms are evaluated with.
#[derive(Clone, Copy)]
pub struct EvaluationInputs<'a> {
    /// The values of the bind markers, in the markers' order.
    pub bound: &'a [BoundValue],
    /// The time at which the statement runs.
    pub clock: &'a StatementClock,
}

impl EvaluationInputs<'_> {
    /// The values of the projection's terms; `None` for null.
    ///
    /// # Errors
    /// Unset values.
    pub fn selection(&self, terms: &[PreparedTerm]) -> Result<Vec<Option<Bytes>>, CqlError> {
        terms
            .iter()
            .map(|term| match term.evaluate(self.bound, self.clock)? {
                TermValue::Value(bytes) => Ok(Some(bytes)),
                TermValue::Null => Ok(None),
                TermValue::Unset => Err(CqlError::invalid(
                    "Invalid unset value in the selection clause",
                )),
            })
            .collect()
    }

    /// The serialised value of a term on the right side of a relation. `column` is for messages.
    ///
    /// # Errors
    /// Null and unset values.
    pub fn condition(&self, term: &PreparedTerm, column: &str) -> Result<Bytes, CqlError> {
        in_condition(term.evaluate(self.bound, self.clock)?, column)
    }

    /// The token on the right side of a relation, a `bigint`.
    ///
    /// # Errors
    /// Null, unset and empty values.
    pub fn token(&self, value: &PreparedTerm) -> Result<i64, CqlError> {
        const NAME: &str = "token of the partition key";
        let bytes = self.condition(value, NAME)?;
        let bytes = bytes.as_ref().try_into().map(i64::from_be_bytes);
        bytes.map_err(|_| {
            CqlError::invalid(format!("Invalid empty value in condition for the {NAME}"))
        })
    }

    /// The values of a tuple, one for each column.
    ///
    /// # Errors
    /// Null and unset values, also within the tuple.
    pub fn tuple(&self, term: &TupleTerm, columns: &[Column]) -> Result<Vec<Bytes>, CqlError> {
        match term {
            TupleTerm::Terms(terms) => terms
                .iter()
                .zip(columns)
                .map(|(term, column)| self.condition(term, &column.name))
                .collect(),
            TupleTerm::Whole(term) => {
                let bytes = self.condition(term, &columns[0].name)?;
                tuple_fields(&bytes, columns)
            }
        }
    }

    /// Appends the values that an equality or IN gives for the next columns. Each prefix is
    /// repeated for each of the alternatives.
    ///
    /// # Errors
    /// Null and unset values, and too many combinations, which the message calls `what`.
    pub fn extend(
        &self,
        prefixes: &mut Vec<Vec<Bytes>>,
        relation: &PreparedRelation,
        what: &str,
    ) -> Result<(), CqlError> {
        if let RelationKind::Column {
            column,
            test: ColumnTest::Compare(_, term),
        } = &relation.kind
        {
            let value = self.condition(term, &column.name)?;
            for prefix in prefixes {
                prefix.push(value.clone());
            }
            return Ok(());
        }
        multiply(prefixes, &self.alternatives(relation)?, what)
    }

    /// The alternatives that an equality or IN gives. Each has one value for each column.
    fn alternatives(&self, relation: &PreparedRelation) -> Result<Vec<Vec<Bytes>>, CqlError> {
        match &relation.kind {
            RelationKind::Column {
                column,
                test: ColumnTest::Compare(_, term),
            } => Ok(vec![vec![self.condition(term, &column.name)?]]),
            RelationKind::Column {
                column,
                test: ColumnTest::In(list),
            } => list
                .evaluate(self.bound, self.clock)?
                .into_iter()
                .map(|bound| Ok(vec![in_condition(bound, &column.name)?]))
                .collect(),
            RelationKind::Tuple {
                columns,
                test: TupleTest::Compare(_, term),
            } => Ok(vec![self.tuple(term, columns)?]),
            RelationKind::Tuple {
                columns,
                test: TupleTest::In(list),
            } => self.tuples(list, columns),
            _ => Ok(Vec::new()),
        }
    }

    /// The tuples of `(a, b) IN ...`, each with one value for each column.
    ///
    /// # Errors
    /// Null and unset values, also within the tuples.
    pub fn tuples(
        &self,
        list: &TupleList,
        columns: &[Column],
    ) -> Result<Vec<Vec<Bytes>>, CqlError> {
        match list {
            TupleList::Terms(terms) => terms.iter().map(|term| self.tuple(term, columns)).collect(),
            TupleList::Whole(term) => {
                let bytes = self.condition(term, &columns[0].name)?;
                split_elements(&bytes)
                    .map_err(|error| CqlError::invalid(error.0))?
                    .iter()
                    .map(|tuple| tuple_fields(tuple, columns))
                    .collect()
            }
        }
    }
}

fn in_condition(bound: TermValue, column: &str) -> Result<Bytes, CqlError> {
    match bound {
        TermValue::Value(bytes) => Ok(bytes),
        TermValue::Null => Err(CqlError::invalid(format!(
            "Invalid null value in condition for column {column}"
        ))),
        TermValue::Unset => Err(CqlError::invalid(format!(
            "Invalid unset value for column {column}"
        ))),
    }
}

/// Splits a valid serialised tuple into its fields. A null or missing field is an error.
fn tuple_fields(bytes: &Bytes, columns: &[Column]) -> Result<Vec<Bytes>, CqlError> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut at = 0;
    for column in columns {
        let length = bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk::<4>())
            .map(|length| i32::from_be_bytes(*length))
            .and_then(|length| usize::try_from(length).ok());
        let field = length.and_then(|length| {
            let start = at + 4;
            let end = start.checked_add(length)?;
            (end <= bytes.len()).then(|| bytes.slice(start..end))
        });
        let Some(field) = field else {
            return Err(CqlError::invalid(format!(
                "Invalid null value in condition for column {}",
                column.name
            )));
        };
        at += 4 + field.len();
        fields.push(field);
    }
    Ok(fields)
}

/// Checks the number of combinations that the INs of a query make, before they are made. `what` is
/// the word for them.
///
/// # Errors
/// If there are too many.
pub fn check_combinations(combinations: usize, what: &str) -> Result<(), CqlError> {
    if combinations > COMBINATIONS_MAX {
        return Err(CqlError::invalid(format!(
            "The IN restrictions name {combinations} {what}, which is more than the {COMBINATIONS_MAX} allowed; \
             ask for fewer in one query"
        )));
    }
    Ok(())
}

fn multiply(
    prefixes: &mut Vec<Vec<Bytes>>,
    alternatives: &[Vec<Bytes>],
    what: &str,
) -> Result<(), CqlError> {
    check_combinations(prefixes.len().saturating_mul(alternatives.len()), what)?;
    *prefixes = prefixes
        .iter()
        .flat_map(|prefix| {
            alternatives
                .iter()
                .map(move |values| [prefix.as_slice(), values].concat())
        })
        .collect();
    Ok(())
}
