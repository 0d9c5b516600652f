//! Predicates on terms: what an index with an analysis has in the place of texts.
//!
//! Such an index finds a text by any other that has the same term (`index::Analysis`). So a row
//! that it finds is checked for the term, too.

use std::borrow::Cow;

use bytes::Bytes;
use index::Analysis;
use value::CqlType;
use value::predicate::{ColumnObservation, Predicate};

use super::column_location::ColumnContent;

/// A predicate on the terms of a column's texts.
#[derive(Clone, Debug)]
pub(super) struct TermPredicate {
    /// The predicate, whose texts are terms.
    pub predicate: Predicate,
    analyser: TextAnalyser,
}

/// An analysis, and the parts of a column that are texts.
#[derive(Clone, Copy, Debug)]
struct TextAnalyser {
    analysis: Analysis,
    /// Whether the elements of a set, or the keys of a map, are texts.
    has_path_texts: bool,
    /// Whether the value, the elements of a list, or the values of a map are texts.
    has_value_texts: bool,
}

impl TermPredicate {
    /// Makes the predicate for a column of this type.
    pub(super) fn new(
        cql_type: &CqlType,
        predicate: Predicate,
        analysis: Analysis,
    ) -> TermPredicate {
        let is_text = |cql_type: &CqlType| matches!(cql_type, CqlType::Ascii | CqlType::Text);
        let (path, value) = match cql_type {
            CqlType::Map { key, value, .. } => (is_text(key), is_text(value)),
            CqlType::Set { element, .. } => (is_text(element), is_text(element)),
            CqlType::List { element, .. } => (false, is_text(element)),
            whole => (false, is_text(whole)),
        };
        let analyser = TextAnalyser {
            analysis,
            has_path_texts: path,
            has_value_texts: value,
        };
        TermPredicate {
            predicate: analyser.analysed(predicate),
            analyser,
        }
    }

    /// Whether the predicate holds for the terms of a column's content.
    pub(super) fn hold(&self, content: ColumnContent<'_>) -> bool {
        let analyser = self.analyser;
        match content {
            ColumnContent::Null => false,
            ColumnContent::Value(value) => {
                let term = analyser.value(value);
                self.predicate
                    .holds(ColumnObservation::<std::iter::Empty<_>>::Value(&term))
            }
            ColumnContent::Elements(elements) => {
                let terms: Vec<_> = elements
                    .iter()
                    .map(|(path, cell)| (analyser.path(path), analyser.value(&cell.value)))
                    .collect();
                let terms = terms.iter().map(|(path, value)| (&path[..], &value[..]));
                self.predicate.holds(ColumnObservation::Elements(terms))
            }
        }
    }
}

impl TextAnalyser {
    fn path<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        self.term(self.has_path_texts, text)
    }

    fn value<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        self.term(self.has_value_texts, text)
    }

    fn term<'t>(&self, is_text: bool, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        match std::str::from_utf8(bytes) {
            Ok(text) if is_text => match self.analysis.term(text) {
                Cow::Borrowed(term) => Cow::Borrowed(term.as_bytes()),
                Cow::Owned(term) => Cow::Owned(term.into_bytes()),
            },
            _ => Cow::Borrowed(bytes),
        }
    }

    /// The predicate with terms in the place of its texts.
    fn analysed(&self, mut predicate: Predicate) -> Predicate {
        let replace = |bytes: &mut Bytes, term: Cow<'_, [u8]>| *bytes = term.into_owned().into();
        match &mut predicate {
            Predicate::Compare { value, .. } | Predicate::Contains { value, .. } => {
                replace(value, self.value(&value.clone()));
            }
            Predicate::ContainsKey { key, .. } => replace(key, self.path(&key.clone())),
            // No such index serves these.
            Predicate::Entry { .. }
            | Predicate::NotEqual { .. }
            | Predicate::In { .. }
            | Predicate::Like(_) => {}
        }
        predicate
    }
}
