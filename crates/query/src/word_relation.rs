//! Relations on words, `WHERE BM25(c, ?) > 0`: the rows whose text matches.

use cql::ast::{Comparand, ComparisonSubject, Operator, Relation, Term};
use cql::error::CqlError;
use value::Literal;

use crate::bind::PrepareContext;
use crate::functions::term_excerpt;
use crate::resolve::TableColumns;
use crate::search_call::{SearchCall, SearchCallPart, SearchKind};
use crate::search_term::SearchWords;

/// A relation on words, whose term fits its column.
#[derive(Clone, Debug)]
pub struct WordRelation {
    /// The words that the text of a row must match.
    pub words: SearchWords,
    /// The relation as CQL text, for messages and printed plans.
    pub text: String,
}

impl WordRelation {
    /// Prepares a relation; `None` if it is on something else than words.
    ///
    /// # Errors
    /// Another operator than `>`, another value than 0, and an unknown column or one without texts.
    pub fn of(
        table: TableColumns<'_>,
        relation: &Relation,
        ctx: &mut PrepareContext,
    ) -> Result<Option<WordRelation>, CqlError> {
        let ComparisonSubject::Function(call) = &relation.subject else {
            return Ok(None);
        };
        let Some(call) = SearchCall::of(call)? else {
            return Ok(None);
        };
        if (call.kind, call.part) != (SearchKind::Words, SearchCallPart::Hit) {
            return Err(CqlError::invalid(format!(
                "{}() in WHERE is not supported: of searches, WHERE takes BM25(column, words) > 0 alone",
                call.kind.function()
            )));
        }
        let is_match = relation.operator == Operator::Gt
            && matches!(&relation.comparand, Comparand::Term(term) if is_zero(term));
        if !is_match {
            return Err(CqlError::invalid(
                "BM25() in WHERE only supports the operator > with the literal 0: BM25(column, words) > 0",
            ));
        }
        let text = format!("bm25({}, {}) > 0", call.column, term_excerpt(&call.term));
        let column = table.column(call.column)?;
        let words = SearchWords::prepare(&call.term, &column.name, &column.cql_type, ctx)?;
        Ok(Some(WordRelation { words, text }))
    }
}

fn is_zero(term: &Term) -> bool {
    match term.without_parentheses() {
        Term::Literal(Literal::Integer(text) | Literal::Float(text)) => {
            text.parse::<f64>().is_ok_and(|number| number == 0.0)
        }
        _ => false,
    }
}
