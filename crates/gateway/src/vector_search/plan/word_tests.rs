//! Plans of queries that look for words, and of those that rank by several searches.

use super::super::fixtures::{
    column, full_text, keeping, snapshot, snapshot_of, table, words_snapshot,
};
use super::*;

fn plan(text: &str) -> Result<Option<AnnPlan>, CqlError> {
    AnnPlan::of(text, Some("shop"), &words_snapshot())
}

fn planned(text: &str) -> AnnPlan {
    plan(text).expect(text).expect(text)
}

/// The names of the indexes of all calls.
fn indexes(plan: &AnnPlan) -> Vec<&str> {
    plan.calls()
        .map(|(call, _)| call.index.name.as_str())
        .collect()
}

#[test]
fn every_form_of_a_search_is_planned() {
    for (order, expected) in [
        ("ORDER BY BM25(name, ?) LIMIT 3", &["texts"][..]),
        (
            "WHERE BM25(name, 'a') > 0 ORDER BY BM25(name, 'a') LIMIT 3",
            &["texts"],
        ),
        (
            "WHERE BM25(name, :q) > 0 ORDER BY v ANN OF ? LIMIT 3",
            &["vectors"],
        ),
        (
            "ORDER BY RRF(ANN(v, ?), BM25(name, ?)) LIMIT 3",
            &["vectors", "texts"],
        ),
        (
            "ORDER BY 0.7 * ANN_SCORE(v, ?) + 0.3 * BM25_SCORE(name, bm25_words(?)) LIMIT ?",
            &["vectors", "texts"],
        ),
        (
            "WHERE id > 'a' AND BM25(name, ?) > 0 ORDER BY RRF(ANN(v, ?), ANN(v, ?)) LIMIT 3 ALLOW FILTERING \
             WITH hybrid_options = {'candidates': 10, 'weights': [1, 2]}",
            &["vectors", "vectors"],
        ),
        ("WHERE BM25(name, ?) > 0", &[]),
        ("WHERE BM25(name, ?) > 0 AND id IN ? LIMIT 3", &[]),
    ] {
        let plan = planned(&format!("SELECT id FROM films {order}"));
        assert_eq!(indexes(&plan), expected, "{order}");
        let of_where = usize::from(order.contains("> 0"));
        assert_eq!(plan.words.len(), of_where, "{order}");
        assert_eq!(plan.order.is_none(), expected.is_empty(), "{order}");
        // The cluster knows none of these words.
        for read in [&plan.read.text, &plan.scan.text] {
            let read = read.to_ascii_lowercase();
            for unknown in ["bm25", "ann", "rrf", "hybrid"] {
                assert!(!read.contains(unknown), "{read}");
            }
        }
    }
}

#[test]
fn an_index_serves_only_searches_of_its_class() {
    let table = table(&["id"], &[]);
    // Neither index is on the other's column, but for its class.
    let both_on_v = snapshot_of(
        table.clone(),
        [full_text(&table, "texts", "v"), keeping(&table, &[])],
    );
    let of = |text: &str| AnnPlan::of(text, Some("shop"), &both_on_v).map(|plan| plan.is_some());
    let select = "SELECT id FROM films";
    assert_eq!(
        of(&format!("{select} ORDER BY v ANN OF ? LIMIT 3")),
        Ok(true)
    );
    let vectors_alone = snapshot();
    for (order, snapshot, text) in [
        (
            "ORDER BY BM25(name, ?) LIMIT 3",
            &vectors_alone,
            "indexed using 'fulltext_index'",
        ),
        (
            "WHERE BM25(name, ?) > 0",
            &vectors_alone,
            "indexed using 'fulltext_index'",
        ),
        (
            "ORDER BY RRF(ANN(w, ?), ANN(v, ?)) LIMIT 3",
            &vectors_alone,
            "ANN ordering by vector requires the column to be indexed",
        ),
        (
            "ORDER BY name ANN OF ? LIMIT 3",
            &words_snapshot(),
            "requires a float vector",
        ),
        (
            "ORDER BY BM25(v, ?) LIMIT 3",
            &both_on_v,
            "only supported on text columns",
        ),
    ] {
        let error = AnnPlan::of(&format!("{select} {order}"), Some("shop"), snapshot).unwrap_err();
        assert!(error.message.contains(text), "{order}: {error}");
    }
    let texts_alone = snapshot_of(table.clone(), [full_text(&table, "texts", "name")]);
    let by_vector = "SELECT id FROM films ORDER BY v ANN OF ? LIMIT 3";
    let passed = AnnPlan::of(by_vector, Some("shop"), &texts_alone);
    assert!(
        passed.unwrap().is_none(),
        "it may be one of the cluster's own"
    );
}

