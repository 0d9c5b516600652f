//! The words of the sources: comments in plain English, tests named after a behaviour, and types
//! whose names say which of several things they are.

use std::collections::{BTreeMap, BTreeSet};

use crate::{assert_nowhere, crates, modules, read, sources};

/// Words that once meant many things each in these sources. They are right where they mean a place
/// or a question.
const VAGUE: [&str; 18] = [
    "alone", "anew", "ask", "asked", "asks", "behind", "beside", "gone", "kept", "lay", "lie",
    "lies", "nobody", "stand", "stands", "stood", "tells", "told",
];

/// How many of [`VAGUE`] a thousand words of comments may have.
const VAGUE_PER_THOUSAND: usize = 4;

/// Begins of a test's name that leave its subject out.
const WITHOUT_SUBJECT: [&str; 4] = ["nobody_", "what_", "who_", "whom_"];

/// Keywords before the name of a type.
const KINDS: [&str; 4] = ["enum", "struct", "trait", "union"];

/// How many of a hundred types may have the name of another.
const SHARED_PER_HUNDRED: usize = 20;

/// How many of a hundred types may have a name of one word.
const OF_ONE_WORD_PER_HUNDRED: usize = 40;

/// The types whose names begin with that of their crate: the thing that the crate is for, and
/// what users import together with such a thing of another crate. A new one needs that reason.
const NAMED_AFTER_THEIR_CRATE: [&str; 21] = [
    "backup::BackupError",
    "backup::BackupLocation",
    "backup::BackupPlan",
    "backup::BackupSource",
    "clock::Clock",
    "cpu-scheduler::CpuScheduler",
    "cql::CqlError",
    "embedded::Embedded",
    "filter-columns::FilterColumns",
    "gateway::Gateway",
    "gateway::GatewayOptions",
    "node::Node",
    "node::NodeOptions",
    "storage::Storage",
    "storage::StorageError",
    "storage::StorageOptions",
    "store::Store",
    "store::StoreHandle",
    "store::StoreOptions",
    "value::Value",
    "value::ValueError",
];

/// The text of the comment in a line.
fn comment(line: &str) -> Option<&str> {
    let begin = line.trim_start().strip_prefix("//");
    begin.or_else(|| line.split_once(" // ").map(|(_, comment)| comment))
}

/// Counts the words of all comments, and those of them that are vague.
fn count(source: &str) -> (usize, usize) {
    let comments = source.lines().filter_map(comment);
    let words = comments.flat_map(|comment| comment.split(|letter: char| !letter.is_alphabetic()));
    let words = words.filter(|word| !word.is_empty());
    words.fold((0, 0), |(all, vague), word| {
        let is_vague = VAGUE.contains(&&*word.to_lowercase());
        (all + 1, vague + usize::from(is_vague))
    })
}

/// Numbers of the lines with a test whose name leaves its subject out.
fn tests_without_subject(source: &str) -> Vec<usize> {
    let mut is_test = false;
    sources::numbers(source, |line| {
        let line = line.trim_start();
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let code = line.strip_prefix("async ").unwrap_or(line);
        let Some(name) = code.strip_prefix("fn ") else {
            return false;
        };
        let begins = WITHOUT_SUBJECT.iter().any(|begin| name.starts_with(begin));
        std::mem::take(&mut is_test) && begins
    })
}

/// The names of types that code defines.
fn defined(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split_whitespace();
    let pairs = words.clone().zip(words.skip(1));
    let names = pairs.filter_map(|(kind, name)| KINDS.contains(&kind).then_some(name));
    let names = names.map(|name| {
        let end = name.find(|letter: char| !letter.is_alphanumeric());
        &name[..end.unwrap_or(name.len())]
    });
    names.filter(|name| name.starts_with(char::is_uppercase))
}

