//! Values that must not be printed nor stay in memory, and the words of statements that tell of
//! one.

use std::fmt;

use bytes::Bytes;
use zeroize::Zeroize as _;

/// A value whose bytes in memory can be overwritten.
pub trait Wipe {
    /// Overwrites the bytes. The value is of no use afterwards.
    fn wipe(&mut self);
}

impl Wipe for String {
    fn wipe(&mut self) {
        self.zeroize();
    }
}

impl Wipe for Bytes {
    /// Overwrites the bytes unless others hold them, too: then they are theirs.
    fn wipe(&mut self) {
        if let Ok(mut own) = std::mem::take(self).try_into_mut() {
            own.as_mut().zeroize();
        }
    }
}

impl<T: Wipe> Wipe for Option<T> {
    fn wipe(&mut self) {
        if let Some(value) = self {
            value.wipe();
        }
    }
}

/// Copies bytes that have a secret to a place of their own, and overwrites them here.
pub(crate) fn take_out(bytes: &mut [u8]) -> Bytes {
    let taken = Bytes::copy_from_slice(bytes);
    bytes.zeroize();
    taken
}

/// A password or another secret. `Debug` doesn't print it; [`Secret::expose`] gives it. Its memory
/// is overwritten when it is dropped.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T: Wipe>(T);

impl<T: Wipe> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.wipe();
    }
}

impl<T: Wipe> Secret<T> {
    /// Wraps a secret.
    pub fn new(secret: T) -> Secret<T> {
        Secret(secret)
    }

    /// The secret itself, to check it or to hand it on.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Wipe> From<T> for Secret<T> {
    fn from(secret: T) -> Secret<T> {
        Secret(secret)
    }
}

impl<T: Wipe> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The words after which a statement has a secret.
const WORDS: [&str; 2] = ["password", "salted"];

/// The end of the first word in a text that announces a secret after it, as an offset in bytes. The
/// word may be a part of another one or of a comment: better too much is taken for a secret.
pub fn end_of_telling_word(text: &str) -> Option<usize> {
    let ends = WORDS
        .iter()
        .filter_map(|word| Some(position(text, word)? + word.len()));
    ends.min()
}

/// The words of which one comes before the options of a role.
const OF_ROLES: [&str; 2] = ["role", "user"];

/// The end of the word after which a text may have the options of a role, as an offset in bytes:
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
    use std::cell::Cell;
    use std::rc::Rc;

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
    fn each_copy_of_a_secret_is_wiped_when_it_is_dropped() {
        #[derive(Clone)]
        struct WipeCounter(Rc<Cell<usize>>);
        impl Wipe for WipeCounter {
            fn wipe(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let wiped = Rc::new(Cell::new(0));
        let secret = Secret::new(Some(WipeCounter(wiped.clone())));
        let copy = secret.clone();
        drop(secret);
        assert_eq!(wiped.get(), 1);
        drop(copy);
        assert_eq!(wiped.get(), 2);
    }

    #[test]
    fn texts_and_bytes_are_wiped_unless_others_hold_them() {
        let mut text = "hunter2".to_owned();
        text.wipe();
        assert_eq!(text, "");
        let mut bytes = *b"\0ann\0hunter2";
        let mut taken = take_out(&mut bytes);
        assert_eq!((&taken[..], bytes), (&b"\0ann\0hunter2"[..], [0; 12]));
        let other = taken.clone();
        taken.wipe();
        assert_eq!(&other[..], b"\0ann\0hunter2");
        assert!(taken.is_empty());
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
