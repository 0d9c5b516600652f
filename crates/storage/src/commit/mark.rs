//! The mark on disk is at least as late as every time that was given out. A later process begins
//! there, whatever its clock says. The mark is written ahead of the present, in the batch of a
//! write that needs it, so that few writes carry it.
//!
//! ```text
//! key       "cdc-mark" in the meta space
//! value     microseconds since the epoch (8, big-endian)
//! ```

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use clock::Clock;

use super::Committer;
use crate::StorageError;
use crate::engine::{Engine, EntryBatch, SpaceId, SyncTarget};

const KEY: &[u8] = b"cdc-mark";
/// The lead of the mark over the time that needs it. A start after a kill waits until the clock
/// reaches the mark ([`await_clock`]), so the lead is short.
const AHEAD_MICROS: i64 = 100_000;

/// Reads the mark from the disk; `i64::MIN` in a new directory.
pub(crate) fn load(engine: &Engine) -> Result<i64, StorageError> {
    let bytes = engine.get(SpaceId::META, KEY)?;
    Ok(bytes
        .and_then(|bytes| bytes.first_chunk::<8>().copied())
        .map_or(i64::MIN, i64::from_be_bytes))
}

/// Waits until a clock reaches the mark, if the mark is ahead of it by no more than
/// [`AHEAD_MICROS`]. Otherwise the storage would give times ahead of that clock, and a write that a
/// client dates by a clock of its own would lose to an earlier one that the server dated. If the
/// mark is further ahead, the clock was set back, and is not waited for.
pub(crate) fn await_clock(engine: &Engine, clock: &dyn Clock) -> Result<(), StorageError> {
    let lead_micros = load(engine)?.saturating_sub(clock.now_micros());
    if (1..=AHEAD_MICROS).contains(&lead_micros) {
        std::thread::sleep(Duration::from_micros(lead_micros.unsigned_abs()));
    }
    Ok(())
}

fn entry(micros: i64) -> (SpaceId, Bytes, Option<Bytes>) {
    let value = Bytes::copy_from_slice(&micros.to_be_bytes());
    (SpaceId::META, Bytes::from_static(KEY), Some(value))
}

/// A mark that was put into a batch. It counts once the batch is committed.
#[must_use]
pub(super) struct PendingMark(i64);

impl Committer {
    /// The latest time that was given out or settled. Microseconds.
    pub(super) fn given_micros(&self) -> i64 {
        let shared = &self.shared;
        shared
            .clock
            .latest_micros()
            .max(shared.gate.latest_micros())
    }

    /// Puts a new mark into a batch if a time beyond the one on disk was given out.
    pub(super) fn carry_mark(&self, batch: &mut EntryBatch) -> Option<PendingMark> {
        let given = self.given_micros();
        if given <= self.shared.kept_micros.load(Ordering::Relaxed) {
            return None;
        }
        let mark = given.saturating_add(AHEAD_MICROS);
        batch.push(entry(mark));
        Some(PendingMark(mark))
    }

    pub(super) fn carried(&self, mark: Option<PendingMark>) {
        if let Some(PendingMark(mark)) = mark {
            self.shared.kept_micros.store(mark, Ordering::Relaxed);
        }
    }

    /// Raises the mark on disk to a time that a reader is about to get, if the disk takes writes.
    /// The caller finds in `kept_micros` whether it was raised.
    pub(super) fn keep(&self, until_micros: i64) {
        if until_micros <= self.shared.kept_micros.load(Ordering::Relaxed)
            || self.shared.check_writable().is_err()
        {
            return;
        }
        let mark = until_micros.saturating_add(AHEAD_MICROS);
        match self.commit_alone(entry(mark), self.sync()) {
            Ok(()) => self.carried(Some(PendingMark(mark))),
            Err(error) => self.shared.note_write_failure(&error),
        }
    }

    /// Writes the exact mark when the storage is closed. Best effort, as the mark that is there is
    /// right too, only further ahead.
    pub(super) fn write_last_mark(&self) {
        if let Err(error) = self.commit_alone(entry(self.given_micros()), SyncTarget::Kernel) {
            tracing::warn!(%error, "the time of the last write could not be written");
        }
    }

    fn commit_alone(
        &self,
        entry: (SpaceId, Bytes, Option<Bytes>),
        sync: SyncTarget,
    ) -> Result<(), StorageError> {
        let now_micros = self.shared.clock.now_micros();
        self.shared.engine.commit(vec![entry], sync, now_micros)
    }

    /// Reads the mark again after the engine was opened again.
    pub(super) fn reload_mark(&self) -> Result<(), StorageError> {
        let mark = load(&self.shared.engine)?;
        self.shared.kept_micros.store(mark, Ordering::Relaxed);
        Ok(())
    }
}
