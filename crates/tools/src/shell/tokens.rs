//! Tokens of a text that is being typed: whatever it holds, each byte belongs to one of them.
//!
//! The parser of crate `cql` refuses what is no CQL. Here a text may be half written, or be for
//! another server, so nothing is refused, and a token may lack its end.

use std::ops::Range;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellTokenKind {
    /// Blanks other than line breaks.
    Blank,
    /// `\n` or `\r`.
    LineBreak,
    /// `-- text`, `// text` or `/* text */`.
    Comment,
    /// A keyword or an unquoted name.
    Word,
    /// `"name"`.
    QuotedName,
    /// `'text'` or `$$text$$`.
    Text,
    /// A number, a duration, a blob or a UUID.
    Number,
    /// `;`
    Semicolon,
    /// Any other character.
    Symbol,
}

/// A token: its kind, its place in bytes, and whether it has its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShellToken {
    /// The kind.
    pub kind: ShellTokenKind,
    /// The place.
    pub range: Range<usize>,
    /// Whether the token is complete. Only quotes and comments can lack their end.
    pub is_closed: bool,
}

/// The tokens of a text from a place on.
pub(super) fn tokens(text: &str, from: usize) -> impl Iterator<Item = ShellToken> {
    let mut at = from;
    std::iter::from_fn(move || {
        let token = next_token(text, at)?;
        at = token.range.end;
        Some(token)
    })
}

fn next_token(text: &str, start: usize) -> Option<ShellToken> {
    let rest = &text[start..];
    let first = rest.chars().next()?;
    let (kind, length, is_closed) = match first {
        '\n' | '\r' => (ShellTokenKind::LineBreak, 1, true),
        '\'' => until(ShellTokenKind::Text, rest, 1, "'"),
        '"' => until(ShellTokenKind::QuotedName, rest, 1, "\""),
        '$' if rest.starts_with("$$") => until(ShellTokenKind::Text, rest, 2, "$$"),
        '/' if rest.starts_with("/*") => until(ShellTokenKind::Comment, rest, 2, "*/"),
        '-' | '/' if rest.starts_with("--") || rest.starts_with("//") => {
            let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
            (ShellTokenKind::Comment, length, true)
        }
        ';' => (ShellTokenKind::Semicolon, 1, true),
        _ if first.is_whitespace() => {
            let is_blank = |c: char| c.is_whitespace() && c != '\n' && c != '\r';
            (ShellTokenKind::Blank, run(rest, is_blank), true)
        }
        _ if first.is_ascii_digit() => {
            let is_of_number = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
            (ShellTokenKind::Number, run(rest, is_of_number), true)
        }
        _ if first.is_alphabetic() || first == '_' => {
            let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
            (ShellTokenKind::Word, run(rest, is_of_word), true)
        }
        _ => (ShellTokenKind::Symbol, first.len_utf8(), true),
    };
    Some(ShellToken {
        kind,
        range: start..start + length,
        is_closed,
    })
}

/// A token from an opening of some bytes to its end, that included. A doubled quote ends one token
/// and begins the next, which is of the same kind.
fn until(
    kind: ShellTokenKind,
    rest: &str,
    opening: usize,
    end: &str,
) -> (ShellTokenKind, usize, bool) {
    match rest[opening..].find(end) {
        Some(length) => (kind, opening + length + end.len(), true),
        None => (kind, rest.len(), false),
    }
}

/// The length of the characters at the start that fulfil a condition.
fn run(rest: &str, condition: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !condition(c)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(ShellTokenKind, &str)> {
        let tokens = tokens(text, 0);
        tokens
            .map(|token| (token.kind, &text[token.range]))
            .collect()
    }

    #[test]
    fn each_byte_is_in_one_token() {
        for text in [
            "",
            "SELECT * FROM t WHERE a='it''s' -- b;\n;",
            "\u{1f600} \"q\" $$x$$ /* y",
            "'open\u{e9}",
            "1h30m 0xcafe 1.5e-3 $ $1 ?",
        ] {
            let joined: String = of(text).into_iter().map(|(_, piece)| piece).collect();
            assert_eq!(joined, text);
        }
    }

    #[test]
    fn quotes_and_comments_hide_semicolons() {
        use ShellTokenKind::{Comment, QuotedName, Semicolon, Text};
        for (text, kind) in [
            ("';'", Text),
            ("$$;'$$", Text),
            ("\";\"", QuotedName),
            ("-- ;", Comment),
            ("// ;", Comment),
            ("/* ;\n */", Comment),
            (";", Semicolon),
        ] {
            assert_eq!(of(text), [(kind, text)]);
        }
    }

    #[test]
    fn a_token_without_its_end_says_so() {
        for text in ["'a", "\"a", "$$a$", "/* a"] {
            assert!(!next_token(text, 0).unwrap().is_closed, "{text}");
        }
        assert!(next_token("-- a", 0).unwrap().is_closed);
    }
}
