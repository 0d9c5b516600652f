//! The room of the tables in memory.

use std::time::Instant;

use super::Committer;
use super::overlay::Changes;
use crate::StorageError;
use crate::layout::Schema;

/// Seconds between two looks for what is dead, for each second that the last one took.
const LOOKS_APART: u64 = 10;

/// The bytes by which a batch grows the tables in memory so far.
#[derive(Default)]
pub(super) struct Growth(i64);

impl Committer {
    /// Takes a write into the growth of its batch, if the tables in memory have room for it.
    /// Without room, what is dead is dropped first.
    pub(super) fn admit(
        &mut self,
        schema: &Schema,
        batch: &Changes,
        write: &Changes,
        growth: &mut Growth,
        is_deletion: bool,
    ) -> Result<(), StorageError> {
        let with = growth.0 + write.resident_growth(&self.shared.engine, schema, Some(batch))?;
        let room = self.shared.engine.check_resident_room(with, is_deletion);
        let with = match room {
            Ok(()) => with,
            Err(full) => {
                if !self.forget()? {
                    return Err(full);
                }
                let engine = &self.shared.engine;
                // What was dropped may have been counted as what the batch replaces.
                growth.0 = batch.resident_growth(engine, schema, None)?;
                let with = growth.0 + write.resident_growth(engine, schema, Some(batch))?;
                engine.check_resident_room(with, is_deletion)?;
                with
            }
        };
        growth.0 = with;
        Ok(())
    }

    /// Drops what no read looks for any more, unless that was done so lately that there can be
    /// little. Says whether it was done.
    fn forget(&mut self) -> Result<bool, StorageError> {
        let seen_by_none_s = self.shared.horizon.seen_by_none_s();
        if seen_by_none_s < self.forgets_from_s {
            return Ok(false);
        }
        let started = Instant::now();
        let now_micros = self.shared.clock.now_micros();
        let forgotten = self.shared.engine.forget(now_micros);
        let pause_s = 1 + started.elapsed().as_secs().saturating_mul(LOOKS_APART);
        let pause_s = i64::try_from(pause_s).unwrap_or(i64::MAX);
        self.forgets_from_s = seen_by_none_s.saturating_add(pause_s);
        match forgotten {
            Ok(()) => Ok(true),
            Err(error) => {
                self.shared.note_write_failure(&error);
                Err(self.shared.explain(&error))
            }
        }
    }
}
