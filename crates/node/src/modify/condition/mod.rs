//! The condition of a write: its IF clause.
//!
//! [`PreparedCondition`] resolves the clause against the table (`prepare`). With its values bound
//! (`bound`) it becomes predicates on rows, which the storage checks in the step in which it
//! applies the write.

mod evaluate;
mod prepare;

use cql::error::CqlError;
use query::bind::{PreparedInList, PreparedTerm, StatementClock};
use schema::{Column, ColumnKind};
use storage::mutation::RowPredicate;
use value::predicate::ComparisonOperator;

use crate::statement::BoundValue;

pub(super) use evaluate::BoundCondition;

/// An IF clause, resolved against the catalog.
#[derive(Debug)]
pub(super) enum PreparedCondition {
    /// `IF EXISTS`.
    Exists,
    /// `IF NOT EXISTS`.
    NotExists,
    /// Relations on columns, all of which must hold.
    Columns(Vec<ColumnCondition>),
}

/// A relation of an IF clause.
#[derive(Debug)]
pub(super) struct ColumnCondition {
    /// The column, which is not of the primary key.
    pub column: Column,
    part: TestedPart,
    test: PartTest,
}

/// The part of a column that a condition looks at.
#[derive(Debug)]
enum TestedPart {
    /// The column as a whole.
    Whole,
    /// `list[index]`.
    Index(PreparedTerm),
    /// `map[key]`.
    Key(PreparedTerm),
    /// `column.field`, by the position of the field.
    Field(usize),
}

/// The test of a part.
#[derive(Debug)]
enum PartTest {
    Equal(PreparedTerm),
    NotEqual(PreparedTerm),
    /// `<`, `<=`, `>` or `>=`.
    Order(ComparisonOperator, PreparedTerm),
    In(PreparedInList),
    Like(PreparedTerm),
    Contains(PreparedTerm),
    ContainsKey(PreparedTerm),
}

impl PreparedCondition {
    /// Whether the condition looks at regular columns, so that it needs a whole primary key.
    pub fn is_on_regular_columns(&self) -> bool {
        self.columns()
            .iter()
            .any(|condition| !condition.is_static())
    }

    /// The relations; none for `IF [NOT] EXISTS`.
    pub fn columns(&self) -> &[ColumnCondition] {
        match self {
            PreparedCondition::Columns(columns) => columns,
            PreparedCondition::Exists | PreparedCondition::NotExists => &[],
        }
    }

    /// The predicates on the row and on the static row, with the values bound. A condition on the
    /// existence of a row is on the static row if `of_statics`.
    ///
    /// # Errors
    /// Values that don't fit, unset values, and nulls that can't be compared.
    pub fn predicates(
        &self,
        of_statics: bool,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<BoundPredicates, CqlError> {
        let existence = |predicate| match of_statics {
            true => BoundPredicates {
                of_row: None,
                of_statics: Some(predicate),
            },
            false => BoundPredicates {
                of_row: Some(predicate),
                of_statics: None,
            },
        };
        match self {
            PreparedCondition::Exists => Ok(existence(RowTests::Exists)),
            PreparedCondition::NotExists => Ok(existence(RowTests::NotExists)),
            PreparedCondition::Columns(columns) => evaluate::predicates(columns, values, clock),
        }
    }
}

/// The predicates of a condition.
#[derive(Debug)]
pub(super) struct BoundPredicates {
    /// The tests of the row that the statement names.
    pub of_row: Option<RowTests>,
    /// The tests of the static row of its partition.
    pub of_statics: Option<RowTests>,
}

/// Tests of one row, of one kind.
#[derive(Debug)]
pub(super) enum RowTests {
    Exists,
    NotExists,
    /// Conditions on columns, all of which must hold.
    OfColumns(Vec<BoundCondition>),
}

impl RowTests {
    /// Adds tests of the same kind.
    pub fn add(&mut self, more: RowTests) {
        if let (RowTests::OfColumns(tests), RowTests::OfColumns(more)) = (self, more) {
            tests.extend(more);
        }
    }

    /// The predicate that tests a row.
    pub fn into_predicate(self) -> RowPredicate {
        match self {
            RowTests::Exists => RowPredicate::Exists,
            RowTests::NotExists => RowPredicate::NotExists,
            RowTests::OfColumns(conditions) => evaluate::all_of(conditions),
        }
    }
}

impl ColumnCondition {
    /// Whether the column is static.
    pub fn is_static(&self) -> bool {
        self.column.kind == ColumnKind::Static
    }
}
