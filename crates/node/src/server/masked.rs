//! Texts of statements without their secrets, for those who read what was asked.

use std::borrow::Cow;

/// The text of a statement up to this many bytes. In a statement about a role or user, what follows
/// the first `PASSWORD` or `SALTED` is left out.
pub(super) fn masked(text: &str, bytes_max: usize) -> Cow<'_, str> {
    const WORDS: [&str; 2] = ["password", "salted"];
    let is_of_role = is_of_role(text);
    // A secret stands behind the word that tells of it, so it goes with that word.
    let text = &text[..text.floor_char_boundary(bytes_max)];
    if !is_of_role {
        return Cow::Borrowed(text);
    }
    let ends = WORDS.iter().filter_map(|word| {
        let mut windows = text.as_bytes().windows(word.len());
        let at = windows.position(|window| window.eq_ignore_ascii_case(word.as_bytes()))?;
        Some(at + word.len())
    });
    match ends.min() {
        Some(end) => Cow::Owned(format!("{} *******", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

fn is_of_role(text: &str) -> bool {
    let mut words = words(text);
    matches!(words.next(), Some(word) if is_one_of(word, &["create", "alter"]))
        && matches!(words.next(), Some(word) if is_one_of(word, &["role", "user"]))
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| word.eq_ignore_ascii_case(one))
}

/// The words at the beginning of a text. Comments stand between words as spaces do.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start();
            let behind = if rest.starts_with("--") || rest.starts_with("//") {
                rest.find(['\n', '\r'])
            } else if let Some(inner) = rest.strip_prefix("/*") {
                // The star of the begin is not that of the end.
                inner.find("*/").map(|at| at + 4)
            } else {
                break;
            };
            rest = &rest[behind?..];
        }
        let end = rest.find(|c: char| !c.is_alphanumeric());
        let end = end.unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        (!word.is_empty()).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_roles_are_left_out() {
        for (text, shown) in [
            (
                "ALTER ROLE ann WITH SALTED HASH = 'secret' AND PASSWORD = 'x'",
                "ALTER ROLE ann WITH SALTED *******",
            ),
            (
                "CREATE ROLE ann WITH PASSWORD = 'secret' AND LOGIN = true",
                "CREATE ROLE ann WITH PASSWORD *******",
            ),
            (
                "alter /* ' */ user ann with password 'secret'",
                "alter /* ' */ user ann with password *******",
            ),
            (
                "-- a comment\n CREATE ROLE r WITH HASHED PASSWORD = '$2a$'",
                "-- a comment\n CREATE ROLE r WITH HASHED PASSWORD *******",
            ),
            (
                "CREATE/**/ROLE r WITH PASSWORD='s'",
                "CREATE/**/ROLE r WITH PASSWORD *******",
            ),
            (
                "/*/ */ CREATE ROLE r WITH PASSWORD='s'",
                "/*/ */ CREATE ROLE r WITH PASSWORD *******",
            ),
            (
                "CREATE ROLE r WITH LOGIN = true",
                "CREATE ROLE r WITH LOGIN = true",
            ),
            ("SELECT password FROM users", "SELECT password FROM users"),
            (
                "CREATE TABLE t (password text)",
                "CREATE TABLE t (password text)",
            ),
            ("", ""),
            ("/* never closed", "/* never closed"),
        ] {
            assert_eq!(masked(text, text.len()), shown);
        }
    }
}
