//! Runs the entry points of the fuzz targets over their corpora, and over changes of each file that
//! are the same in every run. `make fuzz` runs the same entry points with libFuzzer.

mod mutate;
mod seeds;

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use mutate::Mutations;

/// The most files of a corpus, and the most bytes of them all.
const FILES_MAX: usize = 30;
const BYTES_MAX: usize = 60_000;

/// The entry points by the names of their targets, with the number of changed inputs that each
/// reads in about a second.
const TARGETS: [(&str, fn(&[u8]), usize); 9] = [
    ("frames", cql::fuzzing::frames, 4_000),
    ("journals", storage::fuzzing::journals, 600),
    ("manifest", store::fuzzing::manifest, 3_000),
    ("recognition", gateway::fuzzing::recognition, 4_000),
    ("record", storage::fuzzing::record, 6_000),
    ("rows", store::fuzzing::rows, 1_500),
    ("search", store::fuzzing::search, 6_000),
    ("snapshot", ann::fuzzing::snapshot, 600),
    ("statement", cql::fuzzing::statement, 4_000),
];

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The files of a corpus, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz().join("corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let files = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Calls an entry point. An input that fails is kept in a file, which the panic names.
fn call(target: &str, entry: fn(&[u8]), input: &[u8], what: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| entry(input))) {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}"));
        fs::write(&path, input).unwrap();
        eprintln!("{target}: {what} fails; it is kept in {}", path.display());
        std::panic::resume_unwind(panic);
    }
}

fn run(target: &str) {
    let (_, entry, changes) = TARGETS.iter().find(|(name, ..)| *name == target).unwrap();
    let corpus = corpus(target);
    for (name, content) in &corpus {
        call(target, *entry, content, name);
    }
    let contents: Vec<&[u8]> = corpus.iter().map(|(_, content)| &content[..]).collect();
    let mut mutations = Mutations::new(&contents);
    for number in 0..*changes {
        let (name, content) = &corpus[number % corpus.len()];
        let input = mutations.change(content);
        call(
            target,
            *entry,
            &input,
            &format!("change {number} of {name}"),
        );
    }
}

#[test]
fn frames() {
    run("frames");
}

#[test]
fn journals() {
    run("journals");
}

#[test]
fn manifest() {
    run("manifest");
}

#[test]
fn recognition() {
    run("recognition");
}

#[test]
fn record() {
    run("record");
}

#[test]
fn rows() {
    run("rows");
}

#[test]
fn search() {
    run("search");
}

#[test]
fn snapshot() {
    run("snapshot");
}

#[test]
fn statement() {
    run("statement");
}

#[test]
fn every_target_is_a_program_that_calls_its_entry_point() {
    let entries = fs::read_dir(fuzz().join("targets")).unwrap();
    let programs = entries.map(|entry| entry.unwrap().path());
    let programs: BTreeSet<String> = programs
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let call = format!("::fuzzing::{name}(bytes));\n");
            assert!(
                fs::read_to_string(&path).unwrap().ends_with(&call),
                "{name}"
            );
            name
        })
        .collect();
    let targets = TARGETS.map(|(name, ..)| name.to_owned());
    assert_eq!(programs, BTreeSet::from(targets));
}

#[test]
fn every_corpus_is_small() {
    for (target, ..) in TARGETS {
        let corpus = corpus(target);
        let bytes: usize = corpus.iter().map(|(_, content)| content.len()).sum();
        assert!((1..=FILES_MAX).contains(&corpus.len()), "{target}");
        assert!(bytes <= BYTES_MAX, "{target} has {bytes} bytes");
    }
}