#[test]
fn tables_without_an_index_are_the_clusters() {
    for text in [
        "SELECT id, bm25(name, 'x') FROM others WHERE id = 'a'",
        "SELECT id FROM others ORDER BY v ANN OF ? LIMIT 3",
        "SELECT bm25 FROM films WHERE id = 'a'",
    ] {
        assert!(plan(text).unwrap().is_none(), "{text}");
    }
    for text in [
        "SELECT id FROM others WHERE BM25(name, ?) > 0",
        "SELECT id FROM others ORDER BY RRF(ANN(v, ?), BM25(name, ?)) LIMIT 3",
    ] {
        let error = plan(text).unwrap_err();
        assert!(
            error.message.contains("but column name is not"),
            "{text}: {error}"
        );
    }
}

#[test]
fn the_values_that_are_needed_are_read() {
    for (text, read) in [
        (
            "SELECT id FROM films ORDER BY BM25(name, ?) LIMIT 3",
            "SELECT id \n FROM",
        ),
        (
            "SELECT id FROM films WHERE BM25(name, ?) > 0 ORDER BY v ANN OF ? LIMIT 3",
            "SELECT id \n, \"name\" FROM",
        ),
        (
            "SELECT id, BM25_HIGHLIGHT(name, ?) FROM films ORDER BY RRF(ANN(v, ?), BM25(name, ?)) LIMIT 3",
            "SELECT id\n, \"name\" FROM",
        ),
        (
            "SELECT ann_score(v, ?) FROM films ORDER BY ANN_SCORE(v, ?) + BM25_SCORE(name, ?) LIMIT 3",
            "SELECT \n\"id\", \"v\", \"name\" FROM",
        ),
        (
            "SELECT BM25_SCORE(name, ?) FROM films WHERE BM25(name, ?) > 0",
            "SELECT \n\"id\", \"name\" FROM",
        ),
    ] {
        let plan = planned(text);
        assert!(
            plan.read.text.starts_with(read),
            "{text}: {}",
            plan.read.text
        );
    }
}

#[test]
fn markers_of_searches_are_told_in_the_order_of_the_text() {
    let text = "SELECT f(id, ?), BM25_SCORE(name, :q), m[?] FROM films WHERE BM25(name, :q) > 0 AND id = ? \
                ORDER BY ? * ANN_SCORE(v, ?) + BM25_SCORE(name, bm25_words(?)) LIMIT :n";
    let plan = planned(text);
    assert_eq!(plan.selection.markers, [0, 2]);
    let told = plan.variables(&[column("first"), column("second")]);
    let told: Vec<String> = told
        .columns
        .iter()
        .map(|spec| format!("{} {}", spec.name, spec.cql_type))
        .collect();
    assert_eq!(
        (&told[..6], &told[6..7], told.len()),
        (
            &[
                "first text".to_owned(),
                "q text".to_owned(),
                "second text".to_owned(),
                "q text".to_owned(),
                "id text".to_owned(),
                "[weight] double".to_owned(),
            ][..],
            &["v vector<float, 3>".to_owned()][..],
            9
        )
    );
    assert_eq!(told[8], "n int");
}

