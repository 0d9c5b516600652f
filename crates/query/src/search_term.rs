//! Terms of searches: the vector or the words to look for.

use bytes::Bytes;
use cql::ast::Term;
use cql::error::CqlError;
use value::CqlType;

use crate::bind::{PrepareContext, PreparedTerm, TermValue, prepare_term};
use crate::bounds;
use crate::search_call::SearchKind;
use crate::search_vector::SearchVector;
use crate::values::EvaluationInputs;

/// The words that a query looks for, as they are written.
#[derive(Clone, Debug)]
pub struct SearchWords {
    term: PreparedTerm,
    /// The name of the column of texts.
    pub column: String,
}

/// The vector or the words that a search looks for, as they are written.
#[derive(Clone, Debug)]
pub enum SearchTerm {
    /// A vector.
    Vector(SearchVector),
    /// Words.
    Words(SearchWords),
}

/// The vector or the words that a search looks for.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchedFor {
    /// A vector, serialised.
    Vector(Bytes),
    /// The text of a query.
    Words(String),
}

impl SearchWords {
    /// Prepares the term. `column` and `cql_type` are those of the column of texts.
    ///
    /// # Errors
    /// If the column has no texts, or the term is no text.
    pub fn prepare(
        term: &Term,
        column: &str,
        cql_type: &CqlType,
        ctx: &mut PrepareContext,
    ) -> Result<SearchWords, CqlError> {
        if !is_text(cql_type) {
            return Err(CqlError::invalid(format!(
                "BM25 is only supported on text columns, but column {column} is of type {cql_type}"
            )));
        }
        Ok(SearchWords {
            // Of a column of ASCII texts, too: what is looked for may be anything.
            term: prepare_term(term, &CqlType::Text, column, ctx)?,
            column: column.to_owned(),
        })
    }

    /// The text of the query that an execution makes.
    ///
    /// # Errors
    /// If the text is null or unset.
    pub fn evaluate(&self, values: EvaluationInputs<'_>) -> Result<String, CqlError> {
        match self.term.evaluate(values.bound, values.clock)? {
            TermValue::Value(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| {
                CqlError::invalid(format!(
                    "Invalid value for {}: the text is not UTF-8",
                    self.column
                ))
            }),
            TermValue::Null => Err(bounds::null_vector(&self.column)),
            TermValue::Unset => Err(bounds::unset_vector(&self.column)),
        }
    }
}

/// Whether values of the type are texts that a full-text index can have.
pub fn is_text(cql_type: &CqlType) -> bool {
    matches!(cql_type, CqlType::Text | CqlType::Ascii)
}

impl SearchTerm {
    /// Prepares the term of a search. `column` and `cql_type` are those of the searched column.
    ///
    /// # Errors
    /// As [`SearchVector::prepare`] and [`SearchWords::prepare`].
    pub fn prepare(
        kind: SearchKind,
        term: &Term,
        (column, cql_type): (&str, &CqlType),
        ctx: &mut PrepareContext,
    ) -> Result<SearchTerm, CqlError> {
        Ok(match kind {
            SearchKind::Vector => {
                SearchTerm::Vector(SearchVector::prepare(term, column, cql_type, ctx)?)
            }
            SearchKind::Words => {
                SearchTerm::Words(SearchWords::prepare(term, column, cql_type, ctx)?)
            }
        })
    }

    /// The kind of the search.
    pub fn kind(&self) -> SearchKind {
        match self {
            SearchTerm::Vector(_) => SearchKind::Vector,
            SearchTerm::Words(_) => SearchKind::Words,
        }
    }

    /// The name of the searched column.
    pub fn column(&self) -> &str {
        match self {
            SearchTerm::Vector(vector) => &vector.column,
            SearchTerm::Words(words) => &words.column,
        }
    }

    /// The vector or the words that an execution looks for.
    ///
    /// # Errors
    /// As [`SearchVector::evaluate`] and [`SearchWords::evaluate`].
    pub fn evaluate(&self, values: EvaluationInputs<'_>) -> Result<SearchedFor, CqlError> {
        Ok(match self {
            SearchTerm::Vector(vector) => SearchedFor::Vector(vector.evaluate(values)?),
            SearchTerm::Words(words) => SearchedFor::Words(words.evaluate(values)?),
        })
    }
}
