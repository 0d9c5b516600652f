//! Reads of rows that are in memory. These are the rows of system tables, which each query makes
//! again.
//!
//! A table in memory takes the same requests as the storage. Its rows may be others when the next
//! page is read, so a position is a key that later rows are compared with.

use std::cmp::Ordering;
use std::ops::Bound as Edge;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use client_memory::{MemoryAccount, MemoryCharge};
use cql::error::{CqlError, ErrorKind};
use schema::{Column, Table};
use storage::read::{
    Cell, ClusteringBound, ClusteringSlice, PartitionSelection, ReadRequest, Row, RowPosition,
};

use super::clustering::compare_clustering;
use super::paging;

/// A table whose rows are in memory.
#[derive(Clone, Debug)]
pub(super) struct MemoryTable {
    /// The definition of the table.
    table: Arc<Table>,
    /// The rows, with partitions in token order and the rows of each in clustering order.
    rows: Arc<[Row]>,
    /// The charge for the rows.
    _charge: Arc<MemoryCharge>,
}

/// The bytes that a row or a cell takes in addition to its values.
const ENTRY_BYTES: usize = 128;

/// The place of a row among all rows of its table.
#[derive(Debug, PartialEq)]
struct RowSortKey {
    token: i64,
    key: Vec<Bytes>,
    clustering: Vec<Bytes>,
}

impl MemoryTable {
    /// The table with these rows, which have partitions in token order and the rows of each in
    /// clustering order. They are charged to `memory`.
    ///
    /// # Errors
    /// If there is no room for the rows.
    pub(super) fn new(
        table: Arc<Table>,
        rows: Vec<Row>,
        memory: &MemoryAccount,
    ) -> Result<MemoryTable, CqlError> {
        let mut charge = memory.charge();
        // A read copies the rows that it wants.
        let bytes = 2 * rows.iter().map(bytes_of).sum::<usize>();
        charge.resize(bytes).map_err(|_| {
            let (keyspace, name) = (&table.keyspace, &table.name);
            let message = format!(
                "Overloaded: there is no memory for the rows of {keyspace}.{name}; give its partition key, or read it later"
            );
            CqlError::new(ErrorKind::Overloaded, message)
        })?;
        Ok(MemoryTable {
            table,
            rows: rows.into(),
            _charge: Arc::new(charge),
        })
    }

    /// The rows that a request selects.
    ///
    /// # Errors
    /// If the position to resume after can't be decoded.
    pub(super) fn read(&self, request: &ReadRequest) -> Result<Vec<Row>, CqlError> {
        let clustering = self.table.clustering_key();
        let after = match &request.resume_after {
            Some(position) => Some(decode(position, &self.table)?),
            None => None,
        };
        let is_wanted = |row: &&Row| {
            is_in_partitions(row, &request.partitions)
                && is_in_slices(row, &request.slices, &clustering)
                && (row.clustering.is_some()
                    || request.static_only_rows && request.slices.is_empty())
        };
        let is_later = |row: &Row| {
            after.as_ref().is_none_or(|after| {
                let order = order(row, after, &clustering);
                if request.reversed {
                    order.is_lt()
                } else {
                    order.is_gt()
                }
            })
        };
        let mut rows: Vec<Row> = self
            .rows
            .iter()
            .filter(is_wanted)
            .filter(|row| is_later(row))
            .map(|row| Row {
                position: encode(row),
                ..row.clone()
            })
            .collect();
        if request.reversed {
            rows.reverse();
        }
        Ok(rows)
    }
}

/// The memory that a row takes, about.
fn bytes_of(row: &Row) -> usize {
    let keys = row
        .partition
        .key
        .iter()
        .chain(row.clustering.iter().flatten());
    let cells = row.cells.iter().map(|(_, cell)| match cell {
        Cell::Simple(cell) => ENTRY_BYTES + cell.value.len(),
        Cell::Elements(elements) => elements
            .iter()
            .map(|(path, cell)| ENTRY_BYTES + path.len() + cell.value.len())
            .sum(),
    });
    ENTRY_BYTES + keys.map(Bytes::len).sum::<usize>() + cells.sum::<usize>()
}

fn is_in_partitions(row: &Row, partitions: &PartitionSelection) -> bool {
    match partitions {
        PartitionSelection::One(key) => row.partition.key == *key,
        PartitionSelection::Tokens(start, end) => {
            let token = row.partition.token;
            let behind = match start {
                Edge::Unbounded => true,
                Edge::Included(start) => token >= *start,
                Edge::Excluded(start) => token > *start,
            };
            let before = match end {
                Edge::Unbounded => true,
                Edge::Included(end) => token <= *end,
                Edge::Excluded(end) => token < *end,
            };
            behind && before
        }
    }
}

fn is_in_slices(row: &Row, slices: &[ClusteringSlice], clustering: &[&Column]) -> bool {
    if slices.is_empty() {
        return true;
    }
    let Some(values) = &row.clustering else {
        return false;
    };
    slices.iter().any(|slice| {
        let behind = match &slice.start {
            ClusteringBound::Unbounded => true,
            ClusteringBound::Inclusive(prefix) => {
                compare_clustering(clustering, values, prefix).is_ge()
            }
            ClusteringBound::Exclusive(prefix) => {
                compare_clustering(clustering, values, prefix).is_gt()
            }
        };
        let before = match &slice.end {
            ClusteringBound::Unbounded => true,
            ClusteringBound::Inclusive(prefix) => {
                compare_clustering(clustering, values, prefix).is_le()
            }
            ClusteringBound::Exclusive(prefix) => {
                compare_clustering(clustering, values, prefix).is_lt()
            }
        };
        behind && before
    })
}

/// The order of a row relative to a place. Partitions with the same token are ordered by the bytes
/// of their keys, which need not be the order of `rows`. In fact no two partitions of a system
/// table share a token, as there are only a few.
fn order(row: &Row, place: &RowSortKey, clustering: &[&Column]) -> Ordering {
    let values = row.clustering.as_deref().unwrap_or_default();
    row.partition
        .token
        .0
        .cmp(&place.token)
        .then_with(|| row.partition.key.cmp(&place.key))
        .then_with(|| compare_clustering(clustering, values, &place.clustering))
}

/// Encodes the place of a row: the token (8 bytes), then for each component of the key its length
/// (4 bytes) and its bytes. Numbers are big-endian.
fn encode(row: &Row) -> RowPosition {
    let mut out = BytesMut::new();
    out.put_i64(row.partition.token.0);
    let clustering = row.clustering.as_deref().unwrap_or_default();
    for part in row.partition.key.iter().chain(clustering) {
        out.put_u32(part.len() as u32);
        out.put_slice(part);
    }
    RowPosition(out.freeze())
}

fn decode(position: &RowPosition, table: &Table) -> Result<RowSortKey, CqlError> {
    let mut bytes = position.0.clone();
    if bytes.len() < 8 {
        return Err(paging::invalid());
    }
    let token = bytes.get_i64();
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        if bytes.len() < 4 {
            return Err(paging::invalid());
        }
        let length = bytes.get_u32() as usize;
        if bytes.len() < length {
            return Err(paging::invalid());
        }
        parts.push(bytes.split_to(length));
    }
    let key_columns = table.partition_key().len();
    if parts.len() < key_columns {
        return Err(paging::invalid());
    }
    let clustering = parts.split_off(key_columns);
    Ok(RowSortKey {
        token,
        key: parts,
        clustering,
    })
}
