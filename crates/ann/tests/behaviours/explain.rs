//! The explanation of a search tells the work that it did.

use ann::{
    AccessPath, CodeChoice, DistanceMetric, Explanation, IdFilter, IdSet, NeighbourIndex,
    NeighbourIndexOptions, SearchOptions,
};

use crate::data::Rng;
use crate::oracle::build;

const DIMENSIONS: usize = 100;
const VECTORS: u32 = 1_200;

fn index(codes: CodeChoice) -> NeighbourIndex {
    let mut rng = Rng(87);
    let vectors: Vec<_> = (0..VECTORS).map(|_| rng.vector(DIMENSIONS)).collect();
    let options = NeighbourIndexOptions {
        metric: DistanceMetric::Euclidean,
        codes,
        ..NeighbourIndexOptions::new(DIMENSIONS)
    };
    build(options, &vectors)
}

fn explain(index: &NeighbourIndex, search: &SearchOptions<'_>) -> Explanation {
    let query = Rng(88).vector(DIMENSIONS);
    let (found, explanation) = index.explain(&query, search).expect("search");
    assert_eq!(found, index.search_with(&query, search).expect("search"));
    explanation
}

fn with_beam(k: usize, beam: usize) -> SearchOptions<'static> {
    SearchOptions {
        beam: Some(beam),
        ..SearchOptions::new(k)
    }
}

#[test]
fn a_walk_counts_what_it_touches() {
    let index = index(CodeChoice::Nibbles);
    let narrow = explain(&index, &with_beam(5, 60));
    assert_eq!(narrow.way, AccessPath::Walk);
    // A walk expands at least all that it answers, and measures each slot that it expands once.
    assert!((5..=narrow.distances).contains(&narrow.hops), "{narrow:?}");
    assert!(narrow.distances < u64::from(VECTORS), "{narrow:?}");
    assert!((5..=60).contains(&narrow.rescored), "{narrow:?}");
    // It reads at least codes and vectors; at most whole blocks, too.
    let (code, vector) = (DIMENSIONS as u64 / 2, 4 * DIMENSIONS as u64);
    let least = narrow.distances * code + narrow.rescored * vector;
    assert!(narrow.bytes >= least, "{narrow:?}");
    assert!(narrow.bytes <= least + narrow.distances * 256 + narrow.hops * 512);

    let wide = explain(&index, &with_beam(5, 400));
    assert!(wide.hops > narrow.hops && wide.distances > narrow.distances);
    assert!(wide.bytes > narrow.bytes);
}

/// The dot product of vectors of one length orders them as the cosine does, and a walk ends as
/// soon.
#[test]
fn a_walk_by_products_looks_as_far_as_one_by_distances() {
    let mut rng = Rng(90);
    let mut direction = || {
        let vector = rng.vector(DIMENSIONS);
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter().map(|x| x / length).collect::<Vec<f32>>()
    };
    let vectors: Vec<_> = (0..VECTORS).map(|_| direction()).collect();
    let queries: Vec<_> = (0..20).map(|_| direction()).collect();
    let hops = |metric, scale: f32| {
        let options = NeighbourIndexOptions {
            metric,
            ..NeighbourIndexOptions::new(DIMENSIONS)
        };
        let index = build(options, &vectors);
        let hops = queries.iter().map(|query| {
            let query: Vec<f32> = query.iter().map(|x| x * scale).collect();
            let explained = index.explain(&query, &with_beam(10, 40));
            explained.expect("search").1.hops
        });
        hops.sum::<u64>() as f64
    };
    let by_distances = hops(DistanceMetric::Cosine, 1.0);
    for scale in [1e-3, 1.0, 1e3] {
        let share = hops(DistanceMetric::DotProduct, scale) / by_distances;
        assert!((0.8..1.25).contains(&share), "{scale}: {share}");
    }
}

#[test]
fn more_is_rescored_if_asked_for() {
    let index = index(CodeChoice::Nibbles);
    for rescored in [1, 5, 17, 60] {
        let search = SearchOptions {
            rescored: Some(rescored),
            ..with_beam(5, 60)
        };
        assert_eq!(explain(&index, &search).rescored, rescored.max(5) as u64);
    }
}

#[test]
fn a_scan_of_codes_measures_each_code_once() {
    let index = index(CodeChoice::Nibbles);
    let told = explain(&index, &SearchOptions::new(5));
    assert_eq!(told.way, AccessPath::ScanOfCodes);
    assert_eq!((told.hops, told.distances), (0, u64::from(VECTORS)));
    assert!((5..u64::from(VECTORS)).contains(&told.rescored), "{told:?}");
}

#[test]
fn a_scan_measures_each_vector_once() {
    let index = index(CodeChoice::Nibbles);
    for k in [VECTORS as usize, usize::MAX] {
        let told = explain(&index, &SearchOptions::new(k));
        let bytes = u64::from(VECTORS) * 4 * DIMENSIONS as u64;
        let expected = Explanation {
            way: AccessPath::Scan,
            walk_given_up: false,
            hops: 0,
            distances: 0,
            rescored: u64::from(VECTORS),
            bytes,
        };
        assert_eq!(told, expected);
    }
}

#[test]
fn a_small_index_is_scanned() {
    let mut rng = Rng(89);
    let vectors: Vec<_> = (0..300).map(|_| rng.vector(DIMENSIONS)).collect();
    let index = build(NeighbourIndexOptions::new(DIMENSIONS), &vectors);
    let told = explain(&index, &SearchOptions::new(5));
    assert_eq!((told.way, told.rescored), (AccessPath::Scan, 300));
    // A walk that is asked for before there are links becomes a scan, too.
    let told = explain(&index, &with_beam(5, 60));
    assert_eq!((told.way, told.hops), (AccessPath::Scan, 0));
}

#[test]
fn a_filter_bounds_the_scan() {
    let index = index(CodeChoice::Bytes);
    let mut ids = IdSet::default();
    (0..VECTORS).step_by(8).for_each(|id| {
        ids.insert(id);
    });
    let search = SearchOptions {
        filter: Some(IdFilter::Ids(&ids)),
        ..SearchOptions::new(3)
    };
    let told = explain(&index, &search);
    let measured = told.distances.max(told.rescored);
    assert_eq!(measured, ids.len() as u64, "{told:?}");
}

#[test]
fn searches_without_answers_do_no_work() {
    let index = index(CodeChoice::Floats);
    let told = explain(&index, &SearchOptions::new(0));
    assert_eq!(told, Explanation::default());
    let empty = NeighbourIndex::new(NeighbourIndexOptions::new(DIMENSIONS)).expect("valid options");
    let told = explain(&empty, &SearchOptions::new(5));
    assert_eq!(told, Explanation::default());
}
