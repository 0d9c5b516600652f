//! Thousands of random steps beside an exact index: whatever one answers, the other has to.

use ann::{Error, Index, Metric, Options};

use crate::data::Rng;
use crate::oracle::Oracle;

const DIMENSIONS: usize = 6;
/// More ids than vectors held, so that both free and used ones are drawn. Enough are held for
/// searches to walk (see the plan's page for where that begins).
const IDS: usize = 3_500;
const STEPS: usize = 6_000;

/// Vectors as users have them: mostly different, some alike, some zero.
fn draw(rng: &mut Rng) -> Vec<f32> {
    match rng.below(20) {
        0 => vec![0.0; DIMENSIONS],
        1 => vec![rng.below(3) as f32; DIMENSIONS],
        _ => rng.vector(DIMENSIONS),
    }
}

/// Makes the same change in both, legal or not.
fn change(index: &Index, oracle: &mut Oracle, rng: &mut Rng) {
    let (id, vector) = (rng.below(IDS) as u32, draw(rng));
    let held = oracle.vectors.contains_key(&id);
    match rng.below(5) {
        0 | 1 => {
            let expected = if held { Err(Error::Exists(id)) } else { Ok(()) };
            assert_eq!(index.insert(id, &vector), expected);
            oracle.vectors.entry(id).or_insert(vector);
        }
        2 | 3 => {
            let expected = if held {
                Ok(())
            } else {
                Err(Error::Missing(id))
            };
            assert_eq!(index.replace(id, &vector), expected);
            if held {
                oracle.vectors.insert(id, vector);
            }
        }
        _ => {
            let expected = if held {
                Ok(())
            } else {
                Err(Error::Missing(id))
            };
            assert_eq!(index.remove(id), expected);
            oracle.vectors.remove(&id);
        }
    }
    assert_eq!(index.len(), oracle.vectors.len());
}

fn run(metric: Metric) {
    let mut rng = Rng(metric as u64 + 71);
    let options = Options {
        metric,
        ..Options::new(DIMENSIONS)
    };
    let index = Index::new(options).expect("valid options");
    let mut oracle = Oracle::new(metric);
    for id in 0..2_500 {
        let vector = draw(&mut rng);
        index.insert(id, &vector).expect("a new id");
        oracle.vectors.insert(id, vector);
    }
    let (mut recalls, mut searches) = (0.0, 0);
    for step in 0..STEPS {
        change(&index, &mut oracle, &mut rng);
        if step % 20 == 0 {
            let (query, k) = (draw(&mut rng), 1 + rng.below(30));
            recalls += oracle.check(&index, &query, k, 1e-6);
            searches += 1;
        }
        if step % 500 == 0 {
            let all = oracle.check(&index, &draw(&mut rng), IDS, 1e-6);
            assert_eq!(all, 1.0);
        }
    }
    let recall = recalls / f64::from(searches);
    assert!(recall >= 0.98, "{recall}");

    // Down to nothing and up again.
    for &id in oracle.vectors.keys() {
        index.remove(id).expect("held");
    }
    assert!(index.is_empty());
    oracle.vectors.clear();
    for _ in 0..500 {
        change(&index, &mut oracle, &mut rng);
    }
    assert_eq!(oracle.check(&index, &draw(&mut rng), IDS, 1e-6), 1.0);
}

#[test]
fn cosine() {
    run(Metric::Cosine);
}

#[test]
fn euclidean() {
    run(Metric::Euclidean);
}

#[test]
fn dot_product() {
    run(Metric::DotProduct);
}

#[test]
fn hamming() {
    run(Metric::Hamming);
}
