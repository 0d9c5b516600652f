//! The entries that a record has in an index.
//!
//! A record has an entry for each value that it holds, dead or alive, and no others.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use schema::{ColumnKind, IndexedPart};
use value::CqlType;

use crate::StorageError;
use crate::engine::SpaceId;
use crate::key::term::{entry_key, entry_value};
use crate::key::{HEADER, KeyParts, ROW};
use crate::layout::{IndexSchema, TableSchema};
use crate::record::{
    CellLifetime, CellView, CollectionElement, ContentView, RowRecord, StoredColumn,
};

/// The terms of a record, each with the time at which the last value of it expires; `None` for
/// never. Seconds since the epoch.
pub(crate) type RowTerms = BTreeMap<Vec<u8>, Option<i64>>;

/// The entries of a record in an index.
pub(crate) fn entries_of(
    table: &TableSchema,
    index: &IndexSchema,
    key: &[u8],
    record: &RowRecord,
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
    record: &RowRecord,
) -> Result<RowTerms, StorageError> {
    let mut terms = RowTerms::new();
    let key_values = match (index.column.kind, key.kind) {
        (ColumnKind::Regular, ROW) | (ColumnKind::Static, HEADER) => {
            if let Some(column) = record.column(index.column.id) {
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
        && let Some(lifetime) = longest(record)
    {
        add(&mut terms, index.terms.term([&value[..]])?, lifetime);
    }
    Ok(terms)
}

/// The terms that two states of a record do not have alike.
#[derive(Debug, Default)]
pub(crate) struct ChangedTerms {
    /// Those that the later state has, with the times at which they expire.
    pub put: Vec<(Vec<u8>, Option<i64>)>,
    /// Those that the later state does not have any more.
    pub gone: Vec<Vec<u8>>,
}

/// Compares the terms of two states of a record in an index. Of a collection only the elements that
/// differ are looked at.
pub(crate) fn changed_terms(
    table: &TableSchema,
    index: &IndexSchema,
    key: KeyParts<'_>,
    old: &RowRecord,
    new: &RowRecord,
) -> Result<ChangedTerms, StorageError> {
    let is_of_column = matches!(
        (index.column.kind, key.kind),
        (ColumnKind::Regular, ROW) | (ColumnKind::Static, HEADER)
    );
    if is_of_column {
        let column = index.column.id;
        let (old, new) = (old.column(column), new.column(column));
        let is_untouched = match (old, new) {
            (Some(old), Some(new)) => old.is_untouched(new),
            (old, new) => old.is_none() && new.is_none(),
        };
        if is_untouched {
            return Ok(ChangedTerms::default());
        }
        if index.column.cql_type.is_multi_cell() {
            return changed_elements(index, old, new);
        }
    }
    let mut gone = terms(table, index, key, old)?;
    let mut changed = ChangedTerms::default();
    for (term, expires_at_s) in terms(table, index, key, new)? {
        if gone.remove(&term) != Some(expires_at_s) {
            changed.put.push((term, expires_at_s));
        }
    }
    changed.gone = gone.into_keys().collect();
    Ok(changed)
}

/// The times at which the last value of a term expires, before a write and after it; `None` where
/// no value has the term.
type RowExpiries = [Option<Option<i64>>; 2];

fn changed_elements(
    index: &IndexSchema,
    old: Option<&StoredColumn>,
    new: Option<&StoredColumn>,
) -> Result<ChangedTerms, StorageError> {
    let mut terms: HashMap<Vec<u8>, RowExpiries> = HashMap::new();
    let mut term = Vec::new();
    // Another element may have the same term, unless the term has its whole path.
    let mut is_alone = is_by_path(index);
    for differing in differing(index, old, new) {
        for (side, element) in differing.into_iter().enumerate() {
            let Some((element, (value, lifetime))) =
                element.and_then(|element| Some((element, content(element.cell)?)))
            else {
                continue;
            };
            write_term(index, element.path, value, &mut term)?;
            is_alone &= index.terms.is_of_one_value(&term);
            let expiries = terms.entry(term.clone()).or_default();
            raise(&mut expiries[side], lifetime);
        }
    }
    if !is_alone && !terms.is_empty() {
        for (side, column) in [old, new].into_iter().enumerate() {
            let elements = column.into_iter().flat_map(StoredColumn::elements);
            for CollectionElement { path, cell } in elements {
                if let Some((value, lifetime)) = content(cell) {
                    write_term(index, path, value, &mut term)?;
                    if let Some(expiries) = terms.get_mut(&term) {
                        raise(&mut expiries[side], lifetime);
                    }
                }
            }
        }
    }
    let mut changed = ChangedTerms::default();
    for (term, [before, after]) in terms {
        match after {
            Some(expires_at_s) if before != after => changed.put.push((term, expires_at_s)),
            Some(_) => {}
            None => changed.gone.push(term),
        }
    }
    Ok(changed)
}

/// The elements that differ between two states of a collection, each as it was and as it is.
fn differing<'r>(
    index: &IndexSchema,
    old: Option<&'r StoredColumn>,
    new: Option<&'r StoredColumn>,
) -> impl Iterator<Item = [Option<CollectionElement<'r>>; 2]> {
    let path_type = index.column.cql_type.path_type();
    let mut old = old.into_iter().flat_map(StoredColumn::elements).peekable();
    let mut new = new.into_iter().flat_map(StoredColumn::elements).peekable();
    std::iter::from_fn(move || {
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return None,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(old), Some(new)) if old.path == new.path => std::cmp::Ordering::Equal,
                (Some(old), Some(new)) => value::compare(path_type, old.path, new.path),
            };
            let pair = [
                order.is_le().then(|| old.next()).flatten(),
                order.is_ge().then(|| new.next()).flatten(),
            ];
            if pair[0] != pair[1] {
                return Some(pair);
            }
        }
    })
}

