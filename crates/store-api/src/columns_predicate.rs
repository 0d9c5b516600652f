//! Conditions on a row, whose values are as CQL serialises them.

use value::predicate::{ComparisonOperator, Predicate, TuplePredicate};

/// A condition on a row that a search goes by.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnsPredicate {
    /// A condition on one column.
    Column {
        /// The name of the column.
        column: String,
        /// The condition on its value.
        predicate: Predicate,
    },
    /// A condition on several columns together.
    Tuple {
        /// The names of the columns.
        columns: Vec<String>,
        /// The condition on their values.
        predicate: TuplePredicate,
    },
    /// A comparison of the partition's token.
    Token {
        /// The names of all columns of the partition key.
        columns: Vec<String>,
        /// The way in which the partition's token is compared.
        comparison: ComparisonOperator,
        /// The token that the partition's token is compared with.
        token: i64,
    },
}

impl ColumnsPredicate {
    /// The columns that are restricted.
    pub fn columns(&self) -> &[String] {
        match self {
            ColumnsPredicate::Column { column, .. } => std::slice::from_ref(column),
            ColumnsPredicate::Tuple { columns, .. } | ColumnsPredicate::Token { columns, .. } => {
                columns
            }
        }
    }

    /// Whether the columns must equal a value, or one of several.
    pub fn is_equality(&self) -> bool {
        match self {
            ColumnsPredicate::Column { predicate, .. } => matches!(
                predicate,
                Predicate::In(_)
                    | Predicate::Compare {
                        comparison: ComparisonOperator::Eq,
                        ..
                    }
            ),
            ColumnsPredicate::Tuple { predicate, .. } => matches!(
                predicate,
                TuplePredicate::In(_)
                    | TuplePredicate::Compare {
                        comparison: ComparisonOperator::Eq,
                        ..
                    }
            ),
            ColumnsPredicate::Token { .. } => false,
        }
    }

    /// The number of values that the condition names. A tuple has as many as it has elements.
    pub fn values(&self) -> usize {
        match self {
            ColumnsPredicate::Column { predicate, .. } => match predicate {
                Predicate::In(list) => list.values().len(),
                Predicate::Entry { .. } => 2,
                Predicate::Compare { .. }
                | Predicate::NotEqual { .. }
                | Predicate::Like(_)
                | Predicate::Contains { .. }
                | Predicate::ContainsKey { .. } => 1,
            },
            ColumnsPredicate::Tuple { predicate, .. } => match predicate {
                TuplePredicate::Compare { values, .. } => values.len(),
                TuplePredicate::In(list) => list.tuples().iter().map(Vec::len).sum(),
            },
            ColumnsPredicate::Token { .. } => 1,
        }
    }
}
