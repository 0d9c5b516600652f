//! The paging state: where a page ended. The client gives it back to get the next page.
//!
//! ```text
//! version 1 | table id 16 | flags 1 | slot 4 | remaining 4 | token 8 | in_partition 4 | position
//! ```
//! The layout gives sizes in bytes; numbers are big-endian. The state names the table, so that it
//! is not taken by mistake for the state of a query on another table. It is neither secret nor
//! signed: whatever it says, a client can read only what the query itself may read.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use cql::error::CqlError;
use schema::TableId;
use storage::read::RowPosition;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 1 + 16 + 1 + 4 + 4 + 8 + 4;
/// The most bytes of a position. Positions are keys of the storage, and none of them is longer.
const POSITION_BYTES_MAX: usize = 1 << 18;

const HAS_POSITION: u8 = 1;
const HAS_REMAINING: u8 = 2;

/// The place where the next page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PagingState {
    /// The index of the partition to read next, for a query that names its partitions.
    pub slot: u32,
    /// The last row of that partition that is finished; `None` to read it from its beginning.
    pub position: Option<RowPosition>,
    /// The number of rows that LIMIT leaves; `None` without LIMIT.
    pub remaining: Option<u32>,
    /// The token of the partition of the last row that was returned.
    pub token: i64,
    /// The number of rows of that partition that were returned, for PER PARTITION LIMIT.
    pub in_partition: u32,
}

impl PagingState {
    /// The beginning of a query that LIMIT leaves so many rows.
    pub(super) fn of_limit(remaining: Option<u32>) -> PagingState {
        PagingState {
            remaining,
            ..PagingState::default()
        }
    }

    /// Copies the position, which may be part of a block of the disk.
    pub(super) fn own(&mut self) {
        self.position = self.position.as_ref().map(RowPosition::copied);
    }

    /// Encodes the state for a query on this table.
    pub(super) fn encode(&self, table: TableId) -> Bytes {
        let position: &[u8] = self.position.as_ref().map_or(&[], |position| &position.0);
        let mut flags = 0;
        if self.position.is_some() {
            flags |= HAS_POSITION;
        }
        if self.remaining.is_some() {
            flags |= HAS_REMAINING;
        }
        let mut out = BytesMut::with_capacity(HEADER_BYTES + position.len());
        out.put_u8(VERSION);
        out.put_slice(table.0.as_bytes());
        out.put_u8(flags);
        out.put_u32(self.slot);
        out.put_u32(self.remaining.unwrap_or(0));
        out.put_i64(self.token);
        out.put_u32(self.in_partition);
        out.put_slice(position);
        out.freeze()
    }

    /// Decodes a state that a client gave back.
    ///
    /// # Errors
    /// If the bytes are no state of a query on this table.
    pub(super) fn decode(mut bytes: Bytes, table: TableId) -> Result<PagingState, CqlError> {
        if bytes.len() < HEADER_BYTES || bytes.len() > HEADER_BYTES + POSITION_BYTES_MAX {
            return Err(invalid());
        }
        if bytes.get_u8() != VERSION {
            return Err(invalid());
        }
        let id = bytes.split_to(16);
        let flags = bytes.get_u8();
        if id.as_ref() != table.0.as_bytes() || flags & !(HAS_POSITION | HAS_REMAINING) != 0 {
            return Err(invalid());
        }
        let slot = bytes.get_u32();
        let remaining = bytes.get_u32();
        let token = bytes.get_i64();
        let in_partition = bytes.get_u32();
        let has_position = flags & HAS_POSITION != 0;
        let has_remaining = flags & HAS_REMAINING != 0;
        if has_position == bytes.is_empty() || has_remaining == (remaining == 0) {
            return Err(invalid());
        }
        Ok(PagingState {
            slot,
            position: has_position.then_some(RowPosition(bytes)),
            remaining: has_remaining.then_some(remaining),
            token,
            in_partition,
        })
    }
}

/// The error for a paging state that does not belong to the query.
pub(super) fn invalid() -> CqlError {
    CqlError::protocol("Invalid value for the paging state")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const TABLE: TableId = TableId(Uuid::from_u128(7));

    proptest! {
        #[test]
        fn states_survive_the_round_trip(
            slot: u32,
            position in proptest::option::of(proptest::collection::vec(any::<u8>(), 1..50)),
            remaining in proptest::option::of(1_u32..),
            token: i64,
            in_partition: u32,
        ) {
            let state = PagingState {
                slot,
                position: position.map(|bytes| RowPosition(bytes.into())),
                remaining,
                token,
                in_partition,
            };
            prop_assert_eq!(PagingState::decode(state.encode(TABLE), TABLE).unwrap(), state);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(state) = PagingState::decode(Bytes::from(bytes.clone()), TABLE) {
                prop_assert_eq!(state.encode(TABLE).to_vec(), bytes);
            }
        }
    }

    #[test]
    fn another_tables_state_is_refused() {
        let state = PagingState::default().encode(TABLE);
        assert!(PagingState::decode(state.clone(), TABLE).is_ok());
        let refused = PagingState::decode(state, TableId(Uuid::from_u128(8))).unwrap_err();
        assert_eq!(refused.message, "Invalid value for the paging state");
    }
}
