//! A wrong vector, id or option is refused by name, and changes nothing.

use ann::{IndexError, NeighbourIndex, NeighbourIndexOptions};

fn index() -> NeighbourIndex {
    let index = NeighbourIndex::new(NeighbourIndexOptions::new(3)).expect("valid options");
    index.insert(7, &[1.0, 2.0, 3.0]).expect("insert");
    index
}

/// The three ways a vector comes in.
fn every_way(index: &NeighbourIndex, vector: &[f32]) -> [Result<(), IndexError>; 3] {
    [
        index.insert(8, vector),
        index.replace(7, vector),
        index.search(vector, 1).map(|_| ()),
    ]
}

#[test]
fn a_vector_of_another_length() {
    let index = index();
    for actual in [0, 2, 4, 20_000] {
        let expected = Err(IndexError::Dimensions {
            expected: 3,
            actual,
        });
        for result in every_way(&index, &vec![1.0; actual]) {
            assert_eq!(result, expected);
        }
    }
    assert_eq!(index.len(), 1);
    let message = index.search(&[1.0], 1).unwrap_err().to_string();
    assert_eq!(message, "Wrong embedding dimension: expected 3, got 1");
}

#[test]
fn an_element_that_is_not_finite() {
    let index = index();
    for element in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for result in every_way(&index, &[0.5, 0.5, element]) {
            assert_eq!(result, Err(IndexError::NotFinite { position: 2 }));
        }
    }
    assert_eq!(index.len(), 1);
    assert_eq!(index.search(&[1.0, 2.0, 3.0], 9).expect("search").len(), 1);
}

#[test]
fn an_id_in_use_and_an_id_not_in_use() {
    let index = index();
    assert_eq!(index.insert(7, &[1.0; 3]), Err(IndexError::Exists(7)));
    assert_eq!(index.replace(8, &[1.0; 3]), Err(IndexError::Missing(8)));
    assert_eq!(index.remove(8), Err(IndexError::Missing(8)));
    assert_eq!(index.remove(7), Ok(()));
    assert_eq!(index.remove(7), Err(IndexError::Missing(7)));
    assert!(index.is_empty());
}

#[test]
fn no_neighbours_asked_for() {
    let index = index();
    assert_eq!(index.search(&[1.0; 3], 0), Ok(Vec::new()));
    let wrong = index.search(&[1.0; 2], 0);
    assert!(
        matches!(wrong, Err(IndexError::Dimensions { .. })),
        "{wrong:?}"
    );
}

#[test]
fn an_empty_index_answers_with_nothing() {
    let index = NeighbourIndex::new(NeighbourIndexOptions::new(3)).expect("valid options");
    assert_eq!(index.search(&[1.0; 3], 10), Ok(Vec::new()));
    assert_eq!(index.search(&[0.0; 3], 10), Ok(Vec::new()));
}

#[test]
fn an_option_out_of_range_is_named_with_its_range() {
    let options = NeighbourIndexOptions {
        max_connections: 513,
        ..NeighbourIndexOptions::new(3)
    };
    let error = NeighbourIndex::new(options).unwrap_err();
    assert!(matches!(error, IndexError::Options(_)));
    let message = "max_connections is 513, out of the valid range [1 - 512]";
    assert_eq!(error.to_string(), message);
}

#[test]
fn both_ends_of_every_range_work() {
    let smallest = NeighbourIndexOptions {
        max_connections: 1,
        build_beam_width: 1,
        search_beam_width: 1,
        ..NeighbourIndexOptions::new(1)
    };
    let largest = NeighbourIndexOptions {
        max_connections: 512,
        build_beam_width: 4096,
        search_beam_width: 4096,
        ..NeighbourIndexOptions::new(16_000)
    };
    for options in [smallest, largest] {
        let index = NeighbourIndex::new(options).expect("valid options");
        for id in 0..100u32 {
            let sign = if id % 2 == 0 { 1.0 } else { -1.0 };
            let vector = vec![sign * (id + 1) as f32; options.dimensions];
            index.insert(id, &vector).expect("insert");
        }
        let found = index.search(&vec![1.0; options.dimensions], 50);
        let found = found.expect("search");
        assert!(found.iter().all(|n| n.id % 2 == 0 && n.distance < 1e-6));
        assert_eq!(found.len(), 50);
    }
}

#[test]
fn the_largest_id_is_an_id() {
    let index = index();
    index.insert(u32::MAX, &[-1.0; 3]).expect("insert");
    let found = index.search(&[-1.0; 3], 5).expect("search");
    assert_eq!(found[0].id, u32::MAX);
    assert_eq!(index.remove(u32::MAX), Ok(()));
    assert_eq!(index.len(), 1);
}
