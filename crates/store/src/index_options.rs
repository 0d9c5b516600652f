//! The options of an index, read from the schema.

use std::collections::HashMap;

use index::options::{StoredOptions, UnusableOption};
use index::{FullTextOptions, VectorOptions};
use value::CqlType;

use crate::identity::{IndexName, StructureOptions};

/// Reads the options of an index on vectors. A log line reports each value that can't be used.
pub fn vector_options(
    name: &IndexName,
    dimensions: usize,
    options: &HashMap<String, String>,
) -> StructureOptions {
    let unusable = &mut |unusable: UnusableOption<'_>| {
        let UnusableOption {
            option,
            value,
            default,
        } = unusable;
        tracing::warn!(index = %name, key = option, value, %default, "an option of the index can't be used; its default is taken");
    };
    let option = |name: &str| options.get(name).map(String::as_str);
    StructureOptions::Vector(VectorOptions::read(
        dimensions,
        StoredOptions { option, unusable },
    ))
}

/// Reads the options of an index on texts. What is absent or can't be used has its default.
pub fn full_text_options(options: &HashMap<String, String>) -> StructureOptions {
    let option = |name: &str| options.get(name).map(String::as_str);
    StructureOptions::FullText(FullTextOptions::of(option))
}

/// Whether an index on texts can be on a column of that type.
pub fn is_text_type(cql_type: &CqlType) -> bool {
    matches!(cql_type, CqlType::Text | CqlType::Ascii)
}
