//! Conditions on a row, whose values are as CQL serialises them.

use value::predicate::{ComparisonOperator, Predicate, TuplePredicate};

/// A condition on a row that a search goes by.
///
/// A row without a value in a column satisfies neither a condition on the column nor its
/// [negation](ColumnsPredicate::Not).
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
    /// A text that matches a query, which a full-text index answers.
    Words {
        /// The name of the column that has the text.
        column: String,
        /// The name of the full-text index, in the keyspace of the search.
        index: String,
        /// The query, in the language of full-text queries.
        query: String,
    },
    /// Conditions that must all hold. Without any it always holds.
    All(Vec<ColumnsPredicate>),
    /// Conditions of which one must hold. Without any it never holds.
    Any(Vec<ColumnsPredicate>),
    /// A condition that must not hold.
    Not(Box<ColumnsPredicate>),
}

impl ColumnsPredicate {
    /// The columns of whose values an index has to know. Words need none, as the full-text index on
    /// their column answers them.
    pub fn columns(&self) -> Vec<&str> {
        match self {
            ColumnsPredicate::Column { column, .. } => vec![column],
            ColumnsPredicate::Tuple { columns, .. } | ColumnsPredicate::Token { columns, .. } => {
                columns.iter().map(String::as_str).collect()
            }
            ColumnsPredicate::Words { .. } => Vec::new(),
            ColumnsPredicate::All(parts) | ColumnsPredicate::Any(parts) => {
                parts.iter().flat_map(ColumnsPredicate::columns).collect()
            }
            ColumnsPredicate::Not(inner) => inner.columns(),
        }
    }

    /// The conditions that must all hold for this one to hold, none of which is
    /// [`ColumnsPredicate::All`].
    pub fn conjuncts(&self) -> Vec<&ColumnsPredicate> {
        match self {
            ColumnsPredicate::All(parts) => {
                parts.iter().flat_map(ColumnsPredicate::conjuncts).collect()
            }
            other => vec![other],
        }
    }

    /// Whether the columns must equal a value, or one of several. Of conditions that are made of
    /// others only their [conjuncts](ColumnsPredicate::conjuncts) can say so.
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
            ColumnsPredicate::Token { .. }
            | ColumnsPredicate::Words { .. }
            | ColumnsPredicate::All(_)
            | ColumnsPredicate::Any(_)
            | ColumnsPredicate::Not(_) => false,
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
            ColumnsPredicate::Token { .. } | ColumnsPredicate::Words { .. } => 1,
            ColumnsPredicate::All(parts) | ColumnsPredicate::Any(parts) => {
                parts.iter().map(ColumnsPredicate::values).sum()
            }
            ColumnsPredicate::Not(inner) => inner.values(),
        }
    }

    /// Whether the condition, or a part of it, satisfies a test. Conditions that are made of others
    /// are not tested themselves.
    pub fn has(&self, test: &dyn Fn(&ColumnsPredicate) -> bool) -> bool {
        match self {
            ColumnsPredicate::All(parts) | ColumnsPredicate::Any(parts) => {
                parts.iter().any(|part| part.has(test))
            }
            ColumnsPredicate::Not(inner) => inner.has(test),
            leaf => test(leaf),
        }
    }
}
