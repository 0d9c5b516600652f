//! Secondary indexes that serve a relation, by the rules of Cassandra.
//!
//! A storage-attached index serves ranges, too, and several serve the columns of a tuple together;
//! an index without a class serves equalities of only one column. Where a column has both, the
//! storage-attached one is taken. A local index, as ScyllaDB has it, is one without a class that
//! serves where the query names one partition, and is taken there before one of the whole table.

use std::sync::Arc;

use index::IndexedPart;
use schema::{Column, SecondaryIndex, Table};
use value::CqlType;
use value::predicate::ComparisonOperator;

use super::{ColumnTest, RelationKind, TupleTest};

/// The indexes that serve a relation: one for each of its columns; none if one of them lacks its
/// index.
pub(super) fn serving(
    table: &Table,
    is_in_one_partition: bool,
    kind: &RelationKind,
) -> Vec<Arc<SecondaryIndex>> {
    let index = |column, part| index(table, is_in_one_partition, column, part);
    let one = |column, part| index(column, part).into_iter().collect();
    if let Some((column, part)) = kind.element_of() {
        return one(column, RestrictedPart::Of(part));
    }
    match kind {
        RelationKind::Column {
            column,
            test: ColumnTest::Compare(comparison, _),
        } => one(column, RestrictedPart::Whole(*comparison)),
        RelationKind::Tuple {
            columns,
            test: TupleTest::Compare(comparison, _),
        } if *comparison == ComparisonOperator::Eq || columns.len() == 1 => columns
            .iter()
            .map(|column| index(column, RestrictedPart::Whole(*comparison)))
            .collect::<Option<Vec<_>>>()
            .filter(|indexes| columns.len() == 1 || are_storage_attached(indexes))
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Whether all indexes are storage-attached, so that they work together.
pub(super) fn are_storage_attached(indexes: &[Arc<SecondaryIndex>]) -> bool {
    indexes.iter().all(|index| index.is_storage_attached())
}

/// The part of a column that a relation is about.
#[derive(Clone, Copy)]
enum RestrictedPart {
    /// The whole value is compared.
    Whole(ComparisonOperator),
    /// Elements of a collection are looked for.
    Of(IndexedPart),
}

fn index(
    table: &Table,
    is_in_one_partition: bool,
    column: &Column,
    part: RestrictedPart,
) -> Option<Arc<SecondaryIndex>> {
    let serves = |index: &&Arc<SecondaryIndex>| {
        index.column == column.id
            && (is_in_one_partition || !index.is_local)
            && match part {
                RestrictedPart::Of(part) => index.part == part,
                RestrictedPart::Whole(ComparisonOperator::Eq) => {
                    matches!(index.part, IndexedPart::Value | IndexedPart::Full)
                }
                RestrictedPart::Whole(_) => {
                    index.part == IndexedPart::Value
                        && index.is_storage_attached()
                        && has_ranges(&column.cql_type)
                }
            }
    };
    let indexes = table.secondary_indexes.values().filter(serves);
    indexes
        .min_by_key(|index| (!index.is_storage_attached(), !index.is_local))
        .cloned()
}

/// Whether an index on values of the type finds ranges of them.
fn has_ranges(cql_type: &CqlType) -> bool {
    matches!(
        cql_type,
        CqlType::Bigint
            | CqlType::Date
            | CqlType::Decimal
            | CqlType::Double
            | CqlType::Float
            | CqlType::Inet
            | CqlType::Int
            | CqlType::Smallint
            | CqlType::Time
            | CqlType::Timestamp
            | CqlType::Timeuuid
            | CqlType::Tinyint
            | CqlType::Varint
    )
}
