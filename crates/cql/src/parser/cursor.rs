//! The cursor of the parser: the current token, the alternatives tested for at it, and the limits.
//!
//! Each test of the current token that fails is remembered until the token is taken. If no test
//! succeeds, the error lists everything that was tested for as expected. So a message lists every
//! possibility without the grammar having to repeat itself.

use super::lexer::{LexError, Lexer, SyntaxToken, TokenKind};
use super::{MAX_NESTING, MAX_OPERATORS, MAX_PARTS, MAX_TOKENS};
use crate::ast::BindMarker;
use crate::error::CqlError;
use crate::secret::end_of_telling_word;

/// The result of parsing.
pub(super) type Parse<T> = Result<T, CqlError>;

/// The state of the parser within a text.
pub(super) struct TokenCursor<'a> {
    /// The lexer, after the current token.
    lexer: Lexer<'a>,
    /// The current token, which is not taken yet.
    current: SyntaxToken<'a>,
    /// The alternatives that the current token was tested for, in the order of the tests.
    expected: Vec<&'static str>,
    /// The names of the bind markers so far, in the order of the text; `None` for `?`.
    markers: Vec<Option<String>>,
    /// The current nesting, at most [`MAX_NESTING`].
    depth: usize,
    /// The number of expressions around the current token, which are terms or selectors.
    open_expressions: usize,
    /// The number of operators in the outermost of them, at most [`MAX_OPERATORS`].
    operators: usize,
    /// The number of fields and brackets in the outermost of them, at most [`MAX_PARTS`].
    parts: usize,
    /// The number of tokens taken, at most [`MAX_TOKENS`].
    tokens: usize,
    /// Whether errors leave out the text of the current token, which may be a password.
    hides_strings: bool,
}

/// The end of the statement, as messages name it.
const END: &str = "the end of the statement";

impl<'a> TokenCursor<'a> {
    pub(super) fn new(text: &'a str) -> Parse<Self> {
        let mut lexer = Lexer::new(text);
        let current = lexer
            .next_token()
            .map_err(|error| lexical_error(text, error))?;
        Ok(TokenCursor {
            lexer,
            current,
            expected: Vec::new(),
            markers: Vec::new(),
            depth: 0,
            open_expressions: 0,
            operators: 0,
            parts: 0,
            tokens: 0,
            hides_strings: false,
        })
    }

    /// Makes the errors from here on quote no strings and no words.
    pub(super) fn hide_strings(&mut self) {
        self.hides_strings = true;
    }

