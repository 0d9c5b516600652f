//! `SELECT`.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::TokenKind;
use crate::ast::{ArithmeticOperation, OrderByItem, Select, Selector};
use crate::error::CqlError;

/// The selection of a SELECT as it is written: the part between `SELECT` and `FROM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectionText<'a> {
    /// The text from the first selector up to `FROM`, without `JSON` and `DISTINCT`. It may end
    /// with a comment.
    pub text: &'a str,
    /// The number of bind markers in the text. They are the first of the statement.
    pub markers: usize,
}

/// Finds the selection in the text of a SELECT.
///
/// # Errors
/// As [`super::parse_statement`]. The text after the selection is not checked.
pub fn selection_text(text: &str) -> Result<SelectionText<'_>, CqlError> {
    let mut cursor = TokenCursor::new(text)?;
    cursor.expect_word("SELECT")?;
    cursor.eat_modifier("JSON")?;
    cursor.eat_modifier("DISTINCT")?;
    let start = cursor.current().start;
    cursor.projection()?;
    let end = cursor.current().start;
    Ok(SelectionText {
        text: &text[start..end],
        markers: cursor.into_markers().len(),
    })
}

impl TokenCursor<'_> {
    /// Parses what follows the word `SELECT`.
    pub(super) fn select(&mut self) -> Parse<Select> {
        let json = self.eat_modifier("JSON")?;
        let distinct = self.eat_modifier("DISTINCT")?;
        let projection = self.projection()?;
        self.expect_word("FROM")?;
        let table = self.table_name()?;
        let mut select = Select {
            table,
            json,
            distinct,
            projection,
            relations: Vec::new(),
            group_by: Vec::new(),
            order_by: Vec::new(),
            per_partition_limit: None,
            limit: None,
            allow_filtering: false,
            options: Vec::new(),
            bypass_cache: false,
            timeout: None,
        };
        if self.eat_word("WHERE")? {
            select.relations = self.relations()?;
        }
        if self.eat_word("GROUP")? {
            self.expect_word("BY")?;
            select.group_by = self.separated(Self::grouping)?;
        }
        if self.eat_word("ORDER")? {
            self.expect_word("BY")?;
            select.order_by = self.separated(Self::ordering)?;
        }
        if self.eat_word("PER")? {
            self.expect_words(&["PARTITION", "LIMIT"])?;
            select.per_partition_limit = Some(self.integer_or_marker()?);
        }
        if self.eat_word("LIMIT")? {
            select.limit = Some(self.integer_or_marker()?);
        }
        if self.eat_word("ALLOW")? {
            self.expect_word("FILTERING")?;
            select.allow_filtering = true;
        }
        if self.eat_word("WITH")? {
            select.options = self.options_with_lists()?;
        }
        if self.eat_word("BYPASS")? {
            self.expect_word("CACHE")?;
            select.bypass_cache = true;
        }
        if self.eat_word("USING")? {
            self.expect_word("TIMEOUT")?;
            select.timeout = Some(self.term()?);
        }
        Ok(select)
    }

    /// Parses an element of GROUP BY: a column, or a function call.
    fn grouping(&mut self) -> Parse<Selector> {
        if self.at_function() {
            return self.function_selector();
        }
        self.column_name().map(Selector::Column)
    }

    /// Takes `JSON` or `DISTINCT`, unless the word is the name of the first selected column.
    fn eat_modifier(&mut self, word: &'static str) -> Parse<bool> {
        if !is_word(&self.current(), word) {
            return Ok(false);
        }
        let continues_name = self.second().is_some_and(|next| {
            is_word(&next, "FROM")
                || self.is_alias_at(1)
                || [",", ".", "+", "/", "%"]
                    .iter()
                    .any(|symbol| is_symbol(&next, symbol))
                || is_symbol(&next, "[") && self.is_slice_ahead()
        });
        if !continues_name {
            self.take()?;
        }
        Ok(!continues_name)
    }

    /// Whether a slice, `[from..to]`, and no list comes after the current token.
    fn is_slice_ahead(&self) -> bool {
        let mut depth = 0;
        for token in self.all_ahead() {
            match token.kind {
                TokenKind::Symbol => match token.text {
                    "[" | "(" | "{" => depth += 1,
                    "]" | ")" | "}" => depth -= 1,
                    ".." if depth == 1 => return true,
                    _ => {}
                },
                TokenKind::End => return false,
                _ => {}
            }
            if depth == 0 {
                return false;
            }
        }
        false
    }

    fn ordering(&mut self) -> Parse<OrderByItem> {
        if self.at_expression() {
            let expression = self.selector()?;
            let descending = self.descending()?;
            return Ok(match expression {
                Selector::Function(function)
                    if !ArithmeticOperation::is_operator(&function.name) =>
                {
                    OrderByItem::Function {
                        function,
                        descending,
                    }
                }
                expression => OrderByItem::Expression {
                    expression,
                    descending,
                },
            });
        }
        let column = self.column_name()?;
        if self.eat_word("ANN")? {
            self.expect_word("OF")?;
            let vector = self.term()?;
            return Ok(OrderByItem::Ann {
                column,
                vector,
                descending: self.descending()?,
            });
        }
        if is_word(&self.current(), "BM25") {
            return Err(CqlError::invalid(
                "ORDER BY ... BM25 OF of Astra is not supported by Annulus: write ORDER BY BM25(column, words), \
                 which needs a fulltext_index on the column",
            ));
        }
        Ok(OrderByItem::Column {
            column,
            descending: self.descending()?,
        })
    }

    /// Whether an element of ORDER BY begins here that is no column: a function call, a value, or
    /// an operator after a column.
    fn at_expression(&self) -> bool {
        const BEGINS: [&str; 4] = ["(", "-", "?", ":"];
        const OPERATORS: [&str; 5] = ["+", "-", "*", "/", "%"];
        let token = self.current();
        match token.kind {
            TokenKind::Integer | TokenKind::Float => true,
            TokenKind::Symbol => BEGINS.contains(&token.text),
            _ => {
                let is_operand = self.second().is_some_and(|next| {
                    next.kind == TokenKind::Symbol && OPERATORS.contains(&next.text)
                });
                self.at_function() || is_operand
            }
        }
    }

    /// Takes `ASC`, `DESC` or nothing. Returns whether it is `DESC`.
    pub(super) fn descending(&mut self) -> Parse<bool> {
        Ok(!self.eat_word("ASC")? && self.eat_word("DESC")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_is_found_as_it_is_written() {
        for (text, selection, markers) in [
            ("SELECT * FROM t", "* ", 0),
            (
                "/* SELECT */ select distinct a, b AS \"From\" from t",
                "a, b AS \"From\" ",
                0,
            ),
            ("SELECT json FROM t WHERE a = ?", "json ", 0),
            (
                "SELECT f(v, ?), g(v, :q) -- both\nFROM t LIMIT ?",
                "f(v, ?), g(v, :q) -- both\n",
                2,
            ),
        ] {
            let found = selection_text(text).unwrap();
            assert_eq!((found.text, found.markers), (selection, markers), "{text}");
        }
        assert!(selection_text("INSERT INTO t (a) VALUES (1)").is_err());
    }
}
