//! A relation of a WHERE clause, with its names and types resolved.

pub mod conflicts;
mod prepare;
mod served;
mod single_term;
mod text;
mod token;
mod tuple;

use std::sync::Arc;

use index::IndexedPart;
pub use prepare::prepare;
use schema::{Column, SecondaryIndex, Table};
use value::predicate::ComparisonOperator;

use crate::bind::{PreparedInList, PreparedTerm};

/// A relation whose terms fit its columns.
#[derive(Clone, Debug)]
pub struct PreparedRelation {
    /// The relation as CQL text, for messages and printed plans.
    pub text: String,
    /// The restricted columns and their test.
    pub kind: RelationKind,
    /// The secondary indexes that find the rows for which the relation holds: one for each of its
    /// columns, or none. There are none before [`PreparedRelation::with_indexes`].
    pub indexes: Vec<Arc<SecondaryIndex>>,
}

/// The columns that a relation restricts, and its test of them.
#[derive(Clone, Debug)]
pub enum RelationKind {
    /// A test of one column, `a > 1`.
    Column {
        /// The column.
        column: Column,
        /// The test of this one column.
        test: ColumnTest,
    },
    /// `map[key] = value`. The column is the map.
    Entry {
        /// The map.
        column: Column,
        /// The key of the entry.
        key: PreparedTerm,
        /// The value that the entry must have.
        value: PreparedTerm,
    },
    /// A test of successive clustering columns together, `(a, b) > (1, 2)`.
    Tuple {
        /// The columns, in their order in the key.
        columns: Vec<Column>,
        /// The test of them together.
        test: TupleTest,
    },
    /// A comparison of the partition's token, `token(p) > 5`.
    Token {
        /// The way in which the token is compared.
        comparison: ComparisonOperator,
        /// The token that it is compared with, a `bigint`.
        value: PreparedTerm,
    },
}

/// A test of one column.
#[derive(Clone, Debug)]
pub enum ColumnTest {
    /// `column > value`, or another comparison.
    Compare(ComparisonOperator, PreparedTerm),
    /// `column IN (...)`.
    In(PreparedInList),
    /// `column LIKE pattern`, of a text.
    Like(PreparedTerm),
    /// `column CONTAINS value`.
    Contains(PreparedTerm),
    /// `column CONTAINS KEY key`.
    ContainsKey(PreparedTerm),
}

/// A test of several columns together.
#[derive(Clone, Debug)]
pub enum TupleTest {
    /// `(a, b) > (1, 2)`, or another comparison.
    Compare(ComparisonOperator, TupleTerm),
    /// `(a, b) IN (...)`.
    In(TupleList),
}

/// The term that several columns together are compared with.
#[derive(Clone, Debug)]
pub enum TupleTerm {
    /// One term for each column.
    Terms(Vec<PreparedTerm>),
    /// One bind marker for the whole tuple.
    Whole(PreparedTerm),
}

/// The right side of `(a, b) IN ...`.
#[derive(Clone, Debug)]
pub enum TupleList {
    /// The tuples of the list.
    Terms(Vec<TupleTerm>),
    /// One bind marker for the whole list.
    Whole(PreparedTerm),
}

impl RelationKind {
    /// The column whose elements the relation looks for, and which of them: its values, keys or
    /// entries.
    pub fn element_of(&self) -> Option<(&Column, IndexedPart)> {
        match self {
            RelationKind::Column { column, test } => match test {
                ColumnTest::Contains(_) => Some((column, IndexedPart::Values)),
                ColumnTest::ContainsKey(_) => Some((column, IndexedPart::Keys)),
                ColumnTest::Compare(..) | ColumnTest::In(_) | ColumnTest::Like(_) => None,
            },
            RelationKind::Entry { column, .. } => Some((column, IndexedPart::Entries)),
            RelationKind::Tuple { .. } | RelationKind::Token { .. } => None,
        }
    }
}

impl PreparedRelation {
    /// The relation with those of a table's secondary indexes that serve it. Local ones do if the
    /// query names one partition (`is_in_one_partition`).
    #[must_use]
    pub fn with_indexes(self, table: &Table, is_in_one_partition: bool) -> PreparedRelation {
        let indexes = served::serving(table, is_in_one_partition, &self.kind);
        PreparedRelation { indexes, ..self }
    }

    /// Whether secondary indexes find the rows for which the relation holds.
    pub fn is_served(&self) -> bool {
        !self.indexes.is_empty()
    }

    /// Whether storage-attached indexes find the rows for which the relation holds. They work
    /// together with those of other relations.
    pub fn is_served_together(&self) -> bool {
        self.is_served() && served::are_storage_attached(&self.indexes)
    }

    /// Whether the relation is `column LIKE pattern`.
    pub fn is_like(&self) -> bool {
        let kind = &self.kind;
        matches!(kind, RelationKind::Column { test, .. } if matches!(test, ColumnTest::Like(_)))
    }

    /// Whether the relation restricts this column, by itself or within a tuple.
    pub fn is_on(&self, name: &str) -> bool {
        match &self.kind {
            RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
                column.name == name
            }
            RelationKind::Tuple { columns, .. } => columns.iter().any(|column| column.name == name),
            RelationKind::Token { .. } => false,
        }
    }

    /// The first column that the relation restricts; `None` for a token.
    pub fn first_column(&self) -> Option<&Column> {
        match &self.kind {
            RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
                Some(column)
            }
            RelationKind::Tuple { columns, .. } => columns.first(),
            RelationKind::Token { .. } => None,
        }
    }
}
