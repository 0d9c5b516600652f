//! The errors that estimates are said to have, and those that they have.

use proptest::prelude::*;

use super::centres::{about_and_apart, centre_of};
use super::vectors::*;
use super::*;

/// The way to make a query.
#[derive(Clone, Copy, Debug)]
enum Way {
    Search,
    Link,
}

/// The true value of an estimate.
fn expected(metric: DistanceMetric, a: &[f32], b: &[f32]) -> f64 {
    match metric {
        DistanceMetric::DotProduct => -2.0 * dot(a, b),
        DistanceMetric::Hamming => {
            let differ = a.iter().zip(b).filter(|(x, y)| (**x > 0.0) != (**y > 0.0));
            differ.count() as f64
        }
        DistanceMetric::Cosine | DistanceMetric::Euclidean => {
            let squares = a.iter().zip(b).map(|(x, y)| f64::from(*x) - f64::from(*y));
            squares.map(|x| x * x).sum()
        }
    }
}

/// The root mean square of errors as shares of their deviations.
fn relative_error(
    codebook: &Codebook,
    way: Way,
    queries: &[Vec<f32>],
    (vectors, blocks): (&[Vec<f32>], &[Block]),
) -> f64 {
    let metric = codebook.parts().metric;
    let mut query = CodeQuery::default();
    let (mut squares, mut count) = (0.0, 0.0);
    for (i, a) in queries.iter().enumerate() {
        match way {
            Way::Search => codebook.prepare(a, &mut query),
            Way::Link => codebook.prepare_link(a, &mut query),
        }
        let found = estimates(codebook, &mut query, blocks);
        for (j, b) in vectors.iter().enumerate().filter(|&(j, _)| j != i) {
            let error = f64::from(found[j]) - expected(metric, a, b);
            let deviation = f64::from(codebook.deviation(&mut query, &blocks[j].meta));
            squares += (error / deviation).powi(2);
            count += 1.0;
        }
    }
    f64::sqrt(squares / count)
}

