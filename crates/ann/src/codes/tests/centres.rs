//! Codes from centres within clusters.

use super::vectors::*;
use super::*;

/// Factor by which a cluster is narrower than it is far from the mean.
const NARROW: f32 = 8.0;

/// Vectors about the origin, of which a codebook is made, and others in a cluster far from them.
pub(super) fn about_and_apart(source: &mut Source, dimensions: usize) -> [Vec<Vec<f32>>; 2] {
    let about = gaussian(source, dimensions, 100);
    let middle = &gaussian(source, dimensions, 1)[0];
    let mut apart = gaussian(source, dimensions, 60);
    for vector in &mut apart {
        let elements = vector.iter_mut().zip(middle);
        elements.for_each(|(x, middle)| *x = 3.0 * (middle + *x / NARROW));
    }
    [about, apart]
}

/// A centre in the middle of vectors.
pub(super) fn centre_of(codebook: &Codebook, vectors: &[Vec<f32>]) -> u32 {
    let vectors = vectors.iter().map(Vec::as_slice);
    codebook.add_centre(vectors, 10).expect("room for a centre")
}

/// The root mean square error of estimated squared distances between any two of the vectors, whose
/// codes are from `centre`.
fn error(codebook: &Codebook, vectors: &[Vec<f32>], centre: u32, of_codes: bool) -> f64 {
    let blocks = blocks_from(codebook, vectors, centre);
    let mut query = CodeQuery::default();
    let (mut squares, mut count) = (0.0, 0.0);
    for (i, a) in vectors.iter().enumerate() {
        match of_codes {
            true => codebook.prepare_code(&blocks[i].code, &blocks[i].meta, &mut query),
            false => codebook.prepare_link(a, &mut query),
        }
        let found = estimates(codebook, &mut query, &blocks);
        for (j, b) in vectors.iter().enumerate().filter(|&(j, _)| j != i) {
            squares += (f64::from(found[j]) - squared_l2(a, b)).powi(2);
            count += 1.0;
        }
    }
    f64::sqrt(squares / count)
}

#[test]
fn errors_fall_with_the_width_of_a_cluster_that_has_a_centre() {
    let mut source = Source(7);
    for dimensions in [96, 384, 1536] {
        let [about, apart] = about_and_apart(&mut source, dimensions);
        for kind in [CodeKind::Nibbles, CodeKind::Bytes] {
            let codebook = codebook(kind, DistanceMetric::Euclidean, &about);
            let centre = centre_of(&codebook, &apart);
            // That of two codes is rounded on both sides.
            for (of_codes, of_theory) in [(false, 1.0), (true, std::f64::consts::SQRT_2)] {
                let from_mean = error(&codebook, &apart, ORIGIN, of_codes);
                let from_centre = error(&codebook, &apart, centre, of_codes);
                let case = format!("{kind:?}, {dimensions}, {of_codes}: {from_centre}");
                // From the mean errors fall with the width, too: what a code leaves out is at right
                // angles to its vector, and so nearly to the queries.
                // Of bytes the rounding of the query is the larger part.
                let falls = match kind {
                    CodeKind::Nibbles => 0.6 * f64::from(NARROW),
                    _ => 1.5,
                };
                assert!(from_mean > falls * from_centre, "{case}, {from_mean}");
                if kind == CodeKind::Nibbles {
                    let width = 3.0 / NARROW;
                    let lengths = width * width * dimensions as f32;
                    let told = of_theory * f64::from(codebook.error(lengths));
                    assert!(
                        (0.7 * told..1.4 * told).contains(&from_centre),
                        "{case}, {told}"
                    );
                }
            }
        }
    }
}

#[test]
fn codes_from_many_centres_are_compared_with_one_query() {
    let mut source = Source(8);
    for (metric, kind) in METRICS.iter().flat_map(|&m| KINDS.map(|k| (m, k))) {
        let [about, apart] = about_and_apart(&mut source, 200);
        let codebook = codebook(kind, metric, &about);
        let mut all = blocks(&codebook, &about);
        let mut vectors = about;
        if codebook.has_centres() {
            for some in apart.chunks(20) {
                let centre = centre_of(&codebook, some);
                all.extend(blocks_from(&codebook, some, centre));
                vectors.extend_from_slice(some);
            }
            assert_eq!(codebook.centres().len(), 3);
        }
        let mut query = CodeQuery::default();
        codebook.prepare(&apart[0], &mut query);
        let together = estimates(&codebook, &mut query, &all);
        for ((block, found), vector) in all.iter().zip(&together).zip(&vectors) {
            codebook.prepare(&apart[0], &mut query);
            let own = std::slice::from_ref(block);
            assert_eq!(estimates(&codebook, &mut query, own), [*found]);
            let expected = match metric {
                DistanceMetric::DotProduct => -2.0 * dot(&apart[0], vector),
                _ => squared_l2(&apart[0], vector),
            };
            let off = (f64::from(*found) - expected).abs();
            let allowed = 6.0 * f64::from(codebook.deviation(&mut query, &block.meta)) + 0.05;
            assert!(
                off < allowed,
                "{kind:?}, {metric:?}: {found} for {expected}"
            );
        }
    }
}

#[test]
fn there_are_no_more_centres_than_allowed() {
    let mut source = Source(9);
    let vectors = gaussian(&mut source, 30, 10);
    let codebook = codebook(CodeKind::Nibbles, DistanceMetric::Euclidean, &vectors);
    let add = || codebook.add_centre(vectors.iter().map(Vec::as_slice), 2);
    assert_eq!([add(), add(), add()], [Some(1), Some(2), None]);
    // A code from a centre that there isn't is one from the mean.
    let block = Block::from_centre(&codebook, &vectors[0], 3);
    let of_mean = Block::new(&codebook, &vectors[0]);
    assert_eq!((block.code, block.meta), (of_mean.code, of_mean.meta));
}
