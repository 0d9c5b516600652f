//! Which code names a class of index, or the crate of one.

/// The paths in a source: words with `::` between, or a word alone.
fn paths(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
}

/// Whether the code names one of these items, by whatever path.
pub fn names_item(code: &str, items: &[&str]) -> bool {
    paths(code).any(|path| path.split("::").any(|word| items.contains(&word)))
}

/// Whether the code names an item of a crate by a path that begins with the crate.
pub fn names_crate(code: &str, name: &str) -> bool {
    paths(code).any(|path| {
        let mut words = path.split("::");
        words.next() == Some(name) && words.next().is_some()
    })
}
