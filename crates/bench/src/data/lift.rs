//! Makes a set of more dimensions from a set of few. Noise decides how hard it is to search.
//!
//! Large sets of real embeddings of 1,536 dimensions are too large for a repository. A random
//! orthonormal map of real vectors into more dimensions keeps their distances, and so their real
//! neighbourhoods. Noise of a given share of a vector's length, in a random direction, then raises
//! the intrinsic dimension. With a share of 0.85, the bundled texts in 1,536 dimensions are about
//! as hard for HNSW (`m` 16, both `ef` 128) as is published for embeddings of OpenAI.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, ensure};
use clap::Args;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::array::VectorRows;
use super::exact::multiply;

/// The seed of the map. The other two are those of the noise of the base and of the queries.
const MAP_SEED: u64 = 1536;
const BASE_SEED: u64 = 1537;
const QUERY_SEED: u64 = 1538;

/// The arguments of the new set.
#[derive(Args, Clone, Debug)]
// The subcommand's group of arguments has this name already.
#[group(skip)]
pub struct Lift {
    /// Dimensions of the new vectors
    #[arg(long, default_value_t = 1536)]
    pub dimensions: usize,
    /// Length of the noise, as a share of the length of a vector
    #[arg(long, default_value_t = 0.85)]
    pub noise: f64,
}

impl Lift {
    /// Writes `base.fbin` and `query.fbin` into the directory `out`.
    pub fn make(&self, base: VectorRows, queries: VectorRows, out: &Path) -> anyhow::Result<()> {
        ensure!(
            self.dimensions >= base.dimensions,
            "--dimensions must be at least the {} that there are",
            base.dimensions
        );
        ensure!(
            self.noise >= 0.0 && self.noise.is_finite(),
            "--noise must be 0 or more"
        );
        ensure!(
            base.dimensions == queries.dimensions,
            "the vectors have {} elements, the queries {}",
            base.dimensions,
            queries.dimensions
        );
        std::fs::create_dir_all(out).with_context(|| out.display().to_string())?;
        let map = orthonormal(base.dimensions, self.dimensions);
        for (name, vectors, seed) in [
            ("base.fbin", base, BASE_SEED),
            ("query.fbin", queries, QUERY_SEED),
        ] {
            let path = out.join(name);
            write(&path, &self.lift(&vectors, &map, seed))
                .with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    fn lift(&self, vectors: &VectorRows, map: &[f32], seed: u64) -> VectorRows {
        let mut values = vec![0.0; vectors.len() * self.dimensions];
        multiply(&vectors.values, map, vectors.dimensions, &mut values);
        let mut numbers = StdRng::seed_from_u64(seed);
        for row in values.chunks_exact_mut(self.dimensions) {
            blur(row, self.noise, &mut numbers);
        }
        VectorRows {
            dimensions: self.dimensions,
            values,
            ids: None,
        }
    }
}

/// Makes a random map from `few` into `many` dimensions that keeps lengths and angles. It has
/// `many` rows of `few` elements. Its columns are unit vectors at right angles to each other.
fn orthonormal(few: usize, many: usize) -> Vec<f32> {
    let mut numbers = StdRng::seed_from_u64(MAP_SEED);
    let mut columns: Vec<Vec<f64>> = Vec::with_capacity(few);
    while columns.len() < few {
        let mut column: Vec<f64> = (0..many).map(|_| normal(&mut numbers)).collect();
        for earlier in &columns {
            let shared: f64 = column.iter().zip(earlier).map(|(x, e)| x * e).sum();
            column
                .iter_mut()
                .zip(earlier)
                .for_each(|(x, e)| *x -= shared * e);
        }
        let length = column.iter().map(|x| x * x).sum::<f64>().sqrt();
        column.iter_mut().for_each(|x| *x /= length);
        columns.push(column);
    }
    let element = |row: usize| columns.iter().map(move |column| column[row] as f32);
    (0..many).flat_map(element).collect()
}

/// Adds noise to a vector, and scales it back to its former length.
fn blur(row: &mut [f32], noise: f64, numbers: &mut StdRng) {
    let length = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let exact: Vec<f64> = row.iter().map(|&x| x.into()).collect();
    let random: Vec<f64> = row.iter().map(|_| normal(numbers)).collect();
    let before = length(&exact);
    let share = noise * before / length(&random);
    let blurred: Vec<f64> = exact
        .iter()
        .zip(&random)
        .map(|(x, r)| x + share * r)
        .collect();
    let factor = before / length(&blurred).max(f64::MIN_POSITIVE);
    for (to, from) in row.iter_mut().zip(blurred) {
        *to = (from * factor) as f32;
    }
}

/// A normally distributed number, by the method of Box and Muller.
fn normal(numbers: &mut StdRng) -> f64 {
    // The number is above zero, as its logarithm is taken.
    let radius: f64 = 1.0 - numbers.random::<f64>();
    let angle = std::f64::consts::TAU * numbers.random::<f64>();
    (-2.0 * radius.ln()).sqrt() * angle.cos()
}

fn write(path: &Path, vectors: &VectorRows) -> anyhow::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for number in [vectors.len(), vectors.dimensions] {
        out.write_all(&u32::try_from(number)?.to_le_bytes())?;
    }
    for value in &vectors.values {
        out.write_all(&value.to_le_bytes())?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::super::DataArguments;
    use super::*;

    fn vectors(rows: &[[f32; 3]]) -> VectorRows {
        VectorRows {
            dimensions: 3,
            values: rows.concat(),
            ids: None,
        }
    }

    #[test]
    fn without_noise_inner_products_stay_and_with_it_lengths_do() {
        let base = vectors(&[[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]]);
        let queries = vectors(&[[0.3, -0.7, 2.0]]);
        for noise in [0.0, 0.5] {
            let directory = tempfile::tempdir().unwrap();
            let lift = Lift {
                dimensions: 40,
                noise,
            };
            lift.make(base.clone(), queries.clone(), directory.path())
                .unwrap();
            let made = DataArguments {
                data: Some(directory.path().to_owned()),
                ..DataArguments::default()
            };
            let (lifted, asked) = (made.read_base().unwrap(), made.read_queries().unwrap());
            assert_eq!((lifted.dimensions, lifted.len(), asked.len()), (40, 2, 1));
            let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            for row in 0..2 {
                let (before, after) = (base.row(row), lifted.row(row));
                let kept = product(after, after) - product(before, before);
                assert!(kept.abs() < 1e-4, "{kept}");
                let (before, after) = (
                    product(before, queries.row(0)),
                    product(after, asked.row(0)),
                );
                let changed = (before - after).abs() / before.abs();
                assert_eq!(changed > 1e-3, noise > 0.0, "{before} {after}");
            }
        }
    }

    #[test]
    fn fewer_dimensions_are_refused() {
        let lift = Lift {
            dimensions: 2,
            noise: 0.0,
        };
        let one = vectors(&[[1.0; 3]]);
        let error = lift
            .make(one.clone(), one, Path::new("nowhere"))
            .unwrap_err();
        assert!(error.to_string().contains("at least the 3"), "{error}");
    }
}
