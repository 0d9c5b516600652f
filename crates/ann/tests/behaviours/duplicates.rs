//! Many vectors alike: copies are answers of their own, and do not hide the rest.

use ann::{Metric, Options};

use crate::data::{Rng, SPREAD, clustered};
use crate::oracle::{Oracle, build};

#[test]
fn every_copy_is_returned() {
    let options = Options {
        metric: Metric::Euclidean,
        ..Options::new(3)
    };
    let index = build(options, &vec![vec![1.0, 2.0, 3.0]; 2_000]);
    let found = index.search(&[1.0, 2.0, 3.0], 5_000).expect("search");
    assert!(found.iter().map(|n| n.id).eq(0..2_000));
    assert!(found.iter().all(|n| n.distance == 0.0));
    assert_eq!(index.search(&[1.0; 3], 10).expect("search").len(), 10);
}

#[test]
fn the_rest_is_found_beside_a_hundred_copies() {
    let mut rng = Rng(41);
    let mut vectors = clustered(&mut rng, 4_060, 32, 40, SPREAD);
    let queries = vectors.split_off(4_000);
    for copy in 1..100 {
        vectors[copy] = vectors[0].clone();
    }
    let index = build(Options::new(32), &vectors);
    let oracle = Oracle::of(Metric::Cosine, &vectors);
    let shares = queries.iter().map(|q| oracle.check(&index, q, 10, 1e-6));
    let recall = shares.sum::<f64>() / queries.len() as f64;
    assert!(recall >= 0.99, "{recall}");
}
