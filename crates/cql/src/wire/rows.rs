//! Result sets: written cell by cell into one buffer, and read back.
//!
//! ```text
//! flags i32, column count i32, [paging state bytes], [id of the columns short bytes]   <- the head
//! [columns], row count i32, rows                                                  <- the content
//! a row: its cells, each a length i32 (-1 for null) and that many bytes
//! ```
//!
//! The content is written as the rows come, and the head with the frame, when the paging state is
//! known.

use bytes::{BufMut, Bytes, BytesMut};

use super::header::ProtocolVersion;
use super::metadata::{ColumnSpec, ColumnsMetadata, flag, put_count};
use super::reader::{BodyReader, DecodeError};
use super::writer::BodyWriter;

/// A result set in its encoded form.
#[derive(Clone, Debug)]
pub struct EncodedRows {
    /// The position where the next page begins, as opaque bytes; `None` on the last page.
    pub paging_state: Option<Bytes>,
    /// The id of the columns, if they are not those that the client expected. Version 4 has no
    /// place for it.
    pub new_metadata_id: Option<Bytes>,
    /// `GLOBAL_TABLE`, `NO_METADATA` or 0: the form in which the columns are written.
    flags: i32,
    column_count: usize,
    row_count: usize,
    /// The bytes from the columns on.
    content: Bytes,
    /// The bytes after `content`: rows that were encoded elsewhere and are not copied.
    rest: Bytes,
    /// The columns again, if version 5 writes them otherwise than version 4.
    of_version_5: Option<OfVersion5>,
}

/// The columns of a result set with durations, for which version 5 has a code.
#[derive(Clone, Debug)]
struct OfVersion5 {
    columns: ColumnsMetadata,
    /// The bytes of the columns at the begin of the content, which are of version 4.
    replaced: usize,
}

/// Two result sets are equal if they are decoded alike.
impl PartialEq for EncodedRows {
    fn eq(&self, other: &EncodedRows) -> bool {
        let of = |rows: &EncodedRows| (rows.flags, rows.column_count, rows.row_count);
        of(self) == of(other)
            && self.new_metadata_id == other.new_metadata_id
            && self.decode() == other.decode()
    }
}

/// A decoded result set.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedRows {
    /// The columns; `None` if the server was requested to leave them out.
    pub metadata: Option<ColumnsMetadata>,
    /// The position where the next page begins, as opaque bytes; `None` on the last page.
    pub paging_state: Option<Bytes>,
    /// The cells, row by row; `None` for null. They share the memory of the frame.
    pub rows: Vec<Vec<Option<Bytes>>>,
}

const WHAT: &str = "a result set";

impl EncodedRows {
    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Decodes the result set.
    ///
    /// # Errors
    /// If it is malformed. One that a [`RowsEncoder`] made never is.
    pub fn decode(&self) -> Result<DecodedRows, DecodeError> {
        let mut reader = BodyReader::new(self.joined());
        let metadata = self.read_columns(&mut reader)?;
        let row_count = reader.count(WHAT)?;
        let row_bytes_min = 4 * self.column_count;
        let mut rows = Vec::with_capacity(reader.capacity(row_count, row_bytes_min.max(1)));
        for _ in 0..row_count {
            let mut row = Vec::with_capacity(reader.capacity(self.column_count, 4));
            for _ in 0..self.column_count {
                row.push(reader.bytes("a cell")?);
            }
            rows.push(row);
        }
        Ok(DecodedRows {
            metadata,
            paging_state: self.paging_state.clone(),
            rows,
        })
    }

    fn read_columns(
        &self,
        reader: &mut BodyReader,
    ) -> Result<Option<ColumnsMetadata>, DecodeError> {
        match self.flags & flag::NO_METADATA {
            0 => ColumnsMetadata::read_columns(reader, self.flags, self.column_count).map(Some),
            _ => Ok(None),
        }
    }

