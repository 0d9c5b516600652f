//! The WHERE of a query: its relations, and the rows that satisfy them.
//!
//! The index searches by the relations whose columns it keeps. Each row is checked for all of them
//! after it is read, as it may have changed, and as the index may know less than all relations.

use std::sync::Arc;

use cql::ast::{Relation as Written, Select, Subject};
use cql::error::CqlError;
use query::IndexDefinition as _;
use query::bind::PrepareContext;
use query::condition::{Condition, Support, conditions};
use query::functions::TokenKey;
use query::relation::{self, Relation, conflicts};
use query::resolve::Columns;
use query::row_filter::{FilteredRow, RowFilter};
use schema::{Column, ColumnId, ColumnKind};
use value::predicate::{Observed, Predicate};
use value::token::{Partitioner, routing_key};

use super::row::Row;
use crate::catalog::{self, DefinedIndex, LoggedTable, Snapshot};
use crate::key_read::Layout;

/// The place of a column in a row that is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// The position in the primary key.
    Key(usize),
    /// The position among the columns that are read to be checked ([`Layout::checked`]).
    Checked(usize),
}

/// The conditions of a query.
#[derive(Debug)]
pub(super) struct Conditions {
    /// The relations of WHERE, and which of them the index can search by.
    pub(super) all: Vec<Condition>,
    /// The columns outside of the primary key that relations name.
    pub(super) checked: Vec<String>,
}

impl Conditions {
    /// Resolves the WHERE of a query that uses `index`.
    ///
    /// # Errors
    /// Relations that make no sense, and columns that need ALLOW FILTERING.
    pub(super) fn of(
        select: &Select,
        table: &LoggedTable,
        index: &Arc<DefinedIndex>,
        snapshot: &Snapshot,
        ctx: &mut PrepareContext,
    ) -> Result<Conditions, CqlError> {
        let columns = known_columns(table);
        let resolvable = Columns {
            keyspace: &table.keyspace,
            table: &table.name,
            columns: &columns,
        };
        ctx.key = Some(TokenKey::of(resolvable, Partitioner::Murmur3));
        let prepare = |written: &Written| {
            refuse_unknown_type(written, table)?;
            let relation = relation::prepare(resolvable, written, ctx)?;
            refuse_indexed_vector(&relation, table, snapshot)?;
            Ok(relation)
        };
        let relations = select.relations.iter().map(prepare);
        let relations = relations.collect::<Result<Vec<Relation>, CqlError>>()?;
        conflicts::check(&relations)?;
        let support = |column: &Column| {
            if index.names(&column.name) || table.is_kept_unnamed(&column.name) {
                Support::Kept
            } else if table.sai_columns.contains(&column.name) {
                Support::Allowed
            } else {
                Support::None
            }
        };
        let all = conditions(relations, support, select.allow_filtering)?;
        let mut checked: Vec<String> = Vec::new();
        for column in all.iter().filter_map(|one| one.relation.first_column()) {
            let is_key = query::condition::is_key_column(column.kind);
            if !is_key && !checked.contains(&column.name) {
                checked.push(column.name.clone());
            }
        }
        Ok(Conditions { all, checked })
    }

    /// The place of a column that a relation names.
    pub(super) fn place(&self, column: &Column, partition_columns: usize) -> Place {
        match column.kind {
            ColumnKind::PartitionKey { position } => Place::Key(position),
            ColumnKind::Clustering { position, .. } => Place::Key(partition_columns + position),
            ColumnKind::Static | ColumnKind::Regular => {
                let mut checked = self.checked.iter();
                let position = checked.position(|name| *name == column.name);
                // Each column that a relation names is among them.
                Place::Checked(position.unwrap_or(usize::MAX))
            }
        }
    }
}

/// The columns of a table whose types the gateway knows.
pub(super) fn known_columns(table: &LoggedTable) -> Vec<Column> {
    let partition_columns = table.partition_key_count;
    let column = |(position, column): (usize, &catalog::Column)| {
        let kind = match column.kind {
            catalog::ColumnKind::PartitionKey => ColumnKind::PartitionKey { position },
            catalog::ColumnKind::Clustering => ColumnKind::Clustering {
                position: position - partition_columns,
                // The order within a partition is the cluster's business.
                descending: false,
            },
            catalog::ColumnKind::Static => ColumnKind::Static,
            catalog::ColumnKind::Regular => ColumnKind::Regular,
        };
        Some(Column {
            id: ColumnId(position as u32),
            name: column.name.clone(),
            kind,
            cql_type: column.cql_type.clone()?,
        })
    };
    table
        .columns
        .iter()
        .enumerate()
        .filter_map(column)
        .collect()
}

/// Refuses a relation on a column whose values the gateway can't compare.
fn refuse_unknown_type(written: &Written, table: &LoggedTable) -> Result<(), CqlError> {
    let (Subject::Column(name)
    | Subject::Element { column: name, .. }
    | Subject::Field { column: name, .. }) = &written.subject
    else {
        return Ok(());
    };
    match table.column(name) {
        Some(column) if column.cql_type.is_none() => Err(CqlError::invalid(format!(
            "Column {name} can't restrict a Vector ANN query, as its type holds a user-defined type: \
             restrict another column"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a relation on a vector column with an index, which serves only nearest neighbours.
fn refuse_indexed_vector(
    relation: &Relation,
    table: &LoggedTable,
    snapshot: &Snapshot,
) -> Result<(), CqlError> {
    let Some(column) = relation.first_column() else {
        return Ok(());
    };
    let mut indexes = snapshot.indexes(&table.keyspace, &table.name);
    if column.cql_type.float_vector_dimensions().is_some()
        && indexes.any(|index| index.target.column == column.name)
    {
        return Err(CqlError::invalid("Vector indexes only support ANN queries"));
    }
    Ok(())
}

/// A row that was read, as filters look at it.
struct ReadRow<'a> {
    row: &'a Row,
    layout: &'a Layout,
    partition_columns: usize,
}

/// Whether a row passes all filters. `partition_columns` is the number of columns of the partition
/// key.
pub(super) fn passes(
    row: &Row,
    layout: &Layout,
    partition_columns: usize,
    filters: &[RowFilter<Place>],
) -> bool {
    let row = ReadRow {
        row,
        layout,
        partition_columns,
    };
    filters.iter().all(|filter| filter.accepts(&row))
}

impl FilteredRow<Place> for ReadRow<'_> {
    fn satisfies(&self, place: &Place, predicate: &Predicate) -> bool {
        let observed: Observed<'_, std::iter::Empty<(&[u8], &[u8])>> = match self.value(place) {
            Some(value) => Observed::Value(value),
            None => Observed::Null,
        };
        predicate.holds(observed)
    }

    fn value(&self, place: &Place) -> Option<&[u8]> {
        let position = match place {
            Place::Key(position) => self.layout.key.get(*position),
            Place::Checked(position) => self.layout.checked.get(*position),
        };
        self.row.get(*position?)?.as_deref()
    }

    fn token(&self) -> i64 {
        let key = (0..self.partition_columns).map(|position| {
            let value = self.value(&Place::Key(position));
            value.unwrap_or_default()
        });
        let key: Vec<_> = key.map(bytes::Bytes::copy_from_slice).collect();
        Partitioner::Murmur3.token(&routing_key(&key)).0
    }
}
