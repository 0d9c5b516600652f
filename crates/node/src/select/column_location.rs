//! The place of a column's value in a row, and the form in which the value is written out.

use bytes::{BufMut, Bytes, BytesMut};
use schema::{Column, ColumnId, ColumnKind};
use storage::read::{Cell, LiveCell, Row};
use value::predicate::ColumnObservation;
use value::{CqlType, UserType};

/// The place of a column's value in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ColumnLocation {
    /// Position in the partition key.
    Partition(usize),
    /// Position in the clustering key.
    Clustering(usize),
    Static(ColumnId),
    Regular(ColumnId),
}

/// The content of a row at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ColumnContent<'r> {
    Null,
    /// A single value: one cell, or a component of the key.
    Value(&'r Bytes),
    /// The elements of a non-frozen collection, or the fields of a user type, as (path, cell), in
    /// the order of their paths.
    Elements(&'r [(Bytes, LiveCell)]),
}

/// The way in which the elements of a non-frozen collection or user type make up its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueShape {
    /// The column is one cell or of the key: its bytes are the value.
    Whole,
    /// A list is made up of the cells' values, in the order of the paths.
    List,
    /// A set is made up of the paths.
    Set,
    /// A map is made up of the paths as keys and the cells' values.
    Map,
    /// A user type with so many fields is made up of the cells' values, whose paths are the
    /// positions of the fields.
    Fields(usize),
}

impl ColumnLocation {
    /// The place of a column.
    pub(crate) fn of(column: &Column) -> ColumnLocation {
        match column.kind {
            ColumnKind::PartitionKey { position } => ColumnLocation::Partition(position),
            ColumnKind::Clustering { position, .. } => ColumnLocation::Clustering(position),
            ColumnKind::Static => ColumnLocation::Static(column.id),
            ColumnKind::Regular => ColumnLocation::Regular(column.id),
        }
    }

    /// The content of a row at this place.
    pub(crate) fn content<'r>(&self, row: &'r Row) -> ColumnContent<'r> {
        match self.cell(row) {
            Some(Cell::Simple(cell)) => ColumnContent::Value(&cell.value),
            Some(Cell::Elements(elements)) if elements.is_empty() => ColumnContent::Null,
            Some(Cell::Elements(elements)) => ColumnContent::Elements(elements),
            None => match self.key_component(row) {
                Some(value) => ColumnContent::Value(value),
                None => ColumnContent::Null,
            },
        }
    }

    /// The value of a column that is one cell or a component of the key; `None` for null and for a
    /// non-frozen collection.
    pub(super) fn value<'r>(&self, row: &'r Row) -> Option<&'r Bytes> {
        match self.content(row) {
            ColumnContent::Value(value) => Some(value),
            ColumnContent::Null | ColumnContent::Elements(_) => None,
        }
    }

    /// The cell of a column that is one cell outside of the key; `None` for null and for all other
    /// columns.
    pub(super) fn live_cell<'r>(&self, row: &'r Row) -> Option<&'r LiveCell> {
        match self.cell(row) {
            Some(Cell::Simple(cell)) => Some(cell),
            _ => None,
        }
    }

    fn cell<'r>(&self, row: &'r Row) -> Option<&'r Cell> {
        match self {
            ColumnLocation::Static(id) => row.static_cell(*id),
            ColumnLocation::Regular(id) => row.cell(*id),
            ColumnLocation::Partition(_) | ColumnLocation::Clustering(_) => None,
        }
    }

    fn key_component<'r>(&self, row: &'r Row) -> Option<&'r Bytes> {
        match self {
            ColumnLocation::Partition(position) => row.partition.key.get(*position),
            ColumnLocation::Clustering(position) => row.clustering.as_ref()?.get(*position),
            ColumnLocation::Static(_) | ColumnLocation::Regular(_) => None,
        }
    }
}

