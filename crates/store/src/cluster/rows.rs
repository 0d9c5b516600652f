//! Reads rows of a table by CQL statements.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cql::quote::quoted;
use futures::future::try_join_all;
use scylla::deserialize::row::{ColumnIterator, RawColumn};
use scylla::errors::{DeserializationError, RowsError};
use scylla::frame::response::result::ColumnType;
use scylla::response::query_result::QueryRowsResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::serialize::SerializationError;
use scylla::serialize::row::SerializeRow;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};

use super::session::DbHandle;
use super::statement::IdempotentStatement;
use crate::database::{RowPage, SourceTable, TablePart};
use crate::keys::PrimaryKey;
use crate::observed::RawCell;
use crate::present::TimeSource;
use crate::rows::{FetchedRow, RowReader};

/// The number of keys that ScyllaDB allows in an IN by default
/// (`max_partition_key_restrictions_per_query`).
const KEYS_IN_A_LIST_MAX: usize = 100;

/// The number of rows that are read at the same time where each needs a statement of its own.
const ROWS_AT_A_TIME: usize = 32;

/// Reads rows of a table.
pub(super) struct CqlRows {
    db: DbHandle,
    reader: RowReader,
    by_key: ByKey,
    by_partition: IdempotentStatement,
    by_range: IdempotentStatement,
}

/// The statement that reads rows by primary key.
enum ByKey {
    /// Reads many rows. Possible where the primary key is one column.
    List(IdempotentStatement),
    /// Reads one row.
    One(IdempotentStatement),
}

/// An answer that doesn't fit its statement.
#[derive(Debug, thiserror::Error)]
enum RowError {
    /// The driver can't decode the answer.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// The driver can't decode a row.
    #[error(transparent)]
    Row(#[from] DeserializationError),
    /// A row ends early, or a time has the wrong length.
    #[error("malformed row")]
    Malformed,
}

impl CqlRows {
    /// Prepares to read the columns of `reader`, with range and partition pages of about
    /// `page_bytes` bytes.
    pub(super) fn new(db: DbHandle, reader: RowReader, page_bytes: usize) -> CqlRows {
        let names = |columns: &'_ [crate::keys::KeyColumn]| -> Vec<String> {
            columns.iter().map(|column| column.name.clone()).collect()
        };
        let partition = names(&reader.keys.partition);
        let all = [partition.clone(), names(&reader.keys.clustering)].concat();
        let equals = |names: &[String]| select(&reader, &equals(names.iter().map(String::as_str)));
        let by_key = match all.as_slice() {
            [column] => {
                let condition = format!("{} IN ?", quoted(column));
                ByKey::List(IdempotentStatement::new(select(&reader, &condition)))
            }
            _ => ByKey::One(IdempotentStatement::new(equals(&all))),
        };
        let page_rows = reader.page_rows(page_bytes);
        let token = token(&reader);
        let of_range = select(&reader, &format!("{token} >= ? AND {token} <= ?"));
        CqlRows {
            by_partition: IdempotentStatement::new(equals(&partition)).with_page_rows(page_rows),
            // Reads past the database's cache, as a scan would displace what is there.
            by_range: IdempotentStatement::new(of_range)
                .bypassing_cache()
                .with_page_rows(page_rows),
            by_key,
            reader,
            db,
        }
    }

    async fn read(
        &self,
        statement: &IdempotentStatement,
        values: impl SerializeRow,
        from: Option<Bytes>,
    ) -> anyhow::Result<RowPage> {
        let db = self.db.current().await;
        let prepared = statement.on(&db).await?;
        let state = from.map_or_else(PagingState::start, |from| {
            PagingState::new_from_raw_bytes(&from[..])
        });
        let answer = db.session.execute_single_page(&prepared, &values, state);
        let (result, next) = db.counted(answer.await)?;
        Ok(RowPage {
            rows: decode(&self.reader, &result.into_rows_result()?)?,
            next: match next {
                PagingStateResponse::HasMorePages { state } => {
                    let bytes = state.as_bytes_slice().map(Arc::clone);
                    bytes.map(|bytes| Bytes::copy_from_slice(&bytes))
                }
                PagingStateResponse::NoMorePages => None,
            },
        })
    }