/// Every type of the product, with the name of its crate.
fn types() -> Vec<(String, String)> {
    let mut types = Vec::new();
    for (name, folder) in crates() {
        for code in modules::of_crate(&folder.join("src")).values() {
            types.extend(defined(code).map(|defined| (name.clone(), defined.to_owned())));
        }
    }
    types
}

/// A crate's name as types are written: `ClientMemory` for `client-memory`.
fn camel_case(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    });
    words.collect()
}

/// Whether a type's name has that of its crate as its first words.
fn is_named_after(name: &str, of_crate: &str) -> bool {
    let rest = name.strip_prefix(&camel_case(of_crate));
    rest.is_some_and(|rest| !rest.starts_with(char::is_lowercase))
}

#[test]
fn comments_have_few_vague_words() {
    let (mut all, mut vague) = (0, 0);
    for folder in crates().into_values() {
        for path in sources::of_crate(&folder) {
            let counts = count(&read(&path));
            (all, vague) = (all + counts.0, vague + counts.1);
        }
    }
    assert!(all > 100_000, "{all} words of comments");
    assert!(
        vague * 1000 <= all * VAGUE_PER_THOUSAND,
        "{vague} of {all} words of comments are of VAGUE"
    );
}

#[test]
fn names_of_tests_have_a_subject() {
    assert_nowhere(tests_without_subject, "names of tests without a subject");
}

#[test]
fn types_named_after_their_crate_are_listed() {
    let found = types().into_iter();
    let found = found.filter(|(of_crate, name)| is_named_after(name, of_crate));
    let found: BTreeSet<String> = found
        .map(|(of_crate, name)| format!("{of_crate}::{name}"))
        .collect();
    let listed = BTreeSet::from(NAMED_AFTER_THEIR_CRATE.map(str::to_owned));
    assert_eq!(found, listed, "types, and NAMED_AFTER_THEIR_CRATE");
    assert!(NAMED_AFTER_THEIR_CRATE.is_sorted());
}

#[test]
fn few_types_share_a_name() {
    let types = types();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, name) in &types {
        *times.entry(name.as_str()).or_default() += 1;
    }
    let shared: BTreeMap<_, _> = times.into_iter().filter(|(_, times)| *times > 1).collect();
    let sum: usize = shared.values().sum();
    assert!(
        sum * 100 <= types.len() * SHARED_PER_HUNDRED,
        "{sum} of {} types share their names: {shared:#?}",
        types.len()
    );
}

#[test]
fn few_types_have_a_name_of_one_word() {
    let types = types();
    let is_one_word = |name: &str| name.chars().filter(|letter| letter.is_uppercase()).count() == 1;
    let of_one = types.iter().filter(|(_, name)| is_one_word(name));
    let of_one: Vec<String> = of_one
        .map(|(of_crate, name)| format!("{of_crate}::{name}"))
        .collect();
    assert!(
        of_one.len() * 100 <= types.len() * OF_ONE_WORD_PER_HUNDRED,
        "{} of {} types: {of_one:#?}",
        of_one.len(),
        types.len()
    );
}

#[test]
fn words_and_names_are_seen() {
    let source = "//! A row is Kept.\nlet a = 1; // It was told.\n\
                  /// Told twice, `asked` once.\nfn f() {}\n";
    assert_eq!(count(source), (11, 4));

    let source = "#[test]\n#[ignore]\nfn what_is() {}\nfn what() {}\n#[tokio::test]\nasync fn who_it_is() {}\n\
                  #[test]\nfn it_is() {}\nfn who_helps() {}\n";
    assert_eq!(tests_without_subject(source), [3, 6]);

    let code = "pub struct A<T> { } enum Few; pub(crate) trait Words: Send { } struct $name";
    assert_eq!(defined(code).collect::<Vec<_>>(), ["A", "Few", "Words"]);

    assert!(is_named_after("HttpServerName", "http-server"));
    assert!(is_named_after("Index", "index"));
    assert!(!is_named_after("Indexes", "index"));
}
