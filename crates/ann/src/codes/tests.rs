//! Estimates against exact distances.

use super::*;
use proptest::prelude::*;

const METRICS: [Metric; 3] = [Metric::Cosine, Metric::Euclidean, Metric::DotProduct];
const KINDS: [Kind; 3] = [Kind::Nibbles, Kind::Bytes, Kind::Floats];

/// Deviation of estimated products from the true ones, in lengths of both sides over
/// `sqrt(dimensions)`, as theory has it: of a code with a vector, or of two codes.
fn deviation(kind: Kind, of_codes: bool) -> f64 {
    match kind {
        // Beside the code's rounding that of a query's levels is nothing.
        Kind::Nibbles if of_codes => 0.108 * std::f64::consts::SQRT_2,
        Kind::Nibbles => 0.108,
        // Both sides are rounded alike.
        Kind::Bytes => 0.012,
        Kind::Floats | Kind::Bits => 0.0,
    }
}

/// A cache line, for its alignment.
#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A node's block: its code, and its meta where the header has it.
struct Block {
    lines: Vec<Line>,
    code: Vec<u8>,
    meta: Meta,
}

impl Block {
    fn new(codebook: &Codebook, vector: &[f32]) -> Block {
        let mut code = vec![0xaa; codebook.code_bytes()];
        let meta = codebook.encode(vector, &mut vec![f32::NAN; 5], &mut code);
        Block::of(code, meta)
    }

    fn of(code: Vec<u8>, meta: Meta) -> Block {
        let mut bytes = code.clone();
        bytes.extend_from_slice(&[0; META_OFFSET]);
        for value in [meta.scale, meta.norm, meta.raw_norm] {
            bytes.extend_from_slice(&value.to_ne_bytes());
        }
        bytes.resize(code.len() + 64, 0);
        let (lines, _) = bytes.as_chunks::<64>();
        let lines = lines.iter().map(|&line| Line(line)).collect();
        Block { lines, code, meta }
    }

    fn pointer(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }
}

fn estimates(codebook: &Codebook, query: &mut Query, blocks: &[Block]) -> Vec<f32> {
    let pointers: Vec<_> = blocks.iter().map(Block::pointer).collect();
    let mut out = vec![f32::NAN; blocks.len()];
    // SAFETY: the blocks were made for this codebook.
    unsafe { codebook.estimate(query, &pointers, &mut out) };
    out
}

/// Random numbers without a dependency.
struct Source(u64);

impl Source {
    /// Uniform in (0, 1).
    fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bits = (self.0 ^ (self.0 >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
        (bits as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Box and Muller, 1958.
    fn gaussian(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.gaussian() as f32).collect()
    }
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let length = dot(vector, vector).sqrt();
    vector
        .iter()
        .map(|&x| (f64::from(x) / length) as f32)
        .collect()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let products = a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y));
    products.sum()
}

fn minus(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(x, y)| x - y).collect()
}

fn squared_l2(a: &[f32], b: &[f32]) -> f64 {
    let difference = minus(a, b);
    dot(&difference, &difference)
}

/// Vectors off the origin, in a few clusters and of uneven energy, as embeddings are.
fn clustered(source: &mut Source, dimensions: usize, count: usize) -> Vec<Vec<f32>> {
    let offset = source.vector(dimensions);
    let centres: Vec<_> = (0..10).map(|_| source.vector(dimensions)).collect();
    let vector = |i: usize| {
        let noise = source.vector(dimensions);
        let element = |j: usize| {
            let uneven = 3.0 / (1.0 + j as f32 / 8.0);
            2.0 * offset[j] + uneven * centres[i % 10][j] + 0.5 * noise[j]
        };
        unit(&(0..dimensions).map(element).collect::<Vec<_>>())
    };
    (0..count).map(vector).collect()
}

fn gaussian(source: &mut Source, dimensions: usize, count: usize) -> Vec<Vec<f32>> {
    (0..count).map(|_| source.vector(dimensions)).collect()
}

fn codebook(kind: Kind, metric: Metric, vectors: &[Vec<f32>]) -> Codebook {
    let sample = vectors.iter().map(Vec::as_slice);
    Codebook::train(kind, metric, vectors[0].len(), sample)
}

fn blocks(codebook: &Codebook, vectors: &[Vec<f32>]) -> Vec<Block> {
    vectors
        .iter()
        .map(|vector| Block::new(codebook, vector))
        .collect()
}

