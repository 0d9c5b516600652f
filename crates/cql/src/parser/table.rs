//! `CREATE`, `ALTER` and `DROP TABLE`.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::TokenKind;
use super::names::unquoted;
use crate::ast::{
    AlterTable, AlterTableChange, ColumnDefinition, CreateTable, SortDirection, Statement,
};
use crate::error::CqlError;

impl TokenCursor<'_> {
    /// Parses what follows `CREATE TABLE`.
    pub(super) fn create_table(&mut self) -> Parse<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let mut create = CreateTable {
            table: self.table_name()?,
            if_not_exists,
            columns: Vec::new(),
            partition_key: Vec::new(),
            clustering_key: Vec::new(),
            clustering_order: Vec::new(),
            compact_storage: false,
            options: Vec::new(),
            id: None,
        };
        self.table_elements(&mut create)?;
        if self.eat_word("WITH")? {
            self.table_option(&mut create)?;
            while self.eat_word("AND")? {
                self.table_option(&mut create)?;
            }
        }
        Ok(Statement::CreateTable(create))
    }

    /// Parses columns and `PRIMARY KEY (..)` in parentheses. As in Cassandra, nothing need follow a
    /// comma.
    fn table_elements(&mut self, create: &mut CreateTable) -> Parse<()> {
        self.expect_symbol("(")?;
        self.table_element(create)?;
        while self.eat_symbol(",")? {
            let token = self.current();
            if !is_symbol(&token, ",") && !is_symbol(&token, ")") {
                self.table_element(create)?;
            }
        }
        self.expect_symbol(")")
    }

    /// Parses a column or `PRIMARY KEY (..)`.
    fn table_element(&mut self, create: &mut CreateTable) -> Parse<()> {
        if self.eat_word("PRIMARY")? {
            self.expect_word("KEY")?;
            return self.primary_key(create);
        }
        let column = self.column_definition()?;
        if self.eat_word("PRIMARY")? {
            self.expect_word("KEY")?;
            one_primary_key(create)?;
            create.partition_key = vec![column.name.clone()];
        }
        create.columns.push(column);
        Ok(())
    }

    /// Parses the columns of a primary key: `(a, b, c)` or `((a, b), c)`.
    fn primary_key(&mut self, create: &mut CreateTable) -> Parse<()> {
        one_primary_key(create)?;
        self.expect_symbol("(")?;
        create.partition_key = if self.at_symbol("(") {
            self.parenthesised(Self::column_name)?
        } else {
            vec![self.column_name()?]
        };
        while self.eat_symbol(",")? {
            create.clustering_key.push(self.column_name()?);
        }
        self.expect_symbol(")")
    }

    /// Parses `name type [STATIC] [TTL]`.
    fn column_definition(&mut self) -> Parse<ColumnDefinition> {
        let definition = ColumnDefinition {
            name: self.column_name()?,
            data_type: self.data_type()?,
            is_static: self.eat_word("STATIC")?,
            is_row_ttl: self.eat_word("TTL")?,
        };
        let token = self.current();
        if is_word(&token, "MASKED") {
            return Err(no_masks(&definition.name));
        }
        Ok(definition)
    }

    fn table_option(&mut self, create: &mut CreateTable) -> Parse<()> {
        let token = self.current();
        if self.at_words(&["COMPACT", "STORAGE"]) {
            self.expect_words(&["COMPACT", "STORAGE"])?;
            create.compact_storage = true;
            return Ok(());
        }
        if self.at_words(&["CLUSTERING", "ORDER"]) {
            self.expect_words(&["CLUSTERING", "ORDER", "BY"])?;
            let order = self.parenthesised(|cursor| {
                let column = cursor.column_name()?;
                let direction = if cursor.descending()? {
                    SortDirection::Descending
                } else {
                    SortDirection::Ascending
                };
                Ok((column, direction))
            })?;
            create.clustering_order.extend(order);
            return Ok(());
        }
        let is_id =
            is_word(&token, "ID") && self.second().is_some_and(|next| is_symbol(&next, "="));
        if is_id {
            return self.table_id(create);
        }
        self.option(&mut create.options)
    }

    /// Parses `ID = uuid`, with the UUID in quotes or not.
    fn table_id(&mut self, create: &mut CreateTable) -> Parse<()> {
        self.expect_word("ID")?;
        self.expect_symbol("=")?;
        let token = self.current();
        let id = match token.kind {
            TokenKind::Uuid | TokenKind::String => uuid::Uuid::try_parse(&unquoted(&token)).ok(),
            _ => None,
        };
        if id.is_none() {
            return Err(self.expected("a UUID"));
        }
        self.take()?;
        create.id = id;
        Ok(())
    }

    /// Parses what follows `ALTER TABLE`.
    pub(super) fn alter_table(&mut self) -> Parse<Statement> {
        let if_exists = self.if_exists()?;
        let table = self.table_name()?;
        let change = if self.eat_word("ADD")? {
            AlterTableChange::AddColumns {
                if_not_exists: self.if_not_exists()?,
                columns: self.one_or_more(Self::column_definition)?,
            }
        } else if self.eat_word("DROP")? {
            if self.at_words(&["COMPACT", "STORAGE"]) {
                return self.refused("ALTER TABLE ... DROP COMPACT STORAGE".to_owned());
            }
            self.drop_columns()?
        } else if self.eat_word("RENAME")? {
            // It changes nothing: to Cassandra, too, a column that is not there is a mistake.
            self.if_exists()?;
            AlterTableChange::RenameColumns(self.renames(Self::column_name)?)
        } else if self.eat_word("ALTER")? {
            if self.at_word("IF") {
                self.if_exists()?;
            }
            let column = self.column_name()?;
            if self.at_word("MASKED") || self.at_word("DROP") {
                return Err(no_masks(&column));
            }
            self.expect_word("TYPE")?;
            self.data_type()?;
            AlterTableChange::ChangeType { column }
        } else if self.eat_word("TTL")? {
            AlterTableChange::RowTtl(match self.eat_word("NULL")? {
                true => None,
                false => Some(self.column_name()?),
            })
        } else {
            self.expect_word("WITH")?;
            AlterTableChange::Options(self.options()?)
        };
        Ok(Statement::AlterTable(AlterTable {
            table,
            if_exists,
            change,
        }))
    }

    /// Parses `a, b`, in parentheses or not.
    fn one_or_more<T>(&mut self, item: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        if self.at_symbol("(") {
            self.parenthesised(item)
        } else {
            self.separated(item)
        }
    }

    fn drop_columns(&mut self) -> Parse<AlterTableChange> {
        let if_exists = self.if_exists()?;
        let columns = self.one_or_more(Self::column_name)?;
        let timestamp = if self.eat_word("USING")? {
            self.expect_word("TIMESTAMP")?;
            Some(self.timestamp_constant()?)
        } else {
            None
        };
        Ok(AlterTableChange::DropColumns {
            if_exists,
            columns,
            timestamp,
        })
    }

    /// Takes a timestamp in microseconds. A bind marker is refused: a statement that changes the
    /// schema has none.
    fn timestamp_constant(&mut self) -> Parse<i64> {
        let negative = self.eat_symbol("-")?;
        let token = self.current();
        if token.kind != TokenKind::Integer {
            return Err(self.expected("a timestamp in microseconds"));
        }
        let sign = if negative { "-" } else { "" };
        let timestamp = format!("{sign}{}", token.text)
            .parse()
            .map_err(|_| self.error_here("the timestamp is out of range"))?;
        self.take()?;
        Ok(timestamp)
    }

    /// Parses `a TO b AND ..` as old and new names.
    pub(super) fn renames(
        &mut self,
        mut name: impl FnMut(&mut Self) -> Parse<String>,
    ) -> Parse<Vec<(String, String)>> {
        let mut renames = Vec::new();
        loop {
            let from = name(self)?;
            self.expect_word("TO")?;
            renames.push((from, name(self)?));
            if !self.eat_word("AND")? {
                return Ok(renames);
            }
        }
    }

    /// Parses what follows `DROP TABLE`.
    pub(super) fn drop_table(&mut self) -> Parse<Statement> {
        let if_exists = self.if_exists()?;
        Ok(Statement::DropTable {
            table: self.table_name()?,
            if_exists,
        })
    }
}

fn one_primary_key(create: &CreateTable) -> Parse<()> {
    if create.partition_key.is_empty() {
        return Ok(());
    }
    Err(CqlError::invalid(
        "Multiple PRIMARY KEYs specified (exactly one required)",
    ))
}

fn no_masks(column: &str) -> CqlError {
    CqlError::invalid(format!(
        "Columns with a mask are not supported (column {column}): call a function such as \
         mask_default where the column is selected"
    ))
}
