//! CQL statements as data: the tree that [`crate::parser`] makes of a text.
//!
//! Names are kept as the database sees them: unquoted ones in lower case, quoted ones as written.
//! The tree is made without a schema. The planner finds out what the names refer to.

pub mod data_type;
mod describe;
mod operation;
mod role;
mod select;
mod user_type;

use std::collections::BTreeMap;

use value::Literal;
use value::predicate::Comparison;

pub use data_type::DataType;
pub use describe::{Describe, DescribeTarget};
pub use operation::{NEGATION, Operand, Operation};
pub use role::{PermissionNames, ResourceName, RoleAttributes, RolePassword, RoleStatement};
pub use select::{Ordering, Part, Projection, Select, SelectItem, Selector, TimeFunction};
pub use user_type::{AlterType, AlterTypeChange, CreateType, FieldDefinition};

/// A parsed statement with its bind markers.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
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
    Batch(Batch),
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
    /// `DESCRIBE` or `DESC`.
    Describe(Describe),
    /// A statement about roles and permissions. It is in a box, as it is rare and large.
    Role(Box<RoleStatement>),
    /// A statement of CQL that Annulus knows by its first words only (functions, views, ...). The
    /// planner answers that it is not supported. The string holds those words in capitals
    /// (`CREATE TRIGGER`).
    Unsupported(String),
}

/// The name of a table, or of anything else that is named as `[keyspace.]name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The keyspace before the name, if one is written.
    pub keyspace: Option<String>,
    /// The name without its keyspace.
    pub name: String,
}

/// A bind marker: `?` or `:name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindMarker {
    /// The position among all markers of the statement, from 0.
    pub index: u16,
    /// The name of a `:name`; `None` for `?`.
    pub name: Option<String>,
}

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A bind marker.
    Marker(BindMarker),
    /// `null`.
    Null,
    /// A constant other than null.
    Literal(Literal),
    /// `[a, b]`: a list or a vector.
    List(Vec<Term>),
    /// `{a, b}`. An empty `{}` is an empty set, list or map, whatever the column is.
    Set(Vec<Term>),
    /// `{k: v}`.
    Map(Vec<(Term, Term)>),
    /// `{field: v}`: a value of a user type.
    UserType(Vec<(String, Term)>),
    /// `(a, b)`. With one element it is a tuple only where a tuple is wanted, and a term in
    /// parentheses everywhere else ([`Term::without_parentheses`]).
    Tuple(Vec<Term>),
    /// `name(args)` or `keyspace.name(args)`.
    Function(FunctionCall<Term>),
    /// `(type) term`.
    TypeHint {
        /// The type in parentheses.
        data_type: DataType,
        /// The term after it.
        term: Box<Term>,
    },
}

impl Term {
    /// The term without parentheses around it, for places where no tuple can be meant: `((1))` is
    /// `1`.
    pub fn without_parentheses(&self) -> &Term {
        match self {
            Term::Tuple(terms) if terms.len() == 1 => terms[0].without_parentheses(),
            term => term,
        }
    }
}

/// A function call: `[keyspace.]name(arguments)`.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall<Argument> {
    /// The keyspace before the name, if one is written.
    pub keyspace: Option<String>,
    /// The name of the function.
    pub name: String,
    /// The arguments, possibly none.
    pub arguments: Vec<Argument>,
}

/// The operator of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`.
    Eq,
    /// `!=`.
    NotEq,
    /// `<`.
    Lt,
    /// `<=`.
    LtEq,
    /// `>`.
    Gt,
    /// `>=`.
    GtEq,
    /// `IN`.
    In,
    /// `NOT IN`.
    NotIn,
    /// `CONTAINS`.
    Contains,
    /// `CONTAINS KEY`.
    ContainsKey,
    /// `LIKE`.
    Like,
    /// `IS NOT NULL`.
    IsNotNull,
}