    /// Appends the part before the content.
    fn put_head(&self, out: &mut BytesMut, version: ProtocolVersion) {
        let new_id = match version {
            ProtocolVersion::V4 => None,
            ProtocolVersion::V5 => self.new_metadata_id.as_deref(),
        };
        let more_pages = self
            .paging_state
            .as_ref()
            .map_or(0, |_| flag::HAS_MORE_PAGES);
        let changed = new_id.map_or(0, |_| flag::METADATA_CHANGED);
        out.put_i32(self.flags | more_pages | changed);
        put_count(out, self.column_count);
        if let Some(state) = &self.paging_state {
            out.put_nullable_bytes(Some(state));
        }
        if let Some(id) = new_id {
            out.put_short_bytes(id);
        }
    }

    /// Appends the result set without its bulk. Returns the bulk, which is not copied.
    pub(super) fn put(&self, out: &mut BytesMut, version: ProtocolVersion) -> Bytes {
        self.put_head(out, version);
        if let (ProtocolVersion::V5, Some(OfVersion5 { columns, replaced })) =
            (version, &self.of_version_5)
        {
            columns.put_columns(out, version);
            out.extend_from_slice(&self.content[*replaced..]);
            return self.rest.clone();
        }
        if self.rest.is_empty() {
            return self.content.clone();
        }
        out.extend_from_slice(&self.content);
        self.rest.clone()
    }

    /// All bytes from the columns on.
    fn joined(&self) -> Bytes {
        match self.rest.is_empty() {
            true => self.content.clone(),
            false => [&self.content[..], &self.rest[..]].concat().into(),
        }
    }

    /// Reads a result set from a frame. The cells are decoded later, by [`EncodedRows::decode`].
    pub(super) fn read(
        mut reader: BodyReader,
        version: ProtocolVersion,
    ) -> Result<EncodedRows, DecodeError> {
        let flags = reader.i32(WHAT)?;
        let column_count = reader.count(WHAT)?;
        let paging_state = match flags & flag::HAS_MORE_PAGES {
            0 => None,
            _ => reader.bytes(WHAT)?,
        };
        let has_new_id = flags & flag::METADATA_CHANGED != 0 && version == ProtocolVersion::V5;
        let new_metadata_id = match has_new_id {
            true => Some(reader.short_bytes(WHAT)?),
            false => None,
        };
        let mut rows = EncodedRows {
            paging_state,
            new_metadata_id,
            flags: flags & (flag::GLOBAL_TABLE | flag::NO_METADATA),
            column_count,
            row_count: 0,
            content: reader.into_rest(),
            rest: Bytes::new(),
            of_version_5: None,
        };
        let mut reader = BodyReader::new(rows.content.clone());
        rows.read_columns(&mut reader)?;
        rows.row_count = reader.count(WHAT)?;
        if column_count == 0 && rows.row_count > 0 {
            // Rows without cells take no bytes, so nothing would bound their number.
            return Err(DecodeError::invalid("rows without columns"));
        }
        Ok(rows)
    }
}

/// The row count that is written before the real one is known.
const COUNT_PLACEHOLDER: i32 = 0;

/// The bytes that a new result set has room for. For most reads of one row this is the only
/// allocation.
const CAPACITY_FIRST: usize = 1024;

/// Writes a result set row by row.
///
/// Cells are copied once, into one growing buffer. A cell or row has no allocation of its own.
#[derive(Debug)]
pub struct RowsEncoder {
    flags: i32,
    column_count: usize,
    content: BytesMut,
    of_version_5: Option<OfVersion5>,
    /// Whole rows that were encoded elsewhere.
    rest: Bytes,
    /// The offset of the row count in `content`.
    count_at: usize,
    /// The offset of the current row in `content`.
    row_at: usize,
    row_count: usize,
    /// The number of cells of the current row so far.
    cells: usize,
}

impl RowsEncoder {
    /// Begins a result set with the given columns. With `skip_metadata` only their number is sent.
    pub fn new(metadata: &ColumnsMetadata, skip_metadata: bool) -> Self {
        let mut content = BytesMut::with_capacity(CAPACITY_FIRST);
        let flags = if skip_metadata {
            flag::NO_METADATA
        } else {
            metadata.put_columns(&mut content, ProtocolVersion::V4);
            metadata.table_flag()
        };
        let count_at = content.len();
        let holds_durations = |column: &ColumnSpec| column.cql_type.holds_durations();
        let is_other = !skip_metadata && metadata.columns.iter().any(holds_durations);
        let of_version_5 = is_other.then(|| OfVersion5 {
            columns: metadata.clone(),
            replaced: count_at,
        });
        content.put_i32(COUNT_PLACEHOLDER);
        RowsEncoder {
            flags,
            column_count: metadata.columns.len(),
            row_at: content.len(),
            content,
            of_version_5,
            rest: Bytes::new(),
            count_at,
            row_count: 0,
            cells: 0,
        }
    }

