//! The tree keeps to ARCHITECTURE.md: crates use those below them in its table and no others, and
//! modules do not use each other in a circle. One loop asks indexes for neighbours. The sources
//! keep the form that stable rustfmt does not hold. A class of index is named where it belongs. The
//! server of the native protocol knows nothing of statements and of storage. Lock files of other
//! workspaces have what the crates use. Comments are in plain English, and names of types are not
//! shared. Tests wait for events, and their files are not long.
//!
//! A circle is looked for among the children of each module: child `a`, with everything inside it,
//! uses child `b`, and `b` uses `a` by some way. A module and its own children may use each other.
//! Unit tests are not looked at. `circles.txt` lists the circles that remain.

mod circles;
mod classes;
mod modules;
mod sources;
mod uses;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use circles::Circle;

/// Tests of these crates use crates above them, as ARCHITECTURE.md says.
const TESTED_FROM_ABOVE: [&str; 2] = ["store", "embedded"];

/// Items that are of one class of index.
const OF_ONE_CLASS: [&str; 7] = [
    "CLASS",
    "VectorIndex",
    "VectorOptions",
    "is_full_text_class",
    "is_sai_class",
    "is_vector_index",
    "sai_column",
];

/// Modules that plan a statement about indexes, or the answer of one that describes them.
const PLANNERS: [&str; 3] = [
    "gateway::catalog::base_table",
    "gateway::catalog::statement",
    "node::schema_changes::indexes",
];

/// Crates of what statements mean, and of what they are executed on.
const OF_STATEMENTS: [&str; 5] = ["index", "query", "schema", "storage", "store_api"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The name of the crate in a folder, which may be another than the folder's: `http` is a library
/// of others.
fn package(folder: &Path) -> String {
    let manifest: toml::Table = read(&folder.join("Cargo.toml")).parse().unwrap();
    manifest["package"]["name"].as_str().unwrap().to_owned()
}

/// Folders of `crates` by the names of their crates.
fn crates() -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    let manifests = folders.filter(|folder| folder.join("Cargo.toml").exists());
    manifests.map(|folder| (package(&folder), folder)).collect()
}

