//! Makes vectors of 1536 dimensions that are as hard to search as OpenAI's, from real texts.
//!
//! A random orthonormal map from 384 into 1536 dimensions keeps the texts' real neighbourhoods
//! exactly. Noise of [`NOISE`] times a vector's length, in a random direction, then raises the
//! intrinsic dimension until HNSW with `m` 16 and `ef` 128 for building and searching finds about
//! 0.95 of the true top 100 of 50,000, as is published for 50,000 OpenAI vectors. The benchmark
//! prints what it finds.

use contender::Metric;

use super::parallel::fill_rows;
use super::random::Random;
use super::{Made, one_kind, texts};

const DIMENSIONS: usize = 1536;
/// The length of the noise, as a share of a vector's. It was calibrated with `usearch` 2.26: 0.45
/// gives a recall@100 of 0.971, 0.9 gives 0.9505.
const NOISE: f64 = 0.85;
/// The number of queries, which are the texts' definitions.
const QUERIES: usize = 1_000;

const MAP_STREAM: u64 = 1_536;
const BASE_STREAM: u64 = 1_537;
const QUERY_STREAM: u64 = 1_538;

/// Makes a set from the first `vectors` texts.
pub fn make(vectors: usize) -> anyhow::Result<Made> {
    let map = orthonormal_rows();
    let (queries, _) = texts::queries()?;
    let lift = |texts: &[f32], stream| {
        let mut lifted = vec![0.0; texts.len() / texts::DIMENSIONS * DIMENSIONS];
        fill_rows(&mut lifted, DIMENSIONS, |first, rows| {
            for (offset, row) in rows.chunks_exact_mut(DIMENSIONS).enumerate() {
                let text = &texts[(first + offset) * texts::DIMENSIONS..][..texts::DIMENSIONS];
                apply(&map, text, row);
                blur(row, &mut Random::of_row(stream, first + offset));
            }
        });
        lifted
    };
    Ok(Made {
        dimensions: DIMENSIONS,
        metric: Metric::Cosine,
        base: lift(&texts::base()?[..vectors * texts::DIMENSIONS], BASE_STREAM),
        queries: lift(&queries[..QUERIES * texts::DIMENSIONS], QUERY_STREAM),
        kinds: one_kind(QUERIES),
        remark: format!("real text embeddings lifted into {DIMENSIONS} dimensions, noise {NOISE}"),
    })
}

/// A random map with a row for each of the texts' dimensions. The rows are unit vectors at right
/// angles to each other.
fn orthonormal_rows() -> Vec<Vec<f32>> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for dimension in 0..texts::DIMENSIONS {
        let mut random = Random::of_row(MAP_STREAM, dimension);
        let mut row: Vec<f64> = (0..DIMENSIONS).map(|_| random.normal()).collect();
        for earlier in &rows {
            let shared = product(&row, earlier);
            row.iter_mut()
                .zip(earlier)
                .for_each(|(x, e)| *x -= shared * e);
        }
        let length = product(&row, &row).sqrt();
        row.iter_mut().for_each(|x| *x /= length);
        rows.push(row);
    }
    let narrow = |row: Vec<f64>| row.into_iter().map(|x| x as f32).collect();
    rows.into_iter().map(narrow).collect()
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Multiplies a text's vector with the map: adds up the rows of `map`, each times the element of
/// `text`.
fn apply(map: &[Vec<f32>], text: &[f32], into: &mut [f32]) {
    into.fill(0.0);
    for (direction, &share) in map.iter().zip(text) {
        into.iter_mut()
            .zip(direction)
            .for_each(|(x, d)| *x += share * d);
    }
}

/// Adds noise to a unit vector, and scales it to length 1 again.
fn blur(vector: &mut [f32], random: &mut Random) {
    let mut noise = vec![0.0; vector.len()];
    random.normals(&mut noise);
    let factor = NOISE / length(&noise);
    vector
        .iter_mut()
        .zip(&noise)
        .for_each(|(x, n)| *x += (factor * f64::from(*n)) as f32);
    let factor = 1.0 / length(vector);
    vector
        .iter_mut()
        .for_each(|x| *x = (f64::from(*x) * factor) as f32);
}

fn length(vector: &[f32]) -> f64 {
    vector
        .iter()
        .map(|&x| f64::from(x) * f64::from(x))
        .sum::<f64>()
        .sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_keeps_angles() {
        let map = orthonormal_rows();
        let mut texts = vec![0.0; 2 * texts::DIMENSIONS];
        Random::of_row(9, 9).normals(&mut texts);
        let (a, b) = texts.split_at(texts::DIMENSIONS);
        let (mut a_lifted, mut b_lifted) = (vec![0.0; DIMENSIONS], vec![0.0; DIMENSIONS]);
        apply(&map, a, &mut a_lifted);
        apply(&map, b, &mut b_lifted);
        let cosine = |a: &[f32], b: &[f32]| {
            let product: f64 = a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum();
            product / (length(a) * length(b))
        };
        assert!((cosine(a, b) - cosine(&a_lifted, &b_lifted)).abs() < 1e-5);
    }
}
