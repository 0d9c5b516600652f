//! Maps of vectors of any kind.

use point_map::{
    LAYOUT_STEPS, LayoutPace, LayoutStopped, MapLayout, RandomDraws, SampleMetric, VectorSample,
    lay_out, layout_bytes,
};

const METRICS: [SampleMetric; 3] = [
    SampleMetric::Cosine,
    SampleMetric::Euclidean,
    SampleMetric::DotProduct,
];

fn sample(metric: SampleMetric, vectors: &[Vec<f32>]) -> VectorSample {
    let dimensions = vectors.first().map_or(4, Vec::len);
    let mut go_on = |_| true;
    let mut pace = LayoutPace::new(&mut go_on);
    VectorSample::new(dimensions, metric, vectors.concat(), &mut pace).unwrap()
}

fn map(metric: SampleMetric, vectors: &[Vec<f32>], seed: u64) -> MapLayout {
    let mut go_on = |_| true;
    let mut pace = LayoutPace::new(&mut go_on);
    lay_out(&sample(metric, vectors), seed, &mut pace).unwrap()
}

/// A number from -1 to 1.
fn drawn(draws: &mut RandomDraws) -> f32 {
    (draws.bits() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
}

/// Vectors in groups, of which each is near one corner of a cube.
fn groups(count: usize, dimensions: usize) -> Vec<Vec<f32>> {
    let mut draws = RandomDraws::new(11);
    let vector = |at: usize| {
        let elements = (0..dimensions).map(|axis| {
            let corner = f32::from(u8::from((at % 8) >> (axis % 3) & 1 == 1));
            4.0 * corner + drawn(&mut draws)
        });
        elements.collect()
    };
    (0..count).map(vector).collect()
}

#[test]
fn groups_of_vectors_are_groups_of_points() {
    let vectors = groups(800, 24);
    for metric in METRICS {
        let map = map(metric, &vectors, 0);
        if metric == SampleMetric::DotProduct {
            // The nearest of most vectors are the longest ones, wherever these are.
            continue;
        }
        let mut hits = 0;
        for one in 0..800 {
            let distance = |other: usize| {
                let (dx, dy) = (map.x[one] - map.x[other], map.y[one] - map.y[other]);
                dx * dx + dy * dy
            };
            let others = (0..800).filter(|other| *other != one);
            let nearest = others.min_by(|a, b| distance(*a).total_cmp(&distance(*b)));
            hits += usize::from(nearest.unwrap() % 8 == one % 8);
        }
        assert!(hits > 720, "{metric:?}: {hits} of 800");
        assert!(map.neighbours_kept.unwrap() > map.neighbours_kept_by_pca.unwrap());
    }
}

#[test]
fn a_sample_and_a_seed_have_one_map() {
    let vectors = groups(300, 12);
    let first = map(SampleMetric::Cosine, &vectors, 5);
    assert_eq!(first, map(SampleMetric::Cosine, &vectors, 5));
    assert_ne!(first.x, map(SampleMetric::Cosine, &vectors, 6).x);
}

/// Vectors that break careless arithmetic.
fn strange_samples() -> Vec<(&'static str, Vec<Vec<f32>>)> {
    let mut draws = RandomDraws::new(2);
    let mut cloud = |count: usize, reach: f32| -> Vec<Vec<f32>> {
        let mut vector = || (0..4).map(|_| reach * drawn(&mut draws)).collect();
        (0..count).map(|_| vector()).collect()
    };
    let mut with_outlier = cloud(200, 1e-3);
    with_outlier.push(vec![1e6; 4]);
    let mut with_copies = cloud(100, 1.0);
    with_copies.extend(vec![vec![0.5; 4]; 200]);
    vec![
        ("none", vec![]),
        ("one", cloud(1, 1.0)),
        ("two", cloud(2, 1.0)),
        ("twelve", cloud(12, 1.0)),
        ("zeros", vec![vec![0.0; 4]; 100]),
        ("copies of one", vec![vec![1.0, 2.0, 3.0, 4.0]; 300]),
        ("copies", with_copies),
        ("an outlier", with_outlier),
        ("tiny", cloud(150, 1e-30)),
        ("huge", cloud(150, 1e30)),
        (
            "of one dimension",
            cloud(150, 1.0).iter().map(|v| v[..1].to_vec()).collect(),
        ),
    ]
}

#[test]
fn any_vectors_have_a_map_within_its_bounds() {
    for (name, vectors) in strange_samples() {
        for metric in METRICS {
            let map = map(metric, &vectors, 1);
            assert_eq!((map.x.len(), map.y.len()), (vectors.len(), vectors.len()));
            let coordinates = map.x.iter().chain(&map.y);
            let wrong = coordinates.filter(|at| !(-1.0..=1.0).contains(*at)).count();
            assert_eq!(wrong, 0, "{name}, {metric:?}");
            let reach = map
                .x
                .iter()
                .chain(&map.y)
                .fold(0.0_f32, |most, at| most.max(at.abs()));
            assert!(
                vectors.len() < 2 || reach == 1.0,
                "{name}, {metric:?}: {reach}"
            );
            for share in [map.neighbours_kept, map.neighbours_kept_by_pca] {
                assert_eq!(share.is_some(), vectors.len() >= 2, "{name}");
                assert!((0.0..=1.0).contains(&share.unwrap_or_default()), "{name}");
            }
        }
    }
}

#[test]
fn a_layout_ends_where_it_is_not_wanted_any_more() {
    let sample = sample(SampleMetric::Cosine, &groups(400, 8));
    let mut calls = 0;
    let mut seen = Vec::new();
    let mut count = |done| {
        calls += 1;
        seen.push(done);
        true
    };
    lay_out(&sample, 0, &mut LayoutPace::new(&mut count)).unwrap();
    assert!(seen.is_sorted());
    assert_eq!(seen.last(), Some(&LAYOUT_STEPS));
    for stop_at in [1, calls / 3, calls / 2, calls] {
        let mut left = stop_at;
        let mut stop = |_| {
            left -= 1;
            left > 0
        };
        let stopped = lay_out(&sample, 0, &mut LayoutPace::new(&mut stop));
        assert_eq!(stopped, Err(LayoutStopped), "{stop_at} of {calls}");
        assert_eq!(left, 0, "no call comes after the last one");
    }
}

#[test]
fn the_bytes_of_a_layout_grow_with_its_sample() {
    assert!(layout_bytes(20_000, 384) < 64 << 20);
    assert!(layout_bytes(20_000, 1536) > 20_000 * 1536 * 4);
}
