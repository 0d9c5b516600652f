//! `WITH OPTIONS = {...}` of a vector index: one table, by which CREATE INDEX checks the options
//! and everyone reads them (contract, sections 1.4 and 3.2).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use cql::error::CqlError;
use uuid::Uuid;

use crate::metric::{METRICS, QUANTIZATIONS};
use crate::{Quantization, SearchClass, SimilarityFunction};

/// Names of options that the database itself adds to an index. Users can't give them.
const RESERVED: [&str; 3] = ["class_name", "index_version", "target"];

/// The option with the number of dimensions of the indexed column.
const DIMENSIONS: &str = "dimensions";

/// The options whose values need nothing but themselves for their check.
const OPTIONS: [&(dyn CheckedOption + Sync); 8] = [
    &SIMILARITY,
    &CONNECTIONS,
    &CONSTRUCTION,
    &SEARCH,
    &QUANTIZATION,
    &OVERSAMPLING,
    &RESCORING,
    &TextOption("source_model"),
];

static SIMILARITY: KeywordOption<SimilarityFunction> = KeywordOption {
    name: "similarity_function",
    words: &METRICS,
    default: 0,
};
static CONNECTIONS: IntegerOption = IntegerOption {
    name: "maximum_node_connections",
    range: 1..=512,
    default: Some(16),
};
static CONSTRUCTION: IntegerOption = IntegerOption {
    name: "construction_beam_width",
    range: 1..=4096,
    default: Some(128),
};
static SEARCH: IntegerOption = IntegerOption {
    name: "search_beam_width",
    range: 1..=4096,
    default: None,
};
static QUANTIZATION: KeywordOption<Quantization> = KeywordOption {
    name: "quantization",
    words: &QUANTIZATIONS,
    default: 0,
};
static OVERSAMPLING: DecimalOption = DecimalOption {
    name: "oversampling",
    range: 1.0..=100.0,
    default: 1.0,
};
static RESCORING: KeywordOption<bool> = KeywordOption {
    name: "rescoring",
    words: &[("true", true), ("false", false)],
    default: 1,
};

/// An option that can check a value.
pub(crate) trait CheckedOption {
    fn name(&self) -> &'static str;

    /// Checks a value. The error says why it is none, for the end of a sentence.
    fn check(&self, value: &str) -> Result<(), String>;
}

/// An option whose value is one of some words, in upper or lower case.
pub(crate) struct KeywordOption<T: 'static> {
    pub name: &'static str,
    pub words: &'static [(&'static str, T)],
    /// The position of the default in the words.
    pub default: usize,
}

/// An option whose value is a whole number.
struct IntegerOption {
    name: &'static str,
    range: RangeInclusive<usize>,
    /// The default; `None` if the option may be absent.
    default: Option<usize>,
}

/// An option whose value is a number with a fraction.
struct DecimalOption {
    name: &'static str,
    range: RangeInclusive<f64>,
    default: f64,
}

/// An option whose value may be any text.
struct TextOption(&'static str);

impl<T> KeywordOption<T> {
    pub fn find(&self, value: &str) -> Option<&'static (&'static str, T)> {
        let mut words = self.words.iter();
        words.find(|(word, _)| word.eq_ignore_ascii_case(value))
    }
}

impl<T> CheckedOption for KeywordOption<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn check(&self, value: &str) -> Result<(), String> {
        if self.find(value).is_some() {
            return Ok(());
        }
        let words: Vec<&str> = self.words.iter().map(|(word, _)| *word).collect();
        Err(format!(
            "'{value}'. Supported are case insensitive: {}",
            words.join(", ")
        ))
    }
}

impl CheckedOption for IntegerOption {
    fn name(&self) -> &'static str {
        self.name
    }

    fn check(&self, value: &str) -> Result<(), String> {
        let number = integer(value)?;
        let is_within = usize::try_from(number).is_ok_and(|number| self.range.contains(&number));
        in_range(value, is_within, self.range.start(), self.range.end())
    }
}

impl CheckedOption for DecimalOption {
    fn name(&self) -> &'static str {
        self.name
    }

    fn check(&self, value: &str) -> Result<(), String> {
        let number: f64 = value
            .parse()
            .map_err(|_| format!("'{value}' is not a float"))?;
        let (min, max) = (self.range.start(), self.range.end());
        in_range(
            value,
            self.range.contains(&number),
            &format_args!("{min:?}"),
            &format_args!("{max:?}"),
        )
    }
}

