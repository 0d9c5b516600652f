//! Streams of the entries of secondary indexes.
//!
//! No row that has a value lacks its entry. But an entry may be of a row that does not have the
//! value, or not any more: a row below a deletion of its range or partition keeps its entries until
//! it is swept, and long values that begin alike share a term. So who reads entries reads the rows,
//! too, and checks them.

use std::sync::Arc;

use bytes::Bytes;

use super::context::{ReadContext, damaged_key};
use super::plan::{self, PositionRange};
use crate::StorageError;
use crate::engine::Scan;
use crate::key::HEADER;
use crate::key::term::StoredEntry;
use crate::layout::IndexSchema;
use crate::read::{IndexRequest, Position};

/// A stream of the positions of rows that an index has under the values of a request. They come in
/// the order of the values, and in the order of positions where the value is the same. A row whose
/// collection has several of the values may come as often.
///
/// A position may represent a partition as a whole, if the indexed column is static or of the
/// partition key: all its rows have the value. Its rows do not come one by one then.
pub struct EntryStream {
    context: Arc<ReadContext>,
    /// The entries, and the positions that are given; `None` if there are none.
    read: Option<(Scan, PositionRange)>,
    /// The beginning of the entries of a partition that was given as a whole.
    whole: Option<Bytes>,
}

pub(super) fn open(
    context: Arc<ReadContext>,
    index: &IndexSchema,
    request: &IndexRequest,
) -> Result<EntryStream, StorageError> {
    let positions = plan::positions(&context.table, request.tokens, request.from.as_ref())?;
    let read = match positions {
        None => None,
        Some(positions) => {
            let (low, high) = (&positions.low[..], positions.high.as_deref());
            let range = index.terms.range(&request.values, low, high)?;
            let scan = context
                .engine
                .scan_at(&context.snapshot, index.space, range)?;
            Some((scan, positions))
        }
    };
    Ok(EntryStream {
        context,
        read,
        whole: None,
    })
}

impl EntryStream {
    fn next_position(&mut self) -> Result<Option<Position>, StorageError> {
        let Some((scan, positions)) = &mut self.read else {
            return Ok(None);
        };
        for entry in scan.by_ref() {
            let (entry, value) = entry?;
            let stored = StoredEntry::read(&value).ok_or_else(damaged_key)?;
            let row = entry.get(stored.term..).ok_or_else(damaged_key)?;
            let is_in_whole = self
                .whole
                .as_ref()
                .is_some_and(|whole| entry.starts_with(whole));
            if is_in_whole || !positions.contains(row) || stored.is_expired(self.context.now_s) {
                continue;
            }
            let parts = self.context.table.keys.split(row);
            if parts.ok_or_else(damaged_key)?.kind == HEADER {
                self.whole = Some(entry.slice(..entry.len() - 1));
            }
            return Ok(Some(Position(entry.slice(stored.term..))));
        }
        Ok(None)
    }
}

impl Iterator for EntryStream {
    type Item = Result<Position, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_position().transpose()
    }
}
