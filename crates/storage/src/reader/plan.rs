//! The plan of a read: the keys that it has to look at.

use std::collections::VecDeque;
use std::ops::Bound;

use bytes::Bytes;
use value::token::Token;

use crate::StorageError;
use crate::key::{self, HEADER, KeyParts, ROW, SuffixRange};
use crate::layout::TableSchema;
use crate::read::{ClusteringBound, ClusteringSlice, PartitionSelection, ReadRequest, RowPosition};

pub(super) enum ReadPlan {
    Partition(PartitionPlan),
    Ring(RingPlan),
    /// No key can match.
    Empty,
}

/// Rows of one partition.
pub(super) struct PartitionPlan {
    pub token: Token,
    pub key: Vec<Bytes>,
    /// Token and partition key.
    pub partition: Vec<u8>,
    /// The parts of the partition that are read, in the order of reading.
    pub ranges: VecDeque<RowRange>,
    /// Whether a partition without rows gives one row with its static content.
    pub static_only: bool,
}

/// A part of a partition.
pub(super) enum RowRange {
    /// The row with this suffix, which is a whole clustering key.
    Point(Vec<u8>),
    Range(SuffixRange),
}

/// Partitions in the order of the disk.
pub(super) struct RingPlan {
    /// The range of keys that is read.
    pub range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// The slices of each partition; empty for whole partitions.
    pub slices: Vec<SuffixRange>,
    /// Whether a partition without rows gives one row with its static content.
    pub static_only: bool,
    /// The partition in which the read resumes. Rows of it were returned already.
    pub resumed_in: Option<Vec<u8>>,
}

pub(super) fn plan(table: &TableSchema, request: &ReadRequest) -> Result<ReadPlan, StorageError> {
    match &request.partitions {
        PartitionSelection::One(key) => one(table, request, key),
        PartitionSelection::Tokens(low, high) => ring(table, request, *low, *high),
    }
}

fn one(
    table: &TableSchema,
    request: &ReadRequest,
    key: &[Bytes],
) -> Result<ReadPlan, StorageError> {
    let (token, partition) = table.keys.partition(key)?;
    let mut ranges = Vec::with_capacity(request.slices.len().max(1));
    for slice in &request.slices {
        if let Some(point) = point(table, slice)? {
            ranges.push(RowRange::Point(point));
            continue;
        }
        let range = table.keys.suffix_range(&slice.start, &slice.end)?;
        if !range.is_empty() {
            ranges.push(RowRange::Range(range));
        }
    }
    if request.slices.is_empty() {
        ranges.push(if table.keys.has_clustering() {
            RowRange::Range(SuffixRange::whole())
        } else {
            RowRange::Point(Vec::new())
        });
    }
    let mut static_only = request.static_only_rows && request.slices.is_empty();
    if let Some(position) = &request.resume_after {
        let parts = table.keys.split(&position.0).ok_or_else(bad_position)?;
        if parts.partition != partition {
            return Err(bad_position());
        }
        match parts.kind {
            ROW => {
                check_suffix(table, parts.suffix)?;
                resume(&mut ranges, parts.suffix, request.reversed);
            }
            // The static row represented a partition without rows, so nothing comes after it.
            HEADER => ranges.clear(),
            _ => return Err(bad_position()),
        }
        static_only = false;
    }
    if ranges.is_empty() && !static_only {
        return Ok(ReadPlan::Empty);
    }
    if request.reversed {
        ranges.reverse();
    }
    Ok(ReadPlan::Partition(PartitionPlan {
        token,
        key: key.to_vec(),
        partition,
        ranges: ranges.into(),
        static_only,
    }))
}

/// The suffix of the only row that a slice can hold; `None` if it can hold several.
fn point(table: &TableSchema, slice: &ClusteringSlice) -> Result<Option<Vec<u8>>, StorageError> {
    match (&slice.start, &slice.end) {
        (ClusteringBound::Inclusive(start), ClusteringBound::Inclusive(end))
            if start == end && start.len() == table.keys.clustering_columns() =>
        {
            table.keys.clustering(start).map(Some)
        }
        _ => Ok(None),
    }
}

/// Removes the ranges up to and including the row, in the direction of reading.
fn resume(ranges: &mut Vec<RowRange>, suffix: &[u8], reversed: bool) {
    ranges.retain_mut(|range| match range {
        RowRange::Point(point) if reversed => point.as_slice() < suffix,
        RowRange::Point(point) => point.as_slice() > suffix,
        RowRange::Range(range) => {
            if reversed {
                range.high = suffix.to_vec().min(std::mem::take(&mut range.high));
            } else {
                // The first suffix after the row.
                let behind = [suffix, &[0]].concat();
                range.low = behind.max(std::mem::take(&mut range.low));
            }
            !range.is_empty()
        }
    });
}

