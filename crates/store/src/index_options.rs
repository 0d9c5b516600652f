//! The options of an index, read from the schema.

use std::collections::HashMap;

use index::VectorOptions;
use index::options::{StoredOptions, UnusableOption};

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
