//! The class of full-text indexes: its options, the analyzers that these name, and the query that
//! takes a text's words as they are.

use std::collections::BTreeMap;

use cql::error::CqlError;

use crate::SearchClass;
use crate::options::{CheckedOption, KeywordOption, check_reserved, invalid_value, unsupported};

/// The class name of full-text indexes, as `system_schema.indexes` holds it.
pub const CLASS: &str = SearchClass::FullText.name();

/// Analyzers of other databases that this one does not have, as `cjk` takes their place.
const REPLACED_BY_CJK: [&str; 3] = ["chinese", "japanese", "korean"];

/// The words that are operators in a query.
const OPERATORS: [&str; 3] = ["AND", "OR", "NOT"];

static ANALYZER: KeywordOption<TextAnalyzer> = KeywordOption {
    name: "analyzer",
    words: &[
        ("standard", TextAnalyzer::Standard),
        ("simple", TextAnalyzer::Simple),
        ("whitespace", TextAnalyzer::Whitespace),
        ("english", TextAnalyzer::English),
        ("german", TextAnalyzer::German),
        ("french", TextAnalyzer::French),
        ("spanish", TextAnalyzer::Spanish),
        ("italian", TextAnalyzer::Italian),
        ("portuguese", TextAnalyzer::Portuguese),
        ("russian", TextAnalyzer::Russian),
        ("cjk", TextAnalyzer::Cjk),
    ],
    default: 0,
};
static POSITIONS: KeywordOption<bool> = KeywordOption {
    name: "positions",
    words: &[("true", true), ("false", false)],
    default: 0,
};

/// Whether a class is that of full-text indexes, in upper or lower case.
pub fn is_full_text_class(class: &str) -> bool {
    class.eq_ignore_ascii_case(CLASS)
}

/// The rule by which a text becomes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextAnalyzer {
    /// Runs of letters and digits in lower case, without English stop words.
    Standard,
    /// Runs of letters and digits in lower case.
    Simple,
    /// The texts between white space, as they are.
    Whitespace,
    /// Stems of English words.
    English,
    /// Stems of German words.
    German,
    /// Stems of French words.
    French,
    /// Stems of Spanish words.
    Spanish,
    /// Stems of Italian words.
    Italian,
    /// Stems of Portuguese words.
    Portuguese,
    /// Stems of Russian words.
    Russian,
    /// Pairs of neighbouring Chinese, Japanese and Korean characters; other text as
    /// [`TextAnalyzer::Simple`].
    Cjk,
}

impl TextAnalyzer {
    /// The word of the option `analyzer`.
    pub fn name(self) -> &'static str {
        let word = ANALYZER.words.iter().find(|(_, meaning)| *meaning == self);
        word.map_or("standard", |(word, _)| *word)
    }

    /// The analyzer of a name, in upper or lower case.
    pub fn of(name: &str) -> Option<TextAnalyzer> {
        ANALYZER.find(name).map(|(_, analyzer)| *analyzer)
    }
}

/// The options of a full-text index that are in effect (contract, section 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullTextOptions {
    /// The rule by which documents and queries become tokens.
    pub analyzer: TextAnalyzer,
    /// Whether the index knows the position of a token. Without that it serves no phrases.
    pub positions: bool,
}

impl Default for FullTextOptions {
    fn default() -> FullTextOptions {
        FullTextOptions {
            analyzer: TextAnalyzer::Standard,
            positions: true,
        }
    }
}

impl FullTextOptions {
    /// Checks the options that a user gives.
    ///
    /// # Errors
    /// If an option is reserved, unknown or has a wrong value.
    pub fn check(options: &BTreeMap<String, String>) -> Result<FullTextOptions, CqlError> {
        let class = SearchClass::FullText;
        for (key, value) in options {
            check_reserved(key)?;
            let checked = match key.as_str() {
                "analyzer" => check_analyzer(value),
                "positions" => POSITIONS.check(value),
                _ => return Err(unsupported(key, class)),
            };
            checked.map_err(|reason| invalid_value(key, class, &reason))?;
        }
        Ok(FullTextOptions::of(|name| {
            options.get(name).map(String::as_str)
        }))
    }

    /// The options as the schema has them. What is absent has its default, and so has a value that
    /// CREATE INDEX should have refused.
    pub fn of<'a>(option: impl Fn(&str) -> Option<&'a str>) -> FullTextOptions {
        let default = FullTextOptions::default();
        let positions = option(POSITIONS.name).and_then(|value| POSITIONS.find(value));
        FullTextOptions {
            analyzer: option(ANALYZER.name)
                .and_then(TextAnalyzer::of)
                .unwrap_or(default.analyzer),
            positions: positions.map_or(default.positions, |(_, positions)| *positions),
        }
    }
}

