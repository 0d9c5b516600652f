//! A clause of a query as tantivy's query.

use tantivy::Term;
use tantivy::query::{
    BooleanQuery, BoostQuery, EmptyQuery, FuzzyTermQuery, Occur, PhraseQuery, Query, TermQuery,
};
use tantivy::schema::IndexRecordOption;

use super::loose_phrase::LoosePhraseQuery;
use super::prefix_query::PrefixQuery;
use super::schema::TEXT;
use crate::clause::QueryClause;

/// Makes the query that matches as the clause does, and has its scores but for the rounding of
/// lengths.
pub(crate) fn query(clause: &QueryClause) -> Box<dyn Query> {
    match clause {
        QueryClause::Nothing => Box::new(EmptyQuery),
        QueryClause::Term { term, boost } => boosted(term_query(term), *boost),
        QueryClause::Phrase { terms, slop, boost } => boosted(phrase_query(terms, *slop), *boost),
        QueryClause::Prefix { prefix, boost } => {
            boosted(Box::new(PrefixQuery::new(prefix)), *boost)
        }
        QueryClause::Fuzzy {
            term,
            distance,
            boost,
        } => {
            let term = Term::from_field_text(TEXT, term);
            boosted(Box::new(FuzzyTermQuery::new(term, *distance, true)), *boost)
        }
        QueryClause::Boolean {
            must,
            should,
            must_not,
        } => {
            // Excluded documents of nothing are nothing.
            if must.is_empty() && should.is_empty() {
                return Box::new(EmptyQuery);
            }
            let with = |occur: Occur, clauses: &[QueryClause]| {
                let queries = clauses.iter().map(|clause| (occur, query(clause)));
                queries.collect::<Vec<_>>()
            };
            let mut clauses = with(Occur::Must, must);
            clauses.extend(with(Occur::Should, should));
            clauses.extend(with(Occur::MustNot, must_not));
            Box::new(BooleanQuery::new(clauses))
        }
    }
}

fn boosted(query: Box<dyn Query>, boost: f32) -> Box<dyn Query> {
    match boost == 1.0 {
        true => query,
        false => Box::new(BoostQuery::new(query, boost)),
    }
}

fn term_query(term: &str) -> Box<dyn Query> {
    let term = Term::from_field_text(TEXT, term);
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

fn phrase_query(terms: &[(u32, String)], slop: u32) -> Box<dyn Query> {
    match (terms, slop) {
        ([], _) => Box::new(EmptyQuery),
        ([(_, term)], _) => term_query(term),
        (terms, 0) => {
            let terms = terms.iter();
            let terms = terms.map(|(at, term)| (*at as usize, Term::from_field_text(TEXT, term)));
            Box::new(PhraseQuery::new_with_offset(terms.collect()))
        }
        // Tantivy counts a phrase with slop in another way (`crate::phrase`).
        (terms, slop) => Box::new(LoosePhraseQuery::new(terms, slop)),
    }
}
