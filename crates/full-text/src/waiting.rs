//! Documents that no segment has yet.
//!
//! They are only ever added to, so a reader that has seen how many there were, and which of them
//! were dead, can go on with these while more are added.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::{RwLock, RwLockReadGuard};

use crate::clause::QueryClause;
use crate::document::AnalysedText;
use crate::fuzzy::FuzzyWord;

/// Bytes of a term's entry besides its letters and documents.
const TERM_BYTES: usize = 56;

/// Documents in the order in which they came, and for each term those that have it.
#[derive(Default)]
pub(crate) struct WaitingDocuments(RwLock<WaitingTexts>);

/// The documents, while they are read.
#[derive(Default)]
pub(crate) struct WaitingTexts {
    texts: Vec<(u32, Arc<AnalysedText>)>,
    documents: HashMap<Box<str>, Vec<u32>>,
    bytes: usize,
}

impl WaitingDocuments {
    /// Adds the document of an id, and returns its number.
    pub fn push(&self, id: u32, text: &AnalysedText) -> u32 {
        let mut guard = self.0.write();
        let texts = &mut *guard;
        let number = texts.texts.len() as u32;
        texts.bytes += text.memory_bytes();
        for (term, _, _) in text.terms() {
            texts.bytes += size_of::<u32>();
            if let Some(documents) = texts.documents.get_mut(term) {
                documents.push(number);
            } else {
                texts.bytes += TERM_BYTES + term.len();
                texts.documents.insert(term.into(), vec![number]);
            }
        }
        texts.texts.push((id, Arc::new(text.clone())));
        number
    }

    /// Lets the documents be read. No one can add one meanwhile, so this is for a short time.
    pub fn read(&self) -> RwLockReadGuard<'_, WaitingTexts> {
        self.0.read()
    }
}

impl WaitingTexts {
    /// Bytes of memory of all documents.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The id and the text of a document.
    pub fn get(&self, document: u32) -> Option<&(u32, Arc<AnalysedText>)> {
        self.texts.get(document as usize)
    }

    /// The documents that have a term, ascending.
    pub fn with_term(&self, term: &str) -> &[u32] {
        self.documents.get(term).map_or(&[], Vec::as_slice)
    }

    /// The documents that may match a clause, ascending: all that do, and some that do not.
    pub fn candidates(&self, clause: &QueryClause) -> Vec<u32> {
        match clause {
            QueryClause::Nothing => Vec::new(),
            QueryClause::Term { term, .. } => self.with_term(term).to_vec(),
            QueryClause::Phrase { terms, .. } => {
                let documents = terms.iter().map(|(_, term)| self.with_term(term));
                let fewest = documents.min_by_key(|documents| documents.len());
                fewest.unwrap_or_default().to_vec()
            }
            QueryClause::Prefix { prefix, .. } => {
                self.with_terms(|term| term.starts_with(prefix.as_str()))
            }
            QueryClause::Fuzzy { term, distance, .. } => {
                let mut word = FuzzyWord::new(term, *distance);
                self.with_terms(|term| word.accepts(term))
            }
            QueryClause::Boolean { must, should, .. } => {
                let required = must.iter().map(|clause| self.candidates(clause));
                let fewest = required.min_by_key(Vec::len);
                fewest.unwrap_or_else(|| {
                    let any = should.iter().flat_map(|clause| self.candidates(clause));
                    sorted(any.collect())
                })
            }
        }
    }

    /// The documents that have one of the terms that are wanted.
    fn with_terms(&self, mut is_wanted: impl FnMut(&str) -> bool) -> Vec<u32> {
        let terms = self.documents.iter();
        let wanted = terms.filter(|(term, _)| is_wanted(term));
        sorted(
            wanted
                .flat_map(|(_, documents)| documents.iter().copied())
                .collect(),
        )
    }
}

fn sorted(mut documents: Vec<u32>) -> Vec<u32> {
    documents.sort_unstable();
    documents.dedup();
    documents
}

#[cfg(test)]
mod tests {
    use index::FullTextOptions;

    use super::*;

    #[test]
    fn documents_are_found_by_their_terms() {
        let waiting = WaitingDocuments::default();
        for (id, text) in [(7, "red shoes"), (8, "blue shoe"), (9, "red red hat")] {
            let text = AnalysedText::of(text, FullTextOptions::default());
            waiting.push(id, &text);
        }
        let texts = waiting.read();
        let term = |term: &str| QueryClause::Term {
            term: term.to_owned(),
            boost: 1.0,
        };
        let found = |clause: &QueryClause| texts.candidates(clause);
        assert_eq!(found(&term("red")), [0, 2]);
        assert!(found(&term("green")).is_empty());
        let prefix = QueryClause::Prefix {
            prefix: "shoe".to_owned(),
            boost: 1.0,
        };
        assert_eq!(found(&prefix), [0, 1]);
        let fuzzy = QueryClause::Fuzzy {
            term: "had".to_owned(),
            distance: 1,
            boost: 1.0,
        };
        assert_eq!(found(&fuzzy), [2], "hat is a letter away, red two");
        let both = QueryClause::Boolean {
            must: vec![term("red"), term("hat")],
            should: vec![term("blue")],
            must_not: Vec::new(),
        };
        assert_eq!(found(&both), [2]);
        assert_eq!(texts.get(1).map(|(id, _)| *id), Some(8));
        assert!(texts.get(3).is_none());
    }
}
