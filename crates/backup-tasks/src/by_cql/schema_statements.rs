//! Makes keyspaces, types, tables and indexes in a cluster by CQL.

use cql::quote::Identifier;
use node::describe::{SchemaObject, SchemaStatement, keyspace_statements};
use schema::Keyspace;
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use tools::server_error::message;

use super::texts;
use crate::BackupTaskError;
use crate::choice::TableChoice;

/// The way of a schema to a cluster.
pub(super) struct SchemaWriter<'a> {
    session: &'a Session,
    choice: &'a TableChoice,
    refused: Vec<String>,
}

impl<'a> SchemaWriter<'a> {
    /// A writer of the schema of these tables.
    pub(super) fn new(session: &'a Session, choice: &'a TableChoice) -> SchemaWriter<'a> {
        SchemaWriter {
            session,
            choice,
            refused: Vec::new(),
        }
    }

    /// Makes a keyspace and its types, unless they are there, and the chosen tables, which must not
    /// be.
    ///
    /// # Errors
    /// If the cluster refuses a statement. The text has a remedy.
    pub(super) async fn make_tables(&mut self, keyspace: &Keyspace) -> Result<(), BackupTaskError> {
        for statement in keyspace_statements(keyspace) {
            let name = &statement.name;
            match statement.object {
                SchemaObject::Keyspace => {
                    let found = self.counts("keyspaces", keyspace, None).await?;
                    if found == 0 {
                        self.execute(&statement, "make it with replication of that cluster")
                            .await?;
                    }
                }
                SchemaObject::UserType => {
                    let found = self
                        .counts("types", keyspace, Some(("type_name", name)))
                        .await?;
                    if found == 0 {
                        self.execute(&statement, "make it there").await?;
                    }
                }
                SchemaObject::Table if self.has(&statement) => {
                    self.make_table(keyspace, &statement).await?;
                }
                SchemaObject::Table | SchemaObject::Index => {}
            }
        }
        Ok(())
    }

    async fn make_table(
        &mut self,
        keyspace: &Keyspace,
        statement: &SchemaStatement,
    ) -> Result<(), BackupTaskError> {
        let name = &statement.name;
        let found = self
            .counts("tables", keyspace, Some(("table_name", name)))
            .await?;
        if found > 0 {
            return Err(BackupTaskError::Wrong(format!(
                "{}.{} exists in the cluster: with --schema skip rows are written into the tables that are there; or give \
                 another keyspace (--keyspace {} --to-keyspace NAME); nothing was written",
                Identifier(&keyspace.name),
                Identifier(name),
                keyspace.name
            )));
        }
        let made = self.send(&statement.statement).await;
        let (Err(why), Some(table)) = (made, keyspace.tables.get(name)) else {
            return Ok(());
        };
        // Options are those of the database that the table was in.
        let plain = SchemaStatement {
            statement: texts::plain_table(table),
            ..statement.clone()
        };
        self.execute(&plain, "make it there").await?;
        self.refused.push(format!(
            "table {}.{} was made without its options, as the cluster refused them: {}",
            Identifier(&keyspace.name),
            Identifier(name),
            message(&why)
        ));
        Ok(())
    }

    /// Makes the indexes of the chosen tables. What the cluster refuses is noted: the rows are
    /// there.
    pub(super) async fn make_indexes(&mut self, keyspace: &Keyspace) {
        let statements = keyspace_statements(keyspace).into_iter();
        let indexes = statements.filter(|it| it.object == SchemaObject::Index);
        for statement in indexes {
            if !self.has(&statement) {
                continue;
            }
            if let Err(error) = self.send(&statement.statement).await {
                self.refused.push(format!(
                    "index {}.{} was not made: {}; its statement: {}",
                    Identifier(&keyspace.name),
                    Identifier(&statement.name),
                    message(&error),
                    statement.statement
                ));
            }
        }
    }

    /// The statements that the cluster refused, and why.
    pub(super) fn into_refused(self) -> Vec<String> {
        self.refused
    }

    /// Whether the table of a statement is chosen.
    fn has(&self, statement: &SchemaStatement) -> bool {
        let chosen = self.choice.table.as_ref();
        chosen.is_none_or(|table| *table == statement.table)
    }

    async fn send(&self, statement: &str) -> Result<(), ExecutionError> {
        let sent = self.session.query_unpaged(statement, ());
        sent.await.map(drop)
    }

    async fn execute(
        &self,
        statement: &SchemaStatement,
        remedy: &str,
    ) -> Result<(), BackupTaskError> {
        self.send(&statement.statement).await.map_err(|error| {
            BackupTaskError::Wrong(format!(
                "{}: {}; {remedy}, and use --schema skip if all is there",
                statement.statement,
                message(&error)
            ))
        })
    }

    /// The number of rows of a table of `system_schema` about a name.
    async fn counts(
        &self,
        of: &str,
        keyspace: &Keyspace,
        named: Option<(&str, &str)>,
    ) -> Result<usize, BackupTaskError> {
        let mut text =
            format!("SELECT keyspace_name FROM system_schema.{of} WHERE keyspace_name = ?");
        let mut values = vec![keyspace.name.as_str()];
        if let Some((column, name)) = named {
            text += &format!(" AND {column} = ?");
            values.push(name);
        }
        let answer = self.session.query_unpaged(text, values).await;
        let answer = answer.map_err(|error| BackupTaskError::Cluster(message(&error)))?;
        let rows = answer.into_rows_result();
        let rows = rows.map_err(|error| BackupTaskError::Cluster(error.to_string()))?;
        Ok(rows.rows_num())
    }
}
