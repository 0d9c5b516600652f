//! The options of a search for neighbours: `WITH ann_options = {'exact': true}` in a SELECT.

use cql::ast::Select;
use cql::error::CqlError;

use crate::select_options::{self, ANN_OPTIONS};

/// Options that make sense, for messages.
const EXAMPLE: &str = "'exact': true";

/// The options of a search for neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnOptions {
    /// Whether the answer must be the true nearest rows.
    pub exact: bool,
}

impl AnnOptions {
    /// Reads the options of a SELECT with an ordering by the similarity of vectors.
    ///
    /// # Errors
    /// An option that there is not, or a value that makes no sense.
    pub fn of(select: &Select) -> Result<AnnOptions, CqlError> {
        let mut options = AnnOptions::default();
        for (name, value) in select_options::entries(select, ANN_OPTIONS, EXAMPLE)? {
            match name.as_str() {
                "exact" => options.exact = boolean(name, value)?,
                "rerank_k" => {
                    return Err(CqlError::invalid(
                        "The ANN option 'rerank_k' is not supported, as a search measures as many candidates as its answer needs: leave it out, or ask for 'exact': true",
                    ));
                }
                _ => {
                    return Err(CqlError::invalid(format!(
                        "Unknown ANN option: '{name}'. The one that there is: 'exact'"
                    )));
                }
            }
        }
        Ok(options)
    }

    /// Checks a SELECT without an ordering by the similarity of vectors.
    ///
    /// # Errors
    /// If it has options.
    pub fn none_of(select: &Select) -> Result<(), CqlError> {
        select_options::entries(select, ANN_OPTIONS, EXAMPLE)?;
        if !select_options::has(select, ANN_OPTIONS) {
            return Ok(());
        }
        Err(CqlError::invalid(
            "WITH ann_options is for queries with ORDER BY ... ANN OF: add that, or leave WITH out",
        ))
    }
}

fn boolean(name: &str, value: &str) -> Result<bool, CqlError> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(CqlError::invalid(format!(
            "Invalid '{name}' ANN option. Expected true or false, but found: {value}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use cql::ast::Statement;
    use cql::parser::parse_statement;

    use super::*;

    fn select(with: &str) -> Select {
        let text = format!("SELECT id FROM t ORDER BY v ANN OF ? LIMIT 3 {with}");
        match parse_statement(&text).unwrap().statement {
            Statement::Select(select) => select,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn exact_is_asked_for_in_several_spellings() {
        for (with, exact) in [
            ("", false),
            ("WITH ann_options = {}", false),
            ("WITH ann_options = {'exact': true}", true),
            ("with ANN_OPTIONS={'exact':'TRUE'}", true),
            ("WITH ann_options = {'exact': False}", false),
            ("WITH ann_options = {'exact': 'false'} BYPASS CACHE", false),
        ] {
            let options = AnnOptions::of(&select(with));
            assert_eq!(options, Ok(AnnOptions { exact }), "{with}");
        }
    }

    #[test]
    fn unknown_options_and_values_are_named() {
        for (with, text) in [
            (
                "{'ef': 10}",
                "Unknown ANN option: 'ef'. The one that there is: 'exact'",
            ),
            ("{'Exact': true}", "Unknown ANN option: 'Exact'"),
            (
                "{'exact': true, 'rerank_k': 10}",
                "'rerank_k' is not supported",
            ),
            (
                "{'exact': 1}",
                "Invalid 'exact' ANN option. Expected true or false, but found: 1",
            ),
            ("{'exact': ''}", "but found: "),
            ("{'exact': true, 'exact': false}", "key 'exact'"),
            ("true", "It should be a map, such as {'exact': true}"),
            ("{} AND excluded_indexes = {}", "'excluded_indexes'"),
        ] {
            let select = select(&format!("WITH ann_options = {with}"));
            let error = AnnOptions::of(&select).unwrap_err();
            assert!(error.message.contains(text), "{with}: {error}");
            assert!(AnnOptions::none_of(&select).is_err());
        }
    }

    #[test]
    fn without_an_ordering_by_similarity_there_are_none() {
        assert_eq!(AnnOptions::none_of(&select("")), Ok(()));
        for with in [
            "WITH ann_options = {}",
            "WITH ann_options = {'exact': true}",
        ] {
            let error = AnnOptions::none_of(&select(with)).unwrap_err();
            assert!(error.message.contains("ORDER BY ... ANN OF"), "{error}");
        }
    }
}
