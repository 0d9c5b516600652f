//! Which module uses which, by `use` declarations and by paths in expressions.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::ModulePath;

/// The modules that each module uses.
pub type Uses = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// Reads the uses of a crate's modules by each other.
pub fn between(modules: &BTreeMap<ModulePath, String>) -> Uses {
    let used_by = |module: &ModulePath, code: &str| {
        let targets = paths(code).into_iter();
        let targets = targets.filter_map(|path| resolve(module, &path, modules));
        targets.filter(|target| target != module).collect()
    };
    let uses = modules.iter();
    uses.map(|(module, code)| (module.clone(), used_by(module, code)))
        .collect()
}

/// All paths that begin with `crate`, `super` or `self`, those of nested `use` trees written out.
fn paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for declaration in code.split("use ").skip(1) {
        let tree = declaration.split(';').next().unwrap();
        expand("", tree, &mut paths);
    }
    let is_in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c| !is_in_path(c));
    paths.extend(words.map(str::to_owned));
    let begins = ["crate::", "super::", "self::"];
    paths.retain(|path| begins.iter().any(|begin| path.starts_with(begin)));
    paths
}

/// Writes a `use` tree out: `a::{b, c::{d}}` is `a::b` and `a::c::d`.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((begin, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap().trim();
        paths.push(format!("{before}{path}"));
        return;
    };
    let before = format!("{before}{}", begin.trim());
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&before, &inner[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    expand(&before, &inner[start..], paths);
}

/// The module that a path names, or the one that has the item that it names.
fn resolve(
    module: &ModulePath,
    path: &str,
    modules: &BTreeMap<ModulePath, String>,
) -> Option<ModulePath> {
    let mut words = path.split("::").peekable();
    let mut target = match words.peek() {
        Some(&"crate") => {
            words.next();
            Vec::new()
        }
        _ => module.clone(),
    };
    while let Some(word) = words.next_if(|word| ["self", "super"].contains(word)) {
        if word == "super" {
            target.pop()?;
        }
    }
    for word in words {
        target.push(word.to_owned());
        if !modules.contains_key(&target) {
            target.pop();
            break;
        }
    }
    Some(target)
}
