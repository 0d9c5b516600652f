//! The entries that a record has in an index.
//!
//! A record has an entry for each value that it holds, dead or alive, and no others.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;
use schema::{ColumnKind, IndexedPart};
use value::CqlType;

use crate::StorageError;
use crate::engine::SpaceId;
use crate::key::term::{entry_key, entry_value};
use crate::key::{HEADER, KeyParts, ROW};
use crate::layout::{IndexSchema, TableSchema};
use crate::record::{CellRecord, ColumnRecord, Content, Lifetime, Record};

/// The terms of a record, each with the time at which the last value of it expires; `None` for
/// never. Seconds since the epoch.
pub(crate) type Terms = BTreeMap<Vec<u8>, Option<i64>>;

/// The entries of a record in an index.
pub(crate) fn entries_of(
    table: &TableSchema,
    index: &IndexSchema,
    key: &[u8],
    record: &Record,
) -> Result<Vec<(SpaceId, Bytes, Option<Bytes>)>, StorageError> {
    let Some(parts) = table.keys.split(key) else {
        return Ok(Vec::new());
    };
    let terms = terms(table, index, parts, record)?.into_iter();
    let entries = terms.map(|(term, expires_at_s)| {
        let value = entry_value(&term, expires_at_s);
        Ok((index.space, entry_key(&term, key)?.into(), Some(value)))
    });
    entries.collect()
}

/// The terms of a record in an index.
pub(crate) fn terms(
    table: &TableSchema,
    index: &IndexSchema,
    key: KeyParts<'_>,
    record: &Record,
) -> Result<Terms, StorageError> {
    let mut terms = Terms::new();
    let key_values = match (index.column.kind, key.kind) {
        (ColumnKind::Regular, ROW) | (ColumnKind::Static, HEADER) => {
            let mut columns = record.cells.iter();
            if let Some((_, column)) = columns.find(|(id, _)| *id == index.column.id) {
                add_column(&mut terms, index, column)?;
            }
            return Ok(terms);
        }
        (ColumnKind::PartitionKey { position }, ROW | HEADER) => {
            let values = table.keys.decode_partition(key.partition);
            values.map(|(_, values)| (values, position))
        }
        (ColumnKind::Clustering { position, .. }, ROW) => {
            let values = table.keys.decode_clustering(key.suffix);
            values.map(|values| (values, position))
        }
        _ => None,
    };
    if let Some((values, position)) = key_values
        && let Some(value) = values.get(position)
    {
        for lifetime in lifetimes(record) {
            add(&mut terms, index.terms.term([&value[..]])?, lifetime);
        }
    }
    Ok(terms)
}

fn add_column(
    terms: &mut Terms,
    index: &IndexSchema,
    column: &ColumnRecord,
) -> Result<(), StorageError> {
    match column {
        ColumnRecord::Simple(cell) => {
            if let Some((value, lifetime)) = content(cell) {
                add(terms, index.terms.term([&value[..]])?, lifetime);
            }
        }
        ColumnRecord::Elements { cells, .. } => {
            let is_set = matches!(index.column.cql_type, CqlType::Set { .. });
            for (path, cell) in cells {
                let Some((value, lifetime)) = content(cell) else {
                    continue;
                };
                let term = match index.part {
                    IndexedPart::Keys => index.terms.term([&path[..]]),
                    IndexedPart::Entries => index.terms.term([&path[..], &value[..]]),
                    _ if is_set => index.terms.term([&path[..]]),
                    _ => index.terms.term([&value[..]]),
                };
                add(terms, term?, lifetime);
            }
        }
    }
    Ok(())
}

fn content(cell: &CellRecord) -> Option<(&Bytes, Lifetime)> {
    match &cell.content {
        Content::Value { value, lifetime } => Some((value, *lifetime)),
        Content::Tombstone { .. } => None,
    }
}

/// The lifetimes of all that makes a row exist.
fn lifetimes(record: &Record) -> impl Iterator<Item = Lifetime> {
    let marker = record.marker.iter().map(|marker| marker.lifetime);
    let cells = record.cells.iter().flat_map(|(_, column)| match column {
        ColumnRecord::Simple(cell) => std::slice::from_ref(cell).iter().collect::<Vec<_>>(),
        ColumnRecord::Elements { cells, .. } => cells.iter().map(|(_, cell)| cell).collect(),
    });
    marker.chain(cells.filter_map(|cell| content(cell).map(|(_, lifetime)| lifetime)))
}

/// Adds a term. The value that lives longest counts.
fn add(terms: &mut Terms, term: Vec<u8>, lifetime: Lifetime) {
    let expires_at_s = lifetime.map(|expiry| expiry.at_s);
    match terms.entry(term) {
        Entry::Vacant(vacant) => drop(vacant.insert(expires_at_s)),
        Entry::Occupied(mut known) => {
            let last = known.get().zip(expires_at_s).map(|(a, b)| a.max(b));
            known.insert(last);
        }
    }
}
