//! The lexer: it cuts a statement into tokens, one at a time.
//!
//! A token is a slice of the statement and its kind. Nothing is copied or converted before the
//! grammar needs it. A minus sign is always a token of its own, so `c-1` and `c - 1` are the same.

use value::resembles_duration;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or an unquoted name.
    Word,
    /// `"name"`, with its quotes.
    QuotedName,
    /// `'text'`, with its quotes.
    String,
    /// `$$text$$`, with its dollars.
    DollarString,
    /// Digits without a sign.
    Integer,
    /// Digits with a point or an exponent.
    Float,
    /// `1h30m` or `P0001-02-03T04:05:06`. Other ISO 8601 durations are words.
    Duration,
    /// A UUID without quotes.
    Uuid,
    /// `0x..`: any number of hexadecimal digits.
    Blob,
    /// One of [`SYMBOLS`].
    Symbol,
    /// The end of the statement. Its text is empty.
    End,
}

/// A token of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyntaxToken<'a> {
    /// The kind.
    pub kind: TokenKind,
    /// The text as it is written, quotes included.
    pub text: &'a str,
    /// The offset of the text in the statement, in bytes.
    pub start: usize,
}

/// The error for characters that are no token.
#[derive(Debug)]
pub(super) struct LexError {
    /// The offset of these characters in the statement, in bytes.
    pub start: usize,
    /// The reason, without the position.
    pub message: String,
}

/// All symbols. A longer symbol comes before the shorter ones that it begins with.
const SYMBOLS: [&str; 25] = [
    "<=", ">=", "!=", "+=", "-=", "..", "(", ")", "[", "]", "{", "}", "<", ">", "=", "+", "-", "*",
    "/", "%", ",", ".", ";", ":", "?",
];

