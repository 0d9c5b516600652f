//! GROUP BY: rows that follow each other and agree in the first columns of the primary key are one
//! row of the answer.
//!
//! A group is within a partition, as the columns of the partition key are either named or given by
//! WHERE. So a group has ended as soon as a row of another one comes, and only one is open at a
//! time. LIMIT, PER PARTITION LIMIT and pages count groups.

use std::sync::Arc;

use bytes::Bytes;
use cql::ast::Selector;
use cql::error::CqlError;
use query::bind::PrepareContext;
use query::resolve;
use schema::{Column, ColumnKind, Table};
use storage::read::Partition;
use value::compare;

use super::access::RowAccessPath;
use super::aggregate::Accumulator;
use super::expression::{EvaluationContext, Expression};
use super::group_order::GroupOrder;
use super::page::ResultPage;
use super::paging::PagingState;
use super::projection::ResolvedSelection;
use super::retained_rows::{HeldRow, own_value};

/// The fault of columns that leave a gap in the primary key.
const OUT_OF_ORDER: &str = "Group by currently only support groups of columns following their declared order in the PRIMARY KEY";

/// GROUP BY, resolved.
#[derive(Clone, Debug)]
pub(super) struct ResolvedGroupBy {
    /// The first columns of the clustering key, whose values the rows of a group share.
    clustering: Vec<Column>,
    /// A function of the clustering column after these, whose result they share, too.
    function: Option<Expression>,
}

/// The parts of a row in which it agrees with the others of its group.
struct OpenGroupKey {
    partition: Arc<Partition>,
    /// The values of the clustering key; `None` for a partition of static columns only.
    clustering: Option<Vec<Bytes>>,
    /// The result of the function of GROUP BY.
    result: Option<Bytes>,
}

/// Groups that become the rows of a page.
pub(super) struct PageGroups {
    /// The groups that have ended.
    pub page: ResultPage,
    /// The group whose rows are coming.
    pub open: Option<OpenGroup>,
    /// The order of groups over several partitions; `None` if they stay in the order of the disk.
    pub order: Option<Box<GroupOrder>>,
}

/// A group whose rows are coming.
pub(super) struct OpenGroup {
    key: OpenGroupKey,
    /// The index of its partition among those that the query names.
    pub slot: usize,
    /// The first row, as far as it is selected. Columns next to aggregates show its values.
    pub first: Box<HeldRow>,
    /// The states of the projection's aggregates, in their order.
    pub accumulators: Vec<Accumulator>,
    /// The place where a page begins that has this group as its first one.
    pub before: PagingState,
    /// Whether that is not where this page began.
    pub has_moved_before: bool,
}

impl OpenGroup {
    /// Copies what is part of blocks of the disk. Returns the bytes that the group takes.
    pub(super) fn own(&mut self) -> usize {
        let row = self.first.own();
        // These are parts of the row.
        let first = self.first.row();
        self.key.partition = Arc::clone(&first.partition);
        self.key.clustering.clone_from(&first.clustering);
        self.key.result = self.key.result.as_ref().map(own_value);
        self.before.own();
        let values: usize = self.accumulators.iter_mut().map(Accumulator::own).sum();
        row + values + self.key.result.as_ref().map_or(0, Bytes::len)
    }
}

impl PageGroups {
    /// No groups yet.
    pub(super) fn new(page: ResultPage, order: Option<Box<GroupOrder>>) -> PageGroups {
        PageGroups {
            page,
            open: None,
            order,
        }
    }
}