impl ValueShape {
    /// The shape of a column of this type.
    pub(crate) fn of(cql_type: &CqlType) -> ValueShape {
        match cql_type {
            CqlType::List { frozen: false, .. } => ValueShape::List,
            CqlType::Set { frozen: false, .. } => ValueShape::Set,
            CqlType::Map { frozen: false, .. } => ValueShape::Map,
            CqlType::UserType {
                definition,
                frozen: false,
            } => ValueShape::Fields(definition.field_names.len()),
            _ => ValueShape::Whole,
        }
    }

    fn put_elements(self, out: &mut BytesMut, elements: &[(Bytes, LiveCell)]) {
        if let ValueShape::Fields(count) = self {
            let mut cells = elements.iter().peekable();
            for position in 0..count {
                match cells.next_if(|(path, _)| *path == UserType::path(position)) {
                    Some((_, cell)) => put_bytes(out, &cell.value),
                    None => put_null(out),
                }
            }
            return;
        }
        out.put_i32(elements.len() as i32);
        for (path, cell) in elements {
            if matches!(self, ValueShape::Set | ValueShape::Map) {
                put_bytes(out, path);
            }
            if matches!(self, ValueShape::List | ValueShape::Map) {
                put_bytes(out, &cell.value);
            }
        }
    }
}

/// Appends the length of a value in 4 bytes, big-endian, then the value.
pub(crate) fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_i32(bytes.len() as i32);
    out.put_slice(bytes);
}

/// Appends a null, which is the length -1.
pub(super) fn put_null(out: &mut BytesMut) {
    out.put_i32(-1);
}

impl<'r> ColumnContent<'r> {
    /// The content as predicates look at it.
    pub(crate) fn observed(
        self,
    ) -> ColumnObservation<'r, impl Iterator<Item = (&'r [u8], &'r [u8])>> {
        match self {
            ColumnContent::Null => ColumnObservation::Null,
            ColumnContent::Value(value) => ColumnObservation::Value(value),
            ColumnContent::Elements(elements) => ColumnObservation::Elements(
                elements
                    .iter()
                    .map(|(path, cell)| (&path[..], &cell.value[..])),
            ),
        }
    }

    /// Appends the length of the value in 4 bytes, big-endian, then the value. A non-frozen
    /// collection or user type is written in its frozen form.
    pub(crate) fn put(&self, shape: ValueShape, out: &mut BytesMut) {
        match self {
            ColumnContent::Null => put_null(out),
            ColumnContent::Value(value) => put_bytes(out, value),
            ColumnContent::Elements(elements) => {
                let length_at = out.len();
                out.put_i32(0);
                shape.put_elements(out, elements);
                let length = (out.len() - length_at - 4) as i32;
                out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
    }

    /// The serialised value; `None` for null. A non-frozen collection takes its frozen form.
    pub(crate) fn to_bytes(self, shape: ValueShape) -> Option<Bytes> {
        match self {
            ColumnContent::Null => None,
            ColumnContent::Value(value) => Some(value.clone()),
            ColumnContent::Elements(elements) => {
                let mut out = BytesMut::new();
                shape.put_elements(&mut out, elements);
                Some(out.freeze())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use value::{join_elements, join_entries};

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
        for (shape, frozen) in [
            (ValueShape::List, list),
            (ValueShape::Set, set),
            (ValueShape::Map, map),
        ] {
            let content = ColumnContent::Elements(&elements);
            assert_eq!(content.to_bytes(shape), Some(frozen.clone()));
            let mut out = BytesMut::from(&b"before"[..]);
            content.put(shape, &mut out);
            let mut expected = BytesMut::from(&b"before"[..]);
            put_bytes(&mut expected, &frozen);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn fields_without_a_cell_are_null() {
        let elements = [element(&[0, 1], b"b"), element(&[0, 3], b"d")];
        let value = ColumnContent::Elements(&elements).to_bytes(ValueShape::Fields(4));
        let null = (-1_i32).to_be_bytes();
        let expected = [&null[..], b"\0\0\0\x01b", &null, b"\0\0\0\x01d"].concat();
        assert_eq!(value, Some(expected.into()));
    }
}
