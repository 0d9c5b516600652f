//! Bits are exact.

use super::vectors::*;
use super::*;

#[test]
fn bits_are_counted() {
    let mut source = Source(4);
    for dimensions in [1, 3, 31, 384, 513, 1536] {
        let vectors = gaussian(&mut source, dimensions, 10);
        let codebook = codebook(CodeKind::Bits, DistanceMetric::Hamming, &vectors);
        let blocks = blocks(&codebook, &vectors);
        let mut query = CodeQuery::default();
        for (a, block) in vectors.iter().zip(&blocks) {
            let differ = |b: &Vec<f32>| {
                a.iter()
                    .zip(b)
                    .filter(|(x, y)| (**x > 0.0) != (**y > 0.0))
                    .count()
            };
            let expected: Vec<_> = vectors.iter().map(|b| differ(b) as f32).collect();
            codebook.prepare(a, &mut query);
            assert_eq!(estimates(&codebook, &mut query, &blocks), expected);
            codebook.prepare_link(a, &mut query);
            assert_eq!(estimates(&codebook, &mut query, &blocks), expected);
            codebook.prepare_code(&block.code, &block.meta, &mut query);
            assert_eq!(estimates(&codebook, &mut query, &blocks), expected);
        }
    }
}

#[test]
fn bits_fill_bytes_from_the_low_end_and_zero_is_not_positive() {
    let codebook = Codebook::train(
        CodeKind::Bits,
        DistanceMetric::Hamming,
        10,
        std::iter::empty(),
    );
    let mut code = [0xff; 64];
    let vector = [
        1.0,
        -0.0,
        0.0,
        2.0,
        -1.0,
        0.0,
        0.0,
        0.0,
        -3.0,
        f32::MIN_POSITIVE,
    ];
    codebook.encode(&vector, ORIGIN, &mut Vec::new(), &mut code);
    let mut expected = [0; 64];
    expected[..2].copy_from_slice(&[0b1001, 0b10]);
    assert_eq!(code, expected);
}
