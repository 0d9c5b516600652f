//! `deny.toml` allows the licences of all crates that the two programs are built from, and
//! LICENSES-THIRD-PARTY.txt lists the crates that are linked into them.
//!
//! The list is that of a build for Linux, as other systems have other crates.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::SplitWhitespace;

/// A crate that others wrote.
struct Crate {
    name: String,
    version: String,
    licence: String,
    repository: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Lists the crates of others that the two programs reach by these edges of the graph.
fn crates(edges: &str) -> Vec<Crate> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--color", "never"])
        .args(["-p", "annulus", "-p", "annulus-bench", "--edges", edges])
        .args(["--prefix", "none", "--format", "{p}|{l}|{r}"])
        .current_dir(root())
        .output()
        .expect("cargo tree");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().filter(|line| !line.is_empty());
    lines.filter_map(crate_of_others).collect()
}

/// Reads a line of `cargo tree`, `NAME vVERSION (FOLDER)|LICENCE|REPOSITORY (*)`, whose brackets
/// may be missing. Returns nothing for a crate of this workspace.
fn crate_of_others(line: &str) -> Option<Crate> {
    let mut fields = line.trim_end_matches(" (*)").split('|');
    let mut field = || {
        fields
            .next()
            .unwrap_or_else(|| panic!("cargo tree: {line}"))
    };
    let (package, licence, repository) = (field(), field(), field());
    let mut words = package.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (name, version, folder) = (word(), word(), word());
    let folder = Path::new(folder.trim_matches(['(', ')']));
    if folder
        .parent()
        .is_some_and(|above| above.ends_with("crates"))
    {
        return None;
    }
    Some(Crate {
        name: name.to_owned(),
        version: version.trim_start_matches('v').to_owned(),
        licence: licence.to_owned(),
        repository: repository.to_owned(),
    })
}

/// Licences that a rule of `deny.toml` names.
fn names(rule: &toml::Value) -> impl Iterator<Item = &str> {
    let names = rule.as_array().expect("a list of licences").iter();
    names.map(|name| name.as_str().expect("a licence"))
}

type Words<'a> = Peekable<SplitWhitespace<'a>>;

/// Tells whether a licence expression has a choice that is allowed.
fn is_allowed(expression: &str, allow: &BTreeSet<&str>) -> bool {
    // Older crates write a slash for OR.
    let expression = expression.replace('/', " OR ");
    let expression = expression.replace('(', " ( ").replace(')', " ) ");
    let mut words = expression.split_whitespace().peekable();
    any_is_allowed(&mut words, allow) && words.next().is_none()
}

fn any_is_allowed(words: &mut Words<'_>, allow: &BTreeSet<&str>) -> bool {
    let mut allowed = all_are_allowed(words, allow);
    while words.next_if_eq(&"OR").is_some() {
        allowed |= all_are_allowed(words, allow);
    }
    allowed
}

fn all_are_allowed(words: &mut Words<'_>, allow: &BTreeSet<&str>) -> bool {
    let mut allowed = one_is_allowed(words, allow);
    while words.next_if_eq(&"AND").is_some() {
        allowed &= one_is_allowed(words, allow);
    }
    allowed
}

fn one_is_allowed(words: &mut Words<'_>, allow: &BTreeSet<&str>) -> bool {
    let Some(licence) = words.next() else {
        return false;
    };
    if licence == "(" {
        let allowed = any_is_allowed(words, allow);
        return words.next() == Some(")") && allowed;
    }
    match words.next_if_eq(&"WITH") {
        Some(_) => {
            let exception = words.next().unwrap_or_default();
            allow.contains(&*format!("{licence} WITH {exception}"))
        }
        None => allow.contains(licence),
    }
}

#[test]
fn expressions_are_understood() {
    let allow = BTreeSet::from(["Apache-2.0", "MIT"]);
    let allowed = [
        "MIT",
        "Apache-2.0/MIT",
        "GPL-2.0-only OR MIT",
        "(GPL-2.0-only OR MIT) AND (Apache-2.0 OR ISC)",
        "Apache-2.0 WITH LLVM-exception OR MIT",
        "ISC AND GPL-2.0-only OR MIT",
    ];
    let refused = [
        "",
        "GPL-2.0-only",
        "MIT AND GPL-2.0-only",
        "(MIT OR Apache-2.0) AND ISC",
        "Apache-2.0 WITH LLVM-exception",
        "(MIT",
        "MIT MIT",
    ];
    for expression in allowed {
        assert!(is_allowed(expression, &allow), "{expression}");
    }
    for expression in refused {
        assert!(!is_allowed(expression, &allow), "{expression}");
    }
}

#[test]
fn licences_are_allowed() {
    let rules: toml::Table = read("deny.toml").parse().unwrap();
    let rules = rules["licenses"].as_table().expect("a table");
    let exceptions = rules["exceptions"].as_array().expect("a list");
    let mut refused = BTreeSet::new();
    for built in crates("normal,build") {
        let mut allow: BTreeSet<&str> = names(&rules["allow"]).collect();
        for exception in exceptions {
            if exception["crate"].as_str() == Some(built.name.as_str()) {
                allow.extend(names(&exception["allow"]));
            }
        }
        if !is_allowed(&built.licence, &allow) {
            refused.insert(format!(
                "{} {}: {}",
                built.name, built.version, built.licence
            ));
        }
    }
    assert!(refused.is_empty(), "deny.toml does not allow {refused:#?}");
}

#[test]
fn the_list_is_that_of_the_linked_crates() {
    let page = read("LICENSES-THIRD-PARTY.txt");
    let (_, list) = page.split_once("\nCrates\n\n").expect("the list");
    let (list, _) = list.split_once("\n\n").expect("the texts");
    let listed: BTreeSet<String> = list.lines().map(str::to_owned).collect();
    let linked = crates("normal,no-proc-macro").into_iter();
    let linked: BTreeSet<String> = linked
        .map(|linked| {
            let Crate {
                name,
                version,
                licence,
                repository,
            } = linked;
            format!("{name} {version} | {licence} | {repository}")
        })
        .collect();
    let missing: Vec<&String> = linked.difference(&listed).collect();
    let gone: Vec<&String> = listed.difference(&linked).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "LICENSES-THIRD-PARTY.txt lacks {missing:#?} and has too many {gone:#?}: \
         run tests/licences/renew.py"
    );
}

#[test]
fn the_program_prints_the_list() {
    let program = Command::new(env!("CARGO_BIN_EXE_annulus"))
        .arg("licences")
        .output();
    let output = program.expect("annulus");
    assert!(output.status.success());
    assert!(output.stdout == read("LICENSES-THIRD-PARTY.txt").as_bytes());
}
