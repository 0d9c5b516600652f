//! The options of a ranking of several searches:
//! `WITH hybrid_options = {'candidates': 100, 'rank_constant': 60, 'weights': [0.7, 0.3]}`.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use cql::ast::Select;
use cql::error::CqlError;

use crate::select_options::{self, HYBRID_OPTIONS};

/// The most rows that each search may be requested for.
pub const CANDIDATES_MAX: usize = 10_000;
/// The least rows that each search is requested for by default.
const CANDIDATES_DEFAULT: usize = 100;
/// The constant that is added to ranks by default, as the field has it: the first ranks count
/// little more than the next ones.
const RANK_CONSTANT_DEFAULT: u32 = 60;
/// The values that the constant may have.
const RANK_CONSTANTS: RangeInclusive<u32> = 1..=10_000;
/// The values that a weight may have.
const WEIGHTS: RangeInclusive<f64> = 0.0..=1_000.0;

/// The options of a ranking of several searches.
#[derive(Clone, Debug, PartialEq)]
pub struct HybridOptions {
    /// The number of rows that each search is requested for; `None` for the default.
    candidates: Option<usize>,
    /// The number that is added to each rank.
    pub rank_constant: u32,
    /// The weights of the searches of RRF, one for each; empty if all have the weight 1.
    pub weights: Vec<f64>,
}

impl Default for HybridOptions {
    fn default() -> HybridOptions {
        HybridOptions {
            candidates: None,
            rank_constant: RANK_CONSTANT_DEFAULT,
            weights: Vec::new(),
        }
    }
}

impl HybridOptions {
    /// Reads the options of a SELECT that ranks by several searches. `fused` is the number of
    /// searches in RRF; `None` for an expression, which has neither weights nor a constant.
    ///
    /// # Errors
    /// An option that there is not, and a value out of its range.
    pub fn of(select: &Select, fused: Option<usize>) -> Result<HybridOptions, CqlError> {
        let mut options = HybridOptions::default();
        for (name, value) in select_options::entries(select, HYBRID_OPTIONS, "'candidates': 100")? {
            match (name.as_str(), fused) {
                ("candidates", _) => {
                    let candidates = number(name, value, &(1..=CANDIDATES_MAX))?;
                    options.candidates = Some(candidates);
                }
                ("rank_constant", Some(_)) => {
                    options.rank_constant = number(name, value, &RANK_CONSTANTS)?;
                }
                ("weights", Some(count)) => options.weights = weights(value, count)?,
                ("rank_constant" | "weights", None) => {
                    return Err(CqlError::invalid(format!(
                        "The hybrid option '{name}' is for ORDER BY RRF(...): write numbers into the expression instead"
                    )));
                }
                _ => {
                    return Err(CqlError::invalid(format!(
                        "Unknown hybrid option: '{name}'. Those that there are: 'candidates', 'rank_constant', 'weights'"
                    )));
                }
            }
        }
        Ok(options)
    }

    /// Checks a SELECT that does not rank by several searches.
    ///
    /// # Errors
    /// If it has options.
    pub fn none_of(select: &Select) -> Result<(), CqlError> {
        select_options::entries(select, HYBRID_OPTIONS, "'candidates': 100")?;
        match select_options::has(select, HYBRID_OPTIONS) {
            false => Ok(()),
            true => Err(CqlError::invalid(
                "WITH hybrid_options is for queries with ORDER BY RRF(...) or an expression of scores: add that, or \
                 leave it out",
            )),
        }
    }

    /// The number of rows that each search is requested for, where the answer has `limit` rows.
    ///
    /// # Errors
    /// If that is fewer than the answer has.
    pub fn candidates(&self, limit: usize) -> Result<usize, CqlError> {
        match self.candidates {
            None => Ok(limit.max(CANDIDATES_DEFAULT)),
            Some(candidates) if candidates >= limit => Ok(candidates),
            Some(candidates) => Err(CqlError::invalid(format!(
                "Invalid 'candidates' hybrid option: {candidates} is out of valid range [{limit} - {CANDIDATES_MAX}], as \
                 LIMIT is {limit}"
            ))),
        }
    }

