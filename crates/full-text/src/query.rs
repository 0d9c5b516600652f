//! A query that was read for an index.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use index::FullTextOptions;

use crate::document::AnalysedText;
use crate::grammar::{self, TextQueryError};
use crate::statistics::QueryStatistics;

pub use crate::clause::QueryClause;

/// A parsed query, in the terms of the index's analyzer.
#[derive(Clone, Debug, PartialEq)]
pub struct TextQuery {
    clause: QueryClause,
}

impl TextQuery {
    /// Reads a query for an index with these options.
    ///
    /// # Errors
    /// If the text is malformed or goes past a bound, or has a phrase and the index no positions.
    pub fn parse(text: &str, options: FullTextOptions) -> Result<TextQuery, TextQueryError> {
        let clause = grammar::parse(text, options)?;
        Ok(TextQuery { clause })
    }

    /// The tree of the query.
    pub fn clause(&self) -> &QueryClause {
        &self.clause
    }

    /// Whether a document matches. It must have been analysed with the options of the query.
    pub fn matches(&self, document: &AnalysedText) -> bool {
        self.clause.matches(document)
    }

    /// The score of a document by the statistics of an index, or nothing if it does not match.
    pub fn score(&self, document: &AnalysedText, statistics: &QueryStatistics) -> Option<f32> {
        self.clause.score(document, statistics)
    }

    /// The exact terms that statistics are needed of, each once, in the order of the query.
    pub fn terms(&self) -> Vec<&str> {
        let mut terms = Vec::new();
        self.clause.for_each_scored(&mut |clause| match clause {
            QueryClause::Term { term, .. } => terms.push(term.as_str()),
            QueryClause::Phrase { terms: phrase, .. } => {
                terms.extend(phrase.iter().map(|(_, term)| term.as_str()));
            }
            QueryClause::Nothing
            | QueryClause::Prefix { .. }
            | QueryClause::Fuzzy { .. }
            | QueryClause::Boolean { .. } => {}
        });
        let mut seen = HashSet::new();
        terms.retain(|term| seen.insert(*term));
        terms
    }
}
