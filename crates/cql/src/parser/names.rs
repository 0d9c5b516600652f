//! Names of keyspaces, tables, columns and functions, and the words that can't be names.

pub use value::identifier::is_reserved;

use super::cursor::{Parse, TokenCursor, is_symbol};
use super::lexer::{SyntaxToken, TokenKind};
use crate::ast::{TableName, Term};

/// The text of a token, without its quotes if it is a quoted name or a string.
pub(super) fn unquoted(token: &SyntaxToken<'_>) -> String {
    let text = token.text;
    match token.kind {
        TokenKind::String => text[1..text.len() - 1].replace("''", "'"),
        TokenKind::QuotedName => text[1..text.len() - 1].replace("\"\"", "\""),
        TokenKind::DollarString => text[2..text.len() - 2].to_owned(),
        _ => text.to_owned(),
    }
}

impl TokenCursor<'_> {
    /// Whether the current token is a name.
    pub(super) fn at_name(&self) -> bool {
        let token = self.current();
        match token.kind {
            TokenKind::QuotedName => true,
            TokenKind::Word => !is_reserved(token.text),
            _ => false,
        }
    }

    /// Takes a name and gives it as the database sees it. `what` is "a table name" or the like, for
    /// the error.
    pub(super) fn name(&mut self, what: &'static str) -> Parse<String> {
        let token = self.current();
        match token.kind {
            TokenKind::Word if !is_reserved(token.text) => {
                self.take()?;
                Ok(token.text.to_ascii_lowercase())
            }
            TokenKind::QuotedName if token.text.len() > 2 => {
                self.take()?;
                Ok(unquoted(&token))
            }
            TokenKind::QuotedName => Err(self.error_here("a name can't be empty")),
            TokenKind::Word => {
                let found = format!("the reserved word '{}'", token.text);
                Err(self.expected_with_remedy(
                    what,
                    &found,
                    "put it in double quotes to use it as a name",
                ))
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Parses `[keyspace.]name`. `what` is as in [`TokenCursor::name`].
    pub(super) fn qualified_name(&mut self, what: &'static str) -> Parse<TableName> {
        let first = self.name(what)?;
        // The test is not remembered: among the tokens expected a point would only be noise.
        if is_symbol(&self.current(), ".") {
            self.take()?;
            return Ok(TableName {
                keyspace: Some(first),
                name: self.name(what)?,
            });
        }
        Ok(TableName {
            keyspace: None,
            name: first,
        })
    }

    pub(super) fn table_name(&mut self) -> Parse<TableName> {
        self.qualified_name("a table name")
    }

    pub(super) fn column_name(&mut self) -> Parse<String> {
        self.name("a column name")
    }

    /// Parses `[term]` after a column, if it comes here.
    pub(super) fn element_key(&mut self) -> Parse<Option<Term>> {
        if !is_symbol(&self.current(), "[") {
            return Ok(None);
        }
        self.take()?;
        let key = self.term()?;
        self.expect_symbol("]")?;
        Ok(Some(key))
    }

    /// Parses `.field` after a column, if it comes here.
    pub(super) fn field_name(&mut self) -> Parse<Option<String>> {
        if !is_symbol(&self.current(), ".") {
            return Ok(None);
        }
        self.take()?;
        self.name("the name of a field").map(Some)
    }

    /// Takes `IF NOT EXISTS`, if it comes here. Returns whether it does.
    pub(super) fn if_not_exists(&mut self) -> Parse<bool> {
        let found = self.eat_word("IF")?;
        if found {
            self.expect_words(&["NOT", "EXISTS"])?;
        }
        Ok(found)
    }

    /// Takes `IF EXISTS`, if it comes here. Returns whether it does.
    pub(super) fn if_exists(&mut self) -> Parse<bool> {
        let found = self.eat_word("IF")?;
        if found {
            self.expect_word("EXISTS")?;
        }
        Ok(found)
    }

    /// Whether a function call begins here: `name(` or `keyspace.name(`.
    pub(super) fn at_function(&self) -> bool {
        let token = self.current();
        let is_callable = token.kind == TokenKind::QuotedName
            || token.kind == TokenKind::Word
                && (!is_reserved(token.text) || token.text.eq_ignore_ascii_case("token"));
        is_callable
            && match self.second() {
                Some(second) if is_symbol(&second, "(") => true,
                Some(second) if is_symbol(&second, ".") => {
                    self.ahead(3).is_some_and(|token| is_symbol(&token, "("))
                }
                _ => false,
            }
    }

    /// Takes the name of a function and the parenthesis after it. Gives the keyspace, if one is
    /// written, and the name.
    pub(super) fn function_name(&mut self) -> Parse<(Option<String>, String)> {
        // `token` is the only reserved word that is the name of a function.
        const WHAT: &str = "a function name";
        let is_token = |cursor: &mut Self| cursor.eat_word("TOKEN");
        let mut keyspace = None;
        let mut name = None;
        if !is_token(self)? {
            name = Some(self.name(WHAT)?);
            if is_symbol(&self.current(), ".") {
                self.take()?;
                keyspace = name.take();
                if !is_token(self)? {
                    name = Some(self.name(WHAT)?);
                }
            }
        }
        self.expect_symbol("(")?;
        Ok((keyspace, name.unwrap_or_else(|| "token".to_owned())))
    }
}