fn ring(
    table: &TableSchema,
    request: &ReadRequest,
    low: Bound<Token>,
    high: Bound<Token>,
) -> Result<ReadPlan, StorageError> {
    if request.reversed {
        return Err(StorageError::Invalid(
            "only the rows of a single partition can be read in reverse".to_owned(),
        ));
    }
    let Some((first, end)) = token_range(low, high) else {
        return Ok(ReadPlan::Empty);
    };
    let mut start = Bound::Included(key::token_bytes(first).to_vec());
    let mut resumed_in = None;
    if let Some(RowPosition(position)) = &request.resume_after {
        let parts = table.keys.split(position).ok_or_else(bad_position)?;
        table
            .keys
            .decode_partition(parts.partition)
            .ok_or_else(bad_position)?;
        let behind = match parts.kind {
            ROW => {
                check_suffix(table, parts.suffix)?;
                resumed_in = Some(parts.partition.to_vec());
                Bound::Excluded(position.to_vec())
            }
            // The read resumes after the whole partition.
            HEADER => Bound::Included(key::bound(parts.partition, u8::MAX, &[])),
            _ => return Err(bad_position()),
        };
        // The read would begin before its tokens, with rows that the query leaves out.
        if position[..] < key::token_bytes(first)[..] {
            return Err(bad_position());
        }
        start = behind;
    }
    let end = match end {
        Some(token) => Bound::Excluded(key::token_bytes(token).to_vec()),
        None => Bound::Unbounded,
    };
    if is_empty(&start, &end) {
        return Ok(ReadPlan::Empty);
    }
    let slices = request
        .slices
        .iter()
        .map(|slice| table.keys.suffix_range(&slice.start, &slice.end))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(ReadPlan::Ring(RingPlan {
        range: (start, end),
        static_only: request.static_only_rows && slices.is_empty(),
        slices,
        resumed_in,
    }))
}

/// The first token between two bounds, and the first one after them, if there is one; `None` if no
/// token is after the low bound.
fn token_range(low: Bound<Token>, high: Bound<Token>) -> Option<(Token, Option<Token>)> {
    let first_behind = |token: Token| token.0.checked_add(1).map(Token);
    let first = match low {
        Bound::Unbounded => Some(Token(i64::MIN)),
        Bound::Included(token) => Some(token),
        Bound::Excluded(token) => first_behind(token),
    };
    let end = match high {
        Bound::Unbounded => None,
        Bound::Included(token) => first_behind(token),
        Bound::Excluded(token) => Some(token),
    };
    Some((first?, end))
}

/// The positions between two bounds.
pub(super) struct PositionRange {
    pub low: Vec<u8>,
    /// `None` for all positions from the low bound on.
    pub high: Option<Vec<u8>>,
}

impl PositionRange {
    pub(super) fn contains(&self, position: &[u8]) -> bool {
        let high = self.high.as_deref();
        position >= &self.low[..] && high.is_none_or(|high| position < high)
    }
}

/// The positions of partitions with these tokens, not before `from`; `None` if there can be none.
pub(super) fn positions(
    table: &TableSchema,
    (low, high): (Bound<Token>, Bound<Token>),
    from: Option<&RowPosition>,
) -> Result<Option<PositionRange>, StorageError> {
    let Some((first, end)) = token_range(low, high) else {
        return Ok(None);
    };
    let mut low = key::token_bytes(first).to_vec();
    if let Some(from) = from {
        split(table, from)?;
        low = low.max(from.0.to_vec());
    }
    let high = end.map(|end| key::token_bytes(end).to_vec());
    let is_empty = high.as_ref().is_some_and(|high| low >= *high);
    Ok((!is_empty).then_some(PositionRange { low, high }))
}

fn is_empty(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> bool {
    match (start, end) {
        (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

/// The parts of a position of a row or of a partition as a whole.
pub(super) fn split<'p>(
    table: &TableSchema,
    position: &'p RowPosition,
) -> Result<KeyParts<'p>, StorageError> {
    let parts = table.keys.split(&position.0).ok_or_else(bad_position)?;
    match parts.kind {
        ROW => check_suffix(table, parts.suffix)?,
        HEADER if parts.suffix.is_empty() => {}
        _ => return Err(bad_position()),
    }
    Ok(parts)
}

fn check_suffix(table: &TableSchema, suffix: &[u8]) -> Result<(), StorageError> {
    match table.keys.decode_clustering(suffix) {
        Some(_) => Ok(()),
        None => Err(bad_position()),
    }
}

fn bad_position() -> StorageError {
    StorageError::Invalid("the paging state does not belong to this query".to_owned())
}
