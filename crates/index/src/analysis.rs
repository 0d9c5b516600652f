//! The analysis of texts in a secondary index: texts that an option makes alike are one term.
//!
//! An index with such an option finds a row by any text that has the same term as the row's own. So
//! who reads rows by the index compares terms, not texts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cql::error::CqlError;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use crate::ascii_folding;

/// The option by which upper and lower case are different. It is true by default.
const CASE_SENSITIVE: &str = "case_sensitive";
/// The option by which texts are brought into one Unicode form. It is false by default.
const NORMALIZE: &str = "normalize";
/// The option by which letters are taken for the ASCII letters that they resemble. It is false by
/// default.
const ASCII: &str = "ascii";

/// The analysis that the options of an index require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Whether a text and its lower case are one term.
    ignores_case: bool,
    /// Whether texts of one canonical composition (NFC) are one term.
    normalizes: bool,
    /// Whether letters and signs are one term with the ASCII ones that they resemble.
    folds_to_ascii: bool,
}

impl Analysis {
    /// The analysis that checked options require.
    pub fn of(options: &BTreeMap<String, String>) -> Analysis {
        Analysis::check(options).unwrap_or_default()
    }

    /// Whether an option is one of the analysis.
    pub(crate) fn has_option(name: &str) -> bool {
        [CASE_SENSITIVE, NORMALIZE, ASCII].contains(&name)
    }

    /// Reads the analysis of options.
    ///
    /// # Errors
    /// If the value of one is no boolean.
    pub(crate) fn check(options: &BTreeMap<String, String>) -> Result<Analysis, CqlError> {
        Ok(Analysis {
            ignores_case: boolean(options, CASE_SENSITIVE)? == Some(false),
            normalizes: boolean(options, NORMALIZE)? == Some(true),
            folds_to_ascii: boolean(options, ASCII)? == Some(true),
        })
    }

    /// Whether each text is a term of its own.
    pub fn is_plain(self) -> bool {
        self == Analysis::default()
    }

    /// The term of a text. The steps come in Cassandra's order: a letter that has no composed form
    /// keeps its accent, as only composed letters are folded.
    pub fn term(self, text: &str) -> Cow<'_, str> {
        let mut term = Cow::Borrowed(text);
        if self.ignores_case {
            term = Cow::Owned(term.to_lowercase());
        }
        if self.normalizes && !is_nfc(&term) {
            term = Cow::Owned(term.nfc().collect());
        }
        if self.folds_to_ascii && !term.is_ascii() {
            term = Cow::Owned(ascii_folding::fold(&term));
        }
        term
    }
}

fn boolean(options: &BTreeMap<String, String>, name: &str) -> Result<Option<bool>, CqlError> {
    match options.get(name).map(String::as_str) {
        None => Ok(None),
        Some("") => Err(CqlError::invalid(format!(
            "Empty value for boolean option '{name}'"
        ))),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(value) => Err(CqlError::invalid(format!(
            "Illegal value for boolean option '{name}': {value}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_ignored_only_where_an_option_says_so() {
        let of = |value: &str| {
            let options = BTreeMap::from([(CASE_SENSITIVE.to_owned(), value.to_owned())]);
            Analysis::of(&options)
        };
        assert_eq!(of("FALSE").term("Straße ÄÖ"), "straße äö");
        assert_eq!(of("true").term("Straße ÄÖ"), "Straße ÄÖ");
        assert!(of("true").is_plain() && !of("false").is_plain());
    }
    #[test]
    fn each_option_makes_its_texts_alike_and_they_work_together() {
        let of = |names: &[&str]| {
            let options = names.iter().map(|name| {
                let value = (*name != CASE_SENSITIVE).to_string();
                ((*name).to_owned(), value)
            });
            Analysis::of(&options.collect())
        };
        let decomposed = "E\u{301}te\u{301}";
        assert_eq!(of(&[NORMALIZE]).term(decomposed), "Été");
        assert_eq!(of(&[NORMALIZE]).term("ﬁ"), "ﬁ");
        assert_eq!(of(&[ASCII]).term("Été"), "Ete");
        assert_eq!(of(&[ASCII]).term(decomposed), decomposed);
        assert_eq!(of(&[ASCII, NORMALIZE]).term(decomposed), "Ete");
        assert_eq!(
            of(&[ASCII, NORMALIZE, CASE_SENSITIVE]).term(decomposed),
            "ete"
        );
        assert!(!of(&[ASCII]).is_plain() && !of(&[NORMALIZE]).is_plain());
    }
}
