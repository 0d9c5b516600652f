use std::sync::Arc;

use bytes::Bytes;
use index::TextAnalyzer;
use store_api::ColumnsPredicate;
use value::CqlType;
use value::predicate::{ComparisonOperator, Predicate};

use super::*;
use crate::identity::{FilterColumn, IndexIdentity, StructureOptions};
use crate::indexes::tests::{identity, in_memory};
use crate::indexes::{ChangeBlock, ChangeBlocks, FreshChange, IndexContent, StructureQuery};
use crate::observed::IndexableValue;

const OPTIONS: FullTextOptions = FullTextOptions {
    analyzer: TextAnalyzer::Simple,
    positions: true,
};

/// The identity of an index on texts with the filter column `n`.
fn with_column() -> IndexIdentity {
    IndexIdentity {
        options: StructureOptions::FullText(OPTIONS),
        filter_columns: vec![FilterColumn {
            name: "n".to_owned(),
            cql_type: CqlType::Int,
            is_static: false,
        }],
        ..identity("idx")
    }
}

/// The content of an index of these texts and values of `n`. The row at each position has its
/// number as id and key.
fn index(rows: &[(&str, i32)]) -> IndexContent {
    let of = with_column();
    let index = IndexContent::new(&of.options, of.keys.clone(), &in_memory()).unwrap();
    index.keys_mut().keep_filters(of.filter_types());
    for (id, (text, n)) in (0u32..).zip(rows) {
        let mut keys = index.keys_mut();
        keys.insert(id, of.keys.encode([id.to_string().as_bytes()]));
        keys.set_filters(id, &[Some(Bytes::copy_from_slice(&n.to_be_bytes()))]);
        drop(keys);
        let value = index.prepare(&IndexableValue::Text((*text).to_owned()));
        let changed = index.change(id, ChangeKind::Insert, Some(&value.unwrap()));
        assert_eq!(changed, Ok(()));
    }
    index
}

fn with_n(n: i32) -> Box<SearchFilter> {
    let predicate = ColumnsPredicate::Column {
        column: "n".to_owned(),
        predicate: Predicate::Compare {
            cql_type: CqlType::Int,
            comparison: ComparisonOperator::Eq,
            value: Bytes::copy_from_slice(&n.to_be_bytes()),
        },
    };
    let filter = SearchFilter::new(&with_column(), None, &[predicate]).unwrap();
    filter.expect("a filter")
}

fn query(text: &str) -> TextQuery {
    TextQuery::parse(text, OPTIONS).unwrap()
}

/// The ids and scores that a search finds.
fn found(index: &IndexContent, search: &IndexSearch<'_>) -> Vec<(u32, f32)> {
    let answer = index.search(search).unwrap();
    let keys = index.keys();
    let rows = answer.rows().into_iter();
    rows.map(|row| (keys.id(row.key).unwrap(), row.scored.similarity))
        .collect()
}

fn ids(found: &[(u32, f32)]) -> Vec<u32> {
    found.iter().map(|(id, _)| *id).collect()
}

#[test]
fn rows_on_their_way_out_are_made_up_for() {
    let index = index(&[("red red", 0), ("red", 0), ("red and green", 0)]);
    index.keys_mut().remove(0);
    let red = query("red");
    let one = found(&index, &IndexSearch::of(StructureQuery::Words(&red), 1));
    assert_eq!(ids(&one), [1]);
}

#[test]
fn a_filter_holds_for_every_row_and_none_is_missing() {
    let rows: Vec<(String, i32)> = (0..100)
        .map(|n| (format!("red {}", "green ".repeat(n)), n as i32 % 3))
        .collect();
    let rows: Vec<(&str, i32)> = rows.iter().map(|(text, n)| (&**text, *n)).collect();
    let index = index(&rows);
    let (red, filter) = (query("red"), with_n(1));
    let search = IndexSearch {
        filter: Some(&filter),
        ..IndexSearch::of(StructureQuery::Words(&red), 10)
    };
    let best = found(&index, &search);
    let expected: Vec<u32> = (0..10).map(|row| 1 + 3 * row).collect();
    assert_eq!(ids(&best), expected);
}

#[test]
fn the_statistics_of_a_tenant_are_its_own() {
    let index = index(&[("red", 0), ("green", 0), ("red", 1), ("red", 1)]);
    let (red, tenant) = (query("red"), with_n(0));
    let statistics = |tenant| index.text_statistics(&red, tenant).unwrap();
    let of = |statistics: QueryStatistics| (statistics.documents, statistics.frequencies["red"]);
    assert_eq!(of(statistics(None)), (4, 3));
    assert_eq!(of(statistics(Some(&*tenant))), (2, 1));
    let search = IndexSearch {
        filter: Some(&tenant),
        tenant: Some(&tenant),
        ..IndexSearch::of(StructureQuery::Words(&red), 10)
    };
    let [(0, of_tenant)] = found(&index, &search)[..] else {
        panic!("one row");
    };
    let all = found(&index, &IndexSearch::of(StructureQuery::Words(&red), 10));
    assert!(of_tenant > all[0].1, "a rarer word says more");
}

#[test]
fn pages_of_all_matches_come_one_after_another() {
    let texts: Vec<(&str, i32)> = (0..7).map(|n| (["red", "blue"][n % 2], 0)).collect();
    let index = index(&texts);
    let red = query("red");
    let (mut after, mut found_ids) = (None::<RowPlace>, Vec::new());
    loop {
        let query = StructureQuery::Matches {
            query: &red,
            after: after.as_ref(),
        };
        let search = IndexSearch::of(query, 2);
        found_ids.extend(ids(&found(&index, &search)));
        let next = index
            .search(&search)
            .unwrap()
            .last_of(2, &identity("idx").keys);
        if next.is_none() {
            break;
        }
        after = next;
    }
    found_ids.sort_unstable();
    assert_eq!(found_ids, [0, 2, 4, 6], "each once");
    let matching = index.matching_ids(&red).unwrap();
    assert_eq!(matching.iter().collect::<Vec<_>>(), [0, 2, 4, 6]);
}

#[test]
fn fresh_texts_count_in_statistics_and_matches() {
    let index = index(&[("red", 0), ("green", 0)]);
    while index.tend(&|| true) {}
    let value = index.prepare(&IndexableValue::Text("red green".to_owned()));
    let changes = vec![FreshChange {
        id: 1,
        value: value.ok(),
    }];
    let blocks = vec![Arc::new(ChangeBlock::new(changes))];
    index.publish(ChangeBlocks { first: 0, blocks }, &[]);
    let red = query("red");
    let statistics = index.text_statistics(&red, None).unwrap();
    assert_eq!((statistics.documents, statistics.tokens), (2, 3));
    assert_eq!(statistics.frequencies["red"], 2);
    let matching = index.matching_ids(&red).unwrap();
    assert_eq!(matching.iter().collect::<Vec<_>>(), [0, 1]);
    let best = found(&index, &IndexSearch::of(StructureQuery::Words(&red), 5));
    assert_eq!(ids(&best), [0, 1], "the shorter text comes first");
}

#[test]
fn texts_wait_for_a_segment_until_the_index_is_tended() {
    let rows: Vec<(&str, i32)> = (0..200).map(|_| ("red", 0)).collect();
    let index = index(&rows);
    let texts = index.structure().as_text().unwrap();
    assert!(texts.waiting_bytes() > 0);
    assert_eq!(texts.segment_count(), 0);
    while index.tend(&|| true) {}
    assert_eq!((texts.waiting_bytes(), texts.segment_count()), (0, 1));
    assert!(!index.should_be_tended_soon() && !index.is_full_of_changes());
}
