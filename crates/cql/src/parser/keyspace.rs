//! `CREATE`, `ALTER` and `DROP KEYSPACE`.

use super::cursor::{Parse, TokenCursor};
use crate::ast::{CreateKeyspace, Statement};

impl TokenCursor<'_> {
    /// Parses what follows `CREATE KEYSPACE`.
    pub(super) fn create_keyspace(&mut self) -> Parse<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.keyspace_name()?;
        self.expect_word("WITH")?;
        let options = self.options()?;
        Ok(Statement::CreateKeyspace(CreateKeyspace {
            name,
            if_not_exists,
            options,
        }))
    }

    /// Parses what follows `ALTER KEYSPACE`.
    pub(super) fn alter_keyspace(&mut self) -> Parse<Statement> {
        let if_exists = self.if_exists()?;
        let name = self.keyspace_name()?;
        self.expect_word("WITH")?;
        Ok(Statement::AlterKeyspace {
            name,
            if_exists,
            options: self.options()?,
        })
    }

    /// Parses what follows `DROP KEYSPACE`.
    pub(super) fn drop_keyspace(&mut self) -> Parse<Statement> {
        let if_exists = self.if_exists()?;
        Ok(Statement::DropKeyspace {
            name: self.keyspace_name()?,
            if_exists,
        })
    }

    pub(super) fn keyspace_name(&mut self) -> Parse<String> {
        self.name("a keyspace name")
    }
}
