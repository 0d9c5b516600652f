//! Many queries at once are answered as each of them would be alone.

use ann::{
    CodeChoice, DistanceMetric, IdFilter, IdSet, IndexError, NeighbourIndexOptions, SearchOptions,
};

use crate::data::Rng;
use crate::oracle::build;

#[test]
fn a_batch_answers_as_its_queries_do_one_by_one() {
    for (metric, codes, vectors) in [
        (DistanceMetric::Cosine, CodeChoice::Nibbles, 100),
        (DistanceMetric::Cosine, CodeChoice::Nibbles, 1_000),
        (DistanceMetric::Euclidean, CodeChoice::Bytes, 1_000),
        (DistanceMetric::DotProduct, CodeChoice::Floats, 1_000),
        (DistanceMetric::Hamming, CodeChoice::Auto, 1_000),
    ] {
        let mut rng = Rng(84);
        let vectors: Vec<_> = (0..vectors).map(|_| rng.vector(20)).collect();
        let options = NeighbourIndexOptions {
            metric,
            codes,
            ..NeighbourIndexOptions::new(20)
        };
        let index = build(options, &vectors);
        let mut queries: Vec<_> = (0..30).map(|_| rng.vector(20)).collect();
        queries[3] = vec![0.0; 20];
        queries[4] = queries[5].clone();
        let queries: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
        let mut thirds = IdSet::default();
        (0..1_000).step_by(3).for_each(|id| {
            thirds.insert(id);
        });
        for search in [
            SearchOptions::new(0),
            SearchOptions::new(1),
            SearchOptions::new(10),
            SearchOptions::new(5_000),
            SearchOptions {
                beam: Some(50),
                ..SearchOptions::new(10)
            },
            SearchOptions {
                filter: Some(IdFilter::Ids(&thirds)),
                ..SearchOptions::new(10)
            },
        ] {
            let batch = index.search_batch(&queries, &search).expect("search");
            let single = queries.iter().map(|query| {
                let answer = index.search_with(query, &search);
                answer.expect("search")
            });
            assert!(single.eq(batch), "{metric:?} {search:?}");
        }
    }
}

#[test]
fn no_queries_have_no_answers() {
    let index = build(NeighbourIndexOptions::new(3), &[vec![1.0; 3]]);
    let answers = index.search_batch(&[], &SearchOptions::new(5));
    assert_eq!(answers, Ok(Vec::new()));
}

#[test]
fn one_wrong_query_refuses_the_batch() {
    let index = build(NeighbourIndexOptions::new(3), &[vec![1.0; 3]]);
    let search = SearchOptions::new(5);
    let answers = index.search_batch(&[&[1.0; 3], &[1.0; 2]], &search);
    let expected = IndexError::Dimensions {
        expected: 3,
        actual: 2,
    };
    assert_eq!(answers, Err(expected));
    let answers = index.search_batch(&[&[1.0; 3], &[1.0, f32::NAN, 0.0]], &search);
    assert_eq!(answers, Err(IndexError::NotFinite { position: 1 }));
}
