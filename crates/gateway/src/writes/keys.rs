//! Turns a plan and bound values into the keys of the rows that a statement touches.

use bytes::{Buf, Bytes};
use cql::ast::Term;
use cql::wire::BoundValue;
use value::{CqlType, split_elements};

use super::hint::WriteHint;
use super::plan::{
    AlternativeTerms, KeyAlternatives, LoggedWritePlan, PartitionExtent, RowChangeKind,
    UnplannableWrite,
};
use super::terms::{evaluate, marker_value, unreadable};
use crate::catalog::LoggedColumn;

/// The greatest number of log rows for one request. A few bytes can name very many rows:
/// Cassandra's own guard for the product of IN lists allows 25 clustering keys in a SELECT, and
/// does not exist for writes.
const LOG_ROWS_MAX: usize = 10_000;

/// The `cdc$operation` of an update.
const UPDATE: i8 = 1;

/// The hints of one execution of a statement, in a request that needs `before` of them already.
///
/// # Errors
/// The errors of [`evaluate`], and [`UnplannableWrite::Unreadable`] if the request needs too many
/// hints.
pub(super) fn hints(
    plan: &LoggedWritePlan,
    bound: &[BoundValue],
    before: usize,
) -> Result<Vec<WriteHint>, UnplannableWrite> {
    let left = LOG_ROWS_MAX.saturating_sub(before);
    let table = &plan.table;
    let operations = operations(plan);
    let clustering = match &plan.extent {
        PartitionExtent::Rows(parts) => parts.as_slice(),
        PartitionExtent::Static | PartitionExtent::Partition | PartitionExtent::Range => &[],
    };
    let partition = values(&plan.partition, table.partition_key(), bound, left)?;
    let clustering = values(clustering, table.clustering_key(), bound, left)?;
    // The hints are counted before any is made.
    let product = |parts: &[PartValues<'_>], each: usize| {
        let choices = parts.iter().map(|part| part.choices.len());
        choices.fold(each, usize::saturating_mul)
    };
    // A static column belongs to the partition, so its change gets a log row without a clustering
    // key.
    let beside_rows = plan.writes_static && matches!(plan.extent, PartitionExtent::Rows(_));
    let of_partition = product(&clustering, operations.len());
    let of_partition = of_partition.saturating_add(usize::from(beside_rows));
    let count = product(&partition, of_partition);
    if count > left {
        return Err(too_many());
    }
    // An IN without values touches no row.
    if count == 0 {
        return Ok(Vec::new());
    }
    let clustering = match &plan.extent {
        PartitionExtent::Rows(_) => keys(&clustering, table.clustering_key_count),
        PartitionExtent::Static | PartitionExtent::Partition | PartitionExtent::Range => {
            vec![Vec::new()]
        }
    };
    let mut hints = Vec::with_capacity(count);
    for partition in keys(&partition, table.partition_key_count) {
        for clustering in &clustering {
            for operation in operations {
                hints.push(WriteHint {
                    table: table.clone(),
                    operation: *operation,
                    partition: partition.clone(),
                    clustering: clustering.clone(),
                });
            }
        }
        if beside_rows {
            hints.push(WriteHint {
                table: table.clone(),
                operation: UPDATE,
                partition,
                clustering: Vec::new(),
            });
        }
    }
    Ok(hints)
}

/// The `cdc$operation` of each log row for one touched row, partition or range.
fn operations(plan: &LoggedWritePlan) -> &'static [i8] {
    const INSERT: i8 = 2;
    const ROW_DELETE: i8 = 3;
    const PARTITION_DELETE: i8 = 4;
    const RANGE_START_INCLUSIVE: i8 = 5;
    const RANGE_END_INCLUSIVE: i8 = 7;
    match (&plan.extent, plan.action) {
        // Without a clustering key the row is the whole partition.
        (PartitionExtent::Rows(_), RowChangeKind::Delete)
            if plan.table.clustering_key_count == 0 =>
        {
            &[PARTITION_DELETE]
        }
        (PartitionExtent::Rows(_), RowChangeKind::Delete) => &[ROW_DELETE],
        (PartitionExtent::Rows(_), RowChangeKind::Insert) => &[INSERT],
        (PartitionExtent::Rows(_), RowChangeKind::Update) | (PartitionExtent::Static, _) => {
            &[UPDATE]
        }
        (PartitionExtent::Partition, _) => &[PARTITION_DELETE],
        // The bounds have no values, so they cover the whole partition. They only say where to
        // look.
        (PartitionExtent::Range, _) => &[RANGE_START_INCLUSIVE, RANGE_END_INCLUSIVE],
    }
}

