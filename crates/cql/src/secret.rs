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
    let ends = WORDS.iter().filter_map(|word| {
        let mut windows = text.as_bytes().windows(word.len());
        let at = windows.position(|window| window.eq_ignore_ascii_case(word.as_bytes()))?;
        Some(at + word.len())
    });
    ends.min()
}

#[cfg(test)]
mod tests {
    use super::*;

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
