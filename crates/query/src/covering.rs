//! Answers without rows: whether an index keeps all that a query by similarity needs, so that its
//! own answer is that of the query.

use cql::wire::Consistency;
use index::CandidateRule;
use index::target::is_scalar;
use schema::{Column, ColumnKind};
use value::CqlType;

use crate::IndexDefinition;
use crate::condition::{SearchCondition, is_key_column};

/// Whether a query reads from no more than one replica, so that an index may answer in its place.
pub fn reads_one_replica(consistency: Consistency) -> bool {
    matches!(consistency, Consistency::One | Consistency::LocalOne)
}

/// The columns outside of the primary key among `read`, which the selection reads, if the index
/// keeps all of `read` as the rows have them, and all columns of WHERE. Then it can answer without
/// the rows. `None` if rows have to be read.
///
/// Collections are not looked for in it, as their elements have times of their own, nor are numbers
/// in the clustering key that have several forms. Columns that the index keeps only as they have an
/// index of their own are not either: while it is built again with such a column, the present one
/// answers without it, and the rows are checked.
pub fn covered(
    index: &impl IndexDefinition,
    candidates: &CandidateRule,
    conditions: &[SearchCondition],
    read: &[Column],
) -> Option<Vec<Column>> {
    let has = |column: &Column| match column.kind {
        ColumnKind::PartitionKey { .. } => true,
        ColumnKind::Clustering { .. } => {
            !matches!(column.cql_type, CqlType::Decimal | CqlType::Varint)
        }
        ColumnKind::Static | ColumnKind::Regular => {
            index.names(&column.name) && is_scalar(&column.cql_type)
        }
    };
    let searches_by = |condition: &SearchCondition| {
        let column = condition.relation.first_column();
        condition.is_kept
            && column.is_none_or(|column| is_key_column(column.kind) || index.names(&column.name))
    };
    let is_covered = candidates.rescoring.is_none()
        && conditions.iter().all(searches_by)
        && read.iter().all(has);
    let beside = read.iter().filter(|column| !is_key_column(column.kind));
    is_covered.then(|| beside.cloned().collect())
}
