//! `INSERT`, `UPDATE`, `DELETE` and `BATCH`.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::TokenKind;
use super::terms::is_constant;
use crate::ast::{
    Assignment, BatchEntry, Delete, DeleteTarget, IfClause, Insert, InsertValues, TextBatch,
    TextBatchKind, Update, UsingClause,
};

impl TokenCursor<'_> {
    /// Parses what follows the word `INSERT`.
    pub(super) fn insert(&mut self) -> Parse<Insert> {
        self.expect_word("INTO")?;
        let table = self.table_name()?;
        let values = self.insert_values()?;
        let condition = self.if_not_exists()?.then_some(IfClause::NotExists);
        Ok(Insert {
            table,
            values,
            condition,
            using: self.using(&["TIMESTAMP", "TTL", "TIMEOUT"])?,
        })
    }

    fn insert_values(&mut self) -> Parse<InsertValues> {
        if !self.eat_word("JSON")? {
            let columns = self.parenthesised(Self::column_name)?;
            self.expect_word("VALUES")?;
            let terms = self.parenthesised(Self::term)?;
            return Ok(InsertValues::Columns { columns, terms });
        }
        if self.current().kind != TokenKind::String && !self.at_marker() {
            return Err(self.expected("a string with a JSON object, or a bind marker"));
        }
        let json = self.term()?;
        let mut default_unset = false;
        if self.eat_word("DEFAULT")? {
            default_unset = self.eat_word("UNSET")?;
            if !default_unset {
                self.expect_word("NULL")?;
            }
        }
        Ok(InsertValues::Json {
            json,
            default_unset,
        })
    }

    /// Parses what follows the word `UPDATE`.
    pub(super) fn update(&mut self) -> Parse<Update> {
        let table = self.table_name()?;
        let using = self.using(&["TIMESTAMP", "TTL", "TIMEOUT"])?;
        self.expect_word("SET")?;
        let assignments = self.separated(Self::assignment)?;
        self.expect_word("WHERE")?;
        let relations = self.relations()?;
        Ok(Update {
            table,
            using,
            assignments,
            relations,
            condition: self.condition()?,
        })
    }

    fn assignment(&mut self) -> Parse<Assignment> {
        let column = self.column_name()?;
        if let Some(key) = self.element_key()? {
            self.expect_symbol("=")?;
            return Ok(Assignment::SetElement {
                column,
                key,
                value: self.term()?,
            });
        }
        if let Some(field) = self.field_name()? {
            self.expect_symbol("=")?;
            return Ok(Assignment::SetField {
                column,
                field,
                value: self.term()?,
            });
        }
        if self.eat_symbol("+=")? {
            return Ok(Assignment::Add {
                column,
                value: self.term()?,
            });
        }
        if self.eat_symbol("-=")? {
            return Ok(Assignment::Subtract {
                column,
                value: self.term()?,
            });
        }
        self.expect_symbol("=")?;
        if self.at_column_in_arithmetic() {
            self.same_column(&column)?;
            if self.eat_symbol("+")? {
                return Ok(Assignment::Add {
                    column,
                    value: self.term()?,
                });
            }
            self.expect_symbol("-")?;
            return Ok(Assignment::Subtract {
                column,
                value: self.term()?,
            });
        }
        let value = self.term()?;
        if self.eat_symbol("+")? {
            self.same_column(&column)?;
            return Ok(Assignment::Prepend { column, value });
        }
        Ok(Assignment::Set { column, value })
    }

    /// Whether `name +` or `name -` comes here.
    fn at_column_in_arithmetic(&self) -> bool {
        let token = self.current();
        let is_name = token.kind == TokenKind::QuotedName
            || token.kind == TokenKind::Word && !is_constant(&token);
        is_name
            && self
                .second()
                .is_some_and(|next| is_symbol(&next, "+") || is_symbol(&next, "-"))
    }

    /// Takes the column in `c = c + ..`, which must be the column that is assigned to.
    fn same_column(&mut self, column: &str) -> Parse<()> {
        let token = self.current();
        if self.column_name()? == column {
            return Ok(());
        }
        Err(self.error_at(
            &token,
            format!(
                "only expressions of the form {column} = {column} + value, {column} - value and \
                 value + {column} are supported here, found '{}'",
                token.text
            ),
        ))
    }

    /// Parses what follows the word `DELETE`.
    pub(super) fn delete(&mut self) -> Parse<Delete> {
        let targets = if self.at_word("FROM") {
            Vec::new()
        } else {
            self.separated(Self::delete_target)?
        };
        self.expect_word("FROM")?;
        let table = self.table_name()?;
        let using = self.using(&["TIMESTAMP", "TIMEOUT"])?;
        self.expect_word("WHERE")?;
        let relations = self.relations()?;
        Ok(Delete {
            table,
            targets,
            using,
            relations,
            condition: self.condition()?,
        })
    }

    fn delete_target(&mut self) -> Parse<DeleteTarget> {
        let column = self.column_name()?;
        if let Some(key) = self.element_key()? {
            return Ok(DeleteTarget::Element { column, key });
        }
        Ok(match self.field_name()? {
            Some(field) => DeleteTarget::Field { column, field },
            None => DeleteTarget::Column(column),
        })
    }

    /// Parses `IF EXISTS`, `IF` with relations, or nothing.
    fn condition(&mut self) -> Parse<Option<IfClause>> {
        if !self.eat_word("IF")? {
            return Ok(None);
        }
        if !self.at_related_column() && self.eat_word("EXISTS")? {
            return Ok(Some(IfClause::Exists));
        }
        self.relations().map(IfClause::Relations).map(Some)
    }

    /// Whether the current word is the column of a relation, and no keyword: an operator, an
    /// element or a field follows it.
    fn at_related_column(&self) -> bool {
        self.second().is_some_and(|next| {
            ["=", "!=", "<", "<=", ">", ">=", "[", "."]
                .iter()
                .any(|symbol| is_symbol(&next, symbol))
                || ["IN", "NOT", "CONTAINS", "LIKE", "IS"]
                    .iter()
                    .any(|word| is_word(&next, word))
        })
    }

    /// Parses `USING` with some of the `allowed` attributes, each at most once, or nothing.
    pub(super) fn using(&mut self, allowed: &[&'static str]) -> Parse<UsingClause> {
        let mut using = UsingClause::default();
        if !self.eat_word("USING")? {
            return Ok(using);
        }
        loop {
            let token = self.current();
            let mut attribute = None;
            for word in allowed {
                if self.eat_word(word)? {
                    attribute = Some(*word);
                    break;
                }
            }
            let slot = match attribute {
                Some("TIMESTAMP") => &mut using.timestamp,
                Some("TTL") => &mut using.ttl,
                Some(_) => &mut using.timeout,
                None => return Err(self.unexpected()),
            };
            if slot.is_some() {
                return Err(self.error_at(
                    &token,
                    format!("{} is given twice", token.text.to_uppercase()),
                ));
            }
            *slot = Some(if attribute == Some("TIMEOUT") {
                self.term()?
            } else {
                self.integer_or_marker()?
            });
            if !self.eat_word("AND")? {
                return Ok(using);
            }
        }
    }

    /// Parses what follows the word `BEGIN`.
    pub(super) fn batch(&mut self) -> Parse<TextBatch> {
        let kind = if self.eat_word("UNLOGGED")? {
            TextBatchKind::Unlogged
        } else if self.eat_word("COUNTER")? {
            TextBatchKind::Counter
        } else {
            TextBatchKind::Logged
        };
        self.expect_word("BATCH")?;
        // The grammar allows a TTL, though a batch with one is refused later.
        let using = self.using(&["TIMESTAMP", "TTL", "TIMEOUT"])?;
        let mut statements = Vec::new();
        while !self.eat_word("APPLY")? {
            statements.push(self.batch_entry()?);
            self.eat_symbol(";")?;
        }
        self.expect_word("BATCH")?;
        Ok(TextBatch {
            kind,
            using,
            statements,
        })
    }

    fn batch_entry(&mut self) -> Parse<BatchEntry> {
        if self.eat_word("INSERT")? {
            self.insert().map(BatchEntry::Insert)
        } else if self.eat_word("UPDATE")? {
            self.update().map(BatchEntry::Update)
        } else if self.eat_word("DELETE")? {
            self.delete().map(BatchEntry::Delete)
        } else {
            Err(self.unexpected())
        }
    }
}