    async fn all(
        &self,
        statement: &IdempotentStatement,
        values: impl SerializeRow,
    ) -> anyhow::Result<Vec<FetchedRow>> {
        let mut rows = Vec::new();
        let mut from = None;
        loop {
            let page = self.read(statement, &values, from).await?;
            rows.extend(page.rows);
            from = page.next;
            if from.is_none() {
                return Ok(rows);
            }
        }
    }
}

#[async_trait]
impl SourceTable for CqlRows {
    fn reader(&self) -> &RowReader {
        &self.reader
    }

    async fn page(&self, part: &TablePart, from: Option<Bytes>) -> anyhow::Result<RowPage> {
        match part {
            TablePart::Range(range) => {
                let bounds = (range.start, range.end);
                self.read(&self.by_range, bounds, from).await
            }
            TablePart::Partition(partition) => {
                let values: Vec<SerialisedValue> =
                    partition.values().map(SerialisedValue).collect();
                self.read(&self.by_partition, values, from).await
            }
        }
    }

    async fn by_key(&self, keys: &[PrimaryKey]) -> anyhow::Result<Vec<FetchedRow>> {
        match &self.by_key {
            ByKey::List(statement) => {
                let list = SerialisedList(keys.iter().flat_map(PrimaryKey::values).collect());
                self.all(statement, (list,)).await
            }
            ByKey::One(statement) => {
                let reads = keys.iter().map(|key| {
                    let values: Vec<SerialisedValue> = key.values().map(SerialisedValue).collect();
                    self.all(statement, values)
                });
                Ok(try_join_all(reads).await?.concat())
            }
        }
    }

    fn keys_at_a_time(&self) -> usize {
        match self.by_key {
            ByKey::List(_) => KEYS_IN_A_LIST_MAX,
            ByKey::One(_) => ROWS_AT_A_TIME,
        }
    }
}

/// `SELECT <columns> FROM <table> WHERE <condition>`.
fn select(reader: &RowReader, condition: &str) -> String {
    let mut list: Vec<String> = reader
        .keys
        .columns()
        .map(|column| quoted(&column.name))
        .collect();
    for column in reader.stored_columns() {
        let name = quoted(&column.name);
        list.push(match column.form.is_multi_cell() {
            // Each element has times of its own.
            true => name.clone(),
            false => format!("{name}, WRITETIME({name}), TTL({name})"),
        });
    }
    format!(
        "SELECT {} FROM {}.{} WHERE {condition}",
        list.join(", "),
        quoted(&reader.table.keyspace),
        quoted(&reader.table.table)
    )
}

/// `token(<partition key>)`.
fn token(reader: &RowReader) -> String {
    let columns: Vec<String> = reader
        .keys
        .partition
        .iter()
        .map(|column| quoted(&column.name))
        .collect();
    format!("token({})", columns.join(", "))
}

/// `<column> = ?` for each of the columns, joined by `AND`.
fn equals<'a>(columns: impl IntoIterator<Item = &'a str>) -> String {
    let terms: Vec<String> = columns
        .into_iter()
        .map(|name| format!("{} = ?", quoted(name)))
        .collect();
    terms.join(" AND ")
}

/// Decodes the rows of an answer. A row without a full primary key is left out: it represents a
/// partition that has only static columns.
fn decode(reader: &RowReader, rows: &QueryRowsResult) -> Result<Vec<FetchedRow>, RowError> {
    let now_s = TimeSource::default().now_s();
    let mut out = Vec::with_capacity(rows.rows_num());
    for row in rows.rows::<ColumnIterator>()? {
        if let Some(row) = decode_row(reader, row?, now_s)? {
            out.push(row);
        }
    }
    Ok(out)
}

fn decode_row(
    reader: &RowReader,
    mut columns: ColumnIterator<'_, '_>,
    now_s: u32,
) -> Result<Option<FetchedRow>, RowError> {
    let mut values = Vec::with_capacity(reader.keys.len());
    for _ in 0..reader.keys.len() {
        match next(&mut columns)?.slice {
            Some(slice) => values.push(slice.as_slice()),
            None => return Ok(None),
        }
    }
    let mut cells = Vec::with_capacity(reader.columns.len());
    for column in reader.stored_columns() {
        let value = next(&mut columns)?.slice;
        if column.form.is_multi_cell() {
            cells.push(value.map(|value| RawCell {
                value: value.as_slice(),
                written_us: 0,
                expires_s: None,
            }));
            continue;
        }
        let written_us = fixed(&next(&mut columns)?)?.map_or(0, i64::from_be_bytes);
        let ttl_s = fixed(&next(&mut columns)?)?.map(i32::from_be_bytes);
        cells.push(value.map(|value| RawCell {
            value: value.as_slice(),
            written_us,
            expires_s: ttl_s.map(|ttl_s| expiry_s(now_s, ttl_s)),
        }));
    }
    Ok(Some(reader.row(&values, cells)))
}

