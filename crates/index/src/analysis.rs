//! The analysis of texts in a secondary index: texts that an option makes alike are one term.
//!
//! An index with such an option finds a row by any text that has the same term as the row's own. So
//! who reads rows by the index compares terms, not texts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cql::error::CqlError;

/// The option by which upper and lower case are different. It is true by default.
const CASE_SENSITIVE: &str = "case_sensitive";
/// The option by which texts are brought into one Unicode form. It is false by default.
const NORMALIZE: &str = "normalize";
/// The option by which letters are taken for the ASCII letters that they resemble. It is false by
/// default.
const ASCII: &str = "ascii";

/// The analysis that the options of an index ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Whether a text and its lower case are one term.
    ignores_case: bool,
}

impl Analysis {
    /// The analysis that checked options ask for.
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
    /// If the value of one is no boolean, or asks for what is not there.
    pub(crate) fn check(options: &BTreeMap<String, String>) -> Result<Analysis, CqlError> {
        for option in [NORMALIZE, ASCII] {
            if boolean(options, option)? == Some(true) {
                return Err(CqlError::invalid(format!(
                    "The option '{option}' of a storage-attached index is not supported yet: \
                     leave it out, or set it to false"
                )));
            }
        }
        Ok(Analysis {
            ignores_case: boolean(options, CASE_SENSITIVE)? == Some(false),
        })
    }

    /// Whether each text is a term of its own.
    pub fn is_plain(self) -> bool {
        self == Analysis::default()
    }

    /// The term of a text.
    pub fn term(self, text: &str) -> Cow<'_, str> {
        match self.ignores_case {
            true => Cow::Owned(text.to_lowercase()),
            false => Cow::Borrowed(text),
        }
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
}
