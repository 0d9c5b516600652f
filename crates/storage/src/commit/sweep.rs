//! Sweeps: the deletions of partitions and ranges whose rows are still to be removed (`sweeping`).
//! Each is stored until that is done.
//!
//! ```text
//! key       "sweep/" and 16 random bytes in the meta space
//! value     version (1 byte: 1), table (16), generation (8, big-endian), timestamp (8), local time
//!           (8), three times length (4) and bytes: partition, start of the range, end of the range
//! ```

use std::ops::Bound;

use bytes::{Buf, Bytes};
use schema::TableId;
use uuid::Uuid;

use crate::StorageError;
use crate::engine::{Engine, SpaceId, SpacesSnapshot};
use crate::key::SuffixRange;
use crate::record::DeletionTime;

const PREFIX: &[u8] = b"sweep/";
const VERSION: u8 = 1;

/// A deletion to be swept.
#[derive(Clone, Debug)]
pub(crate) struct DeletionSweep {
    id: Uuid,
    pub(super) space: SpaceId,
    pub(super) partition: Vec<u8>,
    /// The part of the range that is still to be swept.
    pub(super) range: SuffixRange,
    /// The range that the deletion covers.
    pub(super) whole: SuffixRange,
    pub(super) deletion: DeletionTime,
}

impl DeletionSweep {
    pub(super) fn new(
        space: SpaceId,
        partition: &[u8],
        range: SuffixRange,
        deletion: DeletionTime,
    ) -> DeletionSweep {
        DeletionSweep {
            id: Uuid::new_v4(),
            space,
            partition: partition.to_vec(),
            whole: range.clone(),
            range,
            deletion,
        }
    }

    /// The space in which rows are to be swept.
    pub(crate) fn space(&self) -> SpaceId {
        self.space
    }

    /// This deletion in a copy of the rows.
    pub(crate) fn in_copy(&self, space: SpaceId) -> DeletionSweep {
        DeletionSweep::new(space, &self.partition, self.whole.clone(), self.deletion)
    }

    /// The key of the entry in the meta space.
    pub(super) fn key(&self) -> Bytes {
        [PREFIX, self.id.as_bytes()].concat().into()
    }

    /// The entry that is stored until the sweep is done.
    pub(super) fn entry(&self) -> (SpaceId, Bytes, Option<Bytes>) {
        let mut out = vec![VERSION];
        out.extend_from_slice(self.space.table().0.as_bytes());
        out.extend_from_slice(&self.space.generation().to_be_bytes());
        out.extend_from_slice(&self.deletion.timestamp.to_be_bytes());
        out.extend_from_slice(&self.deletion.local_s.to_be_bytes());
        for part in [&self.partition, &self.whole.low, &self.whole.high] {
            // Parts of keys, so far below 4 GiB.
            out.extend_from_slice(&(part.len() as u32).to_be_bytes());
            out.extend_from_slice(part);
        }
        (SpaceId::META, self.key(), Some(out.into()))
    }

    fn decode(id: &[u8], mut value: Bytes) -> Option<DeletionSweep> {
        let id = Uuid::from_slice(id).ok()?;
        if value.len() < 41 || value.get_u8() != VERSION {
            return None;
        }
        let table = TableId(Uuid::from_u128(value.get_u128()));
        let space = SpaceId::new(table, value.get_u64());
        let deletion = DeletionTime {
            timestamp: value.get_i64(),
            local_s: value.get_i64(),
        };
        let mut part = || {
            let length = value.try_get_u32().ok()? as usize;
            (length <= value.len()).then(|| value.split_to(length).to_vec())
        };
        let partition = part()?;
        let whole = SuffixRange {
            low: part()?,
            high: part()?,
        };
        Some(DeletionSweep {
            id,
            space,
            partition,
            range: whole.clone(),
            whole,
            deletion,
        })
    }
}

/// Reads the sweeps that were not done when the storage stopped.
pub(crate) fn load(engine: &Engine) -> Result<Vec<DeletionSweep>, StorageError> {
    load_at(engine, &engine.snapshot()?)
}

/// Reads the sweeps that are not done in a snapshot.
pub(crate) fn load_at(
    engine: &Engine,
    snapshot: &SpacesSnapshot,
) -> Result<Vec<DeletionSweep>, StorageError> {
    let range = (Bound::Included(PREFIX.to_vec()), Bound::Unbounded);
    let mut sweeps = Vec::new();
    for entry in engine.scan_at(snapshot, SpaceId::META, range)? {
        let (key, value) = entry?;
        let Some(id) = key.strip_prefix(PREFIX) else {
            break;
        };
        match DeletionSweep::decode(id, value) {
            Some(sweep) => sweeps.push(sweep),
            None => {
                tracing::warn!(
                    "an unfinished deletion can't be read: its rows stay hidden on disk"
                );
            }
        }
    }
    Ok(sweeps)
}
