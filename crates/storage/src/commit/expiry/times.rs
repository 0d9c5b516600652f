//! The times at which rows expire: which of them have come.

use std::ops::Bound;

use bytes::Bytes;
use value::CqlType;

use crate::StorageError;
use crate::commit::apply::CommitTime;
use crate::key::term::TermRange;
use crate::layout::{IndexSchema, TableSchema};
use crate::read::IndexedValues;

/// The table's times, once all rows have theirs.
pub(super) fn times(table: &TableSchema) -> Option<&IndexSchema> {
    table.expiry().filter(|times| times.is_ready)
}

/// The range of the entries of times that have come. Entries of empty values, which have no time,
/// sort before it.
pub(super) fn range(times: &IndexSchema, moment: CommitTime) -> Result<TermRange, StorageError> {
    let (least, latest) = match &times.column.cql_type {
        CqlType::Timestamp => (long(i64::MIN), long(millis(moment))),
        CqlType::Int => {
            // After the last second of the type all times have come.
            let second = i32::try_from(moment.now_s).unwrap_or(i32::MAX);
            (short(i32::MIN), short(second))
        }
        _ => (long(i64::MIN), long(moment.now_s)),
    };
    let values = IndexedValues {
        key: None,
        low: Bound::Included(least),
        high: Bound::Included(latest),
    };
    times.terms.range(&values, &[], None)
}

/// The key at a bound; `None` if there is no bound.
pub(super) fn key(bound: Bound<Vec<u8>>) -> Option<Vec<u8>> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Whether a time has come. An empty value has none.
pub(super) fn has_come(cql_type: &CqlType, value: &[u8], moment: CommitTime) -> bool {
    let long = || <[u8; 8]>::try_from(value).map(i64::from_be_bytes);
    let short = || <[u8; 4]>::try_from(value).map(i32::from_be_bytes);
    match cql_type {
        CqlType::Timestamp => long().is_ok_and(|at| at <= millis(moment)),
        CqlType::Bigint => long().is_ok_and(|at| at <= moment.now_s),
        CqlType::Int => short().is_ok_and(|at| i64::from(at) <= moment.now_s),
        _ => false,
    }
}

fn millis(moment: CommitTime) -> i64 {
    moment.now_micros.div_euclid(1_000)
}

fn long(value: i64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn short(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}
