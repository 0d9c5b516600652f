//! The tree that a query's parts mean in an index: words become the terms of its analyzer.

use index::FullTextOptions;

use super::parser::{PartKind, PartList, QueryPart, too_many_words};
use super::{BOOST_PRODUCT_MAX, FUZZY_LETTERS_MAX, TextQueryError, WORDS_MAX};
use crate::analysis::{folded_words, for_each_token};
use crate::clause::QueryClause;

/// The tree of a whole query.
pub(super) fn of(list: PartList, options: FullTextOptions) -> Result<QueryClause, TextQueryError> {
    let mut meaning = QueryMeaning { options, terms: 0 };
    let clause = meaning.list(list, 1.0)?;
    Ok(match excludes_only(&clause) {
        true => QueryClause::Nothing,
        false => clause,
    })
}

struct QueryMeaning {
    options: FullTextOptions,
    /// The terms so far: a word may become several.
    terms: usize,
}

impl QueryMeaning {
    fn list(&mut self, list: PartList, boost: f32) -> Result<QueryClause, TextQueryError> {
        let (mut must, mut excluding) = (Vec::new(), Vec::new());
        for clause in self.clauses(list.must, boost)? {
            let is_excluding = excludes_only(&clause);
            match clause {
                // `a AND (NOT b)` is `a AND NOT b`.
                QueryClause::Boolean { must_not, .. } if is_excluding => excluding.extend(must_not),
                clause => must.push(clause),
            }
        }
        let mut should = self.clauses(list.should, boost)?;
        let mut must_not = self.clauses(list.must_not, boost)?;
        // These match nothing.
        should.retain(|clause| !excludes_only(clause));
        must_not.retain(|clause| !excludes_only(clause));
        must_not.extend(excluding);
        Ok(simplest(must, should, must_not))
    }

    /// The clauses of parts, without those that the analyzer makes nothing of.
    fn clauses(
        &mut self,
        parts: Vec<QueryPart>,
        boost: f32,
    ) -> Result<Vec<QueryClause>, TextQueryError> {
        let mut clauses = Vec::with_capacity(parts.len());
        for part in parts {
            let clause = self.clause(part, boost)?;
            if clause != QueryClause::Nothing {
                clauses.push(clause);
            }
        }
        Ok(clauses)
    }

    fn clause(&mut self, part: QueryPart, outer: f32) -> Result<QueryClause, TextQueryError> {
        let position = part.position;
        let boost = outer * part.boost;
        if boost > BOOST_PRODUCT_MAX {
            let fault = format!("boosts in one another multiply to at most {BOOST_PRODUCT_MAX}");
            return Err(TextQueryError::new(position, fault));
        }
        match part.kind {
            PartKind::Word(word) => {
                let terms = self.terms(&word, position)?;
                Ok(self.word(terms, boost))
            }
            PartKind::Prefix(word) => Ok(match self.folded(&word, position)? {
                Some(prefix) => QueryClause::Prefix { prefix, boost },
                None => QueryClause::Nothing,
            }),
            PartKind::Fuzzy { word, distance } => {
                if word.chars().count() > FUZZY_LETTERS_MAX {
                    let fault = format!("a word with '~' has at most {FUZZY_LETTERS_MAX} letters");
                    return Err(TextQueryError::new(position, fault));
                }
                Ok(match self.folded(&word, position)? {
                    Some(term) => QueryClause::Fuzzy {
                        term,
                        distance,
                        boost,
                    },
                    None => QueryClause::Nothing,
                })
            }
            PartKind::Phrase { text, slop } => {
                let terms = self.terms(&text, position)?;
                if terms.len() > 1 && !self.options.positions {
                    return Err(TextQueryError::without_positions(position));
                }
                Ok(phrase(terms, slop, boost))
            }
            PartKind::Group(list) => self.list(list, boost),
        }
    }

    /// The clause of a word: of several terms a phrase, or all of them in an index without
    /// positions.
    fn word(&self, terms: Vec<(u32, String)>, boost: f32) -> QueryClause {
        if terms.len() < 2 || self.options.positions {
            return phrase(terms, 0, boost);
        }
        let terms = terms.into_iter();
        let must = terms.map(|(_, term)| QueryClause::Term { term, boost });
        simplest(must.collect(), Vec::new(), Vec::new())
    }

    /// The terms of a text, with their offsets from the first one.
    fn terms(&mut self, text: &str, position: usize) -> Result<Vec<(u32, String)>, TextQueryError> {
        let mut terms: Vec<(u32, String)> = Vec::new();
        let mut first = None;
        for_each_token(text, self.options.analyzer, |token| {
            let first = *first.get_or_insert(token.position);
            if terms.len() <= WORDS_MAX {
                terms.push((token.position - first, token.term.to_owned()));
            }
        });
        self.terms += terms.len();
        match self.terms > WORDS_MAX {
            true => Err(too_many_words(position)),
            false => Ok(terms),
        }
    }

    /// A word that is neither stemmed nor dropped as a stop word, or nothing if it has neither a
    /// letter nor a digit.
    fn folded(&self, word: &str, position: usize) -> Result<Option<String>, TextQueryError> {
        let mut words = folded_words(word, self.options.analyzer);
        match words.len() {
            0 | 1 => Ok(words.pop()),
            several => {
                let analyzer = self.options.analyzer.name();
                let fault = format!(
                    "'*' and '~' follow one word, and '{word}' is {several} for the analyzer \
                     '{analyzer}'"
                );
                Err(TextQueryError::new(position, fault))
            }
        }
    }
}

/// The clause of terms in their order.
fn phrase(mut terms: Vec<(u32, String)>, slop: u32, boost: f32) -> QueryClause {
    if terms.len() > 1 {
        return QueryClause::Phrase { terms, slop, boost };
    }
    match terms.pop() {
        Some((_, term)) => QueryClause::Term { term, boost },
        None => QueryClause::Nothing,
    }
}

/// The clause of a list, which is its member if there is one only.
fn simplest(
    mut must: Vec<QueryClause>,
    mut should: Vec<QueryClause>,
    must_not: Vec<QueryClause>,
) -> QueryClause {
    if must_not.is_empty() && must.len() + should.len() < 2 {
        let only = must.pop().or_else(|| should.pop());
        return only.unwrap_or(QueryClause::Nothing);
    }
    QueryClause::Boolean {
        must,
        should,
        must_not,
    }
}

/// Whether a clause has nothing that could match, only what excludes.
fn excludes_only(clause: &QueryClause) -> bool {
    match clause {
        QueryClause::Boolean { must, should, .. } => must.is_empty() && should.is_empty(),
        _ => false,
    }
}
