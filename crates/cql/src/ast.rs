//! What a CQL statement says, as data.
//!
//! Identifiers are kept as the database sees them: unquoted ones lower-cased, quoted ones as
//! written. Nothing here is resolved against a schema; that is the planner's work.

#![expect(
    missing_docs,
    reason = "most items are named as the grammar names them, and a comment could only repeat it"
)]

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::types::CqlType;

/// A parsed statement with its bind markers.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub statement: Statement,
    /// One entry a bind marker, in the order of the text: `Some(name)` for `:name`, `None` for `?`.
    /// The [`BindMarker::index`] of a term points in here.
    pub markers: Vec<Option<String>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Select(Select),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Batch(Batch),
    Use {
        keyspace: String,
    },
    Truncate {
        table: TableName,
    },
    CreateKeyspace(CreateKeyspace),
    AlterKeyspace {
        name: String,
        if_exists: bool,
        options: Vec<(String, OptionValue)>,
    },
    DropKeyspace {
        name: String,
        if_exists: bool,
    },
    CreateTable(CreateTable),
    AlterTable(AlterTable),
    DropTable {
        table: TableName,
        if_exists: bool,
    },
    CreateIndex(CreateIndex),
    DropIndex {
        keyspace: Option<String>,
        name: String,
        if_exists: bool,
    },
    Describe(Describe),
    /// A statement of CQL that Annulus knows by its first words only (roles, types, functions,
    /// views, ...): the planner answers that it is not supported. Holds those words, in capitals
    /// (`CREATE ROLE`).
    Unsupported(String),
}

/// `[keyspace.]table`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    pub keyspace: Option<String>,
    pub name: String,
}

/// `?` or `:name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindMarker {
    /// Position among all markers of the statement, from 0.
    pub index: u16,
    pub name: Option<String>,
}

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    Marker(BindMarker),
    Null,
    Literal(Literal),
    /// `[a, b]`: a list or a vector.
    List(Vec<Term>),
    /// `{a, b}`; `{}` is an empty set, list or map, whatever the column is.
    Set(Vec<Term>),
    /// `{k: v}`.
    Map(Vec<(Term, Term)>),
    /// `{field: v}`: a value of a user type.
    UserType(Vec<(String, Term)>),
    /// `(a, b)`. One of one element is a tuple only where a tuple is wanted, else a term in parentheses
    /// ([`Term::without_parentheses`]).
    Tuple(Vec<Term>),
    /// `name(args)`, `keyspace.name(args)`.
    Function(FunctionCall<Term>),
    /// `(type) term`.
    TypeHint {
        cql_type: CqlType,
        term: Box<Term>,
    },
}