impl CheckedOption for TextOption {
    fn name(&self) -> &'static str {
        self.0
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Checks the options of an index on a column of `dimensions` dimensions.
///
/// # Errors
/// If an option is reserved, unknown or has a wrong value. The texts are ScyllaDB's.
pub fn check(options: &BTreeMap<String, String>, dimensions: u16) -> Result<(), CqlError> {
    for (key, value) in options {
        check_reserved(key)?;
        let known = OPTIONS.iter().find(|option| option.name() == key);
        let checked = match known {
            Some(option) => option.check(value),
            None if key == DIMENSIONS => check_dimensions(value, dimensions),
            None => return Err(unsupported(key, SearchClass::Vector)),
        };
        checked.map_err(|reason| invalid_value(key, SearchClass::Vector, &reason))?;
    }
    Ok(())
}

/// The error for an option that indexes of a class do not have.
pub(crate) fn unsupported(option: &str, class: SearchClass) -> CqlError {
    CqlError::invalid(format!("Unsupported option {option} for {}", class.noun()))
}

/// The error for a wrong value of an option. `reason` says why, for the end of a sentence.
pub(crate) fn invalid_value(option: &str, class: SearchClass, reason: &str) -> CqlError {
    CqlError::invalid(format!(
        "Invalid value in option '{option}' for {}: {reason}",
        class.noun()
    ))
}

/// Checks that an option is none of those that the database adds.
pub(crate) fn check_reserved(name: &str) -> Result<(), CqlError> {
    match RESERVED.contains(&name) {
        true => Err(CqlError::invalid(format!(
            "Cannot specify {name} as a CUSTOM option"
        ))),
        false => Ok(()),
    }
}

fn check_dimensions(value: &str, dimensions: u16) -> Result<(), String> {
    match integer(value)? == i64::from(dimensions) {
        true => Ok(()),
        false => Err(format!(
            "'{value}' differs from the {dimensions} dimensions of the column"
        )),
    }
}

fn integer(value: &str) -> Result<i64, String> {
    value
        .parse()
        .map_err(|_| format!("'{value}' is not an integer"))
}

fn in_range(
    value: &str,
    is_within: bool,
    min: &dyn Display,
    max: &dyn Display,
) -> Result<(), String> {
    match is_within {
        true => Ok(()),
        false => Err(format!("'{value}' is out of valid range [{min} - {max}]")),
    }
}

/// A stored option that has no meaning, so that its default is taken.
pub struct UnusableOption<'a> {
    /// The name of the option.
    pub option: &'static str,
    /// The stored value.
    pub value: &'a str,
    /// The default that is taken, as a word.
    pub default: String,
}

/// The options of an index as the schema has them. An absent option has its default. So has a value
/// that CREATE INDEX should have refused.
pub struct StoredOptions<'a, F> {
    /// Finds the value of an option by its name.
    pub option: F,
    /// Is called for each value that can't be used.
    pub unusable: &'a mut dyn FnMut(UnusableOption<'_>),
}

impl<'o, F: Fn(&str) -> Option<&'o str>> StoredOptions<'_, F> {
    fn word<T: Copy>(&mut self, option: &KeywordOption<T>) -> T {
        let (default_word, default) = option.words[option.default];
        let Some(value) = (self.option)(option.name) else {
            return default;
        };
        match option.find(value) {
            Some((_, meaning)) => *meaning,
            None => {
                self.complain(option.name, value, default_word);
                default
            }
        }
    }

    fn whole(&mut self, option: &IntegerOption) -> Option<usize> {
        let Some(value) = (self.option)(option.name) else {
            return option.default;
        };
        let number = value.parse().ok();
        let number = number.filter(|number| option.range.contains(number));
        if number.is_none() {
            let default = option.default.map(|default| default.to_string());
            self.complain(option.name, value, default.as_deref().unwrap_or("none"));
        }
        number.or(option.default)
    }

    fn real(&mut self, option: &DecimalOption) -> f64 {
        let Some(value) = (self.option)(option.name) else {
            return option.default;
        };
        let number = value.parse().ok();
        let number = number.filter(|number| option.range.contains(number));
        if number.is_none() {
            self.complain(option.name, value, &option.default.to_string());
        }
        number.unwrap_or(option.default)
    }

    fn complain(&mut self, option: &'static str, value: &str, default: &str) {
        (self.unusable)(UnusableOption {
            option,
            value,
            default: default.to_owned(),
        });
    }
}

