//! The form of the sources that stable rustfmt does not hold: how long a comment's line is, how a
//! doc begins, and how imports are grouped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Characters in a line with a comment, as rustfmt's `max_width`.
const COLUMNS_MAX: usize = 100;

/// Begins of docs that withhold their subject.
const BEGINS: [&str; 3] = ["What", "Who", "The same"];

/// All sources of a crate: the library or program, tests and benchmarks.
pub fn of_crate(folder: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for part in ["src", "tests", "benches"] {
        collect(&folder.join(part), &mut sources);
    }
    sources
}

/// Sources of a crate's tests: all of `tests`, and unit tests that have files of their own.
pub fn of_tests(folder: &Path) -> Vec<PathBuf> {
    let mut sources = of_crate(folder);
    sources.retain(|path| {
        let path = path.strip_prefix(folder).expect("a file of the crate");
        let mut names = path.iter().filter_map(|name| name.to_str());
        names.next() == Some("tests") || names.any(|name| name.contains("test"))
    });
    sources
}

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
}

/// Numbers of the lines whose comment goes past the last column. An address can't be broken.
pub fn long_comments(source: &str) -> Vec<usize> {
    numbers(source, |line| {
        let has_comment = line.trim_start().starts_with("//") || line.contains(" // ");
        has_comment && line.chars().count() > COLUMNS_MAX && !line.contains("://")
    })
}

/// Numbers of the lines where a doc begins without its subject.
pub fn docs_without_subject(source: &str) -> Vec<usize> {
    let mut in_doc = false;
    numbers(source, |line| {
        let line = line.trim_start();
        let text = ["///", "//!"]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        let begins = text.is_some_and(|text| BEGINS.iter().any(|begin| begins(text, begin)));
        let is_first = !in_doc;
        in_doc = text.is_some();
        is_first && begins
    })
}

fn begins(text: &str, begin: &str) -> bool {
    let rest = text.trim_start().strip_prefix(begin);
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Numbers of the lines that are wrong.
pub fn numbers(source: &str, mut is_wrong: impl FnMut(&str) -> bool) -> Vec<usize> {
    let lines = source.lines().zip(1..);
    lines
        .filter_map(|(line, number)| is_wrong(line).then_some(number))
        .collect()
}

/// Where an imported path comes from. The order is that of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Std,
    OtherCrate,
    OwnCrate,
}

/// The line of each import of one group, and its origin. `None` may stand in any group: a
/// re-export, or a path that begins with a child or an item of this very module.
type Group = Vec<(usize, Option<Origin>)>;

/// Numbers of the imports that break the order: a group each for the standard library, for other
/// crates and for this crate, in that order, with a blank line between.
pub fn misplaced_imports(source: &str) -> Vec<usize> {
    let mut misplaced = Vec::new();
    for list in lists_of_imports(source) {
        let mut before = None;
        for group in list {
            let mut origins = group
                .into_iter()
                .filter_map(|(line, origin)| Some((line, origin?)));
            let Some((first, origin)) = origins.next() else {
                continue;
            };
            if before >= Some(origin) {
                misplaced.push(first);
            }
            misplaced.extend(
                origins
                    .filter(|other| other.1 != origin)
                    .map(|(line, _)| line),
            );
            before = Some(origin);
        }
    }
    misplaced
}

/// The lists of imports, by their groups. A list ends where something else begins.
fn lists_of_imports(source: &str) -> Vec<Vec<Group>> {
    let children: BTreeSet<&str> = source.lines().filter_map(child).collect();
    let mut lists: Vec<Vec<Group>> = Vec::new();
    let mut is_open = false;
    let mut lines = source.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let line = line.trim_start();
        if let Some(path) = without_visibility(line).strip_prefix("use ") {
            if !is_open {
                lists.push(vec![Group::new()]);
                is_open = true;
            }
            let groups = lists.last_mut().expect("a list");
            let origin = origin(path, &children).filter(|_| line.starts_with("use "));
            groups.last_mut().expect("a group").push((number, origin));
            if !path.contains(';') {
                lines.find(|(line, _)| line.contains(';'));
            }
        } else if line.is_empty() && is_open {
            lists.last_mut().expect("a list").push(Group::new());
        } else if !line.starts_with("#[") {
            is_open = false;
        }
    }
    lists
}

/// The name of the child module that the line declares.
fn child(line: &str) -> Option<&str> {
    let name = without_visibility(line).strip_prefix("mod ")?;
    name.split([';', ' ']).next()
}

fn without_visibility(line: &str) -> &str {
    match line.split_once(' ') {
        Some((visibility, rest)) if visibility.starts_with("pub") => rest,
        _ => line,
    }
}

fn origin(path: &str, children: &BTreeSet<&str>) -> Option<Origin> {
    let first = path.split([':', ' ', ';']).next()?;
    match first {
        "std" | "core" | "alloc" => Some(Origin::Std),
        "crate" | "super" | "self" => Some(Origin::OwnCrate),
        item if item.starts_with(char::is_uppercase) => None,
        child if children.contains(child) => None,
        _ => Some(Origin::OtherCrate),
    }
}
