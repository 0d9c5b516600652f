//! Comparison of estimates with exact distances.

use super::vectors::*;
use super::*;

/// Deviation of estimated products from the true ones, in lengths of both sides over
/// `sqrt(dimensions)`, as theory has it: of a code with a vector, or of two codes.
fn deviation(kind: CodeKind, of_codes: bool) -> f64 {
    match kind {
        // The rounding of a query's levels is negligible compared to that of the code.
        CodeKind::Nibbles if of_codes => 0.108 * std::f64::consts::SQRT_2,
        CodeKind::Nibbles => 0.108,
        // Both sides are rounded alike.
        CodeKind::Bytes => 0.012,
        CodeKind::Floats | CodeKind::Bits => 0.0,
    }
}

/// The errors of estimates: their mean and their deviation, as shares of the length of the query's
/// residual times that of the code's, over `sqrt(dimensions)`.
#[derive(Default)]
struct Errors {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Errors {
    fn add(&mut self, error: f64) {
        self.count += 1.0;
        self.sum += error;
        self.squares += error * error;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    fn deviation(&self) -> f64 {
        (self.squares / self.count).sqrt()
    }
}

/// The errors of estimated squared distances between any two of the vectors, halved to be those of
/// products.
fn errors(codebook: &Codebook, vectors: &[Vec<f32>], of_codes: bool) -> Errors {
    let blocks = blocks(codebook, vectors);
    let centred = |vector: &[f32]| minus(vector, &codebook.parts().mean);
    let length = |vector: &[f32]| f64::from(squared_norm(&centred(vector))).sqrt();
    let mut query = CodeQuery::default();
    let mut errors = Errors::default();
    for (i, a) in vectors.iter().enumerate() {
        if of_codes {
            codebook.prepare_code(&blocks[i].code, &blocks[i].meta, &mut query);
        } else {
            codebook.prepare(a, &mut query);
        }
        let found = estimates(codebook, &mut query, &blocks);
        for (j, b) in vectors.iter().enumerate().filter(|&(j, _)| j != i) {
            let error = (f64::from(found[j]) - squared_l2(a, b)) / 2.0;
            let unit = length(a) * length(b) / (a.len() as f64).sqrt();
            errors.add(error / unit);
        }
    }
    errors
}

#[test]
fn estimates_are_right_on_average_and_as_close_as_theory_says() {
    let mut source = Source(1);
    for dimensions in [96, 384, 784] {
        for clusters in [false, true] {
            let make = if clusters { clustered } else { gaussian };
            let vectors = make(&mut source, dimensions, 200);
            for kind in [CodeKind::Nibbles, CodeKind::Bytes] {
                let codebook = codebook(kind, DistanceMetric::Euclidean, &vectors);
                for of_codes in [false, true] {
                    let errors = errors(&codebook, &vectors, of_codes);
                    let expected = deviation(kind, of_codes);
                    let (mean, deviation) = (errors.mean(), errors.deviation());
                    let case = format!(
                        "{kind:?}, {dimensions}, {clusters}, {of_codes}: {mean}, {deviation}"
                    );
                    assert!(mean.abs() < 0.2 * expected, "{case}");
                    assert!(deviation < 1.15 * expected, "{case}");
                    assert!(deviation > 0.6 * expected, "{case}");
                }
            }
        }
    }
}

/// The values that estimates approximate, of a search and of linking alike.
fn expected_estimate(metric: DistanceMetric, a: &[f32], b: &[f32]) -> f64 {
    match metric {
        DistanceMetric::DotProduct => -2.0 * dot(a, b),
        _ => squared_l2(a, b),
    }
}

/// Checks every kind, metric and way to make a query, for many dimensions. Few errors are larger
/// than five deviations; few dimensions, where the rotation mixes little, have more of these.
#[test]
fn estimates_follow_the_metric() {
    let mut source = Source(2);
    for dimensions in [1, 2, 3, 31, 96, 384, 784, 1536] {
        for (metric, kind) in METRICS.iter().flat_map(|&m| KINDS.map(|k| (m, k))) {
            let mut vectors = gaussian(&mut source, dimensions, 12);
            if metric == DistanceMetric::Cosine {
                vectors = vectors.iter().map(|v| unit(v)).collect();
            }
            let codebook = codebook(kind, metric, &vectors);
            let blocks = blocks(&codebook, &vectors);
            let norms = vectors.iter().map(|v| dot(v, v));
            let longest = norms.fold(0.0, f64::max);
            let spread = if dimensions < 32 { 2.5 } else { 1.0 } / (dimensions as f64).sqrt();
            let bound = |of_codes| 10.0 * (deviation(kind, of_codes) * spread + 1e-6) * longest;
            let mut query = CodeQuery::default();
            for (i, a) in vectors.iter().enumerate() {
                codebook.prepare(a, &mut query);
                let searched = estimates(&codebook, &mut query, &blocks);
                codebook.prepare_link(a, &mut query);
                let linked = estimates(&codebook, &mut query, &blocks);
                codebook.prepare_code(&blocks[i].code, &blocks[i].meta, &mut query);
                let pruned = estimates(&codebook, &mut query, &blocks);
                for (j, b) in vectors.iter().enumerate() {
                    let expected = expected_estimate(metric, a, b);
                    let case = format!("{kind:?}, {metric:?}, {dimensions}: {i} and {j}");
                    let near = |found: f32, expected: f64, bound: f64| {
                        let error = (f64::from(found) - expected).abs();
                        assert!(error <= bound, "{case}: {found} for {expected}, {bound}");
                    };
                    near(searched[j], expected, bound(false));
                    near(linked[j], expected, bound(false));
                    near(pruned[j], expected, bound(true));
                    let is_distance = metric != DistanceMetric::DotProduct;
                    assert!(
                        !is_distance || linked[j] >= 0.0 && pruned[j] >= 0.0,
                        "{case}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_vector_is_hardly_any_distance_from_its_own_code() {
    let mut source = Source(3);
    for kind in KINDS {
        let vectors = gaussian(&mut source, 384, 20);
        let codebook = codebook(kind, DistanceMetric::Euclidean, &vectors);
        let blocks = blocks(&codebook, &vectors);
        let mut query = CodeQuery::default();
        for (vector, block) in vectors.iter().zip(&blocks) {
            let own = std::slice::from_ref(block);
            codebook.prepare_link(vector, &mut query);
            let of_vector = estimates(&codebook, &mut query, own)[0] / block.meta.norm;
            codebook.prepare_code(&block.code, &block.meta, &mut query);
            let of_code = estimates(&codebook, &mut query, own)[0] / block.meta.norm;
            // Half a level of the query's rounding, averaged over the dimensions.
            assert!(of_vector < 0.002, "{kind:?}: {of_vector}");
            assert!(of_code < 1e-5, "{kind:?}: {of_code}");
        }
    }
}
