//! The accuracy and the memory of each form of keeping vectors.

use ann::{DistanceMetric, NeighbourIndex, NeighbourIndexOptions, VectorQuantization};

use crate::data::{Rng, clustered};
use crate::oracle::{Oracle, build};

/// A few more vectors than a search scans, so that it walks.
const VECTORS: usize = 1_600;

/// Clustered vectors in an index of this form, an oracle over them, and queries.
fn setup(
    metric: DistanceMetric,
    quantization: VectorQuantization,
) -> (NeighbourIndex, Oracle, Vec<Vec<f32>>) {
    let mut rng = Rng(51);
    let mut vectors = clustered(&mut rng, VECTORS + 20, 40, 30, 0.6);
    let queries = vectors.split_off(VECTORS);
    let options = NeighbourIndexOptions {
        metric,
        quantization,
        ..NeighbourIndexOptions::new(40)
    };
    let index = build(options, &vectors);
    let oracle = Oracle::of(index.options().metric, &vectors);
    (index, oracle, queries)
}

#[test]
fn distances_are_as_exact_as_the_form() {
    use DistanceMetric::*;
    use VectorQuantization::*;
    for (metric, quantization, tolerance) in [
        (Cosine, F32, 1e-6),
        (Euclidean, F32, 1e-6),
        (DotProduct, F32, 1e-6),
        (Hamming, F32, 0.0),
        (Cosine, F16, 0.001),
        (Euclidean, F16, 0.002),
        (DotProduct, F16, 0.005),
        (Cosine, Bf16, 0.005),
        (Euclidean, Bf16, 0.05),
        (Cosine, I8, 0.01),
        (Euclidean, I8, 0.05),
        (DotProduct, I8, 0.05),
        (Cosine, B1, 0.0),
    ] {
        let (index, oracle, queries) = setup(metric, quantization);
        for k in [10, VECTORS] {
            let shares = queries
                .iter()
                .map(|q| oracle.check(&index, q, k, tolerance));
            let recall = shares.sum::<f64>() / queries.len() as f64;
            assert!(recall >= 0.97, "{metric:?} {quantization:?} {recall}");
        }
    }
}

#[test]
fn one_bit_vectors_are_measured_by_hamming_whatever_was_asked() {
    let asked = NeighbourIndexOptions {
        metric: DistanceMetric::Euclidean,
        quantization: VectorQuantization::B1,
        ..NeighbourIndexOptions::new(11)
    };
    let index = build(asked, &[vec![5.0; 11], vec![-5.0; 11], vec![0.0; 11]]);
    assert_eq!(index.options().metric, DistanceMetric::Hamming);
    let mut query = vec![-1.0; 11];
    query[10] = 1e-30;
    let found = index.search(&query, 3).expect("search");
    let rows: Vec<(u32, f32)> = found.iter().map(|n| (n.id, n.distance)).collect();
    assert_eq!(rows, [(1, 1.0), (2, 1.0), (0, 10.0)]);
}

#[test]
fn smaller_forms_take_less_memory() {
    use VectorQuantization::*;
    let bytes = |quantization| {
        let mut rng = Rng(52);
        let options = NeighbourIndexOptions {
            quantization,
            ..NeighbourIndexOptions::new(256)
        };
        let vectors: Vec<_> = (0..600).map(|_| rng.vector(256)).collect();
        let memory = build(options, &vectors).memory();
        memory.anonymous() + memory.mapped()
    };
    let sizes = [F32, F16, I8, B1].map(bytes);
    assert!(sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
    assert_eq!(bytes(F16), bytes(Bf16));
    // Between four and two bytes an element the difference is 512 bytes a vector.
    assert!(sizes[0] - sizes[1] >= 600 * 512);
}
