//! A structure of another class than vectors, by the code that all classes share.

use std::sync::Arc;

use full_text::TextQuery;
use index::FullTextOptions;

use super::{identity, in_memory};
use crate::identity::StructureOptions;
use crate::indexes::{
    ChangeBlock, ChangeBlocks, FilesState, FreshChange, IndexContent, IndexSearch, RefusalReason,
    Structure, StructureError, StructureQuery, check_query,
};
use crate::items::{ChangeKind, IndexedRows};
use crate::observed::IndexableValue;

const OPTIONS: StructureOptions = StructureOptions::FullText(FullTextOptions {
    analyzer: index::TextAnalyzer::Simple,
    positions: true,
});

/// The content of an index on these texts, under the ids from 0 on and keys of the same names.
fn index(texts: &[&str]) -> IndexContent {
    let keys = identity("idx").keys;
    let index = IndexContent::new(&OPTIONS, keys.clone(), &in_memory()).unwrap();
    for (id, text) in (0u32..).zip(texts) {
        let key = keys.encode([id.to_string().as_bytes()]);
        index.keys_mut().insert(id, key);
        let value = index.prepare(&text_of(text)).unwrap();
        let changed = index.change(id, ChangeKind::Insert, Some(&value));
        assert_eq!(changed, Ok(()));
    }
    index
}

fn text_of(text: &str) -> IndexableValue {
    IndexableValue::Text(text.to_owned())
}

fn query(text: &str) -> TextQuery {
    let StructureOptions::FullText(options) = OPTIONS else {
        panic!("options of texts");
    };
    TextQuery::parse(text, options).unwrap()
}

/// The ids of the rows that have one of the words, best first.
fn found(index: &IndexContent, words: &str) -> Vec<u32> {
    let query = query(words);
    let answer = index.search(&IndexSearch::of(StructureQuery::Words(&query), 10));
    let answer = answer.unwrap();
    let rows = answer.rows().into_iter();
    let keys = index.keys();
    rows.map(|row| keys.id(row.key).unwrap()).collect()
}

/// Does all the work that changes have left to do.
fn tend(index: &IndexContent) {
    while index.tend(&|| true) {}
}

#[test]
fn the_best_rows_come_first() {
    let index = index(&["red green", "green blue", "blue"]);
    for _ in 0..2 {
        assert_eq!(found(&index, "green blue"), [1, 2, 0]);
        assert_eq!(found(&index, "red"), [0]);
        assert_eq!(found(&index, "gree"), [0u32; 0]);
        tend(&index);
    }
    let (bytes, segments) = index.text_segments().unwrap();
    assert!(
        bytes > 0 && segments == 0,
        "{bytes} {segments}: so few need no segment"
    );
}

#[test]
fn fresh_changes_stand_before_what_the_structure_has() {
    let index = index(&["red", "green"]);
    tend(&index);
    let value = |text| Some(index.prepare(&text_of(text)).unwrap());
    let changes = [(0, value("green")), (1, None)];
    let changes = changes.map(|(id, value)| FreshChange { id, value });
    let blocks = vec![Arc::new(ChangeBlock::new(Vec::from(changes)))];
    index.publish(ChangeBlocks { first: 0, blocks }, &[]);
    assert_eq!(index.fresh_changes(), 2);
    assert!(index.fresh_bytes() > 0);
    assert_eq!(found(&index, "green"), [0]);
    assert_eq!(found(&index, "red"), [0u32; 0]);
}

#[test]
fn memory_is_counted_by_component() {
    let index = index(&["red green"]);
    let bytes = |component: &str| {
        let memory = index.memory();
        let mut pinned = memory.pinned.into_iter();
        pinned.find(|(name, _)| *name == component).unwrap().1
    };
    assert!(bytes("text") > 0);
    index.change(0, ChangeKind::Remove, None).unwrap();
    tend(&index);
    assert_eq!(index.memory().mapped, 0);
}

#[tokio::test]
async fn files_are_written_opened_and_verified() {
    let directory = tempfile::tempdir().unwrap();
    let before = index(&["red green", "blue"]);
    let mut told = Vec::new();
    let saved = before.save(directory.path(), |progress| {
        told.push((progress.done, progress.total));
        true
    });
    assert_eq!(saved, Ok(()));
    let (done, total) = told.last().unwrap();
    assert_eq!(done, total);
    let elsewhere = tempfile::tempdir().unwrap();
    before.save(elsewhere.path(), |_| false).unwrap_err();
    let opened = || Structure::open(&OPTIONS, directory.path(), &in_memory());
    let keys = identity("idx").keys;
    let structure = opened().unwrap();
    assert_eq!(structure.ids().iter().collect::<Vec<_>>(), [0, 1]);
    let mut table = IndexedRows::key_table(&keys);
    for id in 0..2u32 {
        table.insert(id, keys.encode([id.to_string().as_bytes()]));
    }
    let index = IndexContent::reopened(structure, keys, table);
    assert_eq!(found(&index, "green"), [0]);
    assert_eq!(index.verify(|_| true), FilesState::Verified);
}

#[test]
fn a_class_answers_its_own_queries_alone() {
    let texts = index(&["red"]);
    let vectors = identity("idx");
    let class = |error: &StructureError| error.to_string() == "the index is of another class";
    let refused = texts.search(&IndexSearch::new(&[1.0, 0.0], 1)).unwrap_err();
    assert!(class(&refused), "{refused}");
    let red = query("red");
    let refused = check_query(StructureQuery::Words(&red), &vectors.options).unwrap_err();
    assert!(class(&refused), "{refused}");
    assert_eq!(check_query(StructureQuery::Words(&red), &OPTIONS), Ok(()));
    let query = [1.0, 0.0];
    assert_eq!(
        check_query(StructureQuery::Vector(&query), &vectors.options),
        Ok(())
    );
    let refused = texts.prepare(&IndexableValue::Vector(vec![1.0])).err();
    assert!(matches!(refused, Some(RefusalReason::Unfit(_))));
}
