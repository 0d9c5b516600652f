//! Metadata: the names and types of a result's columns and of a statement's bind markers.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use value::CqlType;

use super::header::ProtocolVersion;
use super::reader::{BodyReader, DecodeError};
use super::type_option::{put_type, read_type};
use super::writer::BodyWriter;

/// Flags of metadata.
pub(super) mod flag {
    /// All columns are of one table, and it is named once before them.
    pub(in super::super) const GLOBAL_TABLE: i32 = 0x0001;
    /// A paging state follows.
    pub(in super::super) const HAS_MORE_PAGES: i32 = 0x0002;
    /// The columns are left out.
    pub(in super::super) const NO_METADATA: i32 = 0x0004;
    /// The id of the columns follows, as they are not those that the client expected. Version 5.
    pub(in super::super) const METADATA_CHANGED: i32 = 0x0008;
}

/// The fewest bytes of a column: the length of its name and a type.
const COLUMN_BYTES_MIN: usize = 4;

/// One column of a result, or one bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The keyspace of the column's table.
    pub keyspace: Arc<str>,
    /// The column's table.
    pub table: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The type.
    pub cql_type: CqlType,
}

/// The columns of a result or the bind markers of a statement, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnsMetadata {
    /// The columns or markers.
    pub columns: Vec<ColumnSpec>,
}

/// The answer to a PREPARE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedResponse {
    /// The id for EXECUTE.
    pub id: Bytes,
    /// The id of the columns of the result, for EXECUTE. Version 5 always has one, and version 4
    /// has no place for it.
    pub result_metadata_id: Option<Bytes>,
    /// The bind markers.
    pub bind: ColumnsMetadata,
    /// The positions of the markers that give the values of the partition key columns, in key
    /// order. With them a driver computes the token. Empty if some column's value comes from no
    /// marker.
    pub partition_key_indexes: Vec<u16>,
    /// The columns of the result; `None` if the statement returns no result set.
    pub result: Option<ColumnsMetadata>,
}

impl ColumnsMetadata {
    /// `GLOBAL_TABLE` if all columns are of one table, else 0.
    pub(super) fn table_flag(&self) -> i32 {
        let same = self
            .columns
            .windows(2)
            .all(|pair| pair[0].keyspace == pair[1].keyspace && pair[0].table == pair[1].table);
        if same && !self.columns.is_empty() {
            flag::GLOBAL_TABLE
        } else {
            0
        }
    }

    /// Appends the columns. The table comes once before all columns if
    /// [`ColumnsMetadata::table_flag`] is set, else before each:
    ///
    /// ```text
    /// [keyspace string, table string], columns
    /// a column: [keyspace string, table string], name string, type
    /// ```
    pub(super) fn put_columns(&self, out: &mut BytesMut, version: ProtocolVersion) {
        let global = self.table_flag() != 0;
        if let (true, Some(first)) = (global, self.columns.first()) {
            out.put_string(&first.keyspace);
            out.put_string(&first.table);
        }
        for column in &self.columns {
            if !global {
                out.put_string(&column.keyspace);
                out.put_string(&column.table);
            }
            out.put_string(&column.name);
            put_type(out, &column.cql_type, version);
        }
    }

    /// Reads `count` columns.
    pub(super) fn read_columns(
        reader: &mut BodyReader,
        flags: i32,
        count: usize,
    ) -> Result<ColumnsMetadata, DecodeError> {
        const WHAT: &str = "the metadata";
        let name = |reader: &mut BodyReader| reader.string(WHAT).map(Arc::<str>::from);
        let global = match flags & flag::GLOBAL_TABLE {
            0 => None,
            _ => Some((name(reader)?, name(reader)?)),
        };
        let mut columns = Vec::with_capacity(reader.capacity(count, COLUMN_BYTES_MIN));
        for _ in 0..count {
            let (keyspace, table) = match &global {
                Some(table) => table.clone(),
                None => (name(reader)?, name(reader)?),
            };
            columns.push(ColumnSpec {
                keyspace,
                table,
                name: name(reader)?,
                cql_type: read_type(reader)?,
            });
        }
        Ok(ColumnsMetadata { columns })
    }
}

impl PreparedResponse {
    /// Appends the answer to PREPARE:
    ///
    /// ```text
    /// id short bytes, [version 5: id of the columns short bytes],
    /// flags i32, count i32, key count i32, key indexes u16 each, bind markers,
    /// flags i32, count i32, result columns
    /// ```
    pub(super) fn put(&self, out: &mut BytesMut, version: ProtocolVersion) {
        out.put_short_bytes(&self.id);
        if version == ProtocolVersion::V5 {
            out.put_short_bytes(self.result_metadata_id.as_deref().unwrap_or_default());
        }
        out.put_i32(self.bind.table_flag());
        put_count(out, self.bind.columns.len());
        put_count(out, self.partition_key_indexes.len());
        for &index in &self.partition_key_indexes {
            out.put_u16(index);
        }
        self.bind.put_columns(out, version);
        match &self.result {
            Some(result) => {
                out.put_i32(result.table_flag());
                put_count(out, result.columns.len());
                result.put_columns(out, version);
            }
            None => {
                out.put_i32(flag::NO_METADATA);
                out.put_i32(0);
            }
        }
    }