impl Operator {
    /// The comparison that the operator makes; `None` for an operator that makes another test.
    pub fn comparison(self) -> Option<Comparison> {
        match self {
            Operator::Eq => Some(Comparison::Eq),
            Operator::Lt => Some(Comparison::Lt),
            Operator::LtEq => Some(Comparison::LtEq),
            Operator::Gt => Some(Comparison::Gt),
            Operator::GtEq => Some(Comparison::GtEq),
            _ => None,
        }
    }

    /// The operator as CQL text.
    pub fn as_str(self) -> &'static str {
        match self {
            Operator::Eq => "=",
            Operator::NotEq => "!=",
            Operator::Lt => "<",
            Operator::LtEq => "<=",
            Operator::Gt => ">",
            Operator::GtEq => ">=",
            Operator::In => "IN",
            Operator::NotIn => "NOT IN",
            Operator::Contains => "CONTAINS",
            Operator::ContainsKey => "CONTAINS KEY",
            Operator::Like => "LIKE",
            Operator::IsNotNull => "IS NOT NULL",
        }
    }
}

/// The right side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparand {
    /// One term. In `IN ?` and `IN :x` the marker stands for the whole list.
    Term(Term),
    /// `IN (a, b, c)`; possibly empty.
    List(Vec<Term>),
    /// Nothing: `IS NOT NULL` has no right side.
    None,
}

/// A condition on a row: a `WHERE` or `IF` clause is one or more of these with `AND` between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// The left side.
    pub subject: Subject,
    /// The operator.
    pub operator: Operator,
    /// The right side.
    pub comparand: Comparand,
}

/// The left side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A column.
    Column(String),
    /// `column[key]`.
    Element {
        /// The column, a list or map.
        column: String,
        /// The term in brackets.
        key: Term,
    },
    /// `column.field`, of a user type.
    Field {
        /// The column.
        column: String,
        /// The field of its user type.
        field: String,
    },
    /// `(a, b)`: columns as a tuple. It stays a tuple with one column.
    Tuple(Vec<String>),
    /// `token(a, b)`, with the columns named in it.
    Token(Vec<String>),
    /// Any other function call on the left (`BM25(c, 'x') > 0`).
    Function(FunctionCall<Selector>),
}

/// `USING TTL .. AND TIMESTAMP ..`; all fields are `None` without a `USING`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Using {
    /// `TIMESTAMP`, in microseconds: an integer or a bind marker.
    pub timestamp: Option<Term>,
    /// `TTL`, in seconds: an integer or a bind marker.
    pub ttl: Option<Term>,
    /// ScyllaDB's `TIMEOUT`: a duration, a number or a bind marker.
    pub timeout: Option<Term>,
}

/// The `IF` of a conditional write.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `IF EXISTS`.
    Exists,
    /// `IF NOT EXISTS`.
    NotExists,
    /// `IF` with relations, all of which must hold.
    Relations(Vec<Relation>),
}

/// An `INSERT`.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The table after `INTO`.
    pub table: TableName,
    /// The columns and their values.
    pub values: InsertValues,
    /// [`Condition::NotExists`], or `None` without an `IF`.
    pub condition: Option<Condition>,
    /// The attributes of `USING`.
    pub using: Using,
}

/// The columns and values of an `INSERT`.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertValues {
    /// `(a, b) VALUES (x, y)`. The two lists may differ in length, which the planner reports.
    Columns {
        /// The names in the first parentheses.
        columns: Vec<String>,
        /// The terms in the second parentheses.
        terms: Vec<Term>,
    },
    /// `JSON '...' [DEFAULT UNSET]`.
    Json {
        /// The JSON text, as a string or a bind marker.
        json: Term,
        /// Whether `DEFAULT UNSET` is written: columns that the JSON leaves out are left as they
        /// are. Without it they are set to null.
        default_unset: bool,
    },
}

/// An `UPDATE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The table.
    pub table: TableName,
    /// The attributes of `USING`.
    pub using: Using,
    /// The assignments of `SET`.
    pub assignments: Vec<Assignment>,
    /// The relations of `WHERE`.
    pub relations: Vec<Relation>,
    /// The `IF`, if one is written.
    pub condition: Option<Condition>,
}

