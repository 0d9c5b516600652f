//! A search concurrent with writes never sees the filter values of one write with the vector of
//! another.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use serde_json::json;
use store_api::types::Filter;
use value::CqlType;

use super::*;
use crate::filter::SearchFilter;
use crate::identity::FilterColumn;
use crate::indexes::RequestedColumn;

/// The number of times that the row is written.
const WRITES: u16 = 4000;

/// The row as write `number` leaves it: it is as far from the origin as `n` says.
fn written(n: u16) -> ReadCell {
    ReadCell::Value(TimestampedValue {
        filters: vec![Some(Bytes::copy_from_slice(&i32::from(n).to_be_bytes()))],
        filters_change_s: None,
        value: IndexableValue::Vector(vec![f32::from(n), 0.0]),
        written_us: 1,
        expires_s: None,
    })
}

fn filter(index: &IndexHandle) -> Box<SearchFilter> {
    let restrictions = json!([{"type": ">", "lhs": "n", "rhs": -1}]);
    let filter = json!({"restrictions": restrictions, "allow_filtering": true});
    let filter: Filter = serde_json::from_value(filter).unwrap();
    let filter = SearchFilter::new(&index.identity, Some(&filter), &[]).unwrap();
    filter.unwrap()
}

/// Searches until the writes end. Returns the number of searches that found the row in the graph or
/// among the fresh vectors.
fn check(index: &IndexHandle, filter: Option<&SearchFilter>, ended: &AtomicBool) -> usize {
    let returned = RequestedColumn::all_of(&index.identity, &["n".to_owned()]).unwrap();
    let mut found = 0;
    while !ended.load(Ordering::Relaxed) {
        let search = IndexSearch {
            filter,
            returned: Some(&returned),
            ..IndexSearch::new(&[0.0, 0.0], 10)
        };
        let answer = index.content.search(&search).unwrap();
        let answer = serde_json::to_value(&answer).unwrap();
        let values = answer["column_values"]["n"].as_array().unwrap().clone();
        let distances = answer["distances"].as_array().unwrap().clone();
        for (n, distance) in values.iter().zip(&distances) {
            let (n, distance) = (n.as_f64().unwrap(), distance.as_f64().unwrap());
            assert_eq!(distance, n * n, "{answer}");
            found += 1;
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn filter_values_come_with_the_vector_of_their_write() {
    let identity = IndexIdentity {
        filter_columns: vec![FilterColumn {
            name: "n".into(),
            cql_type: CqlType::Int,
            is_static: false,
        }],
        ..identity("idx")
    };
    let world = World::start_with(identity, &in_memory());
    let filter = filter(&world.index);
    let ended = Arc::new(AtomicBool::new(false));
    let searches = [Some(filter), None].map(|filter| {
        let (index, ended) = (world.index.clone(), ended.clone());
        tokio::task::spawn_blocking(move || check(&index, filter.as_deref(), &ended))
    });
    for n in 0..WRITES {
        let name = ["a", "b", "c"][usize::from(n) % 3];
        world.read_again(&[(name, written(n))]).await;
        // Now and then the graph has all vectors.
        if n.is_multiple_of(100) {
            world.drained().await;
        }
    }
    world.drained().await;
    ended.store(true, Ordering::Relaxed);
    for search in searches {
        assert!(search.await.unwrap() > 0);
    }
}
