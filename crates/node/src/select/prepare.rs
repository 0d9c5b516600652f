//! Preparation of a SELECT: resolves the parsed statement to a plan.

use cql::ast;
use cql::error::CqlError;
use query::bind::{PrepareContext, StatementTimeout};
use query::functions::TokenKey;
use query::relation::{PreparedRelation, RelationKind};
use query::resolve::TableColumns;
use query::{RowOrdering, SearchCall, WordRelation, bounds, limit, relation};
use schema::{ColumnKind, Table};

use super::access::{self, AllowedAccess, PartitionAccess, RowAccessPath};
use super::group::ResolvedGroupBy;
use super::order::ResultOrder;
use super::plan::ResolvedSelect;
use super::projection::ResolvedSelection;
use super::searches::SearchOrder;
use super::selected_table::SelectedTable;
use super::{order, projection, searches};
use crate::database::CqlDatabase;

/// Resolves a SELECT.
///
/// # Errors
/// Every error that can be found before the values are known.
pub(super) fn prepare(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    select: &ast::Select,
    markers: usize,
) -> Result<ResolvedSelect, CqlError> {
    let selected = SelectedTable::find(database, keyspace, &select.table)?;
    let table = selected.table.clone();
    let catalog = database.storage.catalog();
    let mut ctx = PrepareContext::new(&table.keyspace, &table.name, markers)
        .with_key(TokenKey::of(TableColumns::from(&*table), table.partitioner))
        .with_types_of(catalog.keyspace(&table.keyspace));
    let mut projection = projection::prepare(&table, select.json, &select.projection, &mut ctx)?;
    let timeout = select
        .timeout
        .as_ref()
        .map(|timeout| StatementTimeout::prepare(timeout, &mut ctx))
        .transpose()?;
    // Its checks come first, as it allows fewer clauses than other orderings do.
    let mut search = search(&table, select, &projection, &mut ctx)?;
    let relations = relations(&table, select, &mut ctx)?;
    if let Some(search) = &mut search {
        search.restrict(&relations, select.allow_filtering)?;
        if !select.distinct {
            search.cover(&projection);
        }
    }
    // By searches, the access path leads a scan that filters the rows.
    let allowed = AllowedAccess {
        filtering: select.allow_filtering || search.is_some(),
        indexes: search.is_none(),
    };
    let access = access(&table, select, &projection, relations, allowed)?;
    let order = match search {
        Some(search) if search.plan.is_some() => ResultOrder::Searched(Box::new(search)),
        Some(search) => ResultOrder::Matching(Box::new(search)),
        None => ResultOrder::Clustering(order::prepare(&table, &select.order_by, &access)?),
    };
    let grouping =
        ResolvedGroupBy::prepare(&table, &select.group_by, &mut projection, &access, &mut ctx)?;
    check_groups(select, grouping.as_ref())?;
    let per_partition_limit = limit::prepare(
        select.per_partition_limit.as_ref(),
        limit::PER_PARTITION_LIMIT,
        &mut ctx,
    )?;
    let limit = limit::prepare(select.limit.as_ref(), limit::LIMIT, &mut ctx)?;
    if let (None, ResultOrder::Searched(search)) = (&limit, &order) {
        return Err(bounds::no_limit(search.form));
    }
    Ok(ResolvedSelect {
        selected,
        projection,
        timeout,
        variables: ctx.finish()?,
        partition_key_variables: access.partitions.key_variables(),
        access,
        order,
        grouping,
        distinct: select.distinct,
        limit,
        per_partition_limit,
    })
}

/// Resolves the searches of ORDER BY and WHERE; `None` without any.
fn search(
    table: &Table,
    select: &ast::Select,
    projection: &ResolvedSelection,
    ctx: &mut PrepareContext,
) -> Result<Option<SearchOrder>, CqlError> {
    let ordering = RowOrdering::of(select)?;
    let searched = match &ordering {
        RowOrdering::Searched(ordering) => Some(ordering),
        RowOrdering::Clustering(_) => None,
    };
    let mut words = Vec::new();
    for relation in &select.relations {
        words.extend(WordRelation::of(table.into(), relation, ctx)?);
    }
    if searched.is_some() || !words.is_empty() {
        return searches::prepare(table, searched, words, select, projection, ctx).map(Some);
    }
    match projection.searches.is_empty() {
        true => Ok(None),
        false => Err(no_search()),
    }
}

/// Resolves the relations of WHERE that are not on words.
fn relations(
    table: &Table,
    select: &ast::Select,
    ctx: &mut PrepareContext,
) -> Result<Vec<PreparedRelation>, CqlError> {
    let relations = select
        .relations
        .iter()
        .filter(|relation| !is_of_words(relation))
        .map(|relation| relation::prepare(table.into(), relation, ctx))
        .collect::<Result<Vec<_>, _>>()?;
    let is_in_one_partition = access::names_one_partition(table, &relations);
    let relations = relations.into_iter();
    Ok(relations
        .map(|relation| relation.with_indexes(table, is_in_one_partition))
        .collect())
}

