//! Operations on one column. An operation is prepared from an assignment or a deletion, and
//! evaluated to the change that the storage makes.

mod collections;
mod evaluate;
mod prepare;

use std::sync::Arc;

use query::bind::PreparedTerm;
use schema::{Column, ColumnId};
use value::{CqlType, UserType};

/// An operation on one column.
#[derive(Debug)]
pub(super) struct ColumnOperation {
    /// The id of the column.
    pub column: ColumnId,
    /// The name of the column.
    pub name: String,
    action: ColumnAction,
}

#[derive(Debug)]
enum ColumnAction {
    /// Sets the whole value of a column that is one cell.
    Set(PreparedTerm),
    /// Sets the whole value of a non-frozen collection, which has one cell for each element.
    Replace(CollectionKind, PreparedTerm),
    /// Sets the whole value of a non-frozen user type, which has one cell for each field.
    ReplaceFields(Arc<UserType>, PreparedTerm),
    /// `u.field = value`, with the field's position.
    SetField(usize, PreparedTerm),
    /// `DELETE u.field`, with the field's position.
    DeleteField(usize),
    /// Adds to a counter, or takes away.
    Count {
        sign: CounterDirection,
        term: PreparedTerm,
    },
    /// Sets the column to null.
    Delete,
    /// Adds elements to the end of a list, or into a set or map.
    Add(CollectionKind, PreparedTerm),
    /// Adds elements to the beginning of a list.
    Prepend(PreparedTerm),
    /// Removes elements, from a list by value and from a set or map by path.
    Remove(CollectionKind, PreparedTerm),
    /// `l[index] = value` or `m[key] = value`.
    SetElement {
        collection: CollectionKind,
        key: PreparedTerm,
        value: PreparedTerm,
    },
    /// `DELETE l[index]`, `DELETE m[key]` or `DELETE s[element]`.
    DeleteElement(CollectionKind, PreparedTerm),
}

/// Whether a counter goes up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CounterDirection {
    Plus,
    Minus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CollectionKind {
    List,
    Set,
    Map,
}

impl CollectionKind {
    fn of(cql_type: &CqlType) -> Option<Self> {
        match cql_type {
            CqlType::List { .. } => Some(CollectionKind::List),
            CqlType::Set { .. } => Some(CollectionKind::Set),
            CqlType::Map { .. } => Some(CollectionKind::Map),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            CollectionKind::List => "list",
            CollectionKind::Set => "set",
            CollectionKind::Map => "map",
        }
    }
}

impl ColumnOperation {
    fn new(column: &Column, action: ColumnAction) -> Self {
        ColumnOperation {
            column: column.id,
            name: column.name.clone(),
            action,
        }
    }
}

/// Whether a column belongs to the primary key.
pub(super) fn is_key(column: &Column) -> bool {
    use schema::ColumnKind::{Clustering, PartitionKey, Regular, Static};
    match column.kind {
        PartitionKey { .. } | Clustering { .. } => true,
        Static | Regular => false,
    }
}
