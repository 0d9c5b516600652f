//! Conversion of statements' answers to responses of the native protocol.

use bytes::Bytes;
use client_memory::Charge;
use cql::wire::{self, Metadata, Response, RowsEncoder, SchemaTarget};

use crate::statement::{ChangedObject, ColumnSpec, Rows, SchemaChange, SchemaChangeKind};

/// The metadata of columns or bind markers.
pub(super) fn metadata(columns: &[ColumnSpec]) -> Metadata {
    Metadata {
        columns: columns.to_vec(),
    }
}

/// The response for a result set, with the metadata of its columns unless the client skips it, and
/// the charge for its rows. `new_id` is the id of the columns if the client expected others.
pub(super) fn rows(
    rows: Rows,
    metadata: &Metadata,
    skip_metadata: bool,
    new_id: Option<Bytes>,
) -> (Response, Option<Charge>) {
    let mut encoder = RowsEncoder::new(metadata, skip_metadata);
    encoder.encoded_rows(rows.count as usize, rows.body.freeze());
    let mut response = encoder.finish(rows.paging_state);
    response.new_metadata_id = new_id;
    (Response::Rows(response), rows.charge)
}

/// The response to a statement that changed the schema.
pub(super) fn schema_change(change: SchemaChange) -> Response {
    Response::SchemaChange(wire::SchemaChange {
        change: match change.kind {
            SchemaChangeKind::Created => wire::SchemaChangeKind::Created,
            SchemaChangeKind::Updated => wire::SchemaChangeKind::Updated,
            SchemaChangeKind::Dropped => wire::SchemaChangeKind::Dropped,
        },
        keyspace: change.keyspace,
        target: match change.object {
            ChangedObject::Keyspace => SchemaTarget::Keyspace,
            ChangedObject::Table(table) => SchemaTarget::Table(table),
            ChangedObject::Type(name) => SchemaTarget::Type(name),
        },
    })
}