impl ResolvedGroupBy {
    /// Resolves GROUP BY; `None` if there is none.
    ///
    /// # Errors
    /// Columns outside the primary key, or not in its order, and functions that are not allowed
    /// there.
    pub(super) fn prepare(
        table: &Table,
        group_by: &[Selector],
        projection: &mut ResolvedSelection,
        access: &RowAccessPath,
        ctx: &mut PrepareContext,
    ) -> Result<Option<ResolvedGroupBy>, CqlError> {
        if group_by.is_empty() {
            return Ok(None);
        }
        let (partition_key, clustering_key) = (table.partition_key(), table.clustering_key());
        let key: Vec<&Column> = partition_key
            .iter()
            .chain(&clustering_key)
            .copied()
            .collect();
        let is_fixed = |at: usize| access.fixes(key[at]);
        let mut function = None;
        let mut grouped = 0;
        for selector in group_by {
            let column = match selector {
                Selector::Column(name) => {
                    let column = resolve::column(table, name)?;
                    if matches!(column.kind, ColumnKind::Regular | ColumnKind::Static) {
                        return Err(CqlError::invalid(format!(
                            "Group by is currently only supported on the columns of the PRIMARY KEY, got {name}"
                        )));
                    }
                    if function.is_some() {
                        return Err(CqlError::invalid(
                            "Functions are only supported on the last element of the GROUP BY clause",
                        ));
                    }
                    column.clone()
                }
                call => {
                    let (resolved, column) = projection.group_function(table, call, ctx)?;
                    function = Some(resolved);
                    column
                }
            };
            let at = key.iter().position(|of_key| of_key.id == column.id);
            // Columns that WHERE gives a single value may be left out, as they split no group.
            let at = at.filter(|at| *at >= grouped && (grouped..*at).all(is_fixed));
            grouped = at.ok_or_else(|| CqlError::invalid(OUT_OF_ORDER))? + 1;
        }
        if grouped < partition_key.len() {
            return Err(CqlError::invalid(
                "Group by is not supported on only a part of the partition key",
            ));
        }
        let of_clustering = grouped - partition_key.len();
        let of_values = of_clustering - usize::from(function.is_some());
        let clustering = clustering_key[..of_values].iter().copied().cloned();
        Ok(Some(ResolvedGroupBy {
            clustering: clustering.collect(),
            function,
        }))
    }

    /// The number of columns of the clustering key by which rows are grouped.
    pub(super) fn clustering_columns(&self) -> usize {
        self.clustering.len() + usize::from(self.function.is_some())
    }

    /// Whether a row is of a group.
    ///
    /// # Errors
    /// If the function of GROUP BY fails.
    pub(super) fn has(
        &self,
        group: &OpenGroup,
        scope: EvaluationContext<'_>,
    ) -> Result<bool, CqlError> {
        let Some(row) = scope.row else {
            return Ok(false);
        };
        let OpenGroupKey {
            partition,
            clustering,
            result,
        } = &group.key;
        if !Arc::ptr_eq(partition, &row.partition) && partition.key != row.partition.key {
            return Ok(false);
        }
        let agrees = match (clustering, &row.clustering) {
            (Some(theirs), Some(own)) => self
                .clustering
                .iter()
                .zip(theirs.iter().zip(own))
                .all(|(column, (a, b))| compare(&column.cql_type, a, b).is_eq()),
            (None, None) => true,
            _ => false,
        };
        Ok(agrees && *result == self.result(scope)?)
    }

    /// A group that begins with the row of the scope, of which `first` has what is selected.
    /// `before` is the place before the row, and `has_moved` whether that is not where the page
    /// began.
    ///
    /// # Errors
    /// If the function of GROUP BY fails.
    pub(super) fn open(
        &self,
        slot: usize,
        first: HeldRow,
        scope: EvaluationContext<'_>,
        accumulators: Vec<Accumulator>,
        (before, has_moved): (&PagingState, bool),
    ) -> Result<OpenGroup, CqlError> {
        Ok(OpenGroup {
            key: OpenGroupKey {
                partition: Arc::clone(&first.row().partition),
                clustering: first.row().clustering.clone(),
                result: self.result(scope)?,
            },
            slot,
            first: Box::new(first),
            accumulators,
            before: before.clone(),
            has_moved_before: has_moved,
        })
    }

    fn result(&self, scope: EvaluationContext<'_>) -> Result<Option<Bytes>, CqlError> {
        match &self.function {
            Some(function) => function.evaluate(scope),
            None => Ok(None),
        }
    }
}
