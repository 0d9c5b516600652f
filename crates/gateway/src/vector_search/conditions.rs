//! The WHERE of a query: its relations, and the rows that satisfy them.
//!
//! The index searches by the relations whose columns it keeps. Each row is checked for all of them
//! after it is read, as it may have changed, and as the index may know less than all relations.

use std::sync::Arc;

use cql::ast::{ComparisonSubject, Relation as Written, Select};
use cql::error::CqlError;
use query::bind::PrepareContext;
use query::condition::{FilterSupport, SearchCondition, conditions};
use query::functions::TokenKey;
use query::relation::{self, PreparedRelation, conflicts};
use query::resolve::TableColumns;
use query::row_filter::{BoundRelation, FilteredRow};
use query::{IndexDefinition as _, SearchCall};
use schema::{Column, ColumnId, ColumnKind};
use value::predicate::{ColumnObservation, Predicate};
use value::token::{Partitioner, routing_key};

use super::row::Row;
use crate::catalog::{self, DefinedIndex, IndexCatalogSnapshot, LoggedTable};
use crate::key_read::ReadRowLayout;

/// The place of a column in a row that is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ConditionColumn {
    /// The position in the primary key.
    Key(usize),
    /// The position among the columns that are read to be checked ([`ReadRowLayout::checked`]).
    Checked(usize),
}

/// The conditions of a query.
#[derive(Debug)]
pub(super) struct QueryConditions {
    /// The relations of WHERE, and which of them the index can search by.
    pub(super) all: Vec<SearchCondition>,
    /// The columns outside of the primary key that relations name.
    pub(super) checked: Vec<String>,
    /// The indexes that search by the conditions.
    indexes: Vec<Arc<DefinedIndex>>,
}

impl QueryConditions {
    /// Resolves the WHERE of a query that uses `indexes`, but for the searches in it.
    ///
    /// # Errors
    /// Relations that make no sense, and columns that need ALLOW FILTERING.
    pub(super) fn of(
        select: &Select,
        table: &LoggedTable,
        indexes: Vec<Arc<DefinedIndex>>,
        snapshot: &IndexCatalogSnapshot,
        ctx: &mut PrepareContext,
    ) -> Result<QueryConditions, CqlError> {
        let columns = known_columns(table);
        let resolvable = TableColumns {
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
        let relations = select.relations.iter();
        let relations = relations.filter(|written| !is_search(&written.subject));
        let relations = relations.map(prepare);
        let relations = relations.collect::<Result<Vec<PreparedRelation>, CqlError>>()?;
        conflicts::check(&relations)?;
        let support = |column: &Column| {
            let are_named = indexes.iter().all(|index| index.names(&column.name));
            if are_named || table.is_kept_unnamed(&column.name) {
                FilterSupport::Kept
            } else if table.sai_columns.contains(&column.name) {
                FilterSupport::Allowed
            } else {
                FilterSupport::None
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
        Ok(QueryConditions {
            all,
            checked,
            indexes,
        })
    }

    /// Whether all indexes name the column of a relation, or it is of the primary key.
    pub(super) fn is_named(&self, relation: &PreparedRelation) -> bool {
        relation.first_column().is_none_or(|column| {
            let mut indexes = self.indexes.iter();
            query::condition::is_key_column(column.kind)
                || indexes.all(|index| index.names(&column.name))
        })
    }

    /// The place of a column that a relation names.
    pub(super) fn place(&self, column: &Column, partition_columns: usize) -> ConditionColumn {
        match column.kind {
            ColumnKind::PartitionKey { position } => ConditionColumn::Key(position),
            ColumnKind::Clustering { position, .. } => {
                ConditionColumn::Key(partition_columns + position)
            }
            ColumnKind::Static | ColumnKind::Regular => {
                let mut checked = self.checked.iter();
                let position = checked.position(|name| *name == column.name);
                // Each column that a relation names is among them.
                ConditionColumn::Checked(position.unwrap_or(usize::MAX))
            }
        }
    }
}

/// The columns of a table whose types the gateway knows.
pub(super) fn known_columns(table: &LoggedTable) -> Vec<Column> {
    let partition_columns = table.partition_key_count;
    let column = |(position, column): (usize, &catalog::LoggedColumn)| {
        let kind = match column.kind {
            catalog::LoggedColumnKind::PartitionKey => ColumnKind::PartitionKey { position },
            catalog::LoggedColumnKind::Clustering => ColumnKind::Clustering {
                position: position - partition_columns,
                // The order within a partition is the cluster's business.
                descending: false,
            },
            catalog::LoggedColumnKind::Static => ColumnKind::Static,
            catalog::LoggedColumnKind::Regular => ColumnKind::Regular,
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
    let (ComparisonSubject::Column(name)
    | ComparisonSubject::Element { column: name, .. }
    | ComparisonSubject::Field { column: name, .. }) = &written.subject
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
    relation: &PreparedRelation,
    table: &LoggedTable,
    snapshot: &IndexCatalogSnapshot,
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
struct ConditionRow<'a> {
    row: &'a Row,
    layout: &'a ReadRowLayout,
    partition_columns: usize,
}

/// Whether a row passes all filters. `partition_columns` is the number of columns of the partition
/// key.
pub(super) fn passes(
    row: &Row,
    layout: &ReadRowLayout,
    partition_columns: usize,
    filters: &[BoundRelation<ConditionColumn>],
) -> bool {
    let row = ConditionRow {
        row,
        layout,
        partition_columns,
    };
    filters.iter().all(|filter| filter.accepts(&row))
}

impl FilteredRow<ConditionColumn> for ConditionRow<'_> {
    fn satisfies(&self, place: &ConditionColumn, predicate: &Predicate) -> bool {
        let observed: ColumnObservation<'_, std::iter::Empty<(&[u8], &[u8])>> =
            match self.value(place) {
                Some(value) => ColumnObservation::Value(value),
                None => ColumnObservation::Null,
            };
        predicate.holds(observed)
    }

    fn value(&self, place: &ConditionColumn) -> Option<&[u8]> {
        let position = match place {
            ConditionColumn::Key(position) => self.layout.key.get(*position),
            ConditionColumn::Checked(position) => self.layout.checked.get(*position),
        };
        self.row.get(*position?)?.as_deref()
    }

    fn token(&self) -> i64 {
        let key = (0..self.partition_columns).map(|position| {
            let value = self.value(&ConditionColumn::Key(position));
            value.unwrap_or_default()
        });
        let key: Vec<_> = key.map(bytes::Bytes::copy_from_slice).collect();
        Partitioner::Murmur3.token(&routing_key(&key)).0
    }
}
/// Whether a relation of WHERE is a call of a search.
pub(super) fn is_search(subject: &ComparisonSubject) -> bool {
    match subject {
        // A call that makes no sense is one, too.
        ComparisonSubject::Function(call) => !matches!(SearchCall::of(call), Ok(None)),
        _ => false,
    }
}
