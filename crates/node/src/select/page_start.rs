//! The cursor of a page: the source of its rows, from where the page begins, and the collector that
//! takes them.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use query::limit;
use query::values::EvaluationInputs;
use value::token::routing_key;

use super::access::IndexUse;
use super::collector::{RowCollector, RowSink};
use super::cursor::QueryCursor;
use super::filter::{self, ResidualFilter};
use super::group::PageGroups;
use super::group_order::GroupOrder;
use super::indexed::IndexRowSource;
use super::lookup;
use super::order::{ClusteringOrder, RowOrder};
use super::page::ResultPage;
use super::paging::{self, PagingState};
use super::partition_query::PartitionQuery;
use super::partitions::{Tokens, WantedPartitions};
use super::plan::ResolvedSelect;
use super::positions::IndexReadRange;
use super::source::{
    MERGED_PARTITIONS_MAX, PartitionMerge, PartitionSequence, RowSource, TableSource,
};
use crate::statement::{ExecutionParameters, storage_error};

/// Makes the cursor of a page.
///
/// # Errors
/// Values that don't fit their places, a paging state of another query, and failures of the
/// storage.
pub(super) fn cursor(
    plan: &Arc<ResolvedSelect>,
    order: &ClusteringOrder,
    reader: TableSource,
    question: PartitionQuery,
    partitions: WantedPartitions,
    parameters: &ExecutionParameters,
    values: EvaluationInputs<'_>,
) -> Result<QueryCursor, CqlError> {
    let table = &plan.selected.table;
    let limit = limit::evaluate(plan.limit.as_ref(), values)?;
    let mut per_partition = limit::evaluate(plan.per_partition_limit.as_ref(), values)?;
    let filters = filter::bind_all(&plan.access.filters, values)?;

    let is_aggregate = plan.is_one_group();
    // A page size of 0 turns paging off.
    let page_rows = parameters.page_size.filter(|rows| *rows > 0);
    let mut state = match &parameters.paging_state {
        Some(bytes) => resumed(bytes, plan, &partitions, limit)?,
        // LIMIT counts rows of the answer, and an aggregate makes one row of all that are read.
        None => PagingState::of_limit(limit.filter(|_| !is_aggregate)),
    };
    let mut returned_by_slot = Vec::new();
    let mut group_order = None;
    let mut is_paged = !is_aggregate;
    let named = partitions.named();
    let source = match partitions {
        WantedPartitions::Keys(keys)
            if keys.len() > 1 && !order.columns.is_empty() && !is_aggregate =>
        {
            // One partition has its rows in the order of the disk, or the reverse. Several are
            // merged, and the place in a merge is one in each partition, which no paging state
            // holds.
            check_merge(keys.len(), page_rows, limit, parameters)?;
            is_paged = false;
            let order = RowOrder::new(table, order);
            if plan.grouping.is_some() {
                group_order = Some(Box::new(GroupOrder::new(order, limit, &parameters.memory)));
                // LIMIT counts the groups once they are in order. Those of a partition are so from
                // the start, so that no more of them are wanted.
                state.remaining = None;
                per_partition = [per_partition, limit].into_iter().flatten().min();
                let keys = WantedPartitions::Keys(keys);
                RowSource::Sequence(PartitionSequence::new(reader, question, keys, 0, None))
            } else {
                returned_by_slot = vec![0; keys.len()];
                let memory = &parameters.memory;
                RowSource::Merge(PartitionMerge::new(reader, question, keys, order, memory))
            }
        }
        partitions => source(
            plan, reader, question, partitions, &filters, &state, parameters,
        )?,
    };
    let output = if is_aggregate {
        RowSink::aggregate(&plan.projection)
    } else {
        let page_rows = page_rows.filter(|_| is_paged);
        let page = ResultPage::new(page_rows, &parameters.memory);
        match plan.grouping {
            Some(_) => RowSink::Groups(PageGroups::new(page, group_order)),
            None => RowSink::Page(page),
        }
    };
    let collector = RowCollector {
        plan: plan.clone(),
        clock: values.clock.clone(),
        terms: values.selection(&plan.projection.terms)?,
        filters,
        hits: Vec::new(),
        output,
        memory: parameters.memory.clone(),
        held: parameters.memory.charge(),
        returned_by_slot,
        // DISTINCT selects only what all rows of a partition share.
        per_partition_max: if plan.distinct {
            Some(1)
        } else {
            per_partition
        },
        partitions: named,
        state,
        has_moved: false,
    };
    Ok(QueryCursor::new(source, collector))
}

