//! Texts of statements without their literals, for readers who may not see values.

use super::lexer::{Lexer, TokenKind};

/// The sign for a literal.
const LITERAL: char = '?';

/// The sign for all literals of a list.
const LITERALS: &str = "?...";

/// The mark at the end of a text that is cut.
const CUT: &str = "...";

/// The text of a statement with `?` for each literal and `?...` for the literals of a list in
/// brackets, which may be a long vector. Comments are left out. The text ends after about this
/// many bytes, and where the rest is no CQL.
#[must_use]
pub fn without_literals(text: &str, bytes_max: usize) -> String {
    let mut lexer = Lexer::new(text);
    let mut shown = String::new();
    let mut brackets = 0_u32;
    let mut end = 0;
    loop {
        let Ok(token) = lexer.next_token() else {
            shown.push_str(CUT);
            return shown;
        };
        if token.kind == TokenKind::End {
            return shown;
        }
        if shown.len() >= bytes_max {
            shown.push_str(CUT);
            return shown;
        }
        if token.start > end && !shown.is_empty() {
            shown.push(' ');
        }
        end = token.start + token.text.len();
        match token.kind {
            TokenKind::Word | TokenKind::QuotedName | TokenKind::Symbol => {
                match token.text {
                    "[" => brackets += 1,
                    "]" => brackets = brackets.saturating_sub(1),
                    _ => {}
                }
                shown.push_str(token.text);
            }
            _ if brackets > 0 => put_of_list(&mut shown),
            _ => shown.push(LITERAL),
        }
    }
}

/// Appends a literal of a list. One that follows another becomes one with it.
fn put_of_list(shown: &mut String) {
    let before = shown.trim_end_matches([',', ' ', '-']);
    if before.ends_with(LITERALS) {
        shown.truncate(before.len());
    } else if before.ends_with(LITERAL) {
        let length = before.len() - LITERAL.len_utf8();
        shown.truncate(length);
        shown.push_str(LITERALS);
    } else {
        shown.push(LITERAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_comments_are_left_out() {
        for (text, shown) in [
            (
                "SELECT a FROM t WHERE a = 'it''s' AND b=-1.5 LIMIT 3",
                "SELECT a FROM t WHERE a = ? AND b=-? LIMIT ?",
            ),
            (
                "INSERT INTO t (a, \"B\") VALUES (0xff, $$x$$) /* for ann@example.com */ USING TTL 10",
                "INSERT INTO t (a, \"B\") VALUES (?, ?) USING TTL ?",
            ),
            (
                "SELECT a FROM t ORDER BY v ANN OF [0.1, -0.2,\n 3] LIMIT ?",
                "SELECT a FROM t ORDER BY v ANN OF [?...] LIMIT ?",
            ),
            (
                "SELECT a FROM t WHERE a IN [1] AND b = :b",
                "SELECT a FROM t WHERE a IN [?] AND b = :b",
            ),
            (
                "SELECT m['k'] FROM t WHERE id = 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                "SELECT m[?] FROM t WHERE id = ?",
            ),
        ] {
            assert_eq!(without_literals(text, 1_000), shown);
        }
    }

    #[test]
    fn a_text_ends_at_its_bound_and_where_it_is_no_cql() {
        assert_eq!(without_literals("SELECT a FROM t", 8), "SELECT a...");
        assert_eq!(without_literals("SELECT 'open", 100), "SELECT...");
        assert_eq!(without_literals("", 100), "");
    }
}
