//! Streams of the entries of secondary indexes.
//!
//! No row that has a value lacks its entry. But an entry may be of a row that does not have the
//! value, or not any more: a row below a deletion of its range or partition keeps its entries until
//! it is swept, and long values that begin alike share a term. So who reads entries reads the rows,
//! too, and checks them.
//!
//! As a stream of rows, one of entries holds the blocks of the disk that it is in. So a reader that
//! pauses calls [`EntryStream::let_go`].

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::context::{ReadContext, damaged_key};
use super::plan::{self, PositionRange};
use crate::StorageError;
use crate::engine::{EntryScan, SpaceId};
use crate::key::HEADER;
use crate::key::term::{StoredEntry, TermRange};
use crate::layout::IndexSchema;
use crate::read::{IndexRequest, RowPosition};

/// A stream of the positions of rows that an index has under the values of a request. They come in
/// the order of the values, and in the order of positions where the value is the same. A row whose
/// collection has several of the values may come as often.
///
/// A position may represent a partition as a whole, if the indexed column is static or of the
/// partition key: all its rows have the value. Its rows do not come one by one then.
pub struct EntryStream {
    context: Arc<ReadContext>,
    /// The entries that are left to read; `None` if there are none.
    left: Option<Box<EntriesLeft>>,
    /// The beginning of the entries of a partition that was given as a whole.
    whole: Option<Bytes>,
}

/// The entries that a stream has left to read.
struct EntriesLeft {
    space: SpaceId,
    /// The range of keys in which they are.
    range: TermRange,
    /// The positions that are given.
    positions: PositionRange,
    /// The entries that are read; `None` once they are let go.
    scan: Option<EntryScan>,
    /// The key of the last entry that was taken since the scan began.
    at: Option<Bytes>,
}

pub(super) fn open(
    context: Arc<ReadContext>,
    index: &IndexSchema,
    request: &IndexRequest,
) -> Result<EntryStream, StorageError> {
    let positions = plan::positions(&context.table, request.tokens, request.from.as_ref())?;
    let left = match positions {
        None => None,
        Some(positions) => {
            let (low, high) = (&positions.low[..], positions.high.as_deref());
            let range = index.terms.range(&request.values, low, high)?;
            let mut left = EntriesLeft {
                space: index.space,
                range,
                positions,
                scan: None,
                at: None,
            };
            left.go_on(&context)?;
            Some(Box::new(left))
        }
    };
    Ok(EntryStream {
        context,
        left,
        whole: None,
    })
}

impl EntriesLeft {
    /// Opens what was let go.
    fn go_on(&mut self, context: &ReadContext) -> Result<(), StorageError> {
        if self.scan.is_none() {
            let range = self.range.clone();
            let scan = context
                .engine
                .scan_at(&context.snapshot, self.space, range)?;
            self.scan = Some(scan);
        }
        Ok(())
    }

    /// Takes the next entry.
    fn next(&mut self, context: &ReadContext) -> Result<Option<(Bytes, Bytes)>, StorageError> {
        self.go_on(context)?;
        let entry = self.scan.as_mut().and_then(Iterator::next).transpose()?;
        if let Some((key, _)) = &entry {
            self.at = Some(key.clone());
        }
        Ok(entry)
    }

    fn let_go(&mut self) {
        if let Some(at) = self.at.take() {
            self.range.0 = Bound::Excluded(at.to_vec());
        }
        self.scan = None;
    }
}

impl EntryStream {
    /// Lets go of what was read ahead, and of the blocks of the disk. The stream goes on after the
    /// last entry that it took.
    pub fn let_go(&mut self) {
        if let Some(left) = &mut self.left {
            left.let_go();
        }
        if let Some(whole) = &mut self.whole {
            // A key may be a part of a block.
            *whole = Bytes::copy_from_slice(whole);
        }
    }

    fn next_position(&mut self) -> Result<Option<RowPosition>, StorageError> {
        let Some(left) = &mut self.left else {
            return Ok(None);
        };
        while let Some((entry, value)) = left.next(&self.context)? {
            let stored = StoredEntry::read(&value).ok_or_else(damaged_key)?;
            let row = entry.get(stored.term..).ok_or_else(damaged_key)?;
            let is_in_whole = self
                .whole
                .as_ref()
                .is_some_and(|whole| entry.starts_with(whole));
            if is_in_whole || !left.positions.contains(row) || stored.is_expired(self.context.now_s)
            {
                continue;
            }
            let parts = self.context.table.keys.split(row);
            if parts.ok_or_else(damaged_key)?.kind == HEADER {
                self.whole = Some(entry.slice(..entry.len() - 1));
            }
            return Ok(Some(RowPosition(entry.slice(stored.term..))));
        }
        // A stream that has ended is not opened again.
        self.left = None;
        Ok(None)
    }
}

impl Iterator for EntryStream {
    type Item = Result<RowPosition, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_position().transpose()
    }
}
