//! A codebook from its parts, a query for many codebooks.

use super::vectors::*;
use super::*;

#[test]
fn parts_make_the_same_codebook() {
    let mut source = Source(5);
    for kind in KINDS {
        let vectors = gaussian(&mut source, 100, 20);
        let one = codebook(kind, DistanceMetric::DotProduct, &vectors);
        let two = Codebook::from_parts(one.parts().clone());
        for vector in &vectors {
            let (a, b) = (Block::new(&one, vector), Block::new(&two, vector));
            assert_eq!((a.code, a.meta), (b.code, b.meta));
        }
    }
}

#[test]
fn a_buffer_serves_codebooks_of_every_kind_in_turn() {
    let mut source = Source(6);
    let mut query = CodeQuery::default();
    for dimensions in [200, 3, 500] {
        let vectors = gaussian(&mut source, dimensions, 3);
        for kind in [
            CodeKind::Floats,
            CodeKind::Nibbles,
            CodeKind::Bits,
            CodeKind::Bytes,
        ] {
            let metric = if kind == CodeKind::Bits {
                DistanceMetric::Hamming
            } else {
                DistanceMetric::Euclidean
            };
            let codebook = codebook(kind, metric, &vectors);
            let blocks = blocks(&codebook, &vectors);
            codebook.prepare(&vectors[0], &mut query);
            let reused = estimates(&codebook, &mut query, &blocks);
            let mut fresh = CodeQuery::default();
            codebook.prepare(&vectors[0], &mut fresh);
            assert_eq!(reused, estimates(&codebook, &mut fresh, &blocks));
        }
    }
}