#[test]
fn queries_that_make_no_sense_are_named() {
    for (text, named) in [
        (
            "id FROM films ORDER BY BM25(name, ?)",
            "BM25 queries must have a limit",
        ),
        (
            "id FROM films ORDER BY RRF(ANN(v, ?), BM25(name, ?))",
            "must have a limit",
        ),
        (
            "id FROM films ORDER BY BM25(name, ?) DESC LIMIT 3",
            "Descending BM25",
        ),
        (
            "id FROM films WHERE BM25(name, ?) > 1",
            "operator > with the literal 0",
        ),
        (
            "id FROM films WHERE BM25(name, ?) = 0",
            "operator > with the literal 0",
        ),
        (
            "id FROM films WHERE ANN(v, ?) > 0",
            "in WHERE is not supported",
        ),
        (
            "id FROM films WHERE BM25(name, ?) > 0 PER PARTITION LIMIT 1",
            "per-partition",
        ),
        ("DISTINCT id FROM films WHERE BM25(name, ?) > 0", "DISTINCT"),
        (
            "max(id) FROM films WHERE BM25(name, ?) > 0",
            "no aggregate but count(*)",
        ),
        (
            "count(*), id FROM films WHERE BM25(name, ?) > 0",
            "no aggregate but count(*)",
        ),
        (
            "count(*) FROM films ORDER BY BM25(name, ?) LIMIT 3",
            "with aggregation",
        ),
    ] {
        let error = plan(&format!("SELECT {text}")).unwrap_err();
        assert!(error.message.contains(named), "{text}: {error}");
    }
}

#[test]
fn a_selection_that_makes_no_sense_is_named() {
    for (text, named) in [
        (
            "BM25_RANK(name, ?) FROM films WHERE BM25(name, ?) > 0",
            "there are no ranks",
        ),
        (
            "ANN_SCORE(v, ?) FROM films WHERE id = 'a'",
            "there are no ranks",
        ),
        (
            "BM25_SCORE(name, ?) FROM films WHERE id = 'a'",
            "needs one by which rows are found",
        ),
        (
            "round(BM25_SCORE(name, ?)) FROM films ORDER BY BM25(name, ?) LIMIT 3",
            "by itself",
        ),
        (
            "id FROM films WHERE BM25(name, ?) > 0 AND w = ?",
            "Column w can't restrict",
        ),
        (
            "JSON id FROM films ORDER BY BM25(name, ?) LIMIT 3",
            "SELECT JSON",
        ),
        (
            "id FROM films ORDER BY v ANN OF ? LIMIT 3 WITH hybrid_options = {'candidates': 9}",
            "hybrid_options is for queries",
        ),
    ] {
        let error = plan(&format!("SELECT {text}")).unwrap_err();
        assert!(error.message.contains(named), "{text}: {error}");
    }
}

#[test]
fn rows_are_counted_without_an_ordering() {
    let plan = planned("SELECT count(*) AS n FROM films WHERE BM25(name, ?) > 0");
    assert!(plan.selection.counts);
    let (columns, _) = plan.selection.answer(&[]);
    assert_eq!(&*columns.columns[0].name, "n");
    assert!(plan.read.text.starts_with("SELECT \n\"id\", \"name\" FROM"));
}

#[test]
fn an_answer_without_rows_is_for_one_search() {
    let is_covered = |text: &str| planned(text).covered.is_some();
    assert!(is_covered(
        "SELECT name FROM films ORDER BY v ANN OF ? LIMIT 3"
    ));
    assert!(is_covered(
        "SELECT id FROM films ORDER BY BM25(name, ?) LIMIT 3"
    ));
    for text in [
        "SELECT name FROM films WHERE BM25(name, ?) > 0 ORDER BY v ANN OF ? LIMIT 3",
        "SELECT name, ANN_SCORE(v, ?) FROM films ORDER BY v ANN OF ? LIMIT 3",
        "SELECT name FROM films ORDER BY RRF(ANN(v, ?)) LIMIT 3",
        "SELECT name FROM films ORDER BY BM25(name, ?) LIMIT 3",
    ] {
        assert!(!is_covered(text), "{text}");
    }
}
