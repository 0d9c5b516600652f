//! Tests of conditions that are made of others, and of those on words.

use std::sync::Arc;

use super::*;
use crate::filter::words::{TextVerdicts, WordRows};

/// Whether a row satisfies a condition, or its negation.
fn holds(row: &Row, node: &FilterNode, is_negated: bool) -> bool {
    match node {
        FilterNode::And(parts) if !is_negated => parts.iter().all(|part| holds(row, part, false)),
        FilterNode::And(parts) => parts.iter().any(|part| holds(row, part, true)),
        FilterNode::Or(parts) if !is_negated => parts.iter().any(|part| holds(row, part, false)),
        FilterNode::Or(parts) => parts.iter().all(|part| holds(row, part, true)),
        FilterNode::Not(inner) => holds(row, inner, !is_negated),
        FilterNode::Leaf(restriction) if !is_negated => satisfies(row, restriction),
        FilterNode::Leaf(restriction) => {
            let (columns, _) = columns_of(restriction);
            let mut values = columns.iter().map(|column| of(row, column));
            values.all(|value| !value.is_null()) && !satisfies(row, restriction)
        }
    }
}

fn node() -> impl Strategy<Value = FilterNode> {
    let leaf = restriction().prop_map(FilterNode::Leaf);
    leaf.prop_recursive(3, 12, 3, |inner| {
        let parts = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            parts.clone().prop_map(FilterNode::And),
            parts.prop_map(FilterNode::Or),
            inner.prop_map(|inner| FilterNode::Not(Box::new(inner))),
        ]
    })
}

fn conditioned(condition: FilterNode) -> Filter {
    Filter {
        condition: Some(condition),
        allow_filtering: true,
        ..Filter::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_search_finds_the_nearest_rows_that_satisfy_a_condition_made_of_others(
        rows in prop::collection::vec(row(), 0..120),
        conditions in prop::collection::vec(node(), 1..8),
        limit in 1..40_usize,
    ) {
        let index = index(&rows);
        for condition in conditions {
            let held = (0..).zip(&rows).filter(|(id, _)| index.content.keys().key(*id).is_some());
            let matching = held.filter(|(_, row)| holds(row, &condition, false));
            let expected: Vec<u32> = matching.map(|(id, _)| id).take(limit).collect();
            let filter = conditioned(condition);
            prop_assert_eq!(found(&index, limit, &filter), expected, "{:?}", filter);
        }
    }
}

#[test]
fn a_row_without_a_value_satisfies_neither_a_condition_nor_its_negation() {
    let row = |p: &str, n: Json| [json!(p), json!(0), n, Json::Null];
    let index = index(&[row("a", json!(1)), row("b", json!(2)), row("c", Json::Null)]);
    let one = Restriction::Eq {
        lhs: "n".to_owned(),
        rhs: json!(1),
    };
    let other = Restriction::Ne {
        lhs: "n".to_owned(),
        rhs: json!(1),
    };
    let not = |node| FilterNode::Not(Box::new(node));
    let (one, other) = (FilterNode::Leaf(one), FilterNode::Leaf(other));
    for (condition, expected) in [
        (one.clone(), &[0_u32][..]),
        (other.clone(), &[1]),
        (not(one.clone()), &[1]),
        (not(other.clone()), &[0]),
        (not(not(one.clone())), &[0]),
        (FilterNode::Or(vec![one.clone(), not(one)]), &[0, 1]),
        (FilterNode::Or(Vec::new()), &[]),
        (FilterNode::And(Vec::new()), &[0, 1, 2]),
        (not(FilterNode::And(Vec::new())), &[]),
    ] {
        let filter = conditioned(condition);
        assert_eq!(found(&index, 9, &filter), expected, "{filter:?}");
    }
}

#[test]
fn a_map_without_a_key_has_no_entry_to_differ() {
    let index = index_of_collections();
    let entry = |rhs: i32| {
        let (lhs, key, rhs) = ("t".to_owned(), json!("k"), json!(rhs));
        FilterNode::Leaf(Restriction::Entry { lhs, key, rhs })
    };
    for (value, equal, different) in [(2, &[0_u32][..], &[][..]), (3, &[], &[0])] {
        assert_eq!(found(&index, 9, &conditioned(entry(value))), equal);
        let not = FilterNode::Not(Box::new(entry(value)));
        assert_eq!(found(&index, 9, &conditioned(not)), different);
    }
}

/// Texts of the rows with these keys, of which the first matches.
#[derive(Debug)]
struct FirstMatches(Vec<Box<[u8]>>);

impl TextVerdicts for FirstMatches {
    fn verdict(&self, key: &[u8]) -> Option<bool> {
        let at = self.0.iter().position(|of| **of == *key)?;
        Some(at == 0)
    }
}

#[test]
fn words_name_rows_by_id_or_by_key_and_negated_those_with_another_text() {
    let row = |p: &str| [json!(p), json!(0), json!(1), Json::Null];
    let index = index(&[row("a"), row("b"), row("c")]);
    let keys: Vec<Box<[u8]>> = (0..2)
        .map(|id| Box::from(index.content.keys().key(id).unwrap()))
        .collect();
    let by_id = || WordRows::Ids {
        matched: Arc::new([0].into_iter().collect()),
        texts: Some(Arc::new([0, 1].into_iter().collect())),
    };
    let by_key = || WordRows::ByKey(Arc::new(FirstMatches(keys.clone())));
    let words = FilterNode::Leaf(Restriction::Bm25 {
        lhs: "body".to_owned(),
        rhs: "fox".to_owned(),
    });
    let not = FilterNode::Not(Box::new(words.clone()));
    for (condition, expected) in [
        (words.clone(), &[0_u32][..]),
        (not.clone(), &[1]),
        (FilterNode::Or(vec![words, not]), &[0, 1]),
    ] {
        let filter = conditioned(condition);
        let made = SearchFilter::new(&index.identity, Some(&filter), &[]).unwrap();
        let made = made.unwrap();
        assert_eq!(made.words()[0].column, "body");
        for rows in [by_id(), by_key()] {
            let named = vec![rows; made.words().len()];
            let named = made.naming(named);
            let answer = index.content.search(&IndexSearch {
                filter: Some(&named),
                ..IndexSearch::new(&[0.0, 0.0], 9)
            });
            let rows = store_api::binary::AnswerRows::read(answer.unwrap().binary()).unwrap();
            let ids: Vec<u32> = rows.distances.iter().map(|d| d.sqrt() as u32).collect();
            assert_eq!(ids, expected, "{filter:?}");
        }
    }
}

#[test]
fn a_local_index_knows_its_tenant_by_the_conditions_on_its_key() {
    let local = IndexIdentity {
        local_key: vec!["p".to_owned()],
        ..with_columns()
    };
    let eq = |lhs: &str, rhs: Json| {
        let lhs = lhs.to_owned();
        FilterNode::Leaf(Restriction::Eq { lhs, rhs })
    };
    let of_tenant = |node: FilterNode, index: &IndexIdentity| {
        let filter = conditioned(node);
        let tenant = SearchFilter::of_tenant(index, Some(&filter), &[]).unwrap();
        tenant.map(|tenant| (tenant.checks.len(), tenant.conditions.len()))
    };
    let both = || FilterNode::And(vec![eq("p", json!("a")), eq("n", json!(1))]);
    assert_eq!(of_tenant(both(), &local), Some((1, 0)));
    assert_eq!(of_tenant(both(), &with_columns()), None);
    let either = FilterNode::Or(vec![eq("p", json!("a")), eq("p", json!("b"))]);
    assert_eq!(of_tenant(either, &local), None);
}