/// Whether a relation is on words, and so was prepared as such.
fn is_of_words(relation: &ast::Relation) -> bool {
    match &relation.subject {
        ast::ComparisonSubject::Function(call) => matches!(SearchCall::of(call), Ok(Some(_))),
        _ => false,
    }
}

/// The error for a selection of scores or ranks where nothing is searched.
fn no_search() -> CqlError {
    CqlError::invalid(
        "Scores, ranks and highlights of searches in the selection need a search: ORDER BY ANN(...), BM25(...), RRF(...) \
         or an expression of scores, or BM25(column, words) > 0 in WHERE",
    )
}

/// Checks GROUP BY against the other clauses.
fn check_groups(select: &ast::Select, grouping: Option<&ResolvedGroupBy>) -> Result<(), CqlError> {
    let Some(grouping) = grouping else {
        return Ok(());
    };
    if select.distinct && grouping.clustering_columns() > 0 {
        return Err(CqlError::invalid(
            "Grouping on clustering columns is not allowed for SELECT DISTINCT queries",
        ));
    }
    Ok(())
}

/// Decides on the access path that the relations of WHERE lead to.
fn access(
    table: &Table,
    select: &ast::Select,
    projection: &ResolvedSelection,
    relations: Vec<PreparedRelation>,
    allowed: AllowedAccess,
) -> Result<RowAccessPath, CqlError> {
    check_per_partition_limit(select, projection)?;
    if select.distinct {
        check_distinct(table, &relations, projection)?;
    } else {
        check_static_selection(table, &relations, projection)?;
    }
    let access = access::plan(table, relations, allowed)?;
    if select.distinct {
        check_distinct_scan(table, &access, projection)?;
    }
    Ok(access)
}

/// Refuses PER PARTITION LIMIT together with DISTINCT and aggregates, as no partition has several
/// rows of the answer there.
fn check_per_partition_limit(
    select: &ast::Select,
    projection: &ResolvedSelection,
) -> Result<(), CqlError> {
    let what = if select.per_partition_limit.is_none() {
        return Ok(());
    } else if select.distinct {
        "SELECT DISTINCT"
    } else if select.group_by.is_empty() && !projection.aggregates.is_empty() {
        "aggregate"
    } else {
        return Ok(());
    };
    Err(CqlError::invalid(format!(
        "PER PARTITION LIMIT is not allowed with {what} queries"
    )))
}

/// Refuses restrictions of clustering columns if only static columns are selected: a partition's
/// static row has no clustering key.
fn check_static_selection(
    table: &Table,
    relations: &[PreparedRelation],
    projection: &ResolvedSelection,
) -> Result<(), CqlError> {
    let has = |kind: fn(&ColumnKind) -> bool| projection.read.iter().any(|read| kind(&read.kind));
    let selects_static_only = has(|kind| *kind == ColumnKind::Static)
        && !has(|kind| matches!(kind, ColumnKind::Clustering { .. } | ColumnKind::Regular));
    let restricts_clustering = table.clustering_key().into_iter().any(|column| {
        relations
            .iter()
            .any(|relation| relation.is_on(&column.name))
    });
    if selects_static_only && restricts_clustering {
        return Err(CqlError::invalid(
            "Cannot restrict clustering columns when selecting only static columns",
        ));
    }
    Ok(())
}

/// Checks that a DISTINCT query selects and restricts no clustering columns and no regular columns.
fn check_distinct(
    table: &Table,
    relations: &[PreparedRelation],
    projection: &ResolvedSelection,
) -> Result<(), CqlError> {
    let is_of_rows =
        |kind: ColumnKind| matches!(kind, ColumnKind::Clustering { .. } | ColumnKind::Regular);
    if let Some(column) = projection
        .read
        .iter()
        .find(|column| is_of_rows(column.kind))
    {
        return Err(CqlError::invalid(format!(
            "SELECT DISTINCT queries must only request partition key columns and/or static columns (not {})",
            column.name
        )));
    }
    let restricts_rows = relations.iter().any(|relation| match &relation.kind {
        RelationKind::Token { .. } => false,
        _ => table
            .columns
            .iter()
            .any(|column| is_of_rows(column.kind) && relation.is_on(&column.name)),
    });
    if restricts_rows {
        return Err(CqlError::invalid(
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.",
        ));
    }
    Ok(())
}

/// Checks that a DISTINCT scan selects the whole partition key, as otherwise the rows of different
/// partitions could look the same.
fn check_distinct_scan(
    table: &Table,
    access: &RowAccessPath,
    projection: &ResolvedSelection,
) -> Result<(), CqlError> {
    if matches!(access.partitions, PartitionAccess::Keys(_)) {
        return Ok(());
    }
    let missing = table
        .partition_key()
        .into_iter()
        .find(|column| projection.read.iter().all(|read| read.id != column.id));
    match missing {
        Some(column) => Err(CqlError::invalid(format!(
            "SELECT DISTINCT queries must request all the partition key columns (missing {})",
            column.name
        ))),
        None => Ok(()),
    }
}