/// One assignment of an `UPDATE`.
#[derive(Clone, Debug, PartialEq)]
pub enum Assignment {
    /// `c = term`.
    Set {
        /// The column.
        column: String,
        /// Its new value.
        value: Term,
    },
    /// `c[key] = term`.
    SetElement {
        /// The column, a list or map.
        column: String,
        /// The term in brackets: an index of the list or a key of the map.
        key: Term,
        /// The new value of the element.
        value: Term,
    },
    /// `c.field = term`, of a user type.
    SetField {
        /// The column.
        column: String,
        /// The field of its user type.
        field: String,
        /// The new value of the field.
        value: Term,
    },
    /// `c = c + term`, `c += term`.
    Add {
        /// The column.
        column: String,
        /// The term that is added.
        value: Term,
    },
    /// `c = term + c`.
    Prepend {
        /// The column.
        column: String,
        /// The term that is put before the elements there are.
        value: Term,
    },
    /// `c = c - term`, `c -= term`.
    Subtract {
        /// The column.
        column: String,
        /// The term that is taken away.
        value: Term,
    },
}

impl Assignment {
    /// The column that is assigned to.
    pub fn column(&self) -> &str {
        match self {
            Assignment::Set { column, .. }
            | Assignment::SetElement { column, .. }
            | Assignment::SetField { column, .. }
            | Assignment::Add { column, .. }
            | Assignment::Prepend { column, .. }
            | Assignment::Subtract { column, .. } => column,
        }
    }
}

/// A `TRUNCATE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Truncate {
    /// The table whose rows are removed.
    pub table: TableName,
    /// ScyllaDB's `USING TIMEOUT`: a duration, a number or a bind marker.
    pub timeout: Option<Term>,
}

/// A `DELETE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The table after `FROM`.
    pub table: TableName,
    /// The parts of a row that are deleted. If empty, whole rows or partitions are deleted.
    pub targets: Vec<DeleteTarget>,
    /// The attributes of `USING`.
    pub using: Using,
    /// The relations of `WHERE`.
    pub relations: Vec<Relation>,
    /// The `IF`, if one is written.
    pub condition: Option<Condition>,
}

/// A part of a row that a `DELETE` names.
#[derive(Clone, Debug, PartialEq)]
pub enum DeleteTarget {
    /// A whole column.
    Column(String),
    /// `c[key]`.
    Element {
        /// The column.
        column: String,
        /// The term in brackets.
        key: Term,
    },
    /// `c.field`, of a user type.
    Field {
        /// The column.
        column: String,
        /// The field of its user type.
        field: String,
    },
}

impl DeleteTarget {
    /// The column that is deleted, or of which a part is.
    pub fn column(&self) -> &str {
        match self {
            DeleteTarget::Column(column)
            | DeleteTarget::Element { column, .. }
            | DeleteTarget::Field { column, .. } => column,
        }
    }
}

/// The kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// `BEGIN BATCH`.
    Logged,
    /// `BEGIN UNLOGGED BATCH`.
    Unlogged,
    /// `BEGIN COUNTER BATCH`.
    Counter,
}

/// A batch as one text: `BEGIN BATCH .. APPLY BATCH`.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The kind.
    pub kind: BatchKind,
    /// The `USING` of the batch itself.
    pub using: Using,
    /// The statements in their order, possibly none.
    pub statements: Vec<BatchEntry>,
}

/// One statement of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchEntry {
    /// An `INSERT`.
    Insert(Insert),
    /// An `UPDATE`.
    Update(Update),
    /// A `DELETE`.
    Delete(Delete),
}

/// The value in `WITH name = value`.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// A string, number, boolean or bare word, as text without quotes.
    Scalar(String),
    /// `{'k': 'v', ...}`, in the order written. Keys and values are texts without quotes.
    Map(Vec<(String, String)>),
}