fn add_column(
    terms: &mut RowTerms,
    index: &IndexSchema,
    column: &StoredColumn,
) -> Result<(), StorageError> {
    if let StoredColumn::Simple(cell) = column {
        if let Some((value, lifetime)) = content(cell.view()) {
            add(terms, index.terms.term([value])?, lifetime);
        }
        return Ok(());
    }
    for CollectionElement { path, cell } in column.elements() {
        if let Some((value, lifetime)) = content(cell) {
            let mut term = Vec::with_capacity(32);
            write_term(index, path, value, &mut term)?;
            add(terms, term, lifetime);
        }
    }
    Ok(())
}

/// Whether an index finds the elements of a collection by their paths.
fn is_by_path(index: &IndexSchema) -> bool {
    match index.part {
        IndexedPart::Keys | IndexedPart::Entries => true,
        _ => matches!(index.column.cql_type, CqlType::Set { .. }),
    }
}

/// Writes the term of an element.
fn write_term(
    index: &IndexSchema,
    path: &[u8],
    value: &[u8],
    term: &mut Vec<u8>,
) -> Result<(), StorageError> {
    match index.part {
        IndexedPart::Entries => index.terms.write([path, value], term),
        _ if is_by_path(index) => index.terms.write([path], term),
        _ => index.terms.write([value], term),
    }
}

fn content(cell: CellView<'_>) -> Option<(&[u8], CellLifetime)> {
    match cell.content {
        ContentView::Value { value, lifetime } => Some((value, lifetime)),
        ContentView::Tombstone { .. } => None,
    }
}

/// The longest lifetime of all that makes a row exist; `None` if nothing does.
fn longest(record: &RowRecord) -> Option<CellLifetime> {
    let marker = record.marker.map(|marker| marker.lifetime);
    let columns = record.cells.iter().filter_map(|(_, column)| match column {
        StoredColumn::Simple(cell) => content(cell.view()).map(|(_, lifetime)| lifetime),
        StoredColumn::Packed { packed, .. } => packed.longest(),
        StoredColumn::Elements { .. } => {
            let cells = column
                .elements()
                .filter_map(|element| content(element.cell));
            cells.map(|(_, lifetime)| lifetime).reduce(longer)
        }
    });
    marker.into_iter().chain(columns).reduce(longer)
}

fn longer(one: CellLifetime, other: CellLifetime) -> CellLifetime {
    one.zip(other)
        .map(|(one, other)| match one.at_s < other.at_s {
            true => other,
            false => one,
        })
}

/// Takes in the lifetime of a value. The value that lives longest counts.
fn raise(last: &mut Option<Option<i64>>, lifetime: CellLifetime) {
    let expires_at_s = lifetime.map(|expiry| expiry.at_s);
    *last = Some(match *last {
        None => expires_at_s,
        Some(known) => known.zip(expires_at_s).map(|(a, b)| a.max(b)),
    });
}

/// Adds a term. The value that lives longest counts.
fn add(terms: &mut RowTerms, term: Vec<u8>, lifetime: CellLifetime) {
    let expires_at_s = lifetime.map(|expiry| expiry.at_s);
    match terms.entry(term) {
        Entry::Vacant(vacant) => drop(vacant.insert(expires_at_s)),
        Entry::Occupied(mut known) => {
            let last = known.get().zip(expires_at_s).map(|(a, b)| a.max(b));
            known.insert(last);
        }
    }
}