    /// The weight of the search at this position of RRF.
    pub fn weight(&self, position: usize) -> f64 {
        self.weights.get(position).copied().unwrap_or(1.0)
    }
}

fn number<T: FromStr + PartialOrd + Display>(
    name: &str,
    value: &str,
    range: &RangeInclusive<T>,
) -> Result<T, CqlError> {
    let number = value.trim().parse::<T>().map_err(|_| {
        CqlError::invalid(format!(
            "Invalid '{name}' hybrid option. Expected a number, but found: {value}"
        ))
    })?;
    match range.contains(&number) {
        true => Ok(number),
        false => Err(CqlError::invalid(format!(
            "Invalid '{name}' hybrid option: {value} is out of valid range [{} - {}]",
            range.start(),
            range.end()
        ))),
    }
}

fn weights(value: &str, count: usize) -> Result<Vec<f64>, CqlError> {
    let list = value.trim().strip_prefix('[');
    let list = list.and_then(|list| list.strip_suffix(']'));
    let list = list.ok_or_else(|| {
        CqlError::invalid(format!(
            "Invalid 'weights' hybrid option. Expected a list of numbers, but found: {value}"
        ))
    })?;
    let weights = match list.trim().is_empty() {
        true => Vec::new(),
        false => list
            .split(',')
            .map(|weight| number("weights", weight.trim(), &WEIGHTS))
            .collect::<Result<Vec<f64>, CqlError>>()?,
    };
    match weights.len() == count {
        true => Ok(weights),
        false => Err(CqlError::invalid(format!(
            "Invalid 'weights' hybrid option: RRF has {count} searches, but there are {} weights",
            weights.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use cql::ast::Statement;
    use cql::parser::parse_statement;

    use super::*;

    fn select(with: &str) -> Select {
        let text = format!(
            "SELECT id FROM t ORDER BY RRF(ANN(v, ?), BM25(c, ?)) LIMIT 3 WITH hybrid_options = {with}"
        );
        match parse_statement(&text).unwrap().statement {
            Statement::Select(select) => select,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_have_defaults_and_values() {
        let options = HybridOptions::of(&select("{}"), Some(2)).unwrap();
        assert_eq!(options, HybridOptions::default());
        assert_eq!(options.candidates(3), Ok(100));
        assert_eq!(options.candidates(300), Ok(300));
        assert_eq!((options.rank_constant, options.weight(1)), (60, 1.0));
        let text = "{'candidates': 5, 'rank_constant': '1', 'weights': [0.7, 1000]}";
        let options = HybridOptions::of(&select(text), Some(2)).unwrap();
        assert_eq!(options.candidates(5), Ok(5));
        assert_eq!((options.rank_constant, options.weight(0)), (1, 0.7));
        assert_eq!(options.weight(1), 1_000.0);
        assert!(options.candidates(6).is_err());
    }

    #[test]
    fn each_fault_is_named() {
        for (with, named) in [
            ("{'candidates': 0}", "'candidates'"),
            ("{'candidates': 10001}", "[1 - 10000]"),
            ("{'candidates': 1.5}", "Expected a number"),
            ("{'rank_constant': 0}", "'rank_constant'"),
            ("{'rank_constant': 10001}", "'rank_constant'"),
            ("{'weights': [1]}", "2 searches, but there are 1 weights"),
            ("{'weights': [1, -1]}", "-1 is out of valid range"),
            ("{'weights': [1, NaN]}", "out of valid range"),
            ("{'weights': [1, 1001]}", "[0 - 1000]"),
            ("{'weights': 1}", "Expected a list"),
            ("{'beam': 1}", "Unknown hybrid option: 'beam'"),
            ("{'candidates': 5, 'candidates': 5}", "key 'candidates'"),
            ("true", "It should be a map"),
        ] {
            let error = HybridOptions::of(&select(with), Some(2)).unwrap_err();
            assert!(error.message.contains(named), "{with}: {error}");
        }
        let of_expression = HybridOptions::of(&select("{'weights': [1, 1]}"), None).unwrap_err();
        assert!(of_expression.message.contains("is for ORDER BY RRF"));
        assert!(HybridOptions::none_of(&select("{}")).is_err());
    }
}
