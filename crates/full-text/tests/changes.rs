//! Segments, merges and files of an index, by themselves.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use full_text::{
    AnalysedText, FreshTexts, TextFileError, TextFilesState, TextIndex, TextQuery, check_snapshot,
};
use index::FullTextOptions;

fn options() -> FullTextOptions {
    FullTextOptions::default()
}

fn set(index: &TextIndex, id: u32, text: &str) {
    index.set(id, &AnalysedText::of(text, options())).unwrap();
}

/// Sets the documents of ids, each with a word of its own.
fn fill(index: &TextIndex, ids: std::ops::Range<u32>) {
    for id in ids {
        set(index, id, &format!("common number{id} group{}", id % 7));
    }
}

fn found(index: &TextIndex, query: &str) -> Vec<u32> {
    let query = TextQuery::parse(query, options()).unwrap();
    let ids = index.view(FreshTexts::default()).matching_ids(&query);
    ids.unwrap().iter().collect()
}

#[test]
fn a_small_index_has_no_segment_and_takes_little() {
    let index = TextIndex::new(options());
    fill(&index, 0..20);
    while index.maintain(&|| true) {}
    assert_eq!(index.segment_count(), 0);
    let memory = index.memory();
    let bytes = memory.segments + memory.documents + memory.tables;
    assert!(bytes < 16 << 10, "{memory:?}");
    assert_eq!(found(&index, "number7"), [7]);
}

#[test]
fn segments_are_merged_until_few_are_left() {
    let index = TextIndex::new(options());
    fill(&index, 0..6000);
    while index.maintain(&|| true) {}
    assert!(
        (1..=14).contains(&index.segment_count()),
        "{}",
        index.segment_count()
    );
    assert_eq!(found(&index, "common").len(), 6000);
    assert_eq!(found(&index, "number4711"), [4711]);
}

#[test]
fn dead_documents_are_taken_out() {
    let index = TextIndex::new(options());
    fill(&index, 0..3000);
    while index.maintain(&|| true) {}
    for id in 0..2000 {
        index.remove(id);
    }
    assert!(index.memory().dead > 1500);
    while index.maintain(&|| true) {}
    assert!(
        index.memory().dead * 4 <= 1000 + 1024,
        "{:?}",
        index.memory()
    );
    assert_eq!(found(&index, "common").len(), 1000);
    for id in 2000..3000 {
        index.remove(id);
    }
    while index.maintain(&|| true) {}
    assert!(found(&index, "common").is_empty());
    assert_eq!((index.len(), index.segment_count()), (0, 0));
}

#[test]
fn a_merge_that_is_stopped_changes_nothing() {
    let index = TextIndex::new(options());
    fill(&index, 0..6000);
    let segments = index.segment_count();
    assert!(segments >= 8, "{segments}");
    for allowed in [0, 1, 2, 3] {
        let calls = AtomicUsize::new(0);
        let pace = || calls.fetch_add(1, Ordering::Relaxed) < allowed;
        let is_more = index.maintain(&pace);
        assert_eq!(found(&index, "common").len(), 6000);
        assert!(is_more || index.segment_count() < segments);
    }
    while index.maintain(&|| true) {}
    assert_eq!(found(&index, "common").len(), 6000);
}

#[test]
fn a_view_stays_as_it_is_while_the_index_changes() {
    let index = TextIndex::new(options());
    fill(&index, 0..1000);
    let query = TextQuery::parse("common", options()).unwrap();
    let view = index.view(FreshTexts::default());
    for id in 0..1000 {
        match id % 2 {
            0 => index.remove(id),
            _ => set(&index, id, "other"),
        }
    }
    while index.maintain(&|| true) {}
    assert_eq!(view.matching_ids(&query).unwrap().len(), 1000);
    assert_eq!(view.statistics(&query, None).unwrap().documents, 1000);
    assert!(found(&index, "common").is_empty());
    assert_eq!(found(&index, "other").len(), 500);
}

#[test]
fn searches_see_each_document_once_while_it_is_replaced_and_merged() {
    const IDS: u32 = 700;
    let index = TextIndex::new(options());
    fill(&index, 0..IDS);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..12 {
                for id in 0..IDS {
                    set(&index, id, &format!("common round{round}"));
                }
            }
            is_done.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                index.maintain(&|| true);
            }
        });
        let query = TextQuery::parse("common", options()).unwrap();
        while !is_done.load(Ordering::Acquire) {
            let view = index.view(FreshTexts::default());
            assert_eq!(view.len(), IDS as usize);
            let statistics = view.statistics(&query, None).unwrap();
            let all = full_text::AdmittedIds::All;
            let best = view
                .best(&query, &statistics, 2 * IDS as usize, all)
                .unwrap();
            assert_eq!(best.len(), IDS as usize);
        }
    });
    assert_eq!(found(&index, "round11").len(), IDS as usize);
}

