//! The modules of a crate and their sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The names from the crate's root on; the root itself is empty.
pub type ModulePath = Vec<String>;

/// Sources without comments, strings and unit tests, by module.
pub fn of_crate(source: &Path) -> BTreeMap<ModulePath, String> {
    let mut modules = BTreeMap::new();
    collect(source, &mut Vec::new(), &mut modules);
    modules
}

fn collect(folder: &Path, parents: &mut ModulePath, modules: &mut BTreeMap<ModulePath, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        // Unit tests in files of their own, and what they share.
        if name.contains("test") || name == "fixtures" {
            continue;
        }
        if path.is_dir() {
            parents.push(name.to_owned());
            collect(&path, parents, modules);
            parents.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let mut module = parents.clone();
            if !["lib", "main", "mod"].contains(&name) {
                module.push(name.to_owned());
            }
            modules.insert(module, code(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// A source without its comments, its strings and the unit tests at its end.
fn code(source: &str) -> String {
    let tests = source.match_indices("#[cfg(test)]\nmod ").find(|(at, _)| {
        let module = source[*at..].lines().nth(1).unwrap();
        module.ends_with('{')
    });
    let source = &source[..tests.map_or(source.len(), |(at, _)| at)];
    let mut code = String::new();
    for line in source.lines() {
        let line = line.split("//").next().unwrap();
        // Every other part stands between quotes.
        let parts = line.split('"').step_by(2);
        code.extend(parts.flat_map(|part| [part, " "]));
    }
    code
}