    /// Appends the next cell of the current row: a serialised value, or `None` for null.
    pub fn cell(&mut self, value: Option<&[u8]>) {
        self.content.put_nullable_bytes(value);
        self.cells += 1;
    }

    /// Ends the current row.
    ///
    /// # Panics
    /// If the row has more or fewer cells than there are columns: that is a bug of the caller.
    pub fn end_row(&mut self) {
        assert_eq!(self.cells, self.column_count, "bug: cells of a row");
        self.row_count += 1;
        self.row_at = self.content.len();
        self.cells = 0;
    }

    /// Sets the rows of the result set to `count` rows that are encoded already. `cells` holds each
    /// cell as its length (a big-endian i32, -1 for null) and that many bytes. It is not copied.
    ///
    /// # Panics
    /// If there are rows or cells already: that is a bug of the caller.
    pub fn encoded_rows(&mut self, count: usize, cells: Bytes) {
        assert_eq!(
            (self.cells, self.row_count),
            (0, 0),
            "bug: rows behind rows"
        );
        self.rest = cells;
        self.row_count = count;
    }

    /// Removes the cells of the current row, which is not ended yet.
    pub fn abandon_row(&mut self) {
        self.content.truncate(self.row_at);
        self.cells = 0;
    }

    /// The number of rows ended so far.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// The bytes written so far, metadata included. Pages that are bounded by size are measured by
    /// it.
    pub fn encoded_length(&self) -> usize {
        self.content.len() + self.rest.len()
    }

    /// Ends the result set. `paging_state` is the position where the next page begins; `None` on
    /// the last page.
    ///
    /// # Panics
    /// If a row was begun and neither ended nor abandoned: that is a bug of the caller.
    pub fn finish(mut self, paging_state: Option<Bytes>) -> EncodedRows {
        assert_eq!(self.cells, 0, "bug: a row that was not ended");
        let count = i32::try_from(self.row_count).expect("bug: rows beyond 31 bits");
        self.content[self.count_at..self.count_at + size_of::<i32>()]
            .copy_from_slice(&count.to_be_bytes());
        EncodedRows {
            paging_state,
            new_metadata_id: None,
            flags: self.flags,
            column_count: self.column_count,
            row_count: self.row_count,
            content: self.content.freeze(),
            rest: self.rest,
            of_version_5: self.of_version_5,
        }
    }
}

#[cfg(test)]
mod tests {
    use value::CqlType;

    use super::super::metadata::ColumnSpec;
    use super::*;

    fn metadata() -> ColumnsMetadata {
        let column = |name: &str, cql_type| ColumnSpec {
            keyspace: "k".into(),
            table: "t".into(),
            name: name.into(),
            cql_type,
        };
        ColumnsMetadata {
            columns: vec![column("id", CqlType::Int), column("name", CqlType::Text)],
        }
    }

    fn read_back(rows: &EncodedRows) -> DecodedRows {
        let mut body = BytesMut::new();
        let rest = rows.put(&mut body, ProtocolVersion::V5);
        body.extend_from_slice(&rest);
        let read = EncodedRows::read(BodyReader::new(body.freeze()), ProtocolVersion::V5).unwrap();
        assert_eq!(&read, rows);
        read.decode().unwrap()
    }

    #[test]
    fn rows_already_encoded_are_the_same_rows() {
        let mut cell_by_cell = RowsEncoder::new(&metadata(), false);
        let mut as_they_are = RowsEncoder::new(&metadata(), false);
        let mut cells = BytesMut::new();
        for name in [Some(&b"seven"[..]), None] {
            cell_by_cell.cell(Some(&7i32.to_be_bytes()));
            cell_by_cell.cell(name);
            cell_by_cell.end_row();
            cells.put_nullable_bytes(Some(&7i32.to_be_bytes()));
            cells.put_nullable_bytes(name);
        }
        as_they_are.encoded_rows(2, cells.freeze());
        assert_eq!(as_they_are.row_count(), 2);
        assert_eq!(as_they_are.finish(None), cell_by_cell.finish(None));
    }