impl Term {
    /// The term itself where no tuple can be meant: `((1))` is `1`.
    pub fn without_parentheses(&self) -> &Term {
        match self {
            Term::Tuple(terms) if terms.len() == 1 => terms[0].without_parentheses(),
            term => term,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall<Argument> {
    pub keyspace: Option<String>,
    pub name: String,
    pub arguments: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    String(String),
    /// Digits with an optional sign, of any length.
    Integer(String),
    /// As written, with `NaN`, `Infinity` and `-Infinity` spelt so.
    Float(String),
    Boolean(bool),
    Uuid(uuid::Uuid),
    Blob(Bytes),
    Duration {
        months: i32,
        days: i32,
        nanoseconds: i64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
    In,
    NotIn,
    Contains,
    ContainsKey,
    Like,
    IsNotNull,
}

/// The right side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparand {
    /// One term; for `IN ?` and `IN :x` the marker stands for the whole list.
    Term(Term),
    /// `IN (a, b, c)`; possibly empty.
    List(Vec<Term>),
    /// Nothing: `IS NOT NULL`.
    None,
}

/// One conjunct of a `WHERE` clause or of an `IF` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    pub subject: Subject,
    pub operator: Operator,
    pub comparand: Comparand,
}

/// The left side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    Column(String),
    /// `column[term]`.
    Element {
        column: String,
        key: Term,
    },
    /// `column.field`, of a user type.
    Field {
        column: String,
        field: String,
    },
    /// `(a, b)`; a one-element tuple stays a tuple.
    Tuple(Vec<String>),
    /// `token(a, b)`.
    Token(Vec<String>),
    /// Any other function call on the left (`BM25(c, 'x') > 0`).
    Function(FunctionCall<Selector>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub table: TableName,
    pub json: bool,
    pub distinct: bool,
    pub projection: Projection,
    pub relations: Vec<Relation>,
    pub group_by: Vec<String>,
    pub order_by: Vec<Ordering>,
    pub per_partition_limit: Option<Term>,
    pub limit: Option<Term>,
    pub allow_filtering: bool,
    /// ScyllaDB's hint; accepted, without effect.
    pub bypass_cache: bool,
    /// ScyllaDB's `USING TIMEOUT`; accepted, without effect.
    pub timeout: Option<Term>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    /// `*`.
    All,
    Items(Vec<SelectItem>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    pub selector: Selector,
    pub alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Selector {
    Column(String),
    /// `count(*)`, `count(1)`.
    CountAll,
    /// `writetime(c)`, `maxwritetime(c)`.
    WriteTime {
        column: String,
        is_max: bool,
    },
    /// `ttl(c)`.
    Ttl {
        column: String,
    },
    Function(FunctionCall<Selector>),
    /// `cast(selector as type)`.
    Cast {
        selector: Box<Selector>,
        cql_type: CqlType,
    },
    /// `column[key]`.
    Element {
        column: String,
        key: Term,
    },
    /// `selector.field`, of a user type.
    Field {
        selector: Box<Selector>,
        field: String,
    },
    /// A literal or bind marker, as in `similarity_cosine(v, [1, 2])`.
    Term(Term),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Ordering {
    Column {
        column: String,
        descending: bool,
    },
    /// `column ANN OF term`.
    Ann {
        column: String,
        vector: Term,
        descending: bool,
    },
    /// `ANN(column, term)`, `BM25(column, term)` or any other function.
    Function {
        function: FunctionCall<Selector>,
        descending: bool,
    },
}

/// `USING TTL .. AND TIMESTAMP ..`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Using {
    pub timestamp: Option<Term>,
    pub ttl: Option<Term>,
    /// ScyllaDB's `USING TIMEOUT`; accepted, without effect.
    pub timeout: Option<Term>,
}

/// The `IF` of a conditional write.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    Exists,
    NotExists,
    Relations(Vec<Relation>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub table: TableName,
    pub values: InsertValues,
    pub condition: Option<Condition>,
    pub using: Using,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InsertValues {
    /// `(a, b) VALUES (x, y)`; the two lists may differ in length, which the planner reports.
    Columns {
        columns: Vec<String>,
        terms: Vec<Term>,
    },
    /// `JSON '...' [DEFAULT UNSET]`.
    Json { json: Term, default_unset: bool },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub table: TableName,
    pub using: Using,
    pub assignments: Vec<Assignment>,
    pub relations: Vec<Relation>,
    pub condition: Option<Condition>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Assignment {
    /// `c = term`.
    Set { column: String, value: Term },
    /// `c[key] = term`.
    SetElement {
        column: String,
        key: Term,
        value: Term,
    },
    /// `c.field = term`, of a user type.
    SetField {
        column: String,
        field: String,
        value: Term,
    },
    /// `c = c + term`, `c += term`.
    Add { column: String, value: Term },
    /// `c = term + c`.
    Prepend { column: String, value: Term },
    /// `c = c - term`, `c -= term`.
    Subtract { column: String, value: Term },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub table: TableName,
    /// Empty: whole rows or partitions.
    pub targets: Vec<DeleteTarget>,
    pub using: Using,
    pub relations: Vec<Relation>,
    pub condition: Option<Condition>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DeleteTarget {
    Column(String),
    Element {
        column: String,
        key: Term,
    },
    /// `c.field`, of a user type.
    Field {
        column: String,
        field: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    Logged,
    Unlogged,
    Counter,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub kind: BatchKind,
    pub using: Using,
    pub statements: Vec<BatchEntry>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BatchEntry {
    Insert(Insert),
    Update(Update),
    Delete(Delete),
}

/// A value of `WITH name = value`.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// A string, number, boolean or bare word, as text without quotes.
    Scalar(String),
    /// `{'k': 'v', ...}`, in the order written; values as text without quotes.
    Map(Vec<(String, String)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateKeyspace {
    pub name: String,
    pub if_not_exists: bool,
    pub options: Vec<(String, OptionValue)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub table: TableName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDefinition>,
    /// Empty if the statement names no primary key, which the planner reports.
    pub partition_key: Vec<String>,
    pub clustering_key: Vec<String>,
    /// `WITH CLUSTERING ORDER BY (c DESC)`.
    pub clustering_order: Vec<(String, Direction)>,
    pub compact_storage: bool,
    pub options: Vec<(String, OptionValue)>,
    /// `WITH ID = ...`.
    pub id: Option<uuid::Uuid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub name: String,
    pub cql_type: CqlType,
    pub is_static: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    pub table: TableName,
    pub if_exists: bool,
    pub change: AlterTableChange,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterTableChange {
    AddColumns {
        if_not_exists: bool,
        columns: Vec<ColumnDefinition>,
    },
    DropColumns {
        if_exists: bool,
        columns: Vec<String>,
        /// `USING TIMESTAMP`.
        timestamp: Option<i64>,
    },
    RenameColumns(Vec<(String, String)>),
    Options(Vec<(String, OptionValue)>),
    /// `ALTER c TYPE t`, which no current database allows.
    ChangeType {
        column: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// Whether the word CUSTOM was written.
    pub custom: bool,
    pub if_not_exists: bool,
    pub name: Option<String>,
    pub table: TableName,
    pub targets: Vec<IndexTarget>,
    /// `USING '...'`, as written.
    pub using: Option<String>,
    /// `WITH OPTIONS = {...}`.
    pub options: BTreeMap<String, String>,
}

/// One entry of the parenthesised list of `CREATE INDEX ... ON t (...)`.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexTarget {
    Column(String),
    /// `(p1, p2)`: the key of a local index.
    LocalKey(Vec<String>),
    /// `keys(c)`, `values(c)`, `entries(c)`, `full(c)`: the word in lower case.
    Collection {
        part: String,
        column: String,
    },
}

/// `DESCRIBE` as the server answers it (Cassandra 4 and ScyllaDB).
#[derive(Clone, Debug, PartialEq)]
pub struct Describe {
    pub target: DescribeTarget,
    /// `WITH INTERNALS`.
    pub internals: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DescribeTarget {
    Cluster,
    /// `DESCRIBE [FULL] SCHEMA`.
    Schema {
        full: bool,
    },
    Keyspaces,
    /// `DESCRIBE [ONLY] KEYSPACE [name]`; `None` is the keyspace in use.
    Keyspace {
        name: Option<String>,
        only: bool,
    },
    Tables,
    Table(TableName),
    Index {
        keyspace: Option<String>,
        name: String,
    },
    /// Types, functions, aggregates and views, which there are none of: the words in lower case
    /// (`types`, `materialized view`) and the name asked for, if any.
    Empty {
        kind: String,
        name: Option<TableName>,
    },
    /// `DESCRIBE name`: a keyspace, table or index, whichever is found.
    Any(TableName),
}