fn check_analyzer(value: &str) -> Result<(), String> {
    let mut replaced = REPLACED_BY_CJK.iter();
    match replaced.any(|name| name.eq_ignore_ascii_case(value)) {
        true => Err(format!(
            "'{value}'. Use cjk, which finds Chinese, Japanese and Korean words by pairs of \
             characters"
        )),
        false => ANALYZER.check(value),
    }
}

/// Makes of a text the query for its words as they are: each word is escaped, so that the query has
/// no operator, and a document with any of the words matches.
pub fn words_as_they_are(text: &str) -> String {
    let mut query = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !query.is_empty() {
            query.push(' ');
        }
        let mut operators = OPERATORS.iter();
        if operators.any(|operator| operator.eq_ignore_ascii_case(word)) {
            query.push('\\');
        }
        for character in word.chars() {
            if character.is_ascii_punctuation() {
                query.push('\\');
            }
            query.push(character);
        }
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(key: &str, value: &str) -> Result<FullTextOptions, String> {
        FullTextOptions::check(&BTreeMap::from([(key.to_owned(), value.to_owned())]))
            .map_err(|error| error.message)
    }

    #[test]
    fn every_analyzer_is_taken_by_its_name_in_any_case() {
        for (name, analyzer) in ANALYZER.words {
            assert_eq!(analyzer.name(), *name);
            for name in [(*name).to_owned(), name.to_uppercase()] {
                assert_eq!(TextAnalyzer::of(&name), Some(*analyzer));
                let options = check_one("analyzer", &name).unwrap();
                assert_eq!((options.analyzer, options.positions), (*analyzer, true));
            }
        }
        assert_eq!(TextAnalyzer::of("klingon"), None);
        assert!(is_full_text_class("FullText_Index") && !is_full_text_class("vector_index"));
    }

    #[test]
    fn positions_are_kept_unless_the_option_is_false() {
        assert!(check_one("positions", "TRUE").unwrap().positions);
        assert!(!check_one("positions", "False").unwrap().positions);
        let defaults = FullTextOptions::check(&BTreeMap::new());
        assert_eq!(defaults, Ok(FullTextOptions::default()));
    }

    #[test]
    fn wrong_options_are_named_with_what_is_right() {
        let invalid = |key: &str, reason: &str| {
            Err(format!(
                "Invalid value in option '{key}' for full-text index: {reason}"
            ))
        };
        assert_eq!(
            check_one("analyzer", "klingon"),
            invalid(
                "analyzer",
                "'klingon'. Supported are case insensitive: standard, simple, whitespace, \
                 english, german, french, spanish, italian, portuguese, russian, cjk"
            )
        );
        for name in ["chinese", "Japanese", "KOREAN"] {
            let error = check_one("analyzer", name).unwrap_err();
            assert!(error.contains("Use cjk, which finds"), "{error}");
        }
        assert_eq!(
            check_one("positions", "yes"),
            invalid(
                "positions",
                "'yes'. Supported are case insensitive: true, false"
            )
        );
        assert_eq!(
            check_one("similarity_function", "cosine"),
            Err("Unsupported option similarity_function for full-text index".to_owned())
        );
        for reserved in ["class_name", "index_version", "target"] {
            assert_eq!(
                check_one(reserved, "x"),
                Err(format!("Cannot specify {reserved} as a CUSTOM option"))
            );
        }
    }

    #[test]
    fn stored_values_that_mean_nothing_are_taken_as_defaults() {
        let options = FullTextOptions::of(|_| Some("nonsense"));
        assert_eq!(options, FullTextOptions::default());
        let options = FullTextOptions::of(|name| match name {
            "analyzer" => Some("Russian"),
            "positions" => Some("false"),
            _ => None,
        });
        assert_eq!(
            options,
            FullTextOptions {
                analyzer: TextAnalyzer::Russian,
                positions: false,
            }
        );
    }

    #[test]
    fn words_as_they_are_have_no_operator() {
        for (text, query) in [
            ("", ""),
            (" \n\t ", ""),
            ("red  shoes", "red shoes"),
            ("C++ (or C#)?", r"C\+\+ \(or C\#\)\?"),
            ("cats AND dogs or not", r"cats \AND dogs \or \not"),
            (r#""a b"~2 -c wor* d^3"#, r#"\"a b\"\~2 \-c wor\* d\^3"#),
            (r"back\slash title:x", r"back\\slash title\:x"),
            ("Ångström 東京", "Ångström 東京"),
        ] {
            assert_eq!(words_as_they_are(text), query, "{text}");
        }
    }
}