/// What is lost by estimates: their mean error and its deviation, as shares of the length of the
/// query's residual times that of the code's, over `sqrt(dimensions)`.
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
    let mut query = Query::default();
    let mut errors = Errors::default();
    for (i, a) in vectors.iter().enumerate() {
        if of_codes {
            codebook.prepare_code(&blocks[i].code, &blocks[i].meta, 0.0, &mut query);
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
            for kind in [Kind::Nibbles, Kind::Bytes] {
                let codebook = codebook(kind, Metric::Euclidean, &vectors);
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

/// What a link's estimates estimate.
fn linking_distance(metric: Metric, a: &[f32], b: &[f32], longest: f64) -> f64 {
    let height = |vector: &[f32]| (longest - dot(vector, vector)).max(0.0).sqrt();
    match metric {
        Metric::DotProduct => squared_l2(a, b) + (height(a) - height(b)).powi(2),
        _ => squared_l2(a, b),
    }
}

/// Every kind, metric and way to make a query, for many dimensions; few errors are larger than
/// five deviations, of which few dimensions, where the rotation mixes little, have more.
#[test]
fn estimates_follow_the_metric() {
    let mut source = Source(2);
    for dimensions in [1, 2, 3, 31, 96, 384, 784, 1536] {
        for (metric, kind) in METRICS.iter().flat_map(|&m| KINDS.map(|k| (m, k))) {
            let mut vectors = gaussian(&mut source, dimensions, 12);
            if metric == Metric::Cosine {
                vectors = vectors.iter().map(|v| unit(v)).collect();
            }
            let codebook = codebook(kind, metric, &vectors);
            let blocks = blocks(&codebook, &vectors);
            let norms = vectors.iter().map(|v| dot(v, v));
            let longest = norms.fold(0.0, f64::max);
            let spread = if dimensions < 32 { 2.5 } else { 1.0 } / (dimensions as f64).sqrt();
            let bound = |of_codes| 10.0 * (deviation(kind, of_codes) * spread + 1e-6) * longest;
            // A height is the root of a difference of nearly equal lengths.
            let height_bound = if metric == Metric::DotProduct {
                1e-3 * longest
            } else {
                0.0
            };
            let mut query = Query::default();
            for (i, a) in vectors.iter().enumerate() {
                codebook.prepare(a, &mut query);
                let searched = estimates(&codebook, &mut query, &blocks);
                codebook.prepare_link(a, longest as f32, &mut query);
                let linked = estimates(&codebook, &mut query, &blocks);
                codebook.prepare_code(&blocks[i].code, &blocks[i].meta, longest as f32, &mut query);
                let pruned = estimates(&codebook, &mut query, &blocks);
                for (j, b) in vectors.iter().enumerate() {
                    let ranking = match metric {
                        Metric::DotProduct => -2.0 * dot(a, b),
                        _ => squared_l2(a, b),
                    };
                    let linking = linking_distance(metric, a, b, longest);
                    let case = format!("{kind:?}, {metric:?}, {dimensions}: {i} and {j}");
                    let near = |found: f32, expected: f64, bound: f64| {
                        let error = (f64::from(found) - expected).abs();
                        assert!(error <= bound, "{case}: {found} for {expected}, {bound}");
                    };
                    near(searched[j], ranking, bound(false));
                    near(linked[j], linking, bound(false) + height_bound);
                    near(pruned[j], linking, bound(true) + height_bound);
                    assert!(linked[j] >= 0.0 && pruned[j] >= 0.0, "{case}");
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
        let codebook = codebook(kind, Metric::Euclidean, &vectors);
        let blocks = blocks(&codebook, &vectors);
        let mut query = Query::default();
        for (vector, block) in vectors.iter().zip(&blocks) {
            let own = std::slice::from_ref(block);
            codebook.prepare_link(vector, 0.0, &mut query);
            let of_vector = estimates(&codebook, &mut query, own)[0] / block.meta.norm;
            codebook.prepare_code(&block.code, &block.meta, 0.0, &mut query);
            let of_code = estimates(&codebook, &mut query, own)[0] / block.meta.norm;
            // Half a level of the query's rounding, averaged over the dimensions.
            assert!(of_vector < 0.002, "{kind:?}: {of_vector}");
            assert!(of_code < 1e-5, "{kind:?}: {of_code}");
        }
    }
}

#[test]
fn bits_are_counted() {
    let mut source = Source(4);
    for dimensions in [1, 3, 31, 384, 513, 1536] {
        let vectors = gaussian(&mut source, dimensions, 10);
        let codebook = codebook(Kind::Bits, Metric::Hamming, &vectors);
        let blocks = blocks(&codebook, &vectors);
        let mut query = Query::default();
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
            codebook.prepare_link(a, 0.0, &mut query);
            assert_eq!(estimates(&codebook, &mut query, &blocks), expected);
            codebook.prepare_code(&block.code, &block.meta, 0.0, &mut query);
            assert_eq!(estimates(&codebook, &mut query, &blocks), expected);
        }
    }
}

#[test]
fn bits_fill_bytes_from_the_low_end_and_zero_is_not_positive() {
    let codebook = Codebook::train(Kind::Bits, Metric::Hamming, 10, std::iter::empty());
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
    codebook.encode(&vector, &mut Vec::new(), &mut code);
    let mut expected = [0; 64];
    expected[..2].copy_from_slice(&[0b1001, 0b10]);
    assert_eq!(code, expected);
}

#[test]
fn parts_make_the_same_codebook() {
    let mut source = Source(5);
    for kind in KINDS {
        let vectors = gaussian(&mut source, 100, 20);
        let one = codebook(kind, Metric::DotProduct, &vectors);
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
    let mut query = Query::default();
    for dimensions in [200, 3, 500] {
        let vectors = gaussian(&mut source, dimensions, 3);
        for kind in [Kind::Floats, Kind::Nibbles, Kind::Bits, Kind::Bytes] {
            let metric = if kind == Kind::Bits {
                Metric::Hamming
            } else {
                Metric::Euclidean
            };
            let codebook = codebook(kind, metric, &vectors);
            let blocks = blocks(&codebook, &vectors);
            codebook.prepare(&vectors[0], &mut query);
            let reused = estimates(&codebook, &mut query, &blocks);
            let mut fresh = Query::default();
            codebook.prepare(&vectors[0], &mut fresh);
            assert_eq!(reused, estimates(&codebook, &mut fresh, &blocks));
        }
    }
}

#[test]
fn zeros_and_the_shortest_vectors_are_measured() {
    for kind in KINDS {
        let codebook = Codebook::train(kind, Metric::Euclidean, 40, std::iter::empty());
        let vectors = [0.0, f32::from_bits(1), 1e-30, 1e-19, 1.0].map(|x| vec![x; 40]);
        let blocks = blocks(&codebook, &vectors);
        let mut query = Query::default();
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
fn what_overflows_is_far_away() {
    for (metric, kind) in METRICS.iter().flat_map(|&m| KINDS.map(|k| (m, k))) {
        let codebook = Codebook::train(kind, metric, 40, std::iter::empty());
        let vectors = [f32::MAX, f32::MIN, 1e20, -1e20, 1.0, 0.0].map(|x| vec![x; 40]);
        let blocks = blocks(&codebook, &vectors);
        let mut query = Query::default();
        for (a, block) in vectors.iter().zip(&blocks) {
            for longest in [1.0, f32::MAX, f32::INFINITY] {
                codebook.prepare(a, &mut query);
                let searched = estimates(&codebook, &mut query, &blocks);
                codebook.prepare_link(a, longest, &mut query);
                let linked = estimates(&codebook, &mut query, &blocks);
                codebook.prepare_code(&block.code, &block.meta, longest, &mut query);
                let pruned = estimates(&codebook, &mut query, &blocks);
                let found = searched.iter().chain(&linked).chain(&pruned);
                assert!(!found.clone().any(|x| x.is_nan()), "{kind:?}, {metric:?}");
            }
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
    /// Whatever a code says of dimensions that pad it, and whatever else is asked in the same call.
    #[test]
    fn padding_and_company_change_nothing(
        dimensions in 1usize..300,
        seed: u64,
        count in 1usize..20,
        kind in prop::sample::select(vec![Kind::Nibbles, Kind::Bytes]),
    ) {
        let mut source = Source(seed);
        let vectors = gaussian(&mut source, dimensions, count);
        let codebook = codebook(kind, Metric::Euclidean, &vectors);
        let clean = blocks(&codebook, &vectors);
        let dirty: Vec<_> = clean.iter().map(|block| {
            let mut code = block.code.clone();
            for i in dimensions..codebook.padded_dimensions() {
                match kind {
                    Kind::Nibbles if i % 128 < 64 => code[i / 128 * 64 + i % 64] ^= 0x07,
                    Kind::Nibbles => code[i / 128 * 64 + i % 64] ^= 0x70,
                    _ => code[i] ^= 0x5a,
                }
            }
            Block::of(code, block.meta)
        }).collect();
        let mut query = Query::default();
        codebook.prepare(&vectors[0], &mut query);
        let expected = estimates(&codebook, &mut query, &clean);
        prop_assert_eq!(&estimates(&codebook, &mut query, &dirty), &expected);
        for (block, expected) in clean.iter().zip(&expected) {
            let alone = estimates(&codebook, &mut query, std::slice::from_ref(block));
            prop_assert_eq!(alone, vec![*expected]);
        }
        codebook.prepare_code(&clean[0].code, &clean[0].meta, 0.0, &mut query);
        let expected = estimates(&codebook, &mut query, &clean);
        codebook.prepare_code(&dirty[0].code, &dirty[0].meta, 0.0, &mut query);
        prop_assert_eq!(&estimates(&codebook, &mut query, &dirty), &expected);
    }
}
