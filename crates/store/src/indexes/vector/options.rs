//! The options of an index on vectors in the words of the engine.

use index::{Metric, Quantization, VectorOptions};

use crate::options::Placement;

/// The options for the index engine. `placement` says where it keeps full vectors.
pub fn engine_options(options: &VectorOptions, placement: Placement) -> ann::Options {
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
        placement: match placement {
            Placement::File => ann::Placement::File,
            Placement::Memory => ann::Placement::Memory,
        },
        max_connections: options.maximum_node_connections,
        build_beam_width: options.construction_beam_width,
        search_beam_width: options.search_beam_width_told(),
    }
}
