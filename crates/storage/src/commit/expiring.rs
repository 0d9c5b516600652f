//! The set of tables that ever got data with a time to live, which survives restarts.
//!
//! ```text
//! key       "expiring/" and the table's id (16 bytes) in the meta space
//! value     empty
//! ```

use std::ops::Bound;

use bytes::Bytes;
use schema::TableId;
use uuid::Uuid;

use crate::StorageError;
use crate::engine::{Engine, SpaceId};

const PREFIX: &[u8] = b"expiring/";

pub(super) fn entry(table: TableId) -> (SpaceId, Bytes, Option<Bytes>) {
    let key = [PREFIX, table.0.as_bytes()].concat();
    (SpaceId::META, key.into(), Some(Bytes::new()))
}

pub(crate) fn load(engine: &Engine) -> Result<Vec<TableId>, StorageError> {
    let snapshot = engine.snapshot()?;
    let range = (Bound::Included(PREFIX.to_vec()), Bound::Unbounded);
    let mut tables = Vec::new();
    for entry in engine.scan_at(&snapshot, SpaceId::META, range)? {
        let (key, _) = entry?;
        match key.strip_prefix(PREFIX).map(Uuid::from_slice) {
            Some(Ok(id)) => tables.push(TableId(id)),
            _ => break,
        }
    }
    Ok(tables)
}
