//! A set is as its name says.

use vector_sets::NeighbourMetric;

use crate::{best, cosine, made, product, square};

fn lengths(name: &str, rows: usize) -> Vec<f64> {
    let made = made(name, rows, 1);
    made.vectors().map(|v| product(v, v).sqrt()).collect()
}

#[test]
fn lengths_are_lognormal() {
    for (name, sigma) in [
        ("texts-lengths-0.2", 0.2),
        ("texts-lengths-0.5", 0.5),
        ("random-lengths-0.05", 0.05),
        ("random-lengths-0.2", 0.2),
        ("random-lengths-1", 1.0),
        ("long-first", 0.5),
        ("long-last", 0.5),
    ] {
        let logarithms: Vec<f64> = lengths(name, 3_000).iter().map(|x| x.ln()).collect();
        let mean = logarithms.iter().sum::<f64>() / 3_000.0;
        let squares = logarithms.iter().map(|x| (x - mean) * (x - mean));
        let found = (squares.sum::<f64>() / 3_000.0).sqrt();
        assert!((found / sigma - 1.0).abs() < 0.05, "{name}: {found}");
    }
}

#[test]
fn the_longest_come_first_or_last() {
    let nearly = |a: &f64, b: &f64| *a <= *b * 1.000_001;
    assert!(lengths("long-last", 500).is_sorted_by(nearly));
    assert!(lengths("long-first", 500).is_sorted_by(|a, b| nearly(b, a)));
}

#[test]
fn copies_are_at_their_cosine() {
    // Two copies of one original at c are at c * c of each other, nearly.
    for (name, cosine_with_original) in [
        ("copies-300x100", 0.99),
        ("copies-1000x30", 0.99),
        ("loose-copies-1000x30", 0.95),
        ("faces", f64::sqrt(0.8)),
    ] {
        let made = made(name, 600, 20);
        let vectors: Vec<&[f32]> = made.vectors().collect();
        let expected = cosine_with_original * cosine_with_original;
        let mean = made.each_query().map(|query| {
            let mut cosines: Vec<f64> = vectors.iter().map(|v| cosine(query, v)).collect();
            cosines.sort_by(|a, b| b.total_cmp(a));
            cosines[..30].iter().sum::<f64>() / 30.0
        });
        let mean = mean.sum::<f64>() / 20.0;
        assert!((mean - expected).abs() < 0.01, "{name}: {mean}");
    }
}

#[test]
fn duplicates_are_there_ten_times() {
    let made = made("duplicates", 500, 5);
    for query in made.each_query() {
        assert_eq!(made.vectors().filter(|vector| *vector == query).count(), 10);
    }
}

#[test]
fn clusters_are_narrow_and_keep_their_order() {
    let random = made("clusters-200x150", 600, 1);
    let in_order = made("clusters-200x150-in-order", 600, 1);
    let near = |a: &[f32], b: &[f32]| square(a, b) < 60.0;
    for (made, share) in [(random, 0.4), (in_order, 1.0)] {
        let vectors: Vec<&[f32]> = made.vectors().collect();
        let pairs = vectors.windows(2).filter(|pair| near(pair[0], pair[1]));
        let found = pairs.count() as f64 / 599.0;
        assert!(found <= share && found > share - 0.25, "{found}");
    }
}

#[test]
fn nested_clusters_have_three_widths() {
    let made = made("nested-clusters", 3_000, 1);
    let vectors: Vec<&[f32]> = made.vectors().collect();
    // Squared distances are twice the variance times the dimensions.
    let mut distances: Vec<f64> = vectors[1..].iter().map(|v| square(vectors[0], v)).collect();
    distances.sort_by(f64::total_cmp);
    assert!(distances[40] < 0.05, "{}", distances[40]);
    assert!(
        (1.0..4.0).contains(&distances[1_000]),
        "{}",
        distances[1_000]
    );
    assert!(distances[2_000] > 100.0, "{}", distances[2_000]);
}

