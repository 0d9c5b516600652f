//! Statements that change rows, as data: `INSERT`, `UPDATE`, `DELETE`, `BATCH` and `TRUNCATE`.

use super::{Relation, TableName, Term};

/// `USING TTL .. AND TIMESTAMP ..`; all fields are `None` without a `USING`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsingClause {
    /// `TIMESTAMP`, in microseconds: an integer or a bind marker.
    pub timestamp: Option<Term>,
    /// `TTL`, in seconds: an integer or a bind marker.
    pub ttl: Option<Term>,
    /// ScyllaDB's `TIMEOUT`: a duration, a number or a bind marker.
    pub timeout: Option<Term>,
}

/// The `IF` of a conditional write.
#[derive(Clone, Debug, PartialEq)]
pub enum IfClause {
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
    /// [`IfClause::NotExists`], or `None` without an `IF`.
    pub condition: Option<IfClause>,
    /// The attributes of `USING`.
    pub using: UsingClause,
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
    pub using: UsingClause,
    /// The assignments of `SET`.
    pub assignments: Vec<Assignment>,
    /// The relations of `WHERE`.
    pub relations: Vec<Relation>,
    /// The `IF`, if one is written.
    pub condition: Option<IfClause>,
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
    pub using: UsingClause,
    /// The relations of `WHERE`.
    pub relations: Vec<Relation>,
    /// The `IF`, if one is written.
    pub condition: Option<IfClause>,
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
pub enum TextBatchKind {
    /// `BEGIN BATCH`.
    Logged,
    /// `BEGIN UNLOGGED BATCH`.
    Unlogged,
    /// `BEGIN COUNTER BATCH`.
    Counter,
}

/// A batch as one text: `BEGIN BATCH .. APPLY BATCH`.
#[derive(Clone, Debug, PartialEq)]
pub struct TextBatch {
    /// The kind.
    pub kind: TextBatchKind,
    /// The `USING` of the batch itself.
    pub using: UsingClause,
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
