//! Texts of statements without their secrets, for those who read what was asked.

use std::borrow::Cow;

use cql::ast::Statement;
use cql::secret::end_of_telling_word;

/// The mark for what is left out.
const LEFT_OUT: &str = " *******";

/// The signs with which strings begin.
const QUOTES: [&str; 2] = ["'", "$$"];

/// The text of a statement up to this many bytes, without its secrets. `statement` is what it says;
/// `None` if it can't be read.
///
/// In a statement about roles, all that follows the first `PASSWORD` or `SALTED` is left out. A
/// text that can't be read may be such a statement with a mistake anywhere. It is cut there, too,
/// and at its first string.
pub(super) fn masked<'a>(
    text: &'a str,
    bytes_max: usize,
    statement: Option<&Statement>,
) -> Cow<'a, str> {
    // A secret stands behind the word or the quote that tells of it, so it goes with that.
    let text = &text[..text.floor_char_boundary(bytes_max)];
    let end = match statement {
        Some(Statement::Role(_)) => end_of_telling_word(text),
        // Of a statement that is not supported only the first words are read.
        None | Some(Statement::Unsupported(_)) => {
            let quotes = QUOTES.iter().filter_map(|quote| text.find(quote));
            quotes.chain(end_of_telling_word(text)).min()
        }
        Some(_) => None,
    };
    match end {
        Some(end) => Cow::Owned([text[..end].trim_end(), LEFT_OUT].concat()),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use cql::parser::parse_statement;

    use super::*;

    fn shown(text: &str) -> Cow<'_, str> {
        let parsed = parse_statement(text).ok();
        masked(
            text,
            text.len(),
            parsed.as_ref().map(|parsed| &parsed.statement),
        )
    }

    #[test]
    fn passwords_of_roles_are_left_out() {
        for (text, expected) in [
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
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn what_can_not_be_read_is_cut_where_a_secret_may_begin() {
        for (text, expected) in [
            (
                "CRETE ROLE r WITH PASSWORD = 'secret'",
                "CRETE ROLE r WITH PASSWORD *******",
            ),
            (
                "CREATE ROLE 'r' WITH PASSWORD = 'secret' AND",
                "CREATE ROLE *******",
            ),
            (
                "CREATE ROLE r WITH PASWORD = $$secret$$",
                "CREATE ROLE r WITH PASWORD = *******",
            ),
            (
                "CREATE USER r WITH PASSWORD secret",
                "CREATE USER r WITH PASSWORD *******",
            ),
            (
                "UPDATE ROLE r WITH PASSWORD = 'secret'",
                "UPDATE ROLE r WITH PASSWORD *******",
            ),
            (
                "CREATE FUNCTION ROLE r WITH PASSWORD = 'secret'",
                "CREATE FUNCTION ROLE r WITH PASSWORD *******",
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
