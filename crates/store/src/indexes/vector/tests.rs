use std::sync::Arc;

use super::*;
use crate::identity::IndexIdentity;
use crate::indexes::tests::{identity, in_memory, insert};
use crate::indexes::{
    ChangeBlock, ChangeBlocks, FreshChange, IndexContent, PreparedValue, Structure,
};
use crate::observed::IndexableValue;

fn index(identity: &IndexIdentity) -> IndexContent {
    IndexContent::new(&identity.options, identity.keys.clone(), &in_memory()).unwrap()
}

/// The structure of an index, which is one of vectors.
fn vectors(index: &IndexContent) -> &VectorIndex {
    match index.structure() {
        Structure::Vector(vectors) => vectors,
        Structure::Text(_) => panic!("an index on texts"),
    }
}

#[test]
fn rows_on_their_way_out_are_made_up_for() {
    let identity = identity("idx");
    let index = index(&identity);
    for id in 0..4u32 {
        insert(&index, id, &[id as f32, 0.0]);
    }
    // The nearest two rows have lost their keys, but not their vectors yet.
    for id in 2..4u32 {
        let key = identity.keys.encode([id.to_string().as_bytes()]);
        index.keys_mut().insert(id, key);
    }
    let found = index.search(&IndexSearch::new(&[0.0, 0.0], 1)).unwrap();
    let found = serde_json::to_value(&found).unwrap();
    assert_eq!(found["distances"], serde_json::json!([4.0]));
    assert_eq!(found["primary_keys"]["p0"], serde_json::json!(["2"]));
    let all = index.search(&IndexSearch::new(&[0.0, 0.0], 10)).unwrap();
    let all = serde_json::to_value(&all).unwrap();
    assert_eq!(all["distances"], serde_json::json!([4.0, 9.0]));
}

/// An index of that search width with the vectors, whose rows are named by their positions.
fn of_width(width: Option<usize>, vectors: &[Vec<f32>]) -> IndexContent {
    let mut identity = identity("idx");
    identity.options.vector().dimensions = 24;
    identity.options.vector().search_beam_width = width;
    let index = index(&identity);
    for (id, vector) in (0..).zip(vectors) {
        insert(&index, id, vector);
        let key = identity.keys.encode([id.to_string().as_bytes()]);
        index.keys_mut().insert(id, key);
    }
    index
}

#[test]
fn the_width_of_the_schema_is_no_cap() {
    let mut state = 1u64;
    let mut element = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f32
    };
    let mut vector = || (0..24).map(|_| element()).collect::<Vec<f32>>();
    let vectors: Vec<Vec<f32>> = (0..3000).map(|_| vector()).collect();
    let indexes = [None, Some(1)].map(|width| of_width(width, &vectors));
    for _ in 0..50 {
        let query = vector();
        let [usual, narrow] = indexes.each_ref().map(|index| {
            let found = index.search(&IndexSearch::new(&query, 1)).unwrap();
            serde_json::to_value(&found).unwrap()["primary_keys"].clone()
        });
        assert_eq!(usual, narrow);
    }
}

#[test]
fn the_engine_is_asked_for_what_the_search_wants() {
    let index = of_width(Some(300), &[vec![1.0; 24], vec![2.0; 24]]);
    // The engine has the width, below which no search is narrower.
    assert_eq!(vectors(&index).ann.options().search_beam_width, 300);
    let query = [0.0; 24];
    let search = IndexSearch::new(&query, 1);
    let asked = vectors(&index).engine_search(&search, 9, None);
    assert_eq!((asked.k, asked.beam, asked.rescored), (2, None, None));
    assert!(!asked.exact);
    let plan = index.search(&search).unwrap().plan().unwrap().kind;
    assert_eq!(plan, SearchPlan::Scan);
    let exact = IndexSearch {
        exact: true,
        ..search
    };
    assert!(vectors(&index).engine_search(&exact, 1, None).exact);
    let plan = index.search(&exact).unwrap().plan().unwrap().kind;
    assert_eq!(plan, SearchPlan::Exact);
}

#[test]
fn an_empty_index_answers_nothing() {
    let identity = identity("idx");
    let index = index(&identity);
    let found = index.search(&IndexSearch::new(&[0.0, 0.0], 10)).unwrap();
    let found = serde_json::to_value(&found).unwrap();
    assert_eq!(found["primary_keys"], serde_json::json!({"p0": []}));
}

#[test]
fn a_row_whose_new_vector_is_refused_is_not_found_where_it_was() {
    let identity = identity("idx");
    let index = index(&identity);
    insert(&index, 7, &[1.0, 0.0]);
    let other = ann::NeighbourIndex::new(ann::NeighbourIndexOptions::new(3)).unwrap();
    let vector = other.prepare(&[1.0, 0.0, 0.0]).unwrap();
    let vector = PreparedValue::Vector(vector);
    let refused = index.change(8, ChangeKind::Replace, Some(&vector));
    let refused = refused.unwrap_err();
    assert_eq!((refused.id, refused.operation), (8, ChangeKind::Replace));
    assert!(!refused.for_want_of_room());
    assert_eq!(vectors(&index).ann.len(), 1);
}