/// The state of the lexer within a statement.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    /// The whole statement.
    text: &'a str,
    /// The offset of the next character to read, in bytes.
    position: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Lexer { text, position: 0 }
    }

    /// The whole statement.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Reads the next token. At the end of the statement every call returns [`TokenKind::End`].
    pub(super) fn next_token(&mut self) -> Result<SyntaxToken<'a>, LexError> {
        self.skip_blanks()?;
        let rest = &self.text[self.position..];
        let Some(first) = rest.bytes().next() else {
            return Ok(self.token(TokenKind::End, 0));
        };
        if first.is_ascii_hexdigit() && is_uuid(rest) {
            return Ok(self.token(TokenKind::Uuid, UUID_LENGTH));
        }
        match first {
            b'\'' => self.quoted(TokenKind::String, '\'', "string"),
            b'"' => self.quoted(TokenKind::QuotedName, '"', "quoted name"),
            b'$' if rest.starts_with("$$") => self.dollar_string(rest),
            b'0'..=b'9' => Ok(self.number(rest)),
            b'P' if is_alternative_duration(rest) => {
                Ok(self.token(TokenKind::Duration, ALTERNATIVE_DURATION.len()))
            }
            b'a'..=b'z' | b'A'..=b'Z' => Ok(self.token(TokenKind::Word, count(rest, is_word_byte))),
            _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => Ok(self.token(TokenKind::Symbol, symbol.len())),
                None => Err(self.unexpected_character(rest)),
            },
        }
    }

    fn token(&mut self, kind: TokenKind, length: usize) -> SyntaxToken<'a> {
        let start = self.position;
        self.position += length;
        SyntaxToken {
            kind,
            text: &self.text[start..self.position],
            start,
        }
    }

    fn error(&self, message: impl Into<String>) -> LexError {
        LexError {
            start: self.position,
            message: message.into(),
        }
    }

    fn unexpected_character(&self, rest: &str) -> LexError {
        match rest.chars().next() {
            Some('_') => {
                self.error("a name can't begin with '_' unless it is put in double quotes")
            }
            Some(other) => self.error(format!("unexpected character '{}'", other.escape_debug())),
            None => self.error("unexpected end of the statement"),
        }
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Result<(), LexError> {
        loop {
            let rest = &self.text[self.position..];
            let trimmed = rest.trim_start();
            self.position += rest.len() - trimmed.len();
            if trimmed.starts_with("--") || trimmed.starts_with("//") {
                // Either character ends a line, as in Cassandra.
                self.position += trimmed.find(['\n', '\r']).unwrap_or(trimmed.len());
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                match comment.find("*/") {
                    Some(end) => self.position += 2 + end + 2,
                    None => return Err(self.error("this comment is not closed: expected '*/'")),
                }
            } else {
                return Ok(());
            }
        }
    }

    /// Reads a text between two `quote`s. A `quote` within the text is written twice.
    fn quoted(
        &mut self,
        kind: TokenKind,
        quote: char,
        what: &str,
    ) -> Result<SyntaxToken<'a>, LexError> {
        let rest = &self.text[self.position..];
        let mut end = 1;
        while let Some(next) = rest[end..].find(quote) {
            end += next + 1;
            if !rest[end..].starts_with(quote) {
                return Ok(self.token(kind, end));
            }
            end += 1;
        }
        Err(self.error(format!("this {what} is not closed: expected {quote}")))
    }

    fn dollar_string(&mut self, rest: &str) -> Result<SyntaxToken<'a>, LexError> {
        match rest[2..].find("$$") {
            Some(end) => Ok(self.token(TokenKind::DollarString, 2 + end + 2)),
            None => Err(self.error("this string is not closed: expected $$")),
        }
    }

    /// Reads an integer, float, duration or blob. A word may follow an integer without a blank, as
    /// in `LIMIT 1ALLOW FILTERING`.
    fn number(&mut self, rest: &str) -> SyntaxToken<'a> {
        if rest.starts_with("0x") || rest.starts_with("0X") {
            let digits = count(&rest[2..], |byte| byte.is_ascii_hexdigit());
            return self.token(TokenKind::Blob, 2 + digits);
        }
        let whole = count(rest, |byte| byte.is_ascii_digit());
        let mut length = whole;
        // The two points of `1..2` belong to neither number.
        if rest[length..].starts_with('.') && !rest[length..].starts_with("..") {
            length += 1;
            length += count(&rest[length..], |byte| byte.is_ascii_digit());
        }
        length += exponent_length(&rest[length..]);
        if length > whole {
            return self.token(TokenKind::Float, length);
        }
        // The micro sign is the one unit that is not ASCII.
        let run = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '\u{b5}')
            .unwrap_or(rest.len());
        if run > whole && run <= MAX_DURATION_LENGTH && resembles_duration(&rest[..run]) {
            return self.token(TokenKind::Duration, run);
        }
        self.token(TokenKind::Integer, whole)
    }
}

/// A length that no duration exceeds if it is in range and has no leading zeros: eleven units of up
/// to 19 digits each.
const MAX_DURATION_LENGTH: usize = 11 * 21;

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The number of bytes at the start of `text` that fulfil `condition`. It must hold only for ASCII
/// bytes, so that no character is cut.
fn count(text: &str, condition: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| condition(*byte)).count()
}

