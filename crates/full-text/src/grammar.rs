//! The language of queries.
//!
//! ```text
//! list    = item { ["OR"] item }
//! item    = signed { "AND" signed }
//! signed  = [ "+" | "-" | "NOT" ] operand
//! operand = word | word "*" | word "~" [distance] | phrase [ "~" slop ] | "(" list ")"
//!           each with [ "^" boost ]
//! ```
//!
//! Of a list's items at least one must match, unless it has some with `+`: then those must, and the
//! others add to the score. `-` and NOT exclude, within the list or the AND that they are in; a
//! query that only excludes matches nothing. AND binds tighter than OR and a space, and NOT tighter
//! than AND. The operators are words of upper case; `+` and `-` come directly before what they
//! sign, and within a word they are letters like others. `*`, `~` and `^` directly follow what they
//! change.
//!
//! A backslash takes the next character as a part of a word: `\AND`, `\-5`, `a\*`. Within quotation
//! marks only `\` and `"` need it. All other characters are for the analyzer: `wi-fi` is one word
//! of the query, and a phrase in an index that has `wi` and `fi` (both are required if the index
//! has no positions). What the analyzer makes nothing of, such as a stop word, is left out.
//!
//! | bound | most |
//! | --- | ---: |
//! | words, with those of phrases | 1,024 |
//! | parentheses in one another | 64 |
//! | fuzzy words, and letters of each | 32, and 64 |
//! | edits of a fuzzy word (the default) | 2 |
//! | slop of a phrase | 10,000 |
//! | boost; and of groups in groups, the product | 1,000; and 1,000,000 |

mod lexer;
mod meaning;
mod parser;
#[cfg(test)]
mod tests;

use std::fmt;

use index::FullTextOptions;

use crate::clause::QueryClause;

/// Words of a query, with those of its phrases.
const WORDS_MAX: usize = 1024;
/// Parentheses in one another.
const DEPTH_MAX: usize = 64;
/// Fuzzy words of a query. An index makes an automaton of each.
const FUZZY_WORDS_MAX: usize = 32;
/// Letters of a fuzzy word. Its automaton has up to 68 KiB for each of them.
const FUZZY_LETTERS_MAX: usize = 64;
/// Edits that a term may be away from a fuzzy word, and the number of a word that names none.
const DISTANCE_MAX: u8 = 2;
/// Slop of a phrase.
const SLOP_MAX: u32 = 10_000;
/// The boost of a word, phrase or group.
const BOOST_MAX: f32 = 1000.0;
/// The product of the boosts of groups in one another.
const BOOST_PRODUCT_MAX: f32 = 1_000_000.0;

/// A query that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQueryError {
    /// The place of the fault in the query, in characters from 0.
    pub position: usize,
    /// The fault, and what would be right.
    pub fault: String,
    is_without_positions: bool,
}

impl TextQueryError {
    fn new(position: usize, fault: impl Into<String>) -> TextQueryError {
        TextQueryError {
            position,
            fault: fault.into(),
            is_without_positions: false,
        }
    }

    fn without_positions(position: usize) -> TextQueryError {
        TextQueryError {
            position,
            fault: "phrase queries need an index with 'positions': 'true'".to_owned(),
            is_without_positions: true,
        }
    }

    /// Whether the query is well formed, but has a phrase, and the index has no positions.
    pub fn is_without_positions(&self) -> bool {
        self.is_without_positions
    }
}

impl fmt::Display for TextQueryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.position + 1;
        match self.is_without_positions {
            true => formatter.write_str(&self.fault),
            false => write!(
                formatter,
                "{}, at character {place} of the query",
                self.fault
            ),
        }
    }
}

impl std::error::Error for TextQueryError {}

/// Reads a query for an index with these options.
pub(crate) fn parse(text: &str, options: FullTextOptions) -> Result<QueryClause, TextQueryError> {
    meaning::of(parser::parse(text)?, options)
}
