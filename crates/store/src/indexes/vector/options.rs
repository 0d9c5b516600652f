//! The options of an index on vectors in the words of the engine.

use index::{Quantization, SimilarityFunction, VectorOptions};

use crate::options::FullVectorPlacement;

/// The options for the index engine. `placement` says where it keeps full vectors.
pub(super) fn engine_options(
    options: &VectorOptions,
    placement: FullVectorPlacement,
) -> ann::NeighbourIndexOptions {
    ann::NeighbourIndexOptions {
        dimensions: options.dimensions,
        metric: match options.effective_metric() {
            SimilarityFunction::Cosine => ann::DistanceMetric::Cosine,
            SimilarityFunction::Euclidean => ann::DistanceMetric::Euclidean,
            SimilarityFunction::DotProduct => ann::DistanceMetric::DotProduct,
            SimilarityFunction::Hamming => ann::DistanceMetric::Hamming,
        },
        quantization: match options.quantization {
            Quantization::F32 => ann::VectorQuantization::F32,
            Quantization::F16 => ann::VectorQuantization::F16,
            Quantization::Bf16 => ann::VectorQuantization::Bf16,
            Quantization::I8 => ann::VectorQuantization::I8,
            Quantization::B1 => ann::VectorQuantization::B1,
        },
        codes: ann::CodeChoice::Auto,
        placement: match placement {
            FullVectorPlacement::File => ann::VectorPlacement::File,
            FullVectorPlacement::Memory => ann::VectorPlacement::Memory,
        },
        max_connections: options.maximum_node_connections,
        build_beam_width: options.construction_beam_width,
        search_beam_width: options.reported_search_beam_width(),
    }
}
