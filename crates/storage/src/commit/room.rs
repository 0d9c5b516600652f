//! The room of the tables in memory.
//!
//! Dead rows take room until a look over all entries drops them. A look begins when a write finds
//! no room, and goes on in steps between batches, so that it holds up no other write for long.

#[cfg(test)]
mod tests;

use super::Committer;
use super::overlay::UncommittedChanges;
use crate::StorageError;
use crate::engine::DeadEntryScan;
use crate::layout::ResolvedSchema;

/// The time between two looks for what is dead, in times of what the steps of the last one took.
/// So looking takes at most a tenth of the time.
const PAUSE: i64 = 9;

/// The looks for what is dead in the tables in memory.
#[derive(Default)]
pub(super) struct DeadEntryScans {
    under_way: Option<DeadEntryScan>,
    /// The second up to which the last look found what had died; `None` before the first look.
    seen_to_s: Option<i64>,
    /// The time of the steady clock before which no look begins; `None` before the first look.
    not_before_micros: Option<i64>,
    /// The time that the steps of the last look took.
    took_micros: i64,
}

/// The bytes by which a batch grows the tables in memory so far.
#[derive(Default)]
pub(super) struct ResidentGrowth(i64);

impl Committer {
    /// Takes a write into the growth of its batch, if the tables in memory have room for it.
    /// Without room, a look for what is dead begins, whose first step may make enough. The other
    /// steps are done between batches, and until then writes that need room are refused.
    pub(super) fn admit(
        &mut self,
        schema: &ResolvedSchema,
        batch: &UncommittedChanges,
        write: &UncommittedChanges,
        growth: &mut ResidentGrowth,
        is_deletion: bool,
    ) -> Result<(), StorageError> {
        let with = growth.0 + write.resident_growth(&self.shared.engine, schema, Some(batch))?;
        let room = self.shared.engine.check_resident_room(with, is_deletion);
        let with = match room {
            Ok(()) => with,
            Err(full) => {
                if !self.begin_dead_entry_scan()? {
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

    /// Begins to drop what no read looks for any more, and does the first step. Returns whether
    /// that was done. It is not while a look is under way or the last one was lately.
    fn begin_dead_entry_scan(&mut self) -> Result<bool, StorageError> {
        let seen_to_s = self.shared.horizon.unread_through_s();
        let now_micros = self.shared.clock.steady_micros();
        let may_begin = self.looks.may_begin(seen_to_s, now_micros);
        if may_begin {
            self.looks
                .begin(self.shared.engine.begin_dead_entry_scan(), seen_to_s);
            self.try_step_dead_entry_scan()?;
        }
        Ok(may_begin)
    }

    /// Does a step of the look for what is dead. Returns whether there may be more to do.
    pub(super) fn step_dead_entry_scan(&mut self) -> bool {
        if self.shared.check_writable().is_err() {
            return false;
        }
        self.try_step_dead_entry_scan().unwrap_or_else(|error| {
            tracing::warn!(%error, "what is dead could not be dropped from the tables in memory yet");
            false
        })
    }

    fn try_step_dead_entry_scan(&mut self) -> Result<bool, StorageError> {
        let Some(mut look) = self.looks.under_way.take() else {
            return Ok(false);
        };
        let clock = &self.shared.clock;
        let began_micros = clock.steady_micros();
        let looked = self
            .shared
            .engine
            .continue_dead_entry_scan(&mut look, clock.now_micros());
        let now_micros = clock.steady_micros();
        let took_micros = now_micros.saturating_sub(began_micros);
        self.looks.took_micros = self.looks.took_micros.saturating_add(took_micros);
        if let Ok(false) = looked {
            self.looks.under_way = Some(look);
        } else {
            self.looks.end(now_micros);
        }
        looked.map(|_| true).map_err(|error| {
            self.shared.note_write_failure(&error);
            self.shared.explain(&error)
        })
    }
}

impl DeadEntryScans {
    fn may_begin(&self, seen_to_s: i64, now_micros: i64) -> bool {
        self.under_way.is_none()
            && self.seen_to_s < Some(seen_to_s)
            && self.not_before_micros <= Some(now_micros)
    }

    fn begin(&mut self, look: DeadEntryScan, seen_to_s: i64) {
        self.under_way = Some(look);
        self.seen_to_s = Some(seen_to_s);
        self.took_micros = 0;
    }

    fn end(&mut self, now_micros: i64) {
        let pause_micros = self.took_micros.saturating_mul(PAUSE);
        self.not_before_micros = Some(now_micros.saturating_add(pause_micros));
    }
}
