//! Conversion of statements' answers to responses of the native protocol.

use bytes::Bytes;
use client_memory::MemoryCharge;
use cql::wire::{self, ColumnsMetadata, Response, RowsEncoder, SchemaTarget};

use crate::statement::{CatalogChange, CatalogChangeKind, ChangedObject, ColumnSpec, ResultRows};

/// The metadata of columns or bind markers.
pub(super) fn metadata(columns: &[ColumnSpec]) -> ColumnsMetadata {
    ColumnsMetadata {
        columns: columns.to_vec(),
    }
}

/// The response for a result set, with the metadata of its columns unless the client skips it, and
/// the charge for its rows. `new_id` is the id of the columns if the client expected others.
pub(super) fn rows(
    rows: ResultRows,
    metadata: &ColumnsMetadata,
    skip_metadata: bool,
    new_id: Option<Bytes>,
) -> (Response, Option<MemoryCharge>) {
    let mut encoder = RowsEncoder::new(metadata, skip_metadata);
    encoder.encoded_rows(rows.count as usize, rows.body.freeze());
    let mut response = encoder.finish(rows.paging_state);
    response.new_metadata_id = new_id;
    (Response::Rows(response), rows.charge)
}

/// The response to a statement that changed the schema.
pub(super) fn schema_change(change: CatalogChange) -> Response {
    Response::SchemaChange(wire::SchemaChange {
        change: match change.kind {
            CatalogChangeKind::Created => wire::SchemaChangeKind::Created,
            CatalogChangeKind::Updated => wire::SchemaChangeKind::Updated,
            CatalogChangeKind::Dropped => wire::SchemaChangeKind::Dropped,
        },
        keyspace: change.keyspace,
        target: match change.object {
            ChangedObject::Keyspace => SchemaTarget::Keyspace,
            ChangedObject::Table(table) => SchemaTarget::Table(table),
            ChangedObject::Type(name) => SchemaTarget::Type(name),
        },
    })
}
