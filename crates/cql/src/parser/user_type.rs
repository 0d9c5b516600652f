//! `CREATE`, `ALTER` and `DROP TYPE`.

use super::cursor::{Parse, TokenCursor};
use crate::ast::{AlterType, AlterTypeChange, CreateType, FieldDefinition, Statement, TableName};

impl TokenCursor<'_> {
    /// Parses what follows `CREATE TYPE`.
    pub(super) fn create_type(&mut self) -> Parse<Statement> {
        let if_not_exists = self.if_not_exists()?;
        Ok(Statement::CreateType(CreateType {
            if_not_exists,
            name: self.type_name()?,
            fields: self.field_definitions()?,
        }))
    }

    /// Parses one or more fields in parentheses. As in Cassandra, a comma may follow the last.
    fn field_definitions(&mut self) -> Parse<Vec<FieldDefinition>> {
        self.expect_symbol("(")?;
        let mut fields = vec![self.field_definition()?];
        while self.eat_symbol(",")? && !self.at_symbol(")") {
            fields.push(self.field_definition()?);
        }
        self.expect_symbol(")")?;
        Ok(fields)
    }

    /// Parses what follows `ALTER TYPE`.
    pub(super) fn alter_type(&mut self) -> Parse<Statement> {
        let if_exists = self.if_exists()?;
        let name = self.type_name()?;
        let change = if self.eat_word("ADD")? {
            AlterTypeChange::AddField {
                if_not_exists: self.if_not_exists()?,
                field: self.field_definition()?,
            }
        } else if self.eat_word("RENAME")? {
            AlterTypeChange::RenameFields {
                if_exists: self.if_exists()?,
                renames: self.renames(Self::new_field_name)?,
            }
        } else {
            self.expect_word("ALTER")?;
            let field = self.new_field_name()?;
            self.expect_word("TYPE")?;
            self.data_type()?;
            AlterTypeChange::ChangeType { field }
        };
        Ok(Statement::AlterType(AlterType {
            name,
            if_exists,
            change,
        }))
    }

    /// Parses what follows `DROP TYPE`.
    pub(super) fn drop_type(&mut self) -> Parse<Statement> {
        let if_exists = self.if_exists()?;
        Ok(Statement::DropType {
            name: self.type_name()?,
            if_exists,
        })
    }

    fn type_name(&mut self) -> Parse<TableName> {
        self.qualified_name("a type name")
    }

    fn new_field_name(&mut self) -> Parse<String> {
        self.name("the name of a field")
    }

    /// Parses `name type`.
    fn field_definition(&mut self) -> Parse<FieldDefinition> {
        Ok(FieldDefinition {
            name: self.new_field_name()?,
            data_type: self.data_type()?,
        })
    }
}