    pub(super) fn current(&self) -> SyntaxToken<'a> {
        self.current
    }

    /// The names of the bind markers so far, in the order of the text; `None` for `?`.
    pub(super) fn into_markers(self) -> Vec<Option<String>> {
        self.markers
    }

    /// The token `distance` after the current one; `None` if it or one before it is malformed. A
    /// malformed token is reported when it becomes the current one.
    pub(super) fn ahead(&self, distance: usize) -> Option<SyntaxToken<'a>> {
        self.all_ahead().nth(distance - 1)
    }

    /// The tokens after the current one, up to one that is malformed. They end with tokens of kind
    /// [`TokenKind::End`] without an end.
    pub(super) fn all_ahead(&self) -> impl Iterator<Item = SyntaxToken<'a>> + use<'a> {
        let mut lexer = self.lexer.clone();
        std::iter::from_fn(move || lexer.next_token().ok())
    }

    /// The offset in the text after what was taken; comments there count as taken.
    pub(super) fn end_of_taken(&self) -> usize {
        self.lexer.text()[..self.current.start].trim_end().len()
    }

    /// The token after the current one, as [`TokenCursor::ahead`].
    pub(super) fn second(&self) -> Option<SyntaxToken<'a>> {
        self.ahead(1)
    }

    /// Takes the current token and moves to the next.
    pub(super) fn take(&mut self) -> Parse<SyntaxToken<'a>> {
        self.tokens += 1;
        if self.tokens > MAX_TOKENS {
            return Err(self.error_here(format!(
                "the statement has more than {MAX_TOKENS} words, values and signs: split it, or \
                 bind long collections to markers"
            )));
        }
        let next = self
            .lexer
            .next_token()
            .map_err(|error| lexical_error(self.lexer.text(), error))?;
        self.expected.clear();
        Ok(std::mem::replace(&mut self.current, next))
    }

    /// Remembers `what` as something that is expected at the current token.
    pub(super) fn note(&mut self, what: &'static str) {
        self.expected.push(what);
    }

    /// Whether the current token is the keyword, which is given in capitals. Remembers it as
    /// expected if not.
    pub(super) fn at_word(&mut self, keyword: &'static str) -> bool {
        let found = is_word(&self.current, keyword);
        if !found {
            self.note(keyword);
        }
        found
    }

    /// Whether the current token is the symbol. Remembers it as expected if not.
    pub(super) fn at_symbol(&mut self, symbol: &'static str) -> bool {
        let found = is_symbol(&self.current, symbol);
        if !found {
            self.note(symbol);
        }
        found
    }

    /// Takes the keyword if it is the current token. Returns whether it is.
    pub(super) fn eat_word(&mut self, keyword: &'static str) -> Parse<bool> {
        let found = self.at_word(keyword);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    /// Takes the symbol if it is the current token. Returns whether it is.
    pub(super) fn eat_symbol(&mut self, symbol: &'static str) -> Parse<bool> {
        let found = self.at_symbol(symbol);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    pub(super) fn expect_word(&mut self, keyword: &'static str) -> Parse<()> {
        if self.eat_word(keyword)? {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    pub(super) fn expect_words(&mut self, keywords: &[&'static str]) -> Parse<()> {
        keywords
            .iter()
            .try_for_each(|keyword| self.expect_word(keyword))
    }

    pub(super) fn expect_symbol(&mut self, symbol: &'static str) -> Parse<()> {
        if self.eat_symbol(symbol)? {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// Checks that nothing but semicolons is left.
    pub(super) fn expect_end(&mut self) -> Parse<()> {
        while is_symbol(&self.current, ";") {
            self.take()?;
        }
        if self.current.kind == TokenKind::End {
            return Ok(());
        }
        self.note(END);
        Err(self.unexpected())
    }

    /// Parses one or more of `item`, with commas between them.
    pub(super) fn separated<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat_symbol(",")? {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Parses one or more of `item` in parentheses, with commas between them.
    pub(super) fn parenthesised<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.expect_symbol("(")?;
        let items = self.separated(item)?;
        self.expect_symbol(")")?;
        Ok(items)
    }

    /// Parses zero or more of `item` up to `close`, with commas between them. Takes `close` too.
    pub(super) fn separated_until<T>(
        &mut self,
        close: &'static str,
        item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        if self.eat_symbol(close)? {
            return Ok(Vec::new());
        }
        let items = self.separated(item)?;
        self.expect_symbol(close)?;
        Ok(items)
    }

    /// Parses one level deeper, or refuses more than [`MAX_NESTING`] levels.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth == MAX_NESTING {
            return Err(self.error_here(format!(
                "the statement is nested more than {MAX_NESTING} levels deep"
            )));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Parses an expression: a term or a selector, in which operators may occur.
    pub(super) fn expression<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.open_expressions == 0 {
            self.operators = 0;
            self.parts = 0;
        }
        self.open_expressions += 1;
        let result = self.nested(inner);
        self.open_expressions -= 1;
        result
    }

    /// Counts an operator, or refuses more than [`MAX_OPERATORS`] in an expression.
    pub(super) fn note_operator(&mut self) -> Parse<()> {
        self.operators += 1;
        match self.operators > MAX_OPERATORS {
            true => Err(self.error_here(format!(
                "an expression has at most {MAX_OPERATORS} operators"
            ))),
            false => Ok(()),
        }
    }

    /// Counts a field or brackets, or refuses more than [`MAX_PARTS`] in an expression.
    pub(super) fn note_part(&mut self) -> Parse<()> {
        self.parts += 1;
        match self.parts > MAX_PARTS {
            true => Err(self.error_here(format!(
                "an expression has at most {MAX_PARTS} fields and elements"
            ))),
            false => Ok(()),
        }
    }

    /// Gives a bind marker the next index.
    pub(super) fn marker(&mut self, name: Option<String>) -> Parse<BindMarker> {
        let index = u16::try_from(self.markers.len())
            .ok()
            .filter(|index| *index < u16::MAX)
            .ok_or_else(|| {
                CqlError::invalid(format!(
                    "a statement can have at most {} bind markers",
                    u16::MAX
                ))
            })?;
        self.markers.push(name.clone());
        Ok(BindMarker { index, name })
    }

    /// The error for a current token that is nothing of what was expected.
    pub(super) fn unexpected(&self) -> CqlError {
        self.unexpected_with(&found(&self.current), "")
    }

    /// As [`TokenCursor::unexpected`], with `what` as one more thing that was expected.
    pub(super) fn expected(&mut self, what: &'static str) -> CqlError {
        self.note(what);
        self.unexpected()
    }

    /// As [`TokenCursor::expected`], with a text for the token found and a remedy for the user.
    pub(super) fn expected_with_remedy(
        &mut self,
        what: &'static str,
        found: &str,
        remedy: &str,
    ) -> CqlError {
        self.note(what);
        self.unexpected_with(found, &format!(": {remedy}"))
    }

    /// The error for the current token, which is `found`. It is not quoted where it may be a
    /// secret: in a statement about roles, and after a word that announces a secret, as a statement
    /// about roles may begin with a mistake.
    fn unexpected_with(&self, found: &str, remedy: &str) -> CqlError {
        let before = &self.lexer.text()[..self.current.start];
        let found = match self.hides_strings || end_of_telling_word(before).is_some() {
            true => found_kind(&self.current),
            false => found,
        };
        self.error_here(format!(
            "expected {}, found {found}{remedy}",
            alternatives(&self.expected)
        ))
    }

    /// A syntax error at the current token.
    pub(super) fn error_here(&self, message: impl AsRef<str>) -> CqlError {
        self.error_at(&self.current, message)
    }

    /// A syntax error at `token`.
    pub(super) fn error_at(&self, token: &SyntaxToken<'_>, message: impl AsRef<str>) -> CqlError {
        syntax_error(self.lexer.text(), token.start, message.as_ref())
    }
}

pub(super) fn is_word(token: &SyntaxToken<'_>, keyword: &str) -> bool {
    token.kind == TokenKind::Word && token.text.eq_ignore_ascii_case(keyword)
}

pub(super) fn is_symbol(token: &SyntaxToken<'_>, symbol: &str) -> bool {
    token.kind == TokenKind::Symbol && token.text == symbol
}

fn lexical_error(text: &str, error: LexError) -> CqlError {
    syntax_error(text, error.start, &error.message)
}

/// A syntax error `line L:C message`. `L` and `C` are from 1; `C` counts characters.
fn syntax_error(text: &str, offset: usize, message: &str) -> CqlError {
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[line_start..].chars().count() + 1;
    CqlError::syntax(format!("line {line}:{column} {message}"))
}

/// The list of what was expected: `A`, `A or B` or `A, B or C`. It is without repeats, and symbols
/// are in quotes.
fn alternatives(expected: &[&'static str]) -> String {
    let mut names: Vec<String> = Vec::with_capacity(expected.len());
    for what in expected {
        let name = if what.starts_with(|c: char| c.is_ascii_alphabetic()) {
            (*what).to_owned()
        } else {
            format!("'{what}'")
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.split_last() {
        None => "something else".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// The kind of a token, without its text.
fn found_kind(token: &SyntaxToken<'_>) -> &'static str {
    match token.kind {
        TokenKind::End => END,
        TokenKind::String | TokenKind::DollarString => "a string",
        TokenKind::QuotedName | TokenKind::Word => "a word",
        TokenKind::Symbol => "a sign",
        _ => "a value",
    }
}

/// A token as a message quotes it: shortened, with the kind named for names and strings.
fn found(token: &SyntaxToken<'_>) -> String {
    const MAX_CHARS: usize = 40;
    let text = match token.text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &token.text[..end]),
        None => token.text.to_owned(),
    };
    match token.kind {
        TokenKind::End => END.to_owned(),
        TokenKind::String | TokenKind::DollarString => format!("the string {text}"),
        TokenKind::QuotedName => format!("the name {text}"),
        _ => format!("'{text}'"),
    }
}
