//! `CREATE` and `DROP INDEX`.

use std::collections::BTreeMap;

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::TokenKind;
use super::names::unquoted;
use crate::ast::{CreateIndex, IndexTarget, OptionValue, Statement};
use crate::error::CqlError;

impl TokenCursor<'_> {
    /// Parses what follows `CREATE INDEX` or `CREATE CUSTOM INDEX`.
    pub(super) fn create_index(&mut self, custom: bool) -> Parse<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let name = if self.at_word("ON") {
            None
        } else {
            Some(self.name("an index name")?)
        };
        self.expect_word("ON")?;
        let table = self.table_name()?;
        let targets = self.parenthesised(Self::index_target)?;
        let mut using = None;
        if self.eat_word("USING")? {
            using = Some(self.class_name()?);
        }
        let mut options = None;
        let mut properties = Vec::new();
        if self.eat_word("WITH")? {
            self.index_property(&mut options, &mut properties)?;
            while self.eat_word("AND")? {
                self.index_property(&mut options, &mut properties)?;
            }
        }
        Ok(Statement::CreateIndex(CreateIndex {
            custom,
            if_not_exists,
            name,
            table,
            targets,
            using,
            options: options.unwrap_or_default(),
            properties,
        }))
    }

    /// Parses `OPTIONS = {..}`, or an option that ScyllaDB has for the view that an index is there.
    fn index_property(
        &mut self,
        options: &mut Option<BTreeMap<String, String>>,
        properties: &mut Vec<(String, OptionValue)>,
    ) -> Parse<()> {
        let token = self.current();
        if is_word(&token, "OPTIONS") {
            if options.is_some() {
                return Err(self.error_at(&token, "OPTIONS is given twice"));
            }
            self.expect_word("OPTIONS")?;
            self.expect_symbol("=")?;
            *options = Some(self.index_options()?);
            return Ok(());
        }
        let is_order = self.second().is_some_and(|next| is_word(&next, "ORDER"));
        if is_word(&token, "CLUSTERING") && is_order {
            return Err(CqlError::invalid(
                "CLUSTERING ORDER BY of an index is not supported: leave it out. Rows come in the \
                 order of the table",
            ));
        }
        self.option(properties)
    }

    fn class_name(&mut self) -> Parse<String> {
        let token = self.current();
        if token.kind != TokenKind::String {
            return Err(self.expected("the name of an index class in single quotes"));
        }
        self.take()?;
        Ok(unquoted(&token))
    }

    fn index_options(&mut self) -> Parse<BTreeMap<String, String>> {
        let token = self.current();
        let mut options = BTreeMap::new();
        for (key, value) in self.option_map()? {
            if options.contains_key(&key) {
                return Err(self.error_at(&token, format!("the option '{key}' is given twice")));
            }
            options.insert(key, value);
        }
        Ok(options)
    }

    fn index_target(&mut self) -> Parse<IndexTarget> {
        if self.at_symbol("(") {
            return self
                .parenthesised(Self::column_name)
                .map(IndexTarget::LocalKey);
        }
        let token = self.current();
        let is_part = ["KEYS", "VALUES", "ENTRIES", "FULL"]
            .iter()
            .any(|part| is_word(&token, part));
        if is_part && self.second().is_some_and(|next| is_symbol(&next, "(")) {
            self.take()?;
            self.expect_symbol("(")?;
            let column = self.column_name()?;
            self.expect_symbol(")")?;
            return Ok(IndexTarget::Collection {
                part: token.text.to_ascii_lowercase(),
                column,
            });
        }
        self.column_name().map(IndexTarget::Column)
    }

    /// Parses what follows `DROP INDEX`.
    pub(super) fn drop_index(&mut self) -> Parse<Statement> {
        let if_exists = self.if_exists()?;
        let index = self.qualified_name("an index name")?;
        Ok(Statement::DropIndex {
            keyspace: index.keyspace,
            name: index.name,
            if_exists,
        })
    }
}