fn block(
    index: &IndexContent,
    changes: &[(u32, Option<[f32; 2]>)],
) -> Arc<ChangeBlock<PreparedValue>> {
    let fresh = |(id, vector): &(u32, Option<[f32; 2]>)| FreshChange {
        id: *id,
        value: vector.map(|vector| {
            let vector = IndexableValue::Vector(vector.to_vec());
            index.prepare(&vector).unwrap()
        }),
    };
    Arc::new(ChangeBlock::new(changes.iter().map(fresh).collect()))
}

fn publish(index: &IndexContent, blocks: Vec<Arc<ChangeBlock<PreparedValue>>>) {
    index.publish(ChangeBlocks { first: 0, blocks }, &[]);
}

/// The rows nearest to the origin, by their names and distances.
fn found(index: &IndexContent, limit: usize, now_s: u32) -> Vec<(String, f32)> {
    let search = IndexSearch {
        now_s,
        ..IndexSearch::new(&[0.0, 0.0], limit)
    };
    let found = index.search(&search).unwrap();
    let rows = store_api::binary::AnswerRows::read(found.binary()).unwrap();
    let keys = rows.columns[0].values.iter();
    let keys = keys.map(|key| String::from_utf8(key.to_vec()).unwrap());
    keys.zip(rows.distances).collect()
}

fn with_rows(rows: u32) -> IndexContent {
    let identity = identity("idx");
    let index = index(&identity);
    for id in 0..rows {
        insert(&index, id, &[id as f32, 0.0]);
    }
    for id in 0..rows + 10 {
        let key = identity.keys.encode([id.to_string().as_bytes()]);
        index.keys_mut().insert(id, key);
    }
    index
}

fn rows(rows: &[(&str, f32)]) -> Vec<(String, f32)> {
    let owned = |(name, distance): &(&str, f32)| ((*name).to_owned(), *distance);
    rows.iter().map(owned).collect()
}

#[test]
fn fresh_changes_stand_before_what_the_graph_has() {
    for held in [0, 3, 2000] {
        let index = with_rows(held);
        let new = held + 1;
        let first = block(&index, &[(0, Some([0.5, 0.0])), (new, Some([9.0, 0.0]))]);
        let second = block(&index, &[(new, Some([0.0, 0.25])), (1, None), (2, None)]);
        publish(&index, vec![first.clone()]);
        let expected = rows(&[("0", 0.25)]);
        assert_eq!(found(&index, 1, 0), expected, "{held}");
        publish(&index, vec![first, second]);
        let new = new.to_string();
        let expected = rows(&[(&new, 0.0625), ("0", 0.25), ("3", 9.0), ("4", 16.0)]);
        let expected = &expected[..expected.len().min(held as usize)];
        let expected = match held {
            0 | 3 => &rows(&[(&new, 0.0625), ("0", 0.25)])[..],
            _ => expected,
        };
        assert_eq!(found(&index, 4, 0), expected, "{held}");
        publish(&index, Vec::new());
        let distances = found(&index, 3, 0);
        assert_eq!(distances.len(), 3.min(held as usize), "{held}");
    }
}

#[test]
fn an_answer_is_whole_however_many_of_the_nearest_are_hidden() {
    let index = with_rows(3000);
    // The nearest are far away now, or removed.
    let far = |id: u32| (id, (id.is_multiple_of(2)).then_some([1e6, 0.0]));
    let changes: Vec<_> = (0..100).map(far).collect();
    publish(&index, vec![block(&index, &changes)]);
    let names: Vec<String> = (100..150).map(|id: u32| id.to_string()).collect();
    let nearest = found(&index, 50, 0).into_iter().map(|(name, _)| name);
    assert_eq!(nearest.collect::<Vec<_>>(), names);
    assert_eq!(found(&index, 5000, 0).len(), 3000 - 50);
}

#[test]
fn a_row_that_has_expired_is_not_found() {
    let index = with_rows(700);
    for id in 0..650 {
        index.keys_mut().set_expiry(id, 1000);
    }
    publish(&index, vec![block(&index, &[(1, Some([0.5, 0.0]))])]);
    assert_eq!(found(&index, 2, 999), rows(&[("0", 0.0), ("1", 0.25)]));
    let expected = rows(&[("650", 422_500.0), ("651", 423_801.0)]);
    assert_eq!(found(&index, 2, 1000), expected);
    assert_eq!(found(&index, 1000, 1000).len(), 50);
}
