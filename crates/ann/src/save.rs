//! Saving an index to files while it is changed and searched.
//!
//! # The moment of a snapshot
//!
//! The epoch is pinned from before the table of ids is read until the last vector is copied. So
//! what the table says of an id when it is read stays true of the slot: a thread that replaces or
//! removes the vector afterwards only unlinks the slot, and it is not filled again before the pin
//! is released. *The snapshot has each id as it was when its entry was read*, which is within the
//! call:
//!
//! - A change that had returned before the call is in the snapshot, unless a later one took its
//!   place.
//! - A change during the call is in it wholly or not at all, for each id by itself: two changes one
//!   after the other may be there as the later without the earlier.
//!
//! Only slots that were read from the table are copied, as the others may be written to meanwhile.
//! Links to others are left out; a slot that was linked and is not yet in the table is thus not in
//! the snapshot. Dead slots to which links may still lead are copied too, so that no walk ends at a
//! gap ([`CapturedSlots`]).
//!
//! Slots that die during the call are reused after it. So a save takes memory for as many vectors
//! as are replaced meanwhile.
//!
//! # The segments that are reused
//!
//! Every write of a vector marks its segment before the vector can be found. A save takes the marks
//! away at a moment at which no change is under way: all vectors written before are in the table,
//! or were given up. Then it reads the table. A segment is reused if it had no mark at that moment
//! *and has none when its turn comes*: a vector that the table named was written before one of
//! these two. If the save fails, the marks are put back.

mod steps;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLockWriteGuard;

use crate::graph::CapturedSlots;
use crate::ids::IdEntry;
use crate::snapshot::{GenerationWriter, SavedGeneration, SlotShape, StoredContents};
use crate::vectors::StoredVectors;
use crate::{IdSet, NeighbourIndex, SnapshotError};
pub use steps::SaveProgress;
use steps::StepReporter;

/// Blocks are copied in steps of about this many bytes.
const STEP_BYTES: usize = 1 << 20;

/// The outcome of a save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// Number of vectors in the snapshot.
    pub vectors: usize,
    /// Number of files of full vectors that were written, of up to 64 MiB each.
    pub files_written: usize,
    /// Number of files of full vectors that were taken over from the snapshot before, as hard
    /// links.
    pub files_kept: usize,
}

/// The tables of a snapshot to be written.
struct UnsavedTables {
    captured: CapturedSlots,
    ids: Vec<(u32, u32)>,
    zero_ids: Vec<u32>,
    slots: u32,
}

impl NeighbourIndex {
    /// Writes the index into an existing directory, in the format of `docs/snapshot-format.md`,
    /// while searches and changes go on. Whatever had been changed before the call is in the
    /// snapshot; changes during the call may be.
    ///
    /// Files of full vectors in which nothing has changed are taken over as hard links from the
    /// last snapshot: the one that this index was saved to or opened from, wherever it has been
    /// moved since. No file of that snapshot is ever written to. So until this call has returned
    /// `Ok` the last snapshot is the good one: save to a new directory each time, and rename it
    /// into its place afterwards. After an error, remove the directory.
    ///
    /// One save runs at a time; others wait. A save holds back the reuse of replaced vectors'
    /// memory.
    pub fn save(&self, directory: &Path) -> Result<SnapshotSummary, SnapshotError> {
        self.save_while(directory, |_| true)
    }

    /// Saves as [`NeighbourIndex::save`] does, for as long as `keep_going` returns true. It is
    /// called before the first byte, and after each MiB of the graph and each file of full vectors.
    /// Once it has returned false the save ends with [`SnapshotError::Stopped`].
    pub fn save_while(
        &self,
        directory: &Path,
        mut keep_going: impl FnMut(SaveProgress) -> bool,
    ) -> Result<SnapshotSummary, SnapshotError> {
        let mut steps = StepReporter::new(&mut keep_going);
        let mut last = self.generation.lock();
        self.verification.require_no_damage()?;
        let participant = self.epochs.register();
        let pin = participant.pin();
        let gate = self.gate.write();
        let written = self.vectors.as_ref().map(|vectors| vectors.written());
        let marks = written.map(|written| written.take()).unwrap_or_default();
        // SAFETY: the epoch is pinned, and no change is under way.
        let saved = unsafe { self.save_from(gate, directory, last.as_deref(), &marks, &mut steps) };
        drop(pin);
        let finished = saved.and_then(|(writer, contents, saved)| {
            // If a file could not be read, zeros may have been copied in the place of vectors.
            self.verification.require_no_damage()?;
            let generation = writer.finish(&contents)?;
            Ok((generation, saved))
        });
        match finished {
            Ok((generation, saved)) => {
                *last = Some(Arc::new(generation));
                Ok(saved)
            }
            Err(error) => {
                if let Some(written) = written {
                    written.put_back(marks);
                }
                Err(error)
            }
        }
    }

