//! Selectors: the expressions that a `SELECT` computes of a row, and the arguments of scoring
//! functions.

use super::cursor::{Cursor, Parse, is_symbol, is_word};
use super::lexer::Kind;
use super::terms::is_constant;
use crate::ast::{FunctionCall, Projection, SelectItem, Selector};

/// The most fields of user types in a row (`a.b.c`). The tree is walked by recursion later, so its
/// depth must be bounded.
const FIELDS_MAX: usize = 32;

impl Cursor<'_> {
    /// Parses the part between `SELECT` and `FROM`.
    pub(super) fn projection(&mut self) -> Parse<Projection> {
        if self.eat_symbol("*")? {
            return Ok(Projection::All);
        }
        self.separated(|cursor| {
            let selector = cursor.selector()?;
            let alias = if cursor.eat_word("AS")? {
                Some(cursor.name("an alias")?)
            } else {
                None
            };
            Ok(SelectItem { selector, alias })
        })
        .map(Projection::Items)
    }

    pub(super) fn selector(&mut self) -> Parse<Selector> {
        self.nested(Self::selector_here)
    }

    fn selector_here(&mut self) -> Parse<Selector> {
        let token = self.current();
        let may_be_named = match token.kind {
            Kind::Word => !is_constant(&token),
            Kind::QuotedName => true,
            _ => false,
        };
        if !may_be_named {
            return if matches!(token.kind, Kind::End) || is_symbol(&token, "*") {
                Err(self.expected("a column, function or value"))
            } else {
                self.term().map(Selector::Term)
            };
        }
        if self.at_function() {
            return self.function_selector();
        }
        let column = self.column_name()?;
        let mut selector = match self.element_key()? {
            Some(key) => Selector::Element { column, key },
            None => Selector::Column(column),
        };
        let mut depth = 0;
        while let Some(field) = self.field_name()? {
            depth += 1;
            if depth > FIELDS_MAX {
                return Err(self.error_here(format!(
                    "a selector reaches no deeper than {FIELDS_MAX} fields"
                )));
            }
            selector = Selector::Field {
                selector: Box::new(selector),
                field,
            };
        }
        Ok(selector)
    }

    pub(super) fn function_selector(&mut self) -> Parse<Selector> {
        let token = self.current();
        let is_native = |name: &str| token.kind == Kind::Word && is_word(&token, name);
        let unqualified = self.second().is_some_and(|next| is_symbol(&next, "("));
        if unqualified && (is_native("WRITETIME") || is_native("MAXWRITETIME")) {
            let is_max = is_native("MAXWRITETIME");
            let (column, field) = self.single_column()?;
            return Ok(Selector::WriteTime {
                column,
                field,
                is_max,
            });
        }
        if unqualified && is_native("TTL") {
            let (column, field) = self.single_column()?;
            return Ok(Selector::Ttl { column, field });
        }
        if unqualified && is_native("CAST") {
            return self.cast();
        }
        if unqualified && is_native("COUNT") && self.counts_rows() {
            // Three tokens: the name, the parenthesis, and `*` or an integer.
            for _ in 0..3 {
                self.take()?;
            }
            self.expect_symbol(")")?;
            return Ok(Selector::CountAll);
        }
        self.function_of_selectors().map(Selector::Function)
    }

    /// Whether the argument of `count` is `*` or an integer.
    fn counts_rows(&self) -> bool {
        self.ahead(2)
            .is_some_and(|argument| is_symbol(&argument, "*") || argument.kind == Kind::Integer)
    }

    /// Parses `name(column)` or `name(column.field)`, and gives the column and the field.
    fn single_column(&mut self) -> Parse<(String, Option<String>)> {
        self.take()?;
        self.expect_symbol("(")?;
        let column = self.column_name()?;
        let field = self.field_name()?;
        self.expect_symbol(")")?;
        Ok((column, field))
    }

    fn cast(&mut self) -> Parse<Selector> {
        self.take()?;
        self.expect_symbol("(")?;
        let selector = Box::new(self.selector()?);
        self.expect_word("AS")?;
        let cql_type = self.cql_type()?;
        self.expect_symbol(")")?;
        Ok(Selector::Cast { selector, cql_type })
    }

    /// Parses the call of a function whose arguments may be columns.
    pub(super) fn function_of_selectors(&mut self) -> Parse<FunctionCall<Selector>> {
        let (keyspace, name) = self.function_name()?;
        Ok(FunctionCall {
            keyspace,
            name,
            arguments: self.separated_until(")", Self::selector)?,
        })
    }
}
