//! CQL statements as data: the tree that [`crate::parser`] makes of a text.
//!
//! Names are stored as the database sees them: unquoted ones in lower case, quoted ones as written.
//! The tree is made without a schema. The planner finds out what the names refer to.

pub mod data_type;
mod definition;
mod describe;
mod modify;
mod operation;
mod relation;
mod role;
mod select;
mod term;
mod user_type;

pub use data_type::DataType;
pub use definition::{
    AbsentKind, AlterTable, AlterTableChange, ColumnDefinition, CreateIndex, CreateKeyspace,
    CreateTable, IndexTarget, OptionValue, SortDirection,
};
pub use describe::{Describe, DescribeTarget};
pub use modify::{
    Assignment, BatchEntry, Delete, DeleteTarget, IfClause, Insert, InsertValues, TextBatch,
    TextBatchKind, Truncate, Update, UsingClause,
};
pub use operation::{ArithmeticOperation, NEGATION, Operand};
pub use relation::{Comparand, ComparisonSubject, Operator, Relation};
pub use role::{PermissionNames, ResourceName, RoleAttributes, RolePassword, RoleStatement};
pub use select::{
    ArgumentPart, OrderByItem, ProjectionList, Select, SelectItem, Selector, TimeFunction,
};
pub use term::{BindMarker, FunctionCall, Term};
pub use user_type::{AlterType, AlterTypeChange, CreateType, FieldDefinition};

/// A parsed statement with its bind markers.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedStatement {
    /// The statement.
    pub statement: Statement,
    /// One entry for each bind marker, in the order of the text: `Some(name)` for `:name`, `None`
    /// for `?`. A [`BindMarker::index`] is a position in this list.
    pub markers: Vec<Option<String>>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `SELECT`.
    Select(Select),
    /// `INSERT`.
    Insert(Insert),
    /// `UPDATE`.
    Update(Update),
    /// `DELETE`.
    Delete(Delete),
    /// `BEGIN BATCH .. APPLY BATCH`.
    Batch(TextBatch),
    /// `USE keyspace`.
    Use {
        /// The keyspace that the connection is to use.
        keyspace: String,
    },
    /// `TRUNCATE [TABLE] table`.
    Truncate(Truncate),
    /// `CREATE KEYSPACE`.
    CreateKeyspace(CreateKeyspace),
    /// `ALTER KEYSPACE`.
    AlterKeyspace {
        /// The keyspace.
        name: String,
        /// Whether `IF EXISTS` is written.
        if_exists: bool,
        /// The options after `WITH`, by name, in the order written.
        options: Vec<(String, OptionValue)>,
    },
    /// `DROP KEYSPACE`.
    DropKeyspace {
        /// The keyspace.
        name: String,
        /// Whether `IF EXISTS` is written.
        if_exists: bool,
    },
    /// `CREATE TABLE`.
    CreateTable(CreateTable),
    /// `ALTER TABLE`.
    AlterTable(AlterTable),
    /// `DROP TABLE`.
    DropTable {
        /// The table.
        table: TableName,
        /// Whether `IF EXISTS` is written.
        if_exists: bool,
    },
    /// `CREATE TYPE`.
    CreateType(CreateType),
    /// `ALTER TYPE`.
    AlterType(AlterType),
    /// `DROP TYPE`.
    DropType {
        /// The type.
        name: TableName,
        /// Whether `IF EXISTS` is written.
        if_exists: bool,
    },
    /// `CREATE [CUSTOM] INDEX`.
    CreateIndex(CreateIndex),
    /// `DROP INDEX`.
    DropIndex {
        /// The keyspace before the name, if one is written.
        keyspace: Option<String>,
        /// The index.
        name: String,
        /// Whether `IF EXISTS` is written.
        if_exists: bool,
    },
    /// `DROP FUNCTION`, `AGGREGATE`, `TRIGGER` or `MATERIALIZED VIEW` with `IF EXISTS`: it changes
    /// nothing, as there are none.
    DropAbsent {
        /// The kind of thing.
        kind: AbsentKind,
        /// The keyspace of the thing, if one is written; of a trigger that of its table.
        keyspace: Option<String>,
    },
    /// `DESCRIBE` or `DESC`.
    Describe(Describe),
    /// A statement about roles and permissions. It is in a box, as it is rare and large.
    Role(Box<RoleStatement>),
    /// A statement of CQL that Annulus knows by its first words only (functions, views, ...). The
    /// planner answers that it is not supported. The string holds those words in capitals
    /// (`CREATE TRIGGER`).
    Unsupported(String),
}

impl Statement {
    /// Whether a statement about rows names the keyspace of each of its tables. It means the same
    /// then whatever keyspace is in use.
    pub fn is_qualified(&self) -> bool {
        match self {
            Statement::Select(select) => select.table.keyspace.is_some(),
            Statement::Insert(insert) => insert.table.keyspace.is_some(),
            Statement::Update(update) => update.table.keyspace.is_some(),
            Statement::Delete(delete) => delete.table.keyspace.is_some(),
            Statement::Truncate(truncate) => truncate.table.keyspace.is_some(),
            Statement::Batch(batch) => batch.statements.iter().all(|entry| {
                let table = match entry {
                    BatchEntry::Insert(insert) => &insert.table,
                    BatchEntry::Update(update) => &update.table,
                    BatchEntry::Delete(delete) => &delete.table,
                };
                table.keyspace.is_some()
            }),
            _ => false,
        }
    }
}

/// The name of a table, or of anything else that is named as `[keyspace.]name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The keyspace before the name, if one is written.
    pub keyspace: Option<String>,
    /// The name without its keyspace.
    pub name: String,
}