#[test]
fn segments_in_files_are_linked_by_the_next_snapshot() {
    use std::os::unix::fs::MetadataExt;

    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
    fs::create_dir(&first).unwrap();
    fs::create_dir(&second).unwrap();
    let index = TextIndex::new(options());
    fill(&index, 0..300);
    while index.maintain(&|| true) {}
    assert!(index.segment_count() > 0 && index.memory().segments > 0);
    index.save_while(&first, |_| true).unwrap();
    let memory = index.memory();
    assert!(memory.segments == 0 && memory.mapped > 0, "{memory:?}");

    let moved = directory.path().join("moved");
    fs::rename(&first, &moved).unwrap();
    set(&index, 900, "late");
    index.remove(3);
    index.save_while(&second, |_| true).unwrap();
    let segments = fs::read_dir(&second)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let segments: Vec<_> = segments
        .filter(|name| {
            name.to_str()
                .is_some_and(|name| name.starts_with("segment"))
        })
        .collect();
    assert_eq!(segments.len(), index.segment_count());
    let inode = |path: std::path::PathBuf| fs::metadata(path).unwrap().ino();
    for name in segments {
        assert_eq!(inode(moved.join(&name)), inode(second.join(&name)));
    }
    fs::remove_dir_all(&moved).unwrap();
    let opened = TextIndex::open(options(), &second).unwrap();
    assert_eq!(found(&opened, "late"), [900]);
    assert!(found(&opened, "number3").is_empty());
    assert_eq!(found(&opened, "common").len(), 299);
    assert_eq!(opened.len(), 300);
}

#[test]
fn a_save_that_is_stopped_is_an_error_and_leaves_the_index() {
    let directory = tempfile::tempdir().unwrap();
    let index = TextIndex::new(options());
    fill(&index, 0..300);
    while index.maintain(&|| true) {}
    for allowed in 0..3 {
        let to = directory.path().join(allowed.to_string());
        fs::create_dir(&to).unwrap();
        let mut calls = 0;
        let stopped = index.save_while(&to, |_| {
            calls += 1;
            calls <= allowed
        });
        assert!(
            matches!(stopped, Err(TextFileError::Unusable(_))),
            "{stopped:?}"
        );
        assert!(TextIndex::open(options(), &to).is_err());
        assert!(index.memory().segments > 0);
    }
    assert_eq!(found(&index, "common").len(), 300);
}

#[test]
fn an_index_of_other_options_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let index = TextIndex::new(options());
    set(&index, 1, "word");
    index.save_while(directory.path(), |_| true).unwrap();
    let others = FullTextOptions {
        positions: false,
        ..options()
    };
    let error = TextIndex::open(others, directory.path()).err().unwrap();
    assert!(error.to_string().contains("'positions': 'true'"), "{error}");
}

#[test]
fn damage_of_any_file_is_found_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let index = TextIndex::new(options());
    fill(&index, 0..300);
    while index.maintain(&|| true) {}
    set(&index, 900, "late");
    index.save_while(directory.path(), |_| true).unwrap();
    let files = fs::read_dir(directory.path()).unwrap();
    let files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3);
    for path in files {
        let sound = fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let assert_refused = |bytes: &[u8], what: &str| {
            // A file that is mapped must not change, so another takes its place.
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
            let opened = TextIndex::open(options(), directory.path());
            let error = opened.err().unwrap_or_else(|| panic!("{name}, {what}"));
            assert!(error.to_string().contains(&name), "{error}");
            assert!(check_snapshot(directory.path(), &mut |_| true).is_err());
        };
        assert_refused(&sound[..sound.len() - 1], "cut short");
        assert_refused(&[], "empty");
        for at in [0, 9, sound.len() / 3, sound.len() / 2] {
            let mut damaged = sound.clone();
            // Between the parts of a segment are bytes without meaning, up to 15.
            for byte in damaged.iter_mut().skip(at).take(16) {
                *byte ^= 0x55;
            }
            assert_refused(&damaged, &format!("byte {at}"));
        }
        fs::remove_file(&path).unwrap();
        assert!(TextIndex::open(options(), directory.path()).is_err());
        fs::write(&path, &sound).unwrap();
    }
    let opened = TextIndex::open(options(), directory.path()).unwrap();
    assert_eq!(opened.files_state(), TextFilesState::Verified);
    assert_eq!(found(&opened, "late"), [900]);
}
