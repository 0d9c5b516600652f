//! Options of a vector index as the schema holds them (contract, section 3.2).

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use store_api::types::{Quantization, SimilarityFunction};
use uuid::Uuid;

use crate::identity::{IndexName, VectorOptions};

/// The dimensions that a vector type may have.
const DIMENSIONS: RangeInclusive<usize> = 1..=16_000;

/// Reads the options of an index. An absent option takes its default. So does a value that the
/// database should have refused, and a log line says so.
pub fn vector_options(
    name: &IndexName,
    dimensions: usize,
    options: &HashMap<String, String>,
) -> VectorOptions {
    let read = Reader { name, options };
    VectorOptions {
        dimensions,
        similarity: read.word(
            "similarity_function",
            &[
                ("cosine", SimilarityFunction::Cosine),
                ("euclidean", SimilarityFunction::Euclidean),
                ("dot_product", SimilarityFunction::DotProduct),
            ],
        ),
        quantization: read.word(
            "quantization",
            &[
                ("f32", Quantization::F32),
                ("f16", Quantization::F16),
                ("bf16", Quantization::Bf16),
                ("i8", Quantization::I8),
                ("b1", Quantization::B1),
            ],
        ),
        maximum_node_connections: read.number("maximum_node_connections", 1..=512, 16),
        construction_beam_width: read.number("construction_beam_width", 1..=4096, 128),
        search_beam_width: read.optional_number("search_beam_width", 1..=4096),
    }
}

/// The version that CREATE INDEX gave the index.
pub fn version(options: &HashMap<String, String>) -> Option<Uuid> {
    options.get("index_version")?.parse().ok()
}

/// Whether this service builds an index of that class: `vector_index`, or none named.
pub fn is_vector_index(options: &HashMap<String, String>) -> bool {
    options
        .get("class_name")
        .is_none_or(|class| class.eq_ignore_ascii_case("vector_index"))
}

/// The dimensions of the type `vector<float, n>`; `None` for any other type.
pub fn dimensions(typ: &str) -> Option<usize> {
    let inner = typ.strip_prefix("vector<")?.strip_suffix('>')?;
    let (element, dimensions) = inner.split_once(',')?;
    let dimensions = dimensions.trim().parse().ok()?;
    (element.trim() == "float" && DIMENSIONS.contains(&dimensions)).then_some(dimensions)
}

struct Reader<'a> {
    name: &'a IndexName,
    options: &'a HashMap<String, String>,
}

impl Reader<'_> {
    /// Reads an option that is one of some words, in any case. The first word is the default.
    fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> T {
        let (default_word, default) = words[0];
        let Some(value) = self.options.get(key) else {
            return default;
        };
        match words
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(value))
        {
            Some((_, meaning)) => *meaning,
            None => {
                self.complain(key, value, &default_word);
                default
            }
        }
    }

    fn number(&self, key: &str, range: RangeInclusive<usize>, default: usize) -> usize {
        let number = self.within(key, range, &default);
        number.unwrap_or(default)
    }

    fn optional_number(&self, key: &str, range: RangeInclusive<usize>) -> Option<usize> {
        self.within(key, range, &"none")
    }

    fn within(
        &self,
        key: &str,
        range: RangeInclusive<usize>,
        default: &dyn Display,
    ) -> Option<usize> {
        let value = self.options.get(key)?;
        let number = value.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            self.complain(key, value, default);
        }
        number
    }

    fn complain(&self, key: &str, value: &str, default: &dyn Display) {
        tracing::warn!(index = %self.name, key, value, %default, "an option of the index can't be used; its default is taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> VectorOptions {
        let name = IndexName {
            keyspace: "ks".into(),
            index: "idx".into(),
        };
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        vector_options(&name, 3, &pairs)
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
        assert_eq!(options(&[]), defaults);
        assert_eq!(
            options(&[
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
            options(&[
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
    fn types_of_vectors() {
        assert_eq!(dimensions("vector<float, 384>"), Some(384));
        assert_eq!(dimensions("vector<float,1>"), Some(1));
        for typ in [
            "vector<float, 0>",
            "vector<float, 16001>",
            "vector<double, 3>",
            "list<float>",
            "vector<float>",
            "float",
        ] {
            assert_eq!(dimensions(typ), None, "{typ}");
        }
    }

    #[test]
    fn classes() {
        let class = |name: &str| HashMap::from([("class_name".to_owned(), name.to_owned())]);
        assert!(is_vector_index(&HashMap::new()));
        assert!(is_vector_index(&class("Vector_Index")));
        assert!(!is_vector_index(&class("fulltext_index")));
    }
}