#[test]
fn neighbours_in_time_are_near() {
    for (name, least) in [("video", 0.99), ("versions", 0.98)] {
        let made = made(name, 1_000, 50);
        let vectors: Vec<&[f32]> = made.vectors().collect();
        let near = (0..200).filter(|row| best(&vectors, *row, cosine) > least);
        let near = near.count();
        assert!(near >= 190, "{name}: {near}");
    }
    let made = made("walk-windows", 1_000, 50);
    let vectors: Vec<&[f32]> = made.vectors().collect();
    let shifted = vectors
        .windows(2)
        .filter(|pair| pair[0][1..] == pair[1][..127]);
    assert!(shifted.count() > 900);
}

#[test]
fn the_mean_moves() {
    let made = made("drift", 1_000, 10);
    let vectors: Vec<&[f32]> = made.vectors().collect();
    assert!(square(vectors[0], vectors[999]) > 2.0 * square(vectors[0], vectors[1]));
}

#[test]
fn means_and_scales_are_as_named() {
    let made_mean = made("mean-10-cosine", 100, 1);
    let mean = made_mean.base.iter().sum::<f32>() / made_mean.base.len() as f32;
    assert!((mean - 10.0).abs() < 0.1, "{mean}");
    let made_scales = made("scales", 200, 1);
    let mut scales: Vec<f32> = (0..96)
        .map(|place| {
            let elements = made_scales.vectors().map(|v| v[place].abs());
            elements.sum::<f32>() / 200.0
        })
        .collect();
    scales.sort_by(f32::total_cmp);
    assert!(scales[0] < 2e-3 && scales[95] > 500.0, "{scales:?}");
}

#[test]
fn few_elements_are_filled_and_bits_are_bits() {
    let sparse = made("sparse", 200, 1);
    let filled = sparse.base.iter().filter(|x| **x != 0.0).count();
    let share = filled as f64 / sparse.base.len() as f64;
    assert!((0.04..0.06).contains(&share), "{share}");
    for name in ["bits", "random-bits"] {
        let bits = made(name, 200, 1);
        assert!(bits.base.iter().all(|x| *x == 0.0 || *x == 1.0), "{name}");
        let ones = bits.base.iter().sum::<f32>() / bits.base.len() as f32;
        assert!((0.45..0.55).contains(&ones), "{name}: {ones}");
    }
    let histograms = made("histograms", 100, 1);
    let is_count = |x: &f32| x.fract() == 0.0 && (0.0..=255.0).contains(x);
    assert!(histograms.base.iter().all(is_count));
}

#[test]
fn texts_from_a_template_are_alike() {
    let made = made("template", 100, 1);
    let vectors: Vec<&[f32]> = made.vectors().collect();
    assert!(
        vectors
            .windows(2)
            .all(|pair| cosine(pair[0], pair[1]) > 0.9)
    );
}

#[test]
fn popular_items_are_longer() {
    let mut lengths = lengths("recommendation", 2_000);
    lengths.sort_by(f64::total_cmp);
    assert!(lengths[1_999] > 4.0 * lengths[1_000]);
}

#[test]
fn tails_are_heavy() {
    let made = made("heavy-tails", 1_000, 1);
    let largest = made.base.iter().fold(0.0f32, |a, b| a.max(b.abs()));
    assert!(largest > 50.0, "{largest}");
}

#[test]
fn made_texts_resemble_real_ones() {
    // Of real texts, two random ones are at a cosine of 0.09 in the mean, and the nearest of 2,000
    // at 0.6.
    let made = made("texts", 2_000, 1);
    let vectors: Vec<&[f32]> = made.vectors().collect();
    let random = vectors.windows(2).map(|pair| cosine(pair[0], pair[1]));
    let random = random.sum::<f64>() / 1_999.0;
    let nearest = (0..100).map(|row| best(&vectors, row, cosine)).sum::<f64>() / 100.0;
    assert!((0.0..0.4).contains(&random), "{random}");
    assert!((0.5..0.85).contains(&nearest), "{nearest}");
}

#[test]
fn distances_are_those_of_the_formulas() {
    let (a, b) = ([3.0, 4.0], [4.0, -3.0]);
    assert_eq!(NeighbourMetric::Cosine.distance(&a, &b), 1.0);
    assert_eq!(NeighbourMetric::Euclidean.distance(&a, &b), 50.0);
    assert_eq!(NeighbourMetric::DotProduct.distance(&a, &a), -25.0);
    assert_eq!(NeighbourMetric::Hamming.distance(&a, &b), 1.0);
}
