//! Texts of statements without their secrets, for readers of the audit log and of traces.

use std::borrow::Cow;
use std::ops::Range;

use cql::ast::Statement;
use cql::secret::{end_of_telling_word, end_of_with};

/// The mark for what is left out.
const LEFT_OUT: &str = "*******";

/// The signs with which strings begin.
const QUOTES: [&str; 2] = ["'", "$$"];

/// The text of a statement up to this many bytes, without its secrets. `statement` is what it says;
/// `None` if it can't be read.
///
/// Of a statement about roles its secrets are left out, and nothing else: its writer could
/// hide the rest with a word in a comment or in a name. A text that can't be read may be such a
/// statement with a mistake anywhere. It is cut at its first string, after the first word that
/// announces a secret, or after the WITH of a role.
pub(super) fn redacted<'a>(
    text: &'a str,
    bytes_max: usize,
    statement: Option<&Statement>,
) -> Cow<'a, str> {
    let text = &text[..text.floor_char_boundary(bytes_max)];
    match statement {
        Some(Statement::Role(statement)) => without(text, statement.secrets()),
        // Of a statement that is not supported only the first words are read.
        None | Some(Statement::Unsupported(_)) => cut(text),
        Some(_) => Cow::Borrowed(text),
    }
}

/// A text without its secrets, the last of which may begin or end beyond its end.
fn without<'a>(text: &'a str, secrets: &[Range<usize>]) -> Cow<'a, str> {
    let mut shown = Cow::Borrowed(text);
    // From the last on, so that the offsets of the others hold.
    for secret in secrets.iter().rev() {
        if secret.start < text.len() {
            let end = secret.end.min(text.len());
            shown.to_mut().replace_range(secret.start..end, LEFT_OUT);
        }
    }
    shown
}

/// A text up to where a secret may begin: after a word that announces one, or at a quote.
fn cut(text: &str) -> Cow<'_, str> {
    let quotes = QUOTES.iter().filter_map(|quote| text.find(quote));
    let words = [end_of_telling_word(text), end_of_with(text)];
    match quotes.chain(words.into_iter().flatten()).min() {
        Some(end) => Cow::Owned([text[..end].trim_end(), " ", LEFT_OUT].concat()),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use cql::parser::parse_statement;

    use super::*;

    fn shown(text: &str) -> Cow<'_, str> {
        let parsed = parse_statement(text).ok();
        redacted(
            text,
            text.len(),
            parsed.as_ref().map(|parsed| &parsed.statement),
        )
    }

    #[test]
    fn passwords_of_roles_are_left_out() {
        for (text, expected) in [
            (
                "ALTER ROLE ann WITH SALTED HASH = 'secret'",
                "ALTER ROLE ann WITH SALTED HASH = *******",
            ),
            (
                "CREATE ROLE ann WITH PASSWORD = 'secret' AND LOGIN = true",
                "CREATE ROLE ann WITH PASSWORD = ******* AND LOGIN = true",
            ),
            (
                "alter /* ' */ user ann with password $$secret$$ superuser",
                "alter /* ' */ user ann with password ******* superuser",
            ),
            (
                "-- a comment\n CREATE ROLE r WITH HASHED PASSWORD = '$2a$'",
                "-- a comment\n CREATE ROLE r WITH HASHED PASSWORD = *******",
            ),
            (
                "CREATE ROLE r WITH OPTIONS = {'key': 'secret'} AND PASSWORD='s'",
                "CREATE ROLE r WITH OPTIONS = ******* AND PASSWORD=*******",
            ),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn a_text_that_ends_within_a_secret_shows_none_of_it() {
        let text = "CREATE ROLE r WITH PASSWORD = 'secret' AND LOGIN = true";
        let parsed = parse_statement(text).unwrap();
        for bytes_max in 0..=text.len() {
            let shown = redacted(text, bytes_max, Some(&parsed.statement));
            assert!(!shown.contains(['\'', 'c']), "{shown}");
        }
    }

    #[test]
    fn a_word_or_a_quote_hides_no_statement_about_roles() {
        for text in [
            "/* password */ GRANT ALL ON ALL KEYSPACES TO mallory",
            "GRANT SELECT ON shop.password_resets TO bob",
            "GRANT salted TO 'bob'",
            "ADD IDENTITY 'password' TO ROLE bob",
            "ALTER ROLE \"password\" WITH SUPERUSER = true",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn an_unreadable_text_is_cut_where_a_secret_may_begin() {
        for (text, expected) in [
            (
                "CRETE ROLE r WITH PASSWORD = 'secret'",
                "CRETE ROLE r WITH *******",
            ),
            (
                "CREATE ROLE 'r' WITH PASSWORD = 'secret' AND",
                "CREATE ROLE *******",
            ),
            (
                "CREATE ROLE r WITH PASWORD = $$secret$$",
                "CREATE ROLE r WITH *******",
            ),
            (
                "CREATE USER r WITH PASSWORD secret",
                "CREATE USER r WITH *******",
            ),
            (
                "UPDATE ROLE r WITH PASSWORD = 'secret'",
                "UPDATE ROLE r WITH *******",
            ),
            (
                "CREATE FUNCTION ROLE r WITH PASSWORD = 'secret'",
                "CREATE FUNCTION ROLE r WITH *******",
            ),
            (
                "CREATE ROLE r WITH PASWORD = \"secret\"",
                "CREATE ROLE r WITH *******",
            ),
            ("SELECT * FORM films", "SELECT * FORM films"),
            ("", ""),
            ("/* never closed", "/* never closed"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn other_statements_are_whole() {
        for text in [
            "CREATE ROLE r WITH LOGIN = true",
            "SELECT password FROM users WHERE id = 'x'",
            "CREATE TABLE t (password text PRIMARY KEY)",
            "INSERT INTO t (password) VALUES ('x')",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}