/// The crates in the order of the table "The rooms".
fn rooms() -> Vec<String> {
    let page = read(&root().join("ARCHITECTURE.md"));
    let (_, rooms) = page.split_once("\n## The rooms\n").expect("the section");
    let (rooms, _) = rooms.split_once("\n## ").expect("the next section");
    let rows = rooms.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_rooms_are_the_crates() {
    let rooms: BTreeSet<String> = rooms().into_iter().collect();
    let crates: BTreeSet<String> = crates().into_keys().collect();
    assert_eq!(rooms, crates, "ARCHITECTURE.md, The rooms");
}

#[test]
fn a_crate_uses_those_below_it() {
    let rooms = rooms();
    let position = |name: &str| rooms.iter().position(|room| room == name);
    let mut wrong = Vec::new();
    for (name, folder) in crates() {
        let manifest: toml::Table = read(&folder.join("Cargo.toml")).parse().unwrap();
        let kinds: &[&str] = match TESTED_FROM_ABOVE.contains(&&*name) {
            true => &["dependencies", "build-dependencies"],
            false => &["dependencies", "build-dependencies", "dev-dependencies"],
        };
        let used = kinds.iter().filter_map(|kind| manifest.get(*kind));
        for used in used.flat_map(|table| table.as_table().unwrap().keys()) {
            if position(used).is_some_and(|used| Some(used) <= position(&name)) && *used != name {
                wrong.push(format!("{name} uses {used}, which is not below it"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn modules_use_each_other_one_way() {
    let found: BTreeSet<Circle> = crates()
        .iter()
        .flat_map(|(name, folder)| {
            let modules = modules::of_crate(&folder.join("src"));
            circles::among(name, &uses::between(&modules))
        })
        .collect();
    let listed = circles::listed(include_str!("circles.txt"));
    let new: Vec<&Circle> = found.difference(&listed).collect();
    let gone: Vec<&Circle> = listed.difference(&found).collect();
    assert!(new.is_empty(), "new circles of modules: {new:#?}");
    assert!(gone.is_empty(), "circles.txt lists others: {gone:#?}");
}

/// Words of code that asks an index for neighbours, and for more of them.
const ASKING: [&str; 5] = [
    ".ann(",
    ".ann_within(",
    "VectorSearch",
    "AnnRequest",
    "AnswerRefill",
];

/// Whether code contains a word that is not the beginning of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word).any(|(at, _)| {
        let rest = &code[at + word.len()..];
        !(word.ends_with(is_of_word) && rest.starts_with(is_of_word))
    })
}

#[test]
fn one_loop_asks_indexes_for_neighbours() {
    let crates = crates();
    let code: Vec<String> = crates
        .values()
        .flat_map(|folder| modules::of_crate(&folder.join("src")).into_values())
        .collect();
    for word in ASKING {
        let is_used = code.iter().any(|code| has_word(code, word));
        assert!(is_used, "{word} has another name now");
    }
    let mut wrong = Vec::new();
    for (name, searches) in [("query", 0), ("node", 1), ("gateway", 1)] {
        let modules = modules::of_crate(&crates[name].join("src"));
        for (module, code) in &modules {
            let first = module.first().map(String::as_str);
            let is_loop = name == "query" && first == Some("search");
            let words = ASKING.iter().filter(|word| has_word(code, word));
            let words = words.filter(|_| !is_loop);
            wrong.extend(words.map(|word| format!("{name}::{}: {word}", module.join("::"))));
        }
        let run = modules
            .values()
            .map(|code| code.matches("search::run(").count());
        assert_eq!(run.sum::<usize>(), searches, "calls of the loop in {name}");
    }
    assert!(wrong.is_empty(), "outside of query::search: {wrong:#?}");
}

/// The modules of a crate whose code satisfies a rule, each from the name of the crate on.
fn modules_where(name: &str, holds: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let modules = modules::of_crate(&crates()[name].join("src"));
    let found = modules.iter().filter(|(_, code)| holds(code));
    let path = |module: &[String]| {
        let words = module.iter().map(String::as_str);
        let words: Vec<&str> = std::iter::once(name).chain(words).collect();
        words.join("::")
    };
    found.map(|(module, _)| path(module)).collect()
}

#[test]
fn the_store_names_vectors_in_their_structure_alone() {
    let mut found = modules_where("store", |code| {
        classes::names_crate(code, "ann") || classes::names_item(code, &["VectorIndex"])
    });
    assert!(found.contains("store::indexes::vector"), "{found:#?}");
    found.retain(|module| !module.starts_with("store::indexes::vector"));
    // It lists the classes.
    found.remove("store::indexes::structure");
    assert!(found.is_empty(), "an index class outside: {found:#?}");
}

#[test]
fn a_class_of_index_is_named_where_a_statement_is_planned() {
    let names = |code: &str| classes::names_item(code, &OF_ONE_CLASS);
    let mut found = modules_where("gateway", names);
    found.extend(modules_where("node", names));
    let listed = BTreeSet::from(PLANNERS.map(str::to_owned));
    assert_eq!(found, listed, "modules that name a class, and PLANNERS");
}

#[test]
fn the_native_protocol_is_served_without_storage() {
    let server = "server".to_owned();
    let modules = modules::of_crate(&crates()["node"].join("src"));
    let uses = uses::between(&modules);
    let of_server = uses.iter();
    let of_server = of_server.filter(|(module, _)| module.first() == Some(&server));
    let of_server: Vec<_> = of_server.collect();
    assert!(of_server.len() > 1, "node::server is not where it was");
    let mut wrong = Vec::new();
    for (module, used) in of_server {
        let path = module.join("::");
        let others = used.iter().filter(|used| used.first() != Some(&server));
        wrong.extend(others.map(|other| format!("{path} uses crate::{}", other.join("::"))));
        let named = OF_STATEMENTS.iter();
        let named = named.filter(|name| classes::names_crate(&modules[module], name));
        wrong.extend(named.map(|name| format!("{path} uses {name}")));
    }
    assert!(wrong.is_empty(), "node::server: {wrong:#?}");
}

#[test]
fn a_named_class_is_seen() {
    assert!(classes::names_crate("use ann::{IdSet};", "ann"));
    assert!(classes::names_crate("f(&ann::Error)", "ann"));
    assert!(!classes::names_crate(
        "super::ann::answer(), ann: u8",
        "ann"
    ));
    assert!(classes::names_item(
        "Box<vector::VectorIndex>",
        &["VectorIndex"]
    ));
    assert!(!classes::names_item("VectorIndexes", &["VectorIndex"]));
}

/// Asserts that a rule finds nothing in any source, or names file and line.
fn assert_nowhere(rule: fn(&str) -> Vec<usize>, what: &str) {
    let mut found = Vec::new();
    for (name, folder) in crates() {
        for path in sources::of_crate(&folder) {
            let lines = rule(&read(&path));
            let path = path.strip_prefix(&folder).unwrap().display();
            found.extend(lines.iter().map(|line| format!("{name}: {path}:{line}")));
        }
    }
    found.sort();
    assert!(found.is_empty(), "{what}: {found:#?}");
}

#[test]
fn comments_keep_to_their_columns() {
    assert_nowhere(sources::long_comments, "comments longer than 100 columns");
}

#[test]
fn docs_begin_with_their_subject() {
    let what = "docs that begin with What, Who or The same";
    assert_nowhere(sources::docs_without_subject, what);
}

#[test]
fn imports_stand_in_groups() {
    let what = "imports out of their groups: std, other crates, this crate";
    assert_nowhere(sources::misplaced_imports, what);
}

#[test]
fn a_misplaced_import_is_seen() {
    let wrong = [
        "use std::fs;\nuse serde::Serialize;",
        "use serde::Serialize;\n\nuse std::fs;",
        "use super::*;\nuse serde::Serialize;",
        "use std::fs;\n\nuse std::io;",
        "use a::{\n    B,\n    C,\n};\nuse crate::d;",
    ];
    for source in wrong {
        assert_eq!(sources::misplaced_imports(source).len(), 1, "{source}");
    }
    let right = "mod child;\n\nuse std::fs;\n\nuse child::A;\nuse serde::Serialize;\n\nuse crate::b;\n\n\
                 fn f() {\n    use std::fs;\n}\n";
    assert_eq!(sources::misplaced_imports(right), []);
}

#[test]
fn a_long_comment_and_a_doc_without_subject_are_seen() {
    let long = format!("let a = 1; // {}\n", "x".repeat(90));
    assert_eq!(sources::long_comments(&long), [1]);
    let doc = "/// What it is.\n/// Who knows.\nstruct A;\n/// Whatever.\nstruct B;\n";
    assert_eq!(sources::docs_without_subject(doc), [1]);
}

/// The test files that satisfy a rule, by crate and path.
fn tests_where(holds: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, folder) in crates() {
        for path in sources::of_tests(&folder) {
            if holds(&read(&path)) {
                let path = path.strip_prefix(&folder).unwrap().display();
                found.push(format!("{name}: {path}"));
            }
        }
    }
    found.sort();
    found
}

/// The most test files that sleep: where time is simulated, or where only the machine's own time
/// will do, which a comment says there.
const SLEEPING_MAX: usize = 6;

#[test]
fn tests_wait_for_events_instead_of_sleeping() {
    // The words are apart, as this is a test file, too.
    let call = ["sleep", "("].concat();
    let sleeping = tests_where(|source| source.contains(&call));
    assert!(
        sleeping.len() <= SLEEPING_MAX,
        "more than {SLEEPING_MAX} sleep, test_support waits: {sleeping:#?}"
    );
}

/// The most lines of a test file.
const TEST_LINES_MAX: usize = 600;

#[test]
fn test_files_are_cut_by_topic() {
    let long = tests_where(|source| source.lines().count() > TEST_LINES_MAX);
    assert!(long.is_empty(), "longer than {TEST_LINES_MAX}: {long:#?}");
}

#[test]
fn the_product_has_nothing_of_test_support() {
    let mut wrong = Vec::new();
    for (name, folder) in crates() {
        let manifest: toml::Table = read(&folder.join("Cargo.toml")).parse().unwrap();
        let kinds = ["dependencies", "build-dependencies"];
        let mut tables = kinds
            .iter()
            .filter_map(|kind| manifest.get(*kind)?.as_table());
        if tables.any(|table| table.contains_key("test-support")) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "no dev-dependency in {wrong:?}");
}

/// Workspaces of their own, which use crates of this one and are built with `--locked`.
const OTHER_WORKSPACES: [&str; 3] = ["benchmarks/ann", "benchmarks/text", "fuzz"];

#[test]
fn lock_files_of_other_workspaces_fit_the_crates() {
    let workspace: toml::Table = read(&root().join("Cargo.toml")).parse().unwrap();
    let shared = &workspace["workspace"]["dependencies"];
    let crates = crates();
    let mut missing = Vec::new();
    for other in OTHER_WORKSPACES {
        let locked: toml::Table = read(&root().join(other).join("Cargo.lock"))
            .parse()
            .unwrap();
        for package in locked["package"].as_array().unwrap() {
            let name = package["name"].as_str().unwrap();
            let Some(folder) = crates.get(name).filter(|_| package.get("source").is_none()) else {
                continue;
            };
            let manifest: toml::Table = read(&folder.join("Cargo.toml")).parse().unwrap();
            let locked = package.get("dependencies").and_then(|all| all.as_array());
            let locked: Vec<&str> = locked
                .into_iter()
                .flatten()
                .filter_map(|one| one.as_str())
                .collect();
            for (key, wanted) in manifest
                .get("dependencies")
                .and_then(|all| all.as_table())
                .into_iter()
                .flatten()
            {
                if wanted.get("optional").is_some() {
                    continue;
                }
                let renamed = shared.get(key).and_then(|shared| shared.get("package"));
                let wanted = renamed.and_then(|name| name.as_str()).unwrap_or(key);
                let is_locked = locked
                    .iter()
                    .any(|one| one.split(' ').next() == Some(wanted));
                if !is_locked {
                    missing.push(format!("{other}/Cargo.lock: {name} uses {wanted}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "cargo metadata there: {missing:#?}");
}
