//! Lengths at the ends of what an `f32` holds, and dimensions that fill no block.

use proptest::prelude::*;

use super::vectors::*;
use super::*;

#[test]
fn zeros_and_the_shortest_vectors_are_measured() {
    for kind in KINDS {
        let codebook = Codebook::train(kind, DistanceMetric::Euclidean, 40, std::iter::empty());
        let vectors = [0.0, f32::from_bits(1), 1e-30, 1e-19, 1.0].map(|x| vec![x; 40]);
        let blocks = blocks(&codebook, &vectors);
        let mut query = CodeQuery::default();
        for a in &vectors {
            codebook.prepare(a, &mut query);
            for (found, b) in estimates(&codebook, &mut query, &blocks)
                .iter()
                .zip(&vectors)
            {
                let error = (f64::from(*found) - squared_l2(a, b)).abs();
                assert!(error < 0.2, "{kind:?}: {found} from {} to {}", a[0], b[0]);
            }
        }
    }
}

#[test]
fn overflowing_vectors_are_far_away() {
    for (metric, kind) in METRICS.iter().flat_map(|&m| KINDS.map(|k| (m, k))) {
        let codebook = Codebook::train(kind, metric, 40, std::iter::empty());
        let vectors = [f32::MAX, f32::MIN, 1e20, -1e20, 1.0, 0.0].map(|x| vec![x; 40]);
        let blocks = blocks(&codebook, &vectors);
        let mut query = CodeQuery::default();
        for (a, block) in vectors.iter().zip(&blocks) {
            codebook.prepare(a, &mut query);
            let searched = estimates(&codebook, &mut query, &blocks);
            codebook.prepare_link(a, &mut query);
            let linked = estimates(&codebook, &mut query, &blocks);
            codebook.prepare_code(&block.code, &block.meta, &mut query);
            let pruned = estimates(&codebook, &mut query, &blocks);
            let found = searched.iter().chain(&linked).chain(&pruned);
            assert!(!found.clone().any(|x| x.is_nan()), "{kind:?}, {metric:?}");
        }
        let ordinary = &blocks[4..];
        codebook.prepare(&vectors[4], &mut query);
        let found = estimates(&codebook, &mut query, ordinary);
        assert!(
            found.iter().all(|x| x.is_finite()),
            "{kind:?}, {metric:?}: {found:?}"
        );
    }
}

proptest! {
    /// Estimates depend neither on the padding of a code, nor on what else is estimated in the same
    /// call.
    #[test]
    fn padding_and_company_change_nothing(
        dimensions in 1usize..300,
        seed: u64,
        count in 1usize..20,
        kind in prop::sample::select(vec![CodeKind::Nibbles, CodeKind::Bytes]),
    ) {
        let mut source = Source(seed);
        let vectors = gaussian(&mut source, dimensions, count);
        let codebook = codebook(kind, DistanceMetric::Euclidean, &vectors);
        let clean = blocks(&codebook, &vectors);
        let dirty: Vec<_> = clean.iter().map(|block| {
            let mut code = block.code.clone();
            for i in dimensions..codebook.padded_dimensions() {
                match kind {
                    CodeKind::Nibbles if i % 128 < 64 => code[i / 128 * 64 + i % 64] ^= 0x07,
                    CodeKind::Nibbles => code[i / 128 * 64 + i % 64] ^= 0x70,
                    _ => code[i] ^= 0x5a,
                }
            }
            Block::of(code, block.meta)
        }).collect();
        let mut query = CodeQuery::default();
        codebook.prepare(&vectors[0], &mut query);
        let expected = estimates(&codebook, &mut query, &clean);
        prop_assert_eq!(&estimates(&codebook, &mut query, &dirty), &expected);
        for (block, expected) in clean.iter().zip(&expected) {
            let alone = estimates(&codebook, &mut query, std::slice::from_ref(block));
            prop_assert_eq!(alone, vec![*expected]);
        }
        codebook.prepare_code(&clean[0].code, &clean[0].meta, &mut query);
        let expected = estimates(&codebook, &mut query, &clean);
        codebook.prepare_code(&dirty[0].code, &dirty[0].meta, &mut query);
        prop_assert_eq!(&estimates(&codebook, &mut query, &dirty), &expected);
    }
}