/// A `CREATE KEYSPACE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateKeyspace {
    /// The keyspace.
    pub name: String,
    /// Whether `IF NOT EXISTS` is written.
    pub if_not_exists: bool,
    /// The options after `WITH`, by name, in the order written; empty without a `WITH`.
    pub options: Vec<(String, OptionValue)>,
}

/// A `CREATE TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// The table.
    pub table: TableName,
    /// Whether `IF NOT EXISTS` is written.
    pub if_not_exists: bool,
    /// The columns in the order written.
    pub columns: Vec<ColumnDefinition>,
    /// The columns of the partition key, in key order. Empty if the statement names no primary key,
    /// which the planner reports.
    pub partition_key: Vec<String>,
    /// The clustering columns, in key order.
    pub clustering_key: Vec<String>,
    /// `WITH CLUSTERING ORDER BY (c DESC)`.
    pub clustering_order: Vec<(String, Direction)>,
    /// Whether `WITH COMPACT STORAGE` is written.
    pub compact_storage: bool,
    /// The further options after `WITH`, by name, in the order written.
    pub options: Vec<(String, OptionValue)>,
    /// `WITH ID = ...`.
    pub id: Option<uuid::Uuid>,
}

/// The direction in which a clustering column is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `ASC`, the default.
    Ascending,
    /// `DESC`.
    Descending,
}

/// `name type [STATIC] [TTL]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// The column.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Whether `STATIC` is written.
    pub is_static: bool,
    /// Whether `TTL` is written: the value of the column tells when its row expires.
    pub is_row_ttl: bool,
}

/// An `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// The table.
    pub table: TableName,
    /// Whether `IF EXISTS` is written after `ALTER TABLE`.
    pub if_exists: bool,
    /// The change to the table.
    pub change: AlterTableChange,
}

/// The change that an `ALTER TABLE` makes.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterTableChange {
    /// `ADD [IF NOT EXISTS] a int, b text`.
    AddColumns {
        /// Whether `IF NOT EXISTS` is written.
        if_not_exists: bool,
        /// The new columns.
        columns: Vec<ColumnDefinition>,
    },
    /// `DROP [IF EXISTS] a, b [USING TIMESTAMP ..]`.
    DropColumns {
        /// Whether `IF EXISTS` is written after `DROP`.
        if_exists: bool,
        /// The columns that are dropped.
        columns: Vec<String>,
        /// `USING TIMESTAMP`, in microseconds.
        timestamp: Option<i64>,
    },
    /// `RENAME a TO b AND ..`: old and new names.
    RenameColumns(Vec<(String, String)>),
    /// `WITH ..`: options by name, in the order written.
    Options(Vec<(String, OptionValue)>),
    /// `TTL c`, of which the value tells when its row expires, or `TTL NULL`.
    RowTtl(Option<String>),
    /// `ALTER c TYPE t`, which no current database allows.
    ChangeType {
        /// The column.
        column: String,
    },
}

/// A `CREATE [CUSTOM] INDEX`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// Whether the word `CUSTOM` is written.
    pub custom: bool,
    /// Whether `IF NOT EXISTS` is written.
    pub if_not_exists: bool,
    /// The name of the index, if one is written.
    pub name: Option<String>,
    /// The table after `ON`.
    pub table: TableName,
    /// The entries in parentheses after the table.
    pub targets: Vec<IndexTarget>,
    /// The class of the index in `USING '...'`, as written.
    pub using: Option<String>,
    /// `WITH OPTIONS = {...}`.
    pub options: BTreeMap<String, String>,
    /// The other options after `WITH`, by name, in the order written.
    pub properties: Vec<(String, OptionValue)>,
}

/// One entry of the list in parentheses of `CREATE INDEX ... ON t (...)`.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexTarget {
    /// A column.
    Column(String),
    /// `(p1, p2)`: the partition key of a local index.
    LocalKey(Vec<String>),
    /// `keys(c)`, `values(c)`, `entries(c)` or `full(c)`.
    Collection {
        /// The word before the parenthesis, in lower case: `keys`, `values`, `entries`, `full`.
        part: String,
        /// The column.
        column: String,
    },
}