/// The options of a vector index that are in effect (contract, section 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorOptions {
    /// The number of elements of a vector.
    pub dimensions: usize,
    /// The metric, as configured.
    pub similarity: SimilarityFunction,
    /// The form in which vectors are stored.
    pub quantization: Quantization,
    /// The `m` of HNSW.
    pub maximum_node_connections: usize,
    /// The `ef_construction` of HNSW.
    pub construction_beam_width: usize,
    /// The `ef` of HNSW, if the schema has it. A search then keeps about this many candidates, and
    /// without it as many as good recall needs.
    pub search_beam_width: Option<usize>,
}

/// The width that the API reports for an index whose schema has no `search_beam_width`.
const SEARCH_BEAM_WIDTH: usize = 64;

impl VectorOptions {
    /// The options in effect of an index on a column of `dimensions` dimensions.
    pub fn read<'o>(
        dimensions: usize,
        mut stored: StoredOptions<'_, impl Fn(&str) -> Option<&'o str>>,
    ) -> VectorOptions {
        VectorOptions {
            dimensions,
            similarity: stored.word(&SIMILARITY),
            quantization: stored.word(&QUANTIZATION),
            maximum_node_connections: stored.whole(&CONNECTIONS).unwrap_or_default(),
            construction_beam_width: stored.whole(&CONSTRUCTION).unwrap_or_default(),
            search_beam_width: stored.whole(&SEARCH),
        }
    }

    /// The width of a search that the API reports (contract, section 3.2).
    pub fn reported_search_beam_width(&self) -> usize {
        self.search_beam_width.unwrap_or(SEARCH_BEAM_WIDTH)
    }

    /// The metric in effect. Vectors of one bit an element (`B1`) have only the
    /// Hamming distance.
    pub fn effective_metric(&self) -> SimilarityFunction {
        match self.quantization {
            Quantization::B1 => SimilarityFunction::Hamming,
            _ => self.similarity,
        }
    }
}

/// How many candidates the options require, and whether they are put in order again.
pub(crate) struct CandidateOptions {
    pub oversampling: f64,
    pub rescoring: bool,
    pub quantization: Quantization,
    pub similarity: SimilarityFunction,
}

impl CandidateOptions {
    pub fn read<'o>(option: impl Fn(&str) -> Option<&'o str>) -> CandidateOptions {
        let mut stored = StoredOptions {
            option,
            unusable: &mut |_| {},
        };
        CandidateOptions {
            oversampling: stored.real(&OVERSAMPLING),
            rescoring: stored.word(&RESCORING),
            quantization: stored.word(&QUANTIZATION),
            similarity: stored.word(&SIMILARITY),
        }
    }
}

/// The version that CREATE INDEX gave the index, of the options that the schema has.
pub fn version<'o>(option: impl Fn(&str) -> Option<&'o str>) -> Option<Uuid> {
    option("index_version")?.parse().ok()
}

/// The class of an index of the schema, by its options: that of vector indexes if they name none.
/// `None` if an index of the class is not for an index service.
pub fn class<'o>(option: impl Fn(&str) -> Option<&'o str>) -> Option<SearchClass> {
    match option("class_name") {
        None => Some(SearchClass::Vector),
        Some(name) => SearchClass::of(name),
    }
}

