//! Codes and estimates, and what the tests of them share.

mod accuracy;
mod bits;
mod centres;
mod doubts;
mod edges;
mod reuse;
mod vectors;

use super::*;

const METRICS: [DistanceMetric; 3] = [
    DistanceMetric::Cosine,
    DistanceMetric::Euclidean,
    DistanceMetric::DotProduct,
];
const KINDS: [CodeKind; 3] = [CodeKind::Nibbles, CodeKind::Bytes, CodeKind::Floats];

/// A cache line, for its alignment.
#[repr(C, align(64))]
struct Line([u8; 64]);

/// A node's block: its code, and its meta where the header has it.
struct Block {
    lines: Vec<Line>,
    code: Vec<u8>,
    meta: CodeMeta,
}

impl Block {
    fn new(codebook: &Codebook, vector: &[f32]) -> Block {
        Block::from_centre(codebook, vector, ORIGIN)
    }

    fn from_centre(codebook: &Codebook, vector: &[f32], centre: u32) -> Block {
        let mut code = vec![0xaa; codebook.code_bytes()];
        let meta = codebook.encode(vector, centre, &mut vec![f32::NAN; 5], &mut code);
        Block::of(code, meta)
    }

    fn of(code: Vec<u8>, meta: CodeMeta) -> Block {
        let mut bytes = code.clone();
        bytes.extend_from_slice(&[0; META_OFFSET]);
        for value in [meta.scale, meta.norm, meta.raw_norm] {
            bytes.extend_from_slice(&value.to_ne_bytes());
        }
        bytes.extend_from_slice(&meta.centre.to_ne_bytes());
        bytes.extend_from_slice(&meta.error.to_ne_bytes());
        bytes.resize(code.len() + 64, 0);
        let (lines, _) = bytes.as_chunks::<64>();
        let lines = lines.iter().map(|&line| Line(line)).collect();
        Block { lines, code, meta }
    }

    fn pointer(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }
}

fn estimates(codebook: &Codebook, query: &mut CodeQuery, blocks: &[Block]) -> Vec<f32> {
    let pointers: Vec<_> = blocks.iter().map(Block::pointer).collect();
    let mut out = vec![f32::NAN; blocks.len()];
    // SAFETY: the blocks were made for this codebook.
    unsafe { codebook.estimate(query, &pointers, &mut out) };
    out
}

fn codebook(kind: CodeKind, metric: DistanceMetric, vectors: &[Vec<f32>]) -> Codebook {
    let sample = vectors.iter().map(Vec::as_slice);
    Codebook::train(kind, metric, vectors[0].len(), sample)
}

fn blocks(codebook: &Codebook, vectors: &[Vec<f32>]) -> Vec<Block> {
    blocks_from(codebook, vectors, ORIGIN)
}

/// Blocks whose codes are taken from a centre.
fn blocks_from(codebook: &Codebook, vectors: &[Vec<f32>], centre: u32) -> Vec<Block> {
    let block = |vector: &Vec<f32>| Block::from_centre(codebook, vector, centre);
    vectors.iter().map(block).collect()
}
