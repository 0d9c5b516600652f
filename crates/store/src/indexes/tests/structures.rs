//! A structure of another class than vectors, by the code that all classes share.

use std::sync::Arc;

use super::{identity, in_memory};
use crate::identity::StructureOptions;
use crate::indexes::{
    ChangeBlock, ChangeBlocks, FilesState, FreshChange, IndexContent, IndexSearch, RefusalReason,
    Structure, StructureError, StructureQuery, check_query,
};
use crate::items::ChangeKind;
use crate::observed::IndexableValue;

/// The content of an index on tokens with these texts, under the ids from 0 on and keys of the same
/// names.
fn index(texts: &[&str]) -> IndexContent {
    let keys = identity("idx").keys;
    let index = IndexContent::new(&StructureOptions::Tokens, keys.clone(), &in_memory()).unwrap();
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

/// The ids of the rows that have one of the tokens, best first.
fn found(index: &IndexContent, tokens: &str) -> Vec<u32> {
    let answer = index.search(&IndexSearch::of(StructureQuery::Tokens(tokens), 10));
    let answer = answer.unwrap();
    let rows = answer.rows().into_iter();
    let keys = index.keys();
    rows.map(|row| keys.id(row.key).unwrap()).collect()
}

#[test]
fn the_best_rows_come_first() {
    let index = index(&["red green", "green blue", "blue"]);
    assert_eq!(found(&index, "green blue"), [1, 0, 2]);
    assert_eq!(found(&index, "red"), [0]);
    assert_eq!(found(&index, "gree"), [0u32; 0]);
}

#[test]
fn fresh_changes_stand_before_what_the_structure_has() {
    let index = index(&["red", "green"]);
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
    let memory = index.memory();
    let [("graph", bytes)] = memory.pinned[..] else {
        panic!("{memory:?}");
    };
    assert_eq!((bytes, memory.mapped), (2 * size_of::<String>() + 8, 0));
    index.change(0, ChangeKind::Remove, None).unwrap();
    assert_eq!(index.memory().pinned, [("graph", 0)]);
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
    assert_eq!((saved, told), (Ok(()), vec![(0, 19), (19, 19)]));
    let stopped = before.save(directory.path(), |_| false);
    assert_eq!(stopped.unwrap_err().to_string(), "it was stopped");
    let opened = || Structure::open(&StructureOptions::Tokens, directory.path(), &in_memory());
    let keys = identity("idx").keys;
    let structure = opened().unwrap();
    assert_eq!(structure.ids().iter().collect::<Vec<_>>(), [0, 1]);
    let mut table = crate::items::IndexedRows::key_table(&keys);
    for id in 0..2u32 {
        table.insert(id, keys.encode([id.to_string().as_bytes()]));
    }
    let index = IndexContent::reopened(structure, keys, table);
    assert_eq!(found(&index, "green"), [0]);
    assert_eq!(index.verify(|_| true), FilesState::Verified);
    std::fs::write(directory.path().join("tokens"), "0\n0 red\n").unwrap();
    assert!(matches!(index.verify(|_| true), FilesState::Damaged(_)));
    let error = index.damaged().await;
    assert!(error.ends_with("tokens is damaged"), "{error}");
    let refused = opened().err().expect("the file is damaged");
    assert_eq!(refused.to_string(), error);
}

#[test]
fn a_class_answers_its_own_queries_alone() {
    let tokens = index(&["red"]);
    let vectors = identity("idx");
    let class = |error: &StructureError| error.to_string() == "the index is of another class";
    let refused = tokens
        .search(&IndexSearch::new(&[1.0, 0.0], 1))
        .unwrap_err();
    assert!(class(&refused), "{refused}");
    let refused = check_query(StructureQuery::Tokens("red"), &vectors.options).unwrap_err();
    assert!(class(&refused), "{refused}");
    let query = [1.0, 0.0];
    assert_eq!(
        check_query(StructureQuery::Vector(&query), &vectors.options),
        Ok(())
    );
    let refused = tokens.prepare(&IndexableValue::Vector(vec![1.0])).err();
    assert!(matches!(refused, Some(RefusalReason::Unfit(_))));
}