/// Whether an index of the schema is a vector index: its class is the one of vector indexes, or it
/// has none.
pub fn is_vector_index<'o>(option: impl Fn(&str) -> Option<&'o str>) -> bool {
    class(option) == Some(SearchClass::Vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(key: &str, value: &str) -> Result<(), String> {
        check(&BTreeMap::from([(key.to_owned(), value.to_owned())]), 3)
            .map_err(|error| error.message)
    }

    #[test]
    fn values_within_their_bounds_are_taken() {
        for (key, value) in [
            ("similarity_function", "cosine"),
            ("similarity_function", "DOT_PRODUCT"),
            ("similarity_function", "Euclidean"),
            ("maximum_node_connections", "1"),
            ("maximum_node_connections", "512"),
            ("construction_beam_width", "4096"),
            ("search_beam_width", "1"),
            ("quantization", "BF16"),
            ("oversampling", "1"),
            ("oversampling", "100.0"),
            ("rescoring", "TRUE"),
            ("source_model", "anything, even nothing"),
            ("source_model", ""),
            ("dimensions", "3"),
        ] {
            assert_eq!(check_one(key, value), Ok(()), "{key} = {value}");
        }
    }

    #[test]
    #[expect(
        clippy::too_many_lines,
        reason = "one table: each wrong value with its message"
    )]
    fn wrong_values_are_explained() {
        let invalid = |key: &str, reason: &str| {
            format!("Invalid value in option '{key}' for vector index: {reason}")
        };
        for (key, value, reason) in [
            (
                "similarity_function",
                "manhattan",
                "'manhattan'. Supported are case insensitive: cosine, euclidean, dot_product",
            ),
            (
                "maximum_node_connections",
                "0",
                "'0' is out of valid range [1 - 512]",
            ),
            (
                "maximum_node_connections",
                "513",
                "'513' is out of valid range [1 - 512]",
            ),
            (
                "maximum_node_connections",
                "many",
                "'many' is not an integer",
            ),
            (
                "maximum_node_connections",
                "16.0",
                "'16.0' is not an integer",
            ),
            (
                "construction_beam_width",
                "4097",
                "'4097' is out of valid range [1 - 4096]",
            ),
            (
                "search_beam_width",
                "-1",
                "'-1' is out of valid range [1 - 4096]",
            ),
            (
                "quantization",
                "i4",
                "'i4'. Supported are case insensitive: f32, f16, bf16, i8, b1",
            ),
            ("oversampling", "0x10", "'0x10' is not a float"),
            ("oversampling", "  9  ", "'  9  ' is not a float"),
            (
                "oversampling",
                "0.9",
                "'0.9' is out of valid range [1.0 - 100.0]",
            ),
            (
                "oversampling",
                "100.1",
                "'100.1' is out of valid range [1.0 - 100.0]",
            ),
            (
                "oversampling",
                "NaN",
                "'NaN' is out of valid range [1.0 - 100.0]",
            ),
            ("oversampling", "much", "'much' is not a float"),
            (
                "rescoring",
                "yes",
                "'yes'. Supported are case insensitive: true, false",
            ),
            (
                "dimensions",
                "4",
                "'4' differs from the 3 dimensions of the column",
            ),
            ("dimensions", "x", "'x' is not an integer"),
        ] {
            assert_eq!(check_one(key, value), Err(invalid(key, reason)));
        }
    }

    #[test]
    fn unknown_and_reserved_names_are_refused() {
        assert_eq!(
            check_one("m", "16").unwrap_err(),
            "Unsupported option m for vector index"
        );
        assert_eq!(
            check_one("index_version", "1").unwrap_err(),
            "Cannot specify index_version as a CUSTOM option"
        );
    }

    fn in_effect(pairs: &[(&str, &'static str)]) -> VectorOptions {
        let option = |name: &str| Some(pairs.iter().find(|(known, _)| *known == name)?.1);
        let unusable = &mut |_: UnusableOption<'_>| {};
        VectorOptions::read(3, StoredOptions { option, unusable })
    }

    #[test]
    fn defaults() {
        let defaults = VectorOptions {
            dimensions: 3,
            similarity: SimilarityFunction::Cosine,
            quantization: Quantization::F32,
            maximum_node_connections: 16,
            construction_beam_width: 128,
            search_beam_width: None,
        };
        assert_eq!(in_effect(&[]), defaults);
        assert_eq!(
            in_effect(&[
                ("similarity_function", "taxicab"),
                ("maximum_node_connections", "513"),
                ("search_beam_width", "many"),
                ("oversampling", "2.0"),
            ]),
            defaults
        );
    }

    #[test]
    fn every_option() {
        assert_eq!(
            in_effect(&[
                ("similarity_function", "DOT_product"),
                ("quantization", "BF16"),
                ("maximum_node_connections", "512"),
                ("construction_beam_width", "4096"),
                ("search_beam_width", "1"),
            ]),
            VectorOptions {
                dimensions: 3,
                similarity: SimilarityFunction::DotProduct,
                quantization: Quantization::Bf16,
                maximum_node_connections: 512,
                construction_beam_width: 4096,
                search_beam_width: Some(1),
            }
        );
    }

    #[test]
    fn classes() {
        let is_vector = |class: Option<&str>| is_vector_index(|_| class);
        assert!(is_vector(None));
        assert!(is_vector(Some("Vector_Index")));
        assert!(!is_vector(Some("fulltext_index")));
        let of = |name: Option<&'static str>| class(|_| name);
        assert_eq!(of(None), Some(SearchClass::Vector));
        assert_eq!(of(Some("FULLTEXT_index")), Some(SearchClass::FullText));
        assert_eq!(of(Some("StorageAttachedIndex")), None);
    }
}