#[test]
fn a_deviation_is_that_of_the_errors() {
    let mut source = Source(10);
    for dimensions in [64, 96, 384, 1536] {
        let [about, apart] = about_and_apart(&mut source, dimensions);
        let outside = &gaussian(&mut source, dimensions, 60)[..];
        for kind in [CodeKind::Nibbles, CodeKind::Bytes] {
            for metric in [DistanceMetric::Euclidean, DistanceMetric::DotProduct] {
                let codebook = codebook(kind, metric, &about);
                let centre = centre_of(&codebook, &apart);
                let cases = [
                    (ORIGIN, &about, 0.7),
                    (ORIGIN, &apart, 0.1),
                    (centre, &apart, 0.7),
                ];
                for (centre, vectors, along) in cases {
                    let blocks = blocks_from(&codebook, vectors, centre);
                    // What a code leaves out is at right angles to its vector: queries that point
                    // in much the same direction see less of it.
                    for way in [Way::Search, Way::Link] {
                        for (queries, least) in [(outside, 0.7), (&vectors[..60], along)] {
                            let measured =
                                relative_error(&codebook, way, queries, (vectors, &blocks));
                            assert!(
                                (least..1.4).contains(&measured),
                                "{kind:?}, {metric:?}, {dimensions}, {centre}, {way:?}: {measured}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn exact_codes_have_no_deviation() {
    let mut source = Source(11);
    for (kind, metric) in [
        (CodeKind::Floats, DistanceMetric::Cosine),
        (CodeKind::Bits, DistanceMetric::Hamming),
    ] {
        let vectors = gaussian(&mut source, 70, 2);
        let codebook = codebook(kind, metric, &vectors);
        let block = Block::new(&codebook, &vectors[0]);
        let mut query = CodeQuery::default();
        codebook.prepare(&vectors[1], &mut query);
        assert_eq!(codebook.deviation(&mut query, &block.meta), 0.0);
        assert_eq!(codebook.error(1.0), 0.0);
    }
}

/// Vectors of very different kinds: those in a cluster, those far from all others, and zero.
fn varied(source: &mut Source, dimensions: usize, scale: f32, mean: f32) -> Vec<Vec<f32>> {
    let [about, apart] = about_and_apart(source, dimensions);
    let mut vectors: Vec<Vec<f32>> = about[..12].iter().chain(&apart[..12]).cloned().collect();
    for vector in &mut vectors {
        vector.iter_mut().for_each(|x| *x = scale * (*x + mean));
    }
    // One element that counts for more than all others, and lengths of all kinds.
    vectors[1][dimensions / 2] *= 1e3;
    for (at, factor) in [(2, 1e3), (3, 1e-3), (13, 30.0), (4, 0.0)] {
        vectors[at].iter_mut().for_each(|x| *x *= factor);
    }
    vectors
}

/// Checks that no estimate is off by more than its bound. Returns the mean quotient of bound and
/// deviation.
fn check_bounds(
    kind: CodeKind,
    metric: DistanceMetric,
    vectors: &[Vec<f32>],
) -> Result<f64, TestCaseError> {
    let codebook = codebook(kind, metric, &vectors[..12]);
    let centre = match codebook.has_centres() {
        true => centre_of(&codebook, &vectors[14..]),
        false => ORIGIN,
    };
    let mut blocks = blocks(&codebook, vectors);
    blocks.extend(blocks_from(&codebook, vectors, centre));
    let mut query = CodeQuery::default();
    let (mut quotients, mut count) = (0.0, 0.0);
    for (i, a) in vectors.iter().enumerate() {
        codebook.prepare(a, &mut query);
        codebook.prepare_bound(&mut query);
        let found = estimates(&codebook, &mut query, &blocks);
        for (j, (block, found)) in blocks.iter().zip(found).enumerate() {
            let expected = expected(metric, a, &vectors[j % vectors.len()]);
            let error = (f64::from(found) - expected).abs();
            let bound = codebook.bound(&mut query, &block.meta);
            prop_assert!(
                error <= f64::from(bound),
                "{kind:?}, {metric:?}, {i} and {j}: {found} for {expected}, {bound}"
            );
            let deviation = codebook.deviation(&mut query, &block.meta);
            if deviation > 0.0 {
                quotients += f64::from(bound / deviation);
                count += 1.0;
            }
        }
    }
    Ok(quotients / f64::max(count, 1.0))
}

/// All kinds of codes with the metrics that they are for.
fn pairs() -> Vec<(CodeKind, DistanceMetric)> {
    let floats = METRICS.iter().flat_map(|&m| KINDS.map(|k| (k, m)));
    floats
        .chain([(CodeKind::Bits, DistanceMetric::Hamming)])
        .collect()
}

proptest! {
    #[test]
    fn no_estimate_is_off_by_more_than_its_bound(
        dimensions in 1usize..400,
        seed: u64,
        scale in prop::sample::select(vec![1e-18f32, 1e-12, 1e-3, 1.0, 1e3, 1e12]),
        mean in prop::sample::select(vec![0.0f32, 1.0, 100.0]),
        (kind, metric) in prop::sample::select(pairs()),
    ) {
        let mut vectors = varied(&mut Source(seed), dimensions, scale, mean);
        if metric == DistanceMetric::Cosine {
            vectors.remove(4);
            vectors = vectors.iter().map(|vector| unit(vector)).collect();
        }
        check_bounds(kind, metric, &vectors)?;
    }
}

#[test]
fn a_bound_is_no_more_than_what_the_worst_direction_makes_of_a_deviation() {
    let mut source = Source(12);
    for dimensions in [96, 384, 1536] {
        let [about, apart] = about_and_apart(&mut source, dimensions);
        let vectors: Vec<Vec<f32>> = about[..12].iter().chain(&apart[..12]).cloned().collect();
        for (kind, metric) in pairs() {
            let quotient = check_bounds(kind, metric, &vectors).expect("bounds that hold");
            let worst = (dimensions as f64).sqrt();
            assert!(
                quotient < 3.0 * worst,
                "{kind:?}, {metric:?}, {dimensions}: {quotient}"
            );
        }
    }
}