    /// Writes blocks and full vectors. The tables returned are still to be written.
    ///
    /// # Safety
    /// The epoch is pinned.
    unsafe fn save_from(
        &self,
        gate: RwLockWriteGuard<'_, ()>,
        directory: &Path,
        last: Option<&SavedGeneration>,
        marks: &[bool],
        steps: &mut StepReporter<'_>,
    ) -> Result<(GenerationWriter, StoredContents, SnapshotSummary), SnapshotError> {
        let linked = self.linked.load(Ordering::Acquire);
        let dying = match linked {
            true => self.graph.dying(),
            false => Vec::new(),
        };
        let upper = self.graph.upper_words();
        // From here on changes go on. Only training, which fills slots again, waits until the few
        // blocks there are at that time have been copied.
        let gate = RwLockWriteGuard::downgrade(gate);
        let gate = (!linked).then_some(gate);

        let mut tables = self.tables();
        let entry = match linked {
            true => self.graph.entry_among(&tables.captured),
            false => None,
        };
        if entry.is_some() {
            tables.take_dead(dying);
        }
        let shape = SlotShape {
            slots: tables.slots,
            block_bytes: self.graph.layout().stride as u32,
            vector_bytes: self.vectors.as_ref().map_or(0, StoredVectors::stride) as u32,
        };
        steps.begin(shape.bytes())?;
        let mut writer = GenerationWriter::create(directory, shape)?;
        let codebook = self.graph.codebook();
        let codebook = codebook.map(|codebook| codebook.parts().clone());
        // SAFETY: the epoch is pinned since before the table was read.
        unsafe { self.put_blocks(&tables, &mut writer, steps) }?;
        drop(gate);
        let mut saved = SnapshotSummary {
            vectors: tables.ids.len() + tables.zero_ids.len(),
            ..SnapshotSummary::default()
        };
        if let Some(vectors) = &self.vectors {
            let alive = &tables.captured.alive;
            for segment in 0.. {
                let Some(slots) = writer.next_segment() else {
                    break;
                };
                let bytes = slots.len() as u64 * u64::from(shape.vector_bytes);
                let marked = marks.get(segment).copied().unwrap_or(false)
                    || vectors.written().is_marked(segment);
                if !marked
                    && let Some(last) = last
                    && writer.keep_segment(last)?
                {
                    saved.files_kept += 1;
                    steps.passed(bytes)?;
                    continue;
                }
                self.verification.require(segment)?;
                // SAFETY: as for blocks.
                unsafe { put_vectors(vectors, alive, &mut writer) }?;
                saved.files_written += 1;
                steps.passed(bytes)?;
            }
        }
        // Centres are only ever added: these are all that the blocks copied may name.
        let centres = self.graph.codebook();
        let centres = centres.map_or(Vec::new(), |codebook| codebook.centre_points());
        let contents = StoredContents {
            options: self.options,
            codebook,
            entry,
            spread: self.graph.spread().exponent(),
            widths: self.samples.widths(),
            centres,
            upper,
            lacks_errors: false,
            ids: tables.ids,
            zero_ids: tables.zero_ids,
        };
        Ok((writer, contents, saved))
    }

    /// Reads the table of ids.
    fn tables(&self) -> UnsavedTables {
        let mut tables = UnsavedTables {
            captured: CapturedSlots::default(),
            ids: Vec::with_capacity(self.len()),
            zero_ids: Vec::new(),
            slots: 0,
        };
        for (id, entry) in self.ids.iter() {
            match entry {
                IdEntry::Slot(slot) => {
                    tables.ids.push((id, slot));
                    tables.captured.alive.insert(slot);
                    tables.slots = tables.slots.max(slot + 1);
                }
                IdEntry::Undirected => tables.zero_ids.push(id),
                IdEntry::Vacant | IdEntry::Reserved => {}
            }
        }
        tables
    }

    /// Writes the blocks of all slots, a step at a time.
    ///
    /// # Safety
    /// The epoch is pinned since before the tables were read.
    unsafe fn put_blocks(
        &self,
        tables: &UnsavedTables,
        writer: &mut GenerationWriter,
        steps: &mut StepReporter<'_>,
    ) -> Result<(), SnapshotError> {
        let block_bytes = self.graph.layout().stride;
        let step = (STEP_BYTES / block_bytes).max(1);
        let mut buffer = vec![0; step * block_bytes];
        for first in (0..tables.slots).step_by(step) {
            let slots = first..tables.slots.min(first.saturating_add(step as u32));
            let bytes = &mut buffer[..slots.len() * block_bytes];
            bytes.fill(0);
            for (slot, block) in slots.zip(bytes.chunks_exact_mut(block_bytes)) {
                // SAFETY: the caller's promise.
                unsafe { self.graph.store(slot, &tables.captured, block) };
            }
            writer.put_blocks(bytes)?;
            steps.passed(bytes.len() as u64)?;
        }
        Ok(())
    }
}

impl UnsavedTables {
    /// Takes slots that no id has, but to which links may lead.
    fn take_dead(&mut self, slots: Vec<u32>) {
        for slot in slots {
            debug_assert!(!self.captured.alive.contains(slot));
            self.captured.dead.insert(slot);
            self.slots = self.slots.max(slot + 1);
        }
    }
}

/// Writes the next segment of full vectors.
///
/// # Safety
/// The epoch is pinned since before the table was read that names the slots alive.
unsafe fn put_vectors(
    vectors: &StoredVectors,
    alive: &IdSet,
    writer: &mut GenerationWriter,
) -> Result<(), SnapshotError> {
    writer.write_segment(|slots, bytes| {
        for (slot, record) in slots.zip(bytes.chunks_exact_mut(vectors.stride())) {
            if alive.contains(slot) {
                // SAFETY: the caller's promise.
                let kept = unsafe { vectors.get(slot) };
                record[..kept.len()].copy_from_slice(kept);
            }
        }
    })
}
