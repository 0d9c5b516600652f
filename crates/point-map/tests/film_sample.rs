//! The map of the film sample preserves neighbours that its principal components lose.

use point_map::{LayoutPace, MapLayout, SampleMetric, VectorSample, drawn_places, lay_out};

const DIMENSIONS: usize = 384;

/// How many times as many neighbours a map is to preserve as one of the principal components.
const TIMES_BETTER: f64 = 3.0;

/// The map of so many films.
fn map_of(films: usize, seed: u64) -> MapLayout {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../samples/movies/vectors.i8"
    );
    let bytes = std::fs::read(path).unwrap();
    let (vectors, rest) = bytes.as_chunks::<DIMENSIONS>();
    assert!(rest.is_empty() && vectors.len() == 10_000);
    let drawn = drawn_places(vectors.len(), films, seed).into_iter();
    let elements = drawn.flat_map(|at| vectors[at].map(|byte| f32::from(byte.cast_signed())));
    let mut go_on = |_| true;
    let mut pace = LayoutPace::new(&mut go_on);
    let elements = elements.collect();
    let sample = VectorSample::new(DIMENSIONS, SampleMetric::Cosine, elements, &mut pace).unwrap();
    lay_out(&sample, seed, &mut pace).unwrap()
}

#[test]
fn neighbours_stay_near_three_times_as_often_as_by_principal_components() {
    let map = map_of(2000, 1);
    let by_map = map.neighbours_kept.unwrap();
    let by_pca = map.neighbours_kept_by_pca.unwrap();
    assert!(by_map >= TIMES_BETTER * by_pca, "{by_map} and {by_pca}");
    assert!(by_map >= 0.28, "{by_map}");
}

/// The figures of the docs: `cargo test --release -p point-map --test film_sample -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
fn figures_of_maps_of_films() {
    for films in [2000, 5000, 10_000] {
        let began = std::time::Instant::now();
        let map = map_of(films, 0);
        let took = began.elapsed().as_secs_f64();
        println!(
            "{films} films: {:?} of the ten nearest stay near, {:?} by principal components, {took:.1} s",
            map.neighbours_kept, map.neighbours_kept_by_pca
        );
    }
}
