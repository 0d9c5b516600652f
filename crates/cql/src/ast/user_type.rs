//! Statements that define user types.

use super::{DataType, TableName};

/// A field of a user type: `name type`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDefinition {
    /// The field.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
}

/// A `CREATE TYPE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateType {
    /// The type.
    pub name: TableName,
    /// Whether `IF NOT EXISTS` is written.
    pub if_not_exists: bool,
    /// The fields in the order written.
    pub fields: Vec<FieldDefinition>,
}

/// An `ALTER TYPE`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterType {
    /// The type.
    pub name: TableName,
    /// Whether `IF EXISTS` is written after `ALTER TYPE`.
    pub if_exists: bool,
    /// The change to the type.
    pub change: AlterTypeChange,
}

/// The change that an `ALTER TYPE` makes.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterTypeChange {
    /// `ADD [IF NOT EXISTS] f int`.
    AddField {
        /// Whether `IF NOT EXISTS` is written.
        if_not_exists: bool,
        /// The new field.
        field: FieldDefinition,
    },
    /// `RENAME [IF EXISTS] a TO b AND ..`.
    RenameFields {
        /// Whether `IF EXISTS` is written after `RENAME`.
        if_exists: bool,
        /// Old and new names.
        renames: Vec<(String, String)>,
    },
    /// `ALTER f TYPE t`, which no current database allows.
    ChangeType {
        /// The field.
        field: String,
    },
}