/// The source of rows that are not merged, from where the page begins.
fn source(
    plan: &ResolvedSelect,
    reader: TableSource,
    question: PartitionQuery,
    mut partitions: WantedPartitions,
    filters: &[ResidualFilter],
    state: &PagingState,
    parameters: &ExecutionParameters,
) -> Result<RowSource, CqlError> {
    let (slot, after) = (state.slot as usize, state.position.clone());
    let indexes = plan.access.indexes;
    // A later slot says that the page before has read all of the one range or partition.
    if let (
        TableSource::Stored {
            storage,
            client_now_s: told_s,
            tombstones_max,
        },
        Some(tokens),
    ) = (&reader, indexed_tokens(plan, &partitions))
        && indexes != IndexUse::Unused
        && slot == 0
    {
        match lookup::lookups(&plan.access.filters, filters) {
            // No value is between the bounds of a range.
            None => partitions = WantedPartitions::Nothing,
            Some(mut lookups) => {
                if plan.access.is_by_local_index() {
                    lookups.retain(|lookup| lookup.index.is_local);
                }
                let view = storage.view_at(question.table, *told_s);
                let view = view.map_err(storage_error)?;
                let lookups = lookup::ready(lookups, &view, indexes, parameters)?;
                if !lookups.is_empty() {
                    traces::note(|| {
                        format!(
                            "Finding rows by {} lookups in secondary indexes",
                            lookups.len()
                        )
                    });
                    let span = IndexReadRange::new(&view, tokens, after)?;
                    let rows = IndexRowSource::new(
                        view,
                        question,
                        lookups,
                        span,
                        *tombstones_max,
                        &parameters.memory,
                    );
                    return Ok(RowSource::Indexed {
                        rows: Box::new(rows),
                        reader,
                    });
                }
            }
        }
    }
    let rows = PartitionSequence::new(reader, question, partitions, slot, after);
    Ok(RowSource::Sequence(rows))
}

/// The tokens in which secondary indexes find the rows: those of a scan, or that of the partition
/// whose local indexes are read; `None` if the partitions are read without them.
fn indexed_tokens(plan: &ResolvedSelect, partitions: &WantedPartitions) -> Option<Tokens> {
    match partitions {
        WantedPartitions::Tokens(start, end) => Some((*start, *end)),
        WantedPartitions::Keys(keys) if plan.access.is_by_local_index() => match keys.as_slice() {
            [key] => {
                let partitioner = plan.selected.table.partitioner;
                let token = partitioner.token(&routing_key(key));
                Some((Bound::Included(token), Bound::Included(token)))
            }
            _ => None,
        },
        WantedPartitions::Keys(_) | WantedPartitions::Nothing => None,
    }
}

/// Decodes the paging state that the client gave back. A state that can't be of this query is an
/// error.
fn resumed(
    bytes: &Bytes,
    plan: &ResolvedSelect,
    partitions: &WantedPartitions,
    limit: Option<u32>,
) -> Result<PagingState, CqlError> {
    let mut state = PagingState::decode(bytes.clone(), plan.selected.table.id)?;
    let slots = match partitions {
        WantedPartitions::Keys(keys) => keys.len(),
        WantedPartitions::Tokens(_, _) => 1,
        WantedPartitions::Nothing => return Ok(state),
    };
    let is_of_this_query = state.slot as usize <= slots
        && state.remaining.is_some() == limit.is_some()
        && !plan.is_one_group();
    if !is_of_this_query {
        return Err(paging::invalid());
    }
    // LIMIT may be a marker that is bound to less than it was for the page before.
    state.remaining = state.remaining.min(limit);
    Ok(state)
}

fn check_merge(
    partitions: usize,
    page_rows: Option<usize>,
    limit: Option<u32>,
    parameters: &ExecutionParameters,
) -> Result<(), CqlError> {
    // As in Cassandra, a query whose LIMIT is within the page size counts as one without pages.
    let fits_a_page =
        page_rows.is_none_or(|rows| limit.is_some_and(|limit| limit as usize <= rows));
    if !fits_a_page || parameters.paging_state.is_some() {
        return Err(CqlError::invalid(
            "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either \
             remove the ORDER BY or the IN and sort client side, or disable paging for this query",
        ));
    }
    if partitions > MERGED_PARTITIONS_MAX {
        return Err(CqlError::invalid(format!(
            "ORDER BY over {partitions} partitions is more than the {MERGED_PARTITIONS_MAX} allowed"
        )));
    }
    Ok(())
}
