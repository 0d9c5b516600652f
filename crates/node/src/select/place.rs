//! Where a column's value lies in a row, and how it is written out.

use bytes::{BufMut, Bytes, BytesMut};
use cql::types::CqlType;
use storage::catalog::{Column, ColumnId, ColumnKind};
use storage::read::{Cell, LiveCell, Row};

/// Where a column's value lies in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Position in the partition key.
    Partition(usize),
    /// Position in the clustering key.
    Clustering(usize),
    Static(ColumnId),
    Regular(ColumnId),
}

/// What a row holds at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'r> {
    Null,
    Value(&'r Bytes),
    /// A non-frozen collection: (path, cell), in the order of their paths.
    Elements(&'r [(Bytes, LiveCell)]),
}

/// How the elements of a non-frozen collection make up its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No collection, or a frozen one: the bytes are the value.
    Whole,
    /// The values, in the order of the paths.
    List,
    /// The paths.
    Set,
    /// Paths and values.
    Map,
}

impl Place {
    pub(crate) fn of(column: &Column) -> Place {
        match column.kind {
            ColumnKind::PartitionKey { position } => Place::Partition(position),
            ColumnKind::Clustering { position, .. } => Place::Clustering(position),
            ColumnKind::Static => Place::Static(column.id),
            ColumnKind::Regular => Place::Regular(column.id),
        }
    }

    pub(crate) fn content<'r>(&self, row: &'r Row) -> Content<'r> {
        match self.cell(row) {
            Some(Cell::Simple(cell)) => Content::Value(&cell.value),
            Some(Cell::Elements(elements)) if elements.is_empty() => Content::Null,
            Some(Cell::Elements(elements)) => Content::Elements(elements),
            None => match self.key_component(row) {
                Some(value) => Content::Value(value),
                None => Content::Null,
            },
        }
    }

    /// The value of a column that is one cell or a component of the key.
    pub(super) fn value<'r>(&self, row: &'r Row) -> Option<&'r Bytes> {
        match self.content(row) {
            Content::Value(value) => Some(value),
            Content::Null | Content::Elements(_) => None,
        }
    }

    /// The cell of a column outside of the key that is one cell.
    pub(super) fn live_cell<'r>(&self, row: &'r Row) -> Option<&'r LiveCell> {
        match self.cell(row) {
            Some(Cell::Simple(cell)) => Some(cell),
            _ => None,
        }
    }

    fn cell<'r>(&self, row: &'r Row) -> Option<&'r Cell> {
        match self {
            Place::Static(id) => row.static_cell(*id),
            Place::Regular(id) => row.cell(*id),
            Place::Partition(_) | Place::Clustering(_) => None,
        }
    }

    fn key_component<'r>(&self, row: &'r Row) -> Option<&'r Bytes> {
        match self {
            Place::Partition(position) => row.partition.key.get(*position),
            Place::Clustering(position) => row.clustering.as_ref()?.get(*position),
            Place::Static(_) | Place::Regular(_) => None,
        }
    }
}

impl Shape {
    pub(crate) fn of(cql_type: &CqlType) -> Shape {
        match cql_type {
            CqlType::List { frozen: false, .. } => Shape::List,
            CqlType::Set { frozen: false, .. } => Shape::Set,
            CqlType::Map { frozen: false, .. } => Shape::Map,
            _ => Shape::Whole,
        }
    }

    fn put_elements(self, out: &mut BytesMut, elements: &[(Bytes, LiveCell)]) {
        out.put_i32(elements.len() as i32);
        for (path, cell) in elements {
            if matches!(self, Shape::Set | Shape::Map) {
                put_bytes(out, path);
            }
            if matches!(self, Shape::List | Shape::Map) {
                put_bytes(out, &cell.value);
            }
        }
    }
}

/// Appends a value with its length of 4 bytes.
pub(crate) fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_i32(bytes.len() as i32);
    out.put_slice(bytes);
}

/// Appends what stands for null.
pub(super) fn put_null(out: &mut BytesMut) {
    out.put_i32(-1);
}

impl Content<'_> {
    /// Appends the value with its length of 4 bytes, a non-frozen collection in its frozen form.
    pub(crate) fn put(&self, shape: Shape, out: &mut BytesMut) {
        match self {
            Content::Null => put_null(out),
            Content::Value(value) => put_bytes(out, value),
            Content::Elements(elements) => {
                let length_at = out.len();
                out.put_i32(0);
                shape.put_elements(out, elements);
                let length = (out.len() - length_at - 4) as i32;
                out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// The value, a non-frozen collection in its frozen form; `None` for null.
    pub(super) fn to_bytes(self, shape: Shape) -> Option<Bytes> {
        match self {
            Content::Null => None,
            Content::Value(value) => Some(value.clone()),
            Content::Elements(elements) => {
                let mut out = BytesMut::new();
                shape.put_elements(&mut out, elements);
                Some(out.freeze())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cql::value::{join_elements, join_entries};

    use super::*;

    fn element(path: &'static [u8], value: &'static [u8]) -> (Bytes, LiveCell) {
        let cell = LiveCell {
            value: Bytes::from_static(value),
            timestamp: 0,
            expiry: None,
        };
        (Bytes::from_static(path), cell)
    }

    #[test]
    fn collections_come_out_in_their_frozen_form() {
        let elements = [element(b"a", b"1"), element(b"b", b"22")];
        let list = join_elements([&b"1"[..], b"22"].into_iter());
        let set = join_elements([&b"a"[..], b"b"].into_iter());
        let map = join_entries([(&b"a"[..], &b"1"[..]), (b"b", b"22")].into_iter());
        for (shape, frozen) in [(Shape::List, list), (Shape::Set, set), (Shape::Map, map)] {
            let content = Content::Elements(&elements);
            assert_eq!(content.to_bytes(shape), Some(frozen.clone()));
            let mut out = BytesMut::from(&b"before"[..]);
            content.put(shape, &mut out);
            let mut expected = BytesMut::from(&b"before"[..]);
            put_bytes(&mut expected, &frozen);
            assert_eq!(out, expected);
        }
    }
}