/// The values that one execution gives a part of a key.
struct PartValues<'a> {
    /// The positions of the columns in the key.
    columns: &'a [usize],
    /// The alternatives, each with one value for every column of the part.
    choices: Vec<Vec<Bytes>>,
}

/// The values of the parts of a key. No part may have more than `max` alternatives.
fn values<'a>(
    parts: &'a [KeyAlternatives],
    columns: &[LoggedColumn],
    bound: &[BoundValue],
    max: usize,
) -> Result<Vec<PartValues<'a>>, UnplannableWrite> {
    parts
        .iter()
        .map(|part| {
            let types = part
                .columns
                .iter()
                .map(|position| key_type(&columns[*position]))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(PartValues {
                columns: &part.columns,
                choices: choices(part, &types, bound, max)?,
            })
        })
        .collect()
}

/// All keys of `column_count` columns that combine the alternatives of parts which cover the key.
/// The values of each are in the order of the key.
fn keys(parts: &[PartValues<'_>], column_count: usize) -> Vec<Vec<Bytes>> {
    let mut keys = vec![vec![Bytes::new(); column_count]];
    for part in parts {
        keys = keys
            .iter()
            .flat_map(|key| {
                part.choices.iter().map(|choice| {
                    let mut key = key.clone();
                    for (position, value) in part.columns.iter().zip(choice) {
                        key[*position] = value.clone();
                    }
                    key
                })
            })
            .collect();
    }
    keys
}

fn key_type(column: &LoggedColumn) -> Result<&CqlType, UnplannableWrite> {
    column.cql_type.as_ref().ok_or_else(|| {
        unreadable(format!(
            "the type of the key column {} is not supported with a vector index",
            column.name
        ))
    })
}

fn too_many() -> UnplannableWrite {
    unreadable(format!(
        "the request changes more than {LOG_ROWS_MAX} rows of tables with a vector index: split its batch or its IN lists"
    ))
}

/// The alternatives of a part, each with one value for every column of the part. There may be no
/// more than `max`.
fn choices(
    part: &KeyAlternatives,
    types: &[&CqlType],
    bound: &[BoundValue],
    max: usize,
) -> Result<Vec<Vec<Bytes>>, UnplannableWrite> {
    let one = |term: &Term| match part.is_tuple {
        true => tuple(term, types, bound),
        false => evaluate(term, types[0], bound).map(|value| vec![value]),
    };
    match &part.choice {
        AlternativeTerms::One(term) => one(term).map(|values| vec![values]),
        AlternativeTerms::Each(terms) if terms.len() > max => Err(too_many()),
        AlternativeTerms::Each(terms) => terms.iter().map(one).collect(),
        AlternativeTerms::List(Term::Marker(marker)) => {
            let list = marker_value(usize::from(marker.index), bound)?;
            // The list begins with the number of its elements. Each of them takes far more memory
            // once split off.
            if list
                .clone()
                .try_get_u32()
                .is_ok_and(|count| count as usize > max)
            {
                return Err(too_many());
            }
            split_elements(&list)
                .map_err(|_| UnplannableWrite::Refused)?
                .into_iter()
                .map(|element| match part.is_tuple {
                    true => fields(element, types.len()),
                    false => Ok(vec![element]),
                })
                .collect()
        }
        AlternativeTerms::List(_) => Err(unreadable(
            "the list after IN in a key of a table with a vector index must be written out or bound",
        )),
    }
}

/// The values of a term that represents a tuple.
fn tuple(
    term: &Term,
    types: &[&CqlType],
    bound: &[BoundValue],
) -> Result<Vec<Bytes>, UnplannableWrite> {
    match term {
        Term::Tuple(terms) if terms.len() == types.len() => terms
            .iter()
            .zip(types)
            .map(|(term, cql_type)| evaluate(term, cql_type, bound))
            .collect(),
        Term::Tuple(_) => Err(UnplannableWrite::Refused),
        Term::Marker(marker) => {
            let tuple = marker_value(usize::from(marker.index), bound)?;
            fields(tuple, types.len())
        }
        _ => Err(unreadable(
            "a tuple in a key of a table with a vector index must be written out or bound",
        )),
    }
}

/// The fields of a serialised tuple, none of which may be null.
fn fields(mut tuple: Bytes, count: usize) -> Result<Vec<Bytes>, UnplannableWrite> {
    (0..count)
        .map(|_| {
            let length = tuple.try_get_i32().map_err(|_| UnplannableWrite::Refused)?;
            match usize::try_from(length) {
                Ok(length) if length <= tuple.len() => Ok(tuple.split_to(length)),
                _ => Err(UnplannableWrite::Refused),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