/// The length of `e`, an optional sign, and digits; 0 if the digits are missing.
fn exponent_length(text: &str) -> usize {
    if !text.starts_with(['e', 'E']) {
        return 0;
    }
    let sign = usize::from(text[1..].starts_with(['+', '-']));
    match count(&text[1 + sign..], |byte| byte.is_ascii_digit()) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

const UUID_LENGTH: usize = 36;

/// Whether `text` begins with a UUID of the usual form and no word character follows it.
fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    let fits = |(position, byte): (usize, &u8)| match position {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    bytes.len() >= UUID_LENGTH
        && bytes[..UUID_LENGTH].iter().enumerate().all(fits)
        && !bytes.get(UUID_LENGTH).copied().is_some_and(is_word_byte)
}

/// The shape of the one ISO 8601 form of a duration that is no word. `0` means any digit.
const ALTERNATIVE_DURATION: &[u8] = b"P0000-00-00T00:00:00";

fn is_alternative_duration(text: &str) -> bool {
    let bytes = text.as_bytes();
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    bytes.len() >= ALTERNATIVE_DURATION.len()
        && bytes.iter().zip(ALTERNATIVE_DURATION).all(fits)
        && !bytes
            .get(ALTERNATIVE_DURATION.len())
            .copied()
            .is_some_and(is_word_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(TokenKind, &str)> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            let token = lexer.next_token().unwrap();
            if token.kind == TokenKind::End {
                return tokens;
            }
            tokens.push((token.kind, token.text));
        }
    }

    fn refused(text: &str) -> (usize, String) {
        let mut lexer = Lexer::new(text);
        loop {
            match lexer.next_token() {
                Ok(token) => assert_ne!(token.kind, TokenKind::End, "{text} was accepted"),
                Err(error) => return (error.start, error.message),
            }
        }
    }

    #[test]
    fn every_kind_is_told_apart() {
        use TokenKind::*;
        let uuid = "550e8400-e29b-41d4-a716-446655440000";
        let cases: [(&str, TokenKind); 17] = [
            ("select", Word),
            ("a_1", Word),
            ("P1D", Word),
            ("\"a\"\"b\"", QuotedName),
            ("'it''s'", String),
            ("$$it's $1$$", DollarString),
            ("12", Integer),
            ("1.", Float),
            ("1.5e-3", Float),
            ("1E5", Float),
            ("1h30m", Duration),
            ("3\u{b5}s", Duration),
            ("P0001-02-03T04:05:06", Duration),
            (uuid, Uuid),
            ("0xCAFE", Blob),
            ("0x", Blob),
            ("!=", Symbol),
        ];
        for (text, kind) in cases {
            assert_eq!(tokens(text), [(kind, text)]);
        }
    }

    #[test]
    fn tokens_need_no_blanks_between_them() {
        let texts =
            |text| -> Vec<&str> { tokens(text).into_iter().map(|(_, text)| text).collect() };
        assert_eq!(texts("a=a-1and"), ["a", "=", "a", "-", "1", "and"]);
        assert_eq!(
            texts("list<list<int>>"),
            ["list", "<", "list", "<", "int", ">", ">"]
        );
        assert_eq!(texts("t.c+=?"), ["t", ".", "c", "+=", "?"]);
        assert_eq!(texts("1else"), ["1", "else"]);
        assert_eq!(texts("LIMIT 10ALLOW"), ["LIMIT", "10", "ALLOW"]);
        assert_eq!(texts("{'a':1}"), ["{", "'a'", ":", "1", "}"]);
    }

    #[test]
    fn comments_are_blanks() {
        assert_eq!(
            tokens("a -- b\n// c\n/* d\n*/ e /**/--"),
            [(TokenKind::Word, "a"), (TokenKind::Word, "e")]
        );
        assert_eq!(
            tokens("-- a\rb // c\r\nd"),
            [(TokenKind::Word, "b"), (TokenKind::Word, "d")]
        );
    }

    #[test]
    fn text_that_begins_no_token_is_named() {
        assert_eq!(refused("a ^"), (2, "unexpected character '^'".to_owned()));
        assert_eq!(
            refused("_a"),
            (
                0,
                "a name can't begin with '_' unless it is put in double quotes".to_owned()
            )
        );
        assert_eq!(
            refused("a 'b''"),
            (2, "this string is not closed: expected '".to_owned())
        );
        assert_eq!(
            refused("\""),
            (0, "this quoted name is not closed: expected \"".to_owned())
        );
        assert_eq!(
            refused("$$a$"),
            (0, "this string is not closed: expected $$".to_owned())
        );
        assert_eq!(
            refused("a /*"),
            (2, "this comment is not closed: expected '*/'".to_owned())
        );
        assert_eq!(
            refused("\u{1f600}"),
            (0, "unexpected character '\u{1f600}'".to_owned())
        );
    }
}
