//! Executions of queries by words and by several searches, as the searches that they are.

use std::sync::Arc;
use std::time::Duration;

use cql::wire::QueryParameters;
use query::search::SearchHit;
use store_api::IndexServices;

use super::execution::*;
use super::fixtures::{full_text, snapshot_of, table, words_snapshot};
use super::*;
use crate::catalog::IndexCatalogSnapshot;
use crate::options::FreshnessOptions;
use crate::writes::ChangeLog;

fn plan_by(text: &str, snapshot: &IndexCatalogSnapshot) -> AnnPlan {
    let plan = AnnPlan::of(text, Some("shop"), snapshot);
    plan.expect(text).expect(text)
}

fn searches() -> FreshSearches {
    let log = ChangeLog::new(5 << 10, Duration::MAX, Arc::default(), Arc::default());
    let options = FreshnessOptions::default();
    FreshSearches::new(IndexServices::disabled(), Arc::new(log), options)
}

/// The names of the indexes that a query searches, and the words of its WHERE.
fn searched(text: &str) -> (Vec<String>, Vec<String>) {
    let plan = plan_by(text, &words_snapshot());
    let execution = AnnExecution::new(&plan, QueryParameters::default(), |_| None, false).unwrap();
    let searches = searches();
    let Some(search) = execution.search(&searches) else {
        panic!("{text}")
    };
    let names = search.searches.iter().map(|one| one.index().1.to_owned());
    let words = search.words.iter().map(|words| {
        let predicate = &search.predicates[words.predicate].predicate;
        assert!(
            matches!(predicate, store_api::ColumnsPredicate::Words { index, query, .. }
                if index == words.words.index && *query == words.words.query)
        );
        words.words.query.clone()
    });
    (names.collect(), words.collect())
}

#[test]
fn equal_calls_are_one_search() {
    for (text, names, words) in [
        (
            "SELECT BM25(name, 'a'), BM25_RANK(name, bm25_words('a')) FROM films ORDER BY BM25(name, 'a') LIMIT 3",
            &["texts"][..],
            &[][..],
        ),
        (
            "SELECT BM25_SCORE(name, 'b'), id FROM films ORDER BY BM25(name, 'a') LIMIT 3",
            &["texts", "texts"],
            &[],
        ),
        (
            "SELECT ANN_SCORE(v, [1, 2, 3]) FROM films WHERE id = 'x' AND BM25(name, 'a') > 0 \
             ORDER BY RRF(ANN(v, [1, 2, 3]), BM25(name, 'a'), ANN(v, [1, 2, 4])) LIMIT 3",
            &["vectors", "texts", "vectors"],
            &["a"],
        ),
        (
            "SELECT id FROM films WHERE BM25(name, 'a') > 0 AND BM25(name, 'b') > 0 \
             ORDER BY v ANN OF [1, 2, 3] LIMIT 3",
            &["vectors"],
            &["a", "b"],
        ),
    ] {
        let (found, of_where) = searched(text);
        assert_eq!(
            (&found[..], &of_where[..]),
            (&strings(names)[..], &strings(words)[..])
        );
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn words_of_where_are_checked_unless_rows_are_searched_by_them() {
    for (text, is_checked) in [
        (
            "SELECT id FROM films WHERE BM25(name, 'a') > 0 ORDER BY BM25(name, 'a') LIMIT 3",
            false,
        ),
        (
            "SELECT id FROM films WHERE BM25(name, 'b') > 0 ORDER BY BM25(name, 'a') LIMIT 3",
            true,
        ),
        (
            "SELECT id FROM films WHERE BM25(name, 'a') > 0 ORDER BY v ANN OF [1, 2, 3] LIMIT 3",
            true,
        ),
        ("SELECT id FROM films WHERE BM25(name, 'a') > 0", true),
        (
            "SELECT id FROM films ORDER BY BM25(name, 'a') LIMIT 3",
            false,
        ),
    ] {
        let plan = plan_by(text, &words_snapshot());
        let parameters = QueryParameters::default();
        let execution = AnnExecution::new(&plan, parameters, |_| None, false).unwrap();
        assert_eq!(execution.checks_words(), is_checked, "{text}");
    }
}

#[test]
fn statistics_of_a_local_index_are_of_its_key() {
    let table = table(&["id"], &[]);
    let mut texts = full_text(&table, "texts", "name");
    texts.target.local_key = vec!["id".to_owned()];
    let snapshot = snapshot_of(table, [texts]);
    let text = "SELECT BM25_SCORE(name, 'a') FROM films WHERE id = 'x' AND BM25(name, 'a') > 0";
    let plan = plan_by(text, &snapshot);
    let execution = AnnExecution::new(&plan, QueryParameters::default(), |_| None, false).unwrap();
    let tenant = execution.tenant(&plan.words[0].index);
    assert_eq!(tenant.len(), 1);
    assert_eq!(tenant[0].columns(), ["id"]);
    // A score needs the text, so it is no cell yet.
    assert_eq!(execution.computed[0].cell(&[SearchHit::default()]), None);
}

#[test]
fn fewer_candidates_than_rows_are_refused() {
    let text = "SELECT id FROM films ORDER BY RRF(ANN(v, [1, 2, 3]), BM25(name, 'a')) LIMIT 30 \
                WITH hybrid_options = {'candidates': 20}";
    let plan = plan_by(text, &words_snapshot());
    let refused = AnnExecution::new(&plan, QueryParameters::default(), |_| None, false);
    let error = refused.err().expect("it is refused");
    assert!(error.message.contains("'candidates'"), "{error}");
}