    /// Reads the answer to PREPARE.
    pub(super) fn read(
        reader: &mut BodyReader,
        version: ProtocolVersion,
    ) -> Result<PreparedResponse, DecodeError> {
        const WHAT: &str = "the metadata of a prepared statement";
        let id = reader.short_bytes(WHAT)?;
        let result_metadata_id = match version {
            ProtocolVersion::V4 => None,
            ProtocolVersion::V5 => Some(reader.short_bytes(WHAT)?),
        };
        let flags = reader.i32(WHAT)?;
        let count = reader.count(WHAT)?;
        let key_count = reader.count(WHAT)?;
        let mut partition_key_indexes = Vec::with_capacity(reader.capacity(key_count, 2));
        for _ in 0..key_count {
            partition_key_indexes.push(reader.u16(WHAT)?);
        }
        let bind = ColumnsMetadata::read_columns(reader, flags, count)?;
        let flags = reader.i32(WHAT)?;
        let count = reader.count(WHAT)?;
        if flags & flag::HAS_MORE_PAGES != 0 {
            reader.bytes(WHAT)?;
        }
        if flags & flag::METADATA_CHANGED != 0 && version == ProtocolVersion::V5 {
            reader.short_bytes(WHAT)?;
        }
        let result = match flags & flag::NO_METADATA {
            0 => Some(ColumnsMetadata::read_columns(reader, flags, count)?),
            _ => None,
        };
        Ok(PreparedResponse {
            id,
            result_metadata_id,
            bind,
            partition_key_indexes,
            result,
        })
    }
}

/// Appends a count of columns.
pub(super) fn put_count(out: &mut BytesMut, count: usize) {
    out.put_i32(i32::try_from(count).expect("bug: a count of columns beyond 31 bits"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(table: &str, name: &str) -> ColumnSpec {
        ColumnSpec {
            keyspace: "k".into(),
            table: table.into(),
            name: name.into(),
            cql_type: CqlType::Int,
        }
    }

    fn encoded(columns: Vec<ColumnSpec>) -> (ColumnsMetadata, i32, Bytes) {
        let metadata = ColumnsMetadata { columns };
        let mut out = BytesMut::new();
        metadata.put_columns(&mut out, ProtocolVersion::V4);
        let flag = metadata.table_flag();
        (metadata, flag, out.freeze())
    }

    #[test]
    fn one_table_is_named_once() {
        let (metadata, flag, bytes) = encoded(vec![column("t", "a"), column("t", "b")]);
        assert_eq!(flag, flag::GLOBAL_TABLE);
        assert_eq!(&bytes[..], b"\0\x01k\0\x01t\0\x01a\0\x09\0\x01b\0\x09");
        let read = ColumnsMetadata::read_columns(&mut BodyReader::new(bytes), flag, 2);
        assert_eq!(read, Ok(metadata));
    }

    #[test]
    fn several_tables_are_named_with_each_column() {
        let (metadata, flag, bytes) = encoded(vec![column("t", "a"), column("u", "b")]);
        assert_eq!(flag, 0);
        assert_eq!(
            &bytes[..],
            b"\0\x01k\0\x01t\0\x01a\0\x09\0\x01k\0\x01u\0\x01b\0\x09"
        );
        let read = ColumnsMetadata::read_columns(&mut BodyReader::new(bytes), flag, 2);
        assert_eq!(read, Ok(metadata));
    }

    #[test]
    fn a_statement_without_markers_or_result_says_so() {
        let prepared = PreparedResponse {
            id: Bytes::from_static(b"id"),
            result_metadata_id: None,
            bind: ColumnsMetadata::default(),
            partition_key_indexes: Vec::new(),
            result: None,
        };
        let mut out = BytesMut::new();
        prepared.put(&mut out, ProtocolVersion::V4);
        assert_eq!(
            &out[..],
            b"\0\x02id\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\0"
        );
        let read = PreparedResponse::read(&mut BodyReader::new(out.freeze()), ProtocolVersion::V4);
        assert_eq!(read, Ok(prepared));
    }

    #[test]
    fn the_columns_of_the_result_have_an_id_since_version_5() {
        let prepared = PreparedResponse {
            id: Bytes::from_static(b"id"),
            result_metadata_id: Some(Bytes::from_static(b"of")),
            bind: ColumnsMetadata::default(),
            partition_key_indexes: Vec::new(),
            result: None,
        };
        let mut out = BytesMut::new();
        prepared.put(&mut out, ProtocolVersion::V5);
        assert_eq!(&out[..8], b"\0\x02id\0\x02of");
        let read = PreparedResponse::read(&mut BodyReader::new(out.freeze()), ProtocolVersion::V5);
        assert_eq!(read, Ok(prepared));
    }
}
