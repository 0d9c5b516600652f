//! Streams of the entries of secondary indexes.
//!
//! No row that has a value lacks its entry. But an entry may be of a row that does not have the
//! value, or not any more: a row below a deletion of its range or partition keeps its entries until
//! it is swept, and long values that begin alike share a term. So who reads entries reads the rows,
//! too, and checks them.

use std::sync::Arc;

use bytes::Bytes;

use super::context::{ReadContext, damaged_key};
use super::plan;
use crate::StorageError;
use crate::engine::Scan;
use crate::key::term::StoredEntry;
use crate::key::{self, HEADER};
use crate::layout::IndexSchema;
use crate::read::{IndexRequest, Position};

/// A stream of the positions of rows that an index has under the values of a request. They come in
/// the order of the values, and in the order of positions where the value is the same. A row whose
/// collection has several of the values may come as often.
///
/// A position may stand for a partition as a whole, if the indexed column is static or of the
/// partition key: all its rows have the value. Its rows do not come one by one then.
pub struct EntryStream {
    context: Arc<ReadContext>,
    scan: Scan,
    /// Only positions behind this key are given.
    behind: Option<Bytes>,
    /// The beginning of the entries of a partition that was given as a whole.
    whole: Option<Bytes>,
}

pub(super) fn open(
    context: Arc<ReadContext>,
    index: &IndexSchema,
    request: &IndexRequest,
) -> Result<EntryStream, StorageError> {
    let behind = match &request.resume_after {
        None => None,
        Some(position) => {
            let parts = plan::split(&context.table, position)?;
            Some(match parts.kind {
                // The read resumes behind the whole partition.
                HEADER => key::bound(parts.partition, u8::MAX, &[]).into(),
                _ => position.0.clone(),
            })
        }
    };
    let range = index.terms.range(&request.values, behind.as_deref())?;
    let scan = context
        .engine
        .scan_at(&context.snapshot, index.space, range)?;
    Ok(EntryStream {
        context,
        scan,
        behind,
        whole: None,
    })
}

impl EntryStream {
    /// The position of an entry; `None` if it is not given.
    fn position(&mut self, entry: Bytes, value: &[u8]) -> Result<Option<Position>, StorageError> {
        let stored = StoredEntry::read(value).ok_or_else(damaged_key)?;
        let row = entry.get(stored.term..).ok_or_else(damaged_key)?;
        let is_passed = self
            .behind
            .as_ref()
            .is_some_and(|behind| row <= &behind[..]);
        let is_in_whole = self
            .whole
            .as_ref()
            .is_some_and(|whole| entry.starts_with(whole));
        if is_passed || is_in_whole || stored.is_expired(self.context.now_s) {
            return Ok(None);
        }
        let parts = self.context.table.keys.split(row);
        if parts.ok_or_else(damaged_key)?.kind == HEADER {
            self.whole = Some(entry.slice(..entry.len() - 1));
        }
        Ok(Some(Position(entry.slice(stored.term..))))
    }
}

impl Iterator for EntryStream {
    type Item = Result<Position, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let found = match self.scan.next()? {
                Ok((key, value)) => self.position(key, &value),
                Err(error) => Err(error),
            };
            if let Some(found) = found.transpose() {
                return Some(found);
            }
        }
    }
}