fn next<'frame, 'metadata>(
    columns: &mut ColumnIterator<'frame, 'metadata>,
) -> Result<RawColumn<'frame, 'metadata>, RowError> {
    Ok(columns.next().ok_or(RowError::Malformed)??)
}

fn fixed<const N: usize>(column: &RawColumn<'_, '_>) -> Result<Option<[u8; N]>, RowError> {
    column
        .slice
        .map(|slice| slice.as_slice().try_into().map_err(|_| RowError::Malformed))
        .transpose()
}

/// The time at which a row has surely expired, seconds since the epoch. The database gives the TTL
/// in whole seconds, so one more second is added.
fn expiry_s(now_s: u32, ttl_s: i32) -> u32 {
    now_s
        .saturating_add(u32::try_from(ttl_s).unwrap_or(0))
        .saturating_add(1)
}

/// A value that is serialised already, and bound unchanged.
#[derive(Clone, Copy, Debug)]
struct SerialisedValue<'a>(&'a [u8]);

impl SerializeValue for SerialisedValue<'_> {
    fn serialize<'b>(
        &self,
        _: &ColumnType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        writer.set_value(self.0).map_err(SerializationError::new)
    }
}

/// Values that are serialised already, and bound as a list.
#[derive(Clone, Debug)]
struct SerialisedList<'a>(Vec<&'a [u8]>);

impl SerializeValue for SerialisedList<'_> {
    fn serialize<'b>(
        &self,
        _: &ColumnType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        let mut builder = writer.into_value_builder();
        let count = i32::try_from(self.0.len()).map_err(SerializationError::new)?;
        builder.append_bytes(&count.to_be_bytes());
        for value in &self.0 {
            builder
                .make_sub_writer()
                .set_value(value)
                .map_err(SerializationError::new)?;
        }
        builder.finish().map_err(SerializationError::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::{IndexableType, ObservedColumn};
    use crate::rows::tests::reader;

    #[test]
    fn statements_quote_every_name() {
        let reader = reader();
        assert_eq!(
            select(&reader, &format!("{0} >= ? AND {0} <= ?", token(&reader))),
            r#"SELECT "p0", "p1", "c0", "a""b", WRITETIME("a""b"), TTL("a""b") FROM "Ks"."t" WHERE token("p0", "p1") >= ? AND token("p0", "p1") <= ?"#
        );
        let in_key = ObservedColumn {
            name: "c0".into(),
            form: IndexableType::Text,
            in_key: Some(2),
        };
        let of_key = RowReader {
            columns: vec![in_key],
            ..reader
        };
        assert_eq!(
            select(&of_key, "x"),
            r#"SELECT "p0", "p1", "c0" FROM "Ks"."t" WHERE x"#
        );
        assert_eq!(equals(["x", "Y"]), r#""x" = ? AND "Y" = ?"#);
    }

    #[test]
    fn expiries_never_overflow() {
        assert_eq!(expiry_s(100, 20), 121);
        assert_eq!(expiry_s(100, -5), 101);
        assert_eq!(expiry_s(u32::MAX - 1, i32::MAX), u32::MAX);
    }

    #[test]
    fn lists_are_framed_as_collections() {
        let mut out = Vec::new();
        SerialisedList(vec![b"ab", b""])
            .serialize(
                &ColumnType::Native(scylla::frame::response::result::NativeType::Int),
                CellWriter::new(&mut out),
            )
            .unwrap();
        let mut expected = vec![0, 0, 0, 14, 0, 0, 0, 2, 0, 0, 0, 2];
        expected.extend(b"ab");
        expected.extend([0, 0, 0, 0]);
        assert_eq!(out, expected);
    }
}
