//! The options of an index, read from the schema and told to the index engine.

use std::collections::HashMap;

use index::options::{Stored, Unusable};
use index::{Metric, Quantization, VectorOptions};

use crate::identity::IndexName;

/// Reads the options of an index. A log line tells each value that can't be used.
pub fn vector_options(
    name: &IndexName,
    dimensions: usize,
    options: &HashMap<String, String>,
) -> VectorOptions {
    let unusable = &mut |unusable: Unusable<'_>| {
        let Unusable {
            option,
            value,
            default,
        } = unusable;
        tracing::warn!(index = %name, key = option, value, %default, "an option of the index can't be used; its default is taken");
    };
    let option = |name: &str| options.get(name).map(String::as_str);
    VectorOptions::read(dimensions, Stored { option, unusable })
}

/// The options for the index engine. `placement` says where it keeps full vectors.
pub fn engine_options(options: &VectorOptions, placement: ann::Placement) -> ann::Options {
    ann::Options {
        dimensions: options.dimensions,
        metric: match options.effective_metric() {
            Metric::Cosine => ann::Metric::Cosine,
            Metric::Euclidean => ann::Metric::Euclidean,
            Metric::DotProduct => ann::Metric::DotProduct,
            Metric::Hamming => ann::Metric::Hamming,
        },
        quantization: match options.quantization {
            Quantization::F32 => ann::Quantization::F32,
            Quantization::F16 => ann::Quantization::F16,
            Quantization::Bf16 => ann::Quantization::Bf16,
            Quantization::I8 => ann::Quantization::I8,
            Quantization::B1 => ann::Quantization::B1,
        },
        codes: ann::Codes::Auto,
        placement,
        max_connections: options.maximum_node_connections,
        build_beam_width: options.construction_beam_width,
        search_beam_width: options.search_beam_width_told(),
    }
}