    #[test]
    fn rows_lead_back() {
        for skip_metadata in [false, true] {
            let mut encoder = RowsEncoder::new(&metadata(), skip_metadata);
            encoder.cell(Some(&7i32.to_be_bytes()));
            encoder.cell(Some(b"seven"));
            encoder.end_row();
            encoder.cell(Some(b"never"));
            encoder.abandon_row();
            encoder.cell(Some(b""));
            encoder.cell(None);
            encoder.end_row();
            assert_eq!(encoder.row_count(), 2);
            let rows = encoder.finish(Some(Bytes::from_static(b"next")));
            assert_eq!(rows.row_count(), 2);
            let decoded = read_back(&rows);
            assert_eq!(decoded.metadata, (!skip_metadata).then(metadata));
            assert_eq!(decoded.paging_state.as_deref(), Some(&b"next"[..]));
            assert_eq!(
                decoded.rows,
                vec![
                    vec![
                        Some(Bytes::from_static(&[0, 0, 0, 7])),
                        Some(Bytes::from_static(b"seven"))
                    ],
                    vec![Some(Bytes::new()), None],
                ]
            );
        }
    }

    #[test]
    fn columns_that_changed_come_with_their_id() {
        let mut rows = RowsEncoder::new(&metadata(), false).finish(Some(Bytes::from_static(b"n")));
        rows.new_metadata_id = Some(Bytes::from_static(b"new id"));
        assert_eq!(read_back(&rows).metadata, Some(metadata()));
        let mut body = BytesMut::new();
        let _ = rows.put(&mut body, ProtocolVersion::V4);
        assert_eq!(&body[..], b"\0\0\0\x03\0\0\0\x02\0\0\0\x01n");
    }

    #[test]
    fn durations_have_a_code_in_version_5() {
        let mut columns = metadata();
        columns.columns[1].cql_type = CqlType::Duration;
        let mut encoder = RowsEncoder::new(&columns, false);
        let mut cells = BytesMut::new();
        cells.put_nullable_bytes(Some(&7i32.to_be_bytes()));
        cells.put_nullable_bytes(Some(&[2, 4, 6]));
        encoder.encoded_rows(1, cells.freeze());
        let rows = encoder.finish(None);
        let name = b"org.apache.cassandra.db.marshal.DurationType";
        for version in [ProtocolVersion::V4, ProtocolVersion::V5] {
            let mut body = BytesMut::new();
            let rest = rows.put(&mut body, version);
            body.extend_from_slice(&rest);
            let body = body.freeze();
            let named = body.windows(name.len()).any(|part| part == name);
            assert_eq!(named, version == ProtocolVersion::V4);
            let read = EncodedRows::read(BodyReader::new(body), version).unwrap();
            assert_eq!(read, rows);
            assert_eq!(read.decode().unwrap().metadata, Some(columns.clone()));
        }
    }

    #[test]
    fn no_rows_are_a_result_too() {
        let rows = RowsEncoder::new(&metadata(), false).finish(None);
        let decoded = read_back(&rows);
        assert_eq!(decoded.rows.len(), 0);
        assert_eq!(decoded.paging_state, None);
    }

    #[test]
    #[should_panic(expected = "bug: cells of a row")]
    fn a_row_of_too_few_cells_is_a_bug() {
        let mut encoder = RowsEncoder::new(&metadata(), false);
        encoder.cell(None);
        encoder.end_row();
    }

    #[test]
    fn rows_without_columns_are_refused() {
        let mut body = BytesMut::new();
        body.put_i32(flag::NO_METADATA);
        body.put_i32(0);
        body.put_i32(i32::MAX);
        assert!(EncodedRows::read(BodyReader::new(body.freeze()), ProtocolVersion::V4).is_err());
    }
}
