//! Values that must not be printed, and the words of statements that tell of one.

use std::fmt;

/// A password or another secret. `Debug` doesn't print it; [`Secret::expose`] gives it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a secret.
    pub fn new(secret: T) -> Secret<T> {
        Secret(secret)
    }

    /// The secret itself, to check it or to hand it on.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Secret<T> {
    fn from(secret: T) -> Secret<T> {
        Secret(secret)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The words behind which a statement has a secret.
const WORDS: [&str; 2] = ["password", "salted"];

/// The end of the first word in a text that tells of a secret behind it, as an offset in bytes.
/// The word may be a part of another one or of a comment: better too much is taken for a secret.
pub fn end_of_telling_word(text: &str) -> Option<usize> {
    let ends = WORDS
        .iter()
        .filter_map(|word| Some(position(text, word)? + word.len()));
    ends.min()
}

/// The words of which one stands before the options of a role.
const OF_ROLES: [&str; 2] = ["role", "user"];

/// The end of the word behind which a text may have the options of a role, as an offset in bytes:
/// for a text that is no statement, in which the word for the secret may be mistyped.
pub fn end_of_with(text: &str) -> Option<usize> {
    const WITH: &str = "with";
    let role = OF_ROLES.iter().filter_map(|word| position(text, word));
    let role = role.min()?;
    Some(role + position(&text[role..], WITH)? + WITH.len())
}

/// The first place of a word of ASCII letters, large or small.
fn position(text: &str, word: &str) -> Option<usize> {
    let mut windows = text.as_bytes().windows(word.len());
    windows.position(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_role_begin_behind_with() {
        for (text, end) in [
            ("CREATE ROLE r WITH PASWORD = hunter2", Some(18)),
            ("alter user \u{201e}r\u{201c} with x", Some(23)),
            ("CREATE TABLE t (k int) WITH x", None),
            ("with role", None),
        ] {
            assert_eq!(end_of_with(text), end, "{text}");
        }
    }

    #[test]
    fn the_first_word_that_tells_of_a_secret_is_found() {
        for (text, end) in [
            (
                "ALTER ROLE ann WITH Salted HASH = 's' AND PASSWORD = 'x'",
                26,
            ),
            ("/* a passWORD */ CREATE", 13),
            ("password_hash", 8),
        ] {
            assert_eq!(end_of_telling_word(text), Some(end), "{text}");
        }
        for text in ["", "pass", "CREATE ROLE r WITH LOGIN = true"] {
            assert_eq!(end_of_telling_word(text), None, "{text}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret))
                .matches("hunter2")
                .count(),
            0
        );
        assert_eq!(secret.expose(), "hunter2");
    }
}
