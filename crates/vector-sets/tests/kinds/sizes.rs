//! Sizes, repeatable draws, real vectors and changes.

use std::collections::BTreeSet;

use vector_sets::{ExistingVectors, RealSamples, TEXT_DIMENSIONS, VectorChange, catalogue, find};

use crate::made;

#[test]
fn there_are_thirty_sets_with_names_of_their_own() {
    let names: BTreeSet<&str> = catalogue().iter().map(|set| set.name).collect();
    assert_eq!(names.len(), catalogue().len());
    assert!(names.len() >= 30);
}

#[test]
fn a_set_has_as_many_vectors_as_were_asked_for() {
    for set in catalogue() {
        let made = set.make(1, 600, 20, &RealSamples::default());
        let group = match set.name {
            "nested-clusters" => 1_500,
            "clusters-30x1000-in-order" => 1_000,
            _ => 600,
        };
        assert_eq!(made.rows(), group, "{}", set.name);
        assert_eq!(made.each_query().len(), 20, "{}", set.name);
        assert_eq!(made.dimensions, set.dimensions, "{}", set.name);
        let all = made.base.iter().chain(&made.queries);
        assert!(all.clone().all(|x| x.is_finite()), "{}", set.name);
        assert!(
            made.vectors()
                .all(|vector| vector.iter().any(|x| *x != 0.0))
        );
    }
}

#[test]
fn a_seed_gives_one_set() {
    for set in catalogue() {
        let [a, b, c] = [1, 1, 2].map(|seed| set.make(seed, 300, 5, &RealSamples::default()));
        assert!(a.base == b.base && a.queries == b.queries, "{}", set.name);
        assert!(a.changes == b.changes, "{}", set.name);
        assert!(a.base != c.base && a.queries != c.queries, "{}", set.name);
    }
}

#[test]
fn queries_are_not_among_the_vectors() {
    for set in catalogue() {
        if set.name == "duplicates" {
            continue;
        }
        let made = set.make(1, 300, 20, &RealSamples::default());
        let vectors: Vec<&[f32]> = made.vectors().collect();
        assert!(
            made.each_query().all(|q| !vectors.contains(&q)),
            "{}",
            set.name
        );
    }
}

#[test]
fn real_vectors_are_taken_where_there_are_any() {
    let base: Vec<f32> = (0..50 * TEXT_DIMENSIONS).map(|x| x as f32).collect();
    let queries = vec![7.0; 3 * TEXT_DIMENSIONS];
    let real = RealSamples {
        texts: Some(ExistingVectors {
            base: &base,
            queries: &queries,
        }),
        ..RealSamples::default()
    };
    let made = find("texts").unwrap().make(1, 50, 3, &real);
    let mut first: Vec<f32> = made.vectors().map(|vector| vector[0]).collect();
    assert!(!first.is_sorted());
    first.sort_by(f32::total_cmp);
    let expected: Vec<f32> = (0..50).map(|row| (row * TEXT_DIMENSIONS) as f32).collect();
    assert_eq!(first, expected);
    assert_eq!(made.queries, queries);
}

#[test]
fn half_deleted_leaves_a_half() {
    let made = made("gaussian-64-half-deleted", 1_000, 1);
    let left = made.left();
    assert_eq!((made.rows(), left.ids.len()), (1_000, 500));
    assert!(left.ids.is_sorted());
    for (id, vector) in left.ids.iter().zip(left.vectors.chunks_exact(64)) {
        assert_eq!(Some(vector), made.vectors().nth(*id as usize));
    }
}

#[test]
fn a_third_is_replaced_before_half_is_deleted() {
    for name in ["texts-changed", "clusters-changed"] {
        let made = made(name, 900, 1);
        let replaces = |change: &&VectorChange| matches!(change, VectorChange::Replace(..));
        let replaced = made.changes.iter().take_while(replaces).count();
        assert!((300..=450).contains(&replaced), "{name}: {replaced}");
        assert_eq!(made.changes.len() - replaced, 450, "{name}");
        let left = made.left();
        assert_eq!(left.ids.len(), 450, "{name}");
        let rows = left.vectors.chunks_exact(made.dimensions);
        let as_written = left.ids.iter().zip(rows);
        let as_written = as_written
            .filter(|(id, vector)| made.vectors().nth(**id as usize) == Some(*vector))
            .count();
        assert!((200..=350).contains(&as_written), "{name}: {as_written}");
    }
}
