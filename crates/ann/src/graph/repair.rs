//! Repair: dead slots leave the graph, and new links close the gaps.
//!
//! Killed slots gather in a batch. A batch that is full waits until no one is left who may have
//! taken one of its slots for a living one, so that no new link to it can come up. Then a cursor
//! passes over all slots, a few with every change: a slot that links to one of the batch gets some
//! of its neighbours instead (in-place deletion: Xu et al., IP-DiskANN, 2025). After that, a slot
//! that had its last link from the batch is linked again. When no one is left who may have seen an
//! old link, the slots of the batch are free. Meanwhile the next batch gathers.

use super::Graph;
use super::pool::Frontier;
use super::space::{LinkCandidate, WalkWorkspace};
use crate::codes::Codebook;
use crate::epoch::{Epochs, Mark};

/// A batch is full when one in this many slots is in it. The dead take that share of memory and a
/// little more for each batch on its way, and a sweep reads all links once for each batch.
const BATCH_SHARE: u32 = 100;
/// In idle time a batch is full when one in this many slots is in it.
const IDLE_SHARE: u32 = 1_000;
/// The fewest slots of a full batch.
const BATCH_MIN: usize = 32;

/// Number of slots that the cursor passes with every change. At most one slot dies with a change,
/// so a sweep ends before the next batch is half full.
const PASSED_PER_DEATH: u32 = 2 * BATCH_SHARE;

/// Number of neighbours of dead slots that are tried as links of a slot that linked to these.
const HEIRS_TRIED_MAX: usize = 32;

/// The occasion of a share of repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemovalOccasion {
    /// A change, after which many dead slots are mended out together.
    Change,
    /// Idle time: all the dead are mended out, but for a few.
    Idle,
}

/// The progress of dead slots out of the graph.
#[derive(Debug, Default)]
pub(super) struct DeadSlotRemoval {
    /// The batch on its way.
    batch: Vec<u32>,
    /// The stage that the batch is at.
    stage: RemovalStage,
    /// A bit for each slot of the batch while it is swept out.
    dying: Vec<u64>,
}

#[derive(Debug, Default)]
enum RemovalStage {
    /// There is no batch.
    #[default]
    Idle,
    /// Somebody may still link to the batch.
    Closing(Mark),
    /// Slots from `cursor` up to `end` are still to be looked through.
    Sweeping { cursor: u32, end: u32 },
    /// The links of the batch's slots, from this one on, are still to be taken back.
    Bereaving { next: usize },
    /// Somebody may still read the batch.
    Draining(Mark),
}

impl DeadSlotRemoval {
    pub(super) fn memory_bytes(&self) -> usize {
        self.batch.capacity() * size_of::<u32>() + self.dying.capacity() * size_of::<u64>()
    }

    fn is_dying(&self, slot: u32) -> bool {
        let word = self.dying.get(slot as usize / 64);
        word.is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }
}

impl Graph {
    /// Takes a slot out of the graph. Walks that began before may still find it.
    ///
    /// # Safety
    /// The epoch is pinned since the slot could be reached.
    pub(crate) unsafe fn kill(&self, slot: u32) {
        if self.block(slot).lock().kill() {
            // SAFETY: the caller's promise.
            unsafe { self.schedule_removal(slot) };
        }
    }

    /// Takes a slot out of the graph if only one id has it; false if more than one may have it.
    ///
    /// # Safety
    /// As for [`Graph::kill`].
    pub(crate) unsafe fn kill_unless_shared(&self, slot: u32) -> bool {
        let mut links = self.block(slot).lock();
        if links.is_shared() {
            return false;
        }
        let killed = links.kill();
        // No one holds two locks of slots, and the upper level takes one of its own.
        drop(links);
        if killed {
            // SAFETY: the caller's promise.
            unsafe { self.schedule_removal(slot) };
        }
        true
    }

    /// Marks that more than one id may have a slot from now on; false if it is dead.
    pub(crate) fn share(&self, slot: u32) -> bool {
        let mut links = self.block(slot).lock();
        let alive = !links.is_dead();
        if alive {
            links.share();
        }
        alive
    }

    /// Marks that only one id has a slot from now on.
    pub(crate) fn unshare(&self, slot: u32, id: u32) {
        self.block(slot).lock().unshare(id);
    }

    /// Leaves a slot that has just died to the next sweep, and has walks start at another one.
    ///
    /// # Safety
    /// The epoch is pinned since the slot could be reached.
    unsafe fn schedule_removal(&self, slot: u32) {
        if let Some(upper) = &self.upper {
            // SAFETY: the caller's promise.
            unsafe { upper.kill(slot) };
        }
        if self.entry() == Some(slot) {
            self.leave_entry(slot);
        }
        self.killed.lock().push(slot);
    }

    /// Makes another slot the entry in place of a dead one.
    pub(super) fn leave_entry(&self, dead: u32) {
        let mut dead = dead;
        loop {
            let heir = self.living_near(dead);
            if !self.change_entry(Some(dead), heir) {
                return;
            }
            // The heir may have died before it became the entry.
            match heir {
                Some(slot) if self.block(slot).is_dead() => dead = slot,
                _ => return,
            }
        }
    }

    /// Finds a linked slot that is not dead: a neighbour of `slot`, if there is one.
    fn living_near(&self, slot: u32) -> Option<u32> {
        let mut living = None;
        self.block(slot).for_each_link(|link| {
            if living.is_none() && !self.block(link).is_dead() {
                living = Some(link);
            }
        });
        living.or_else(|| {
            (0..self.slots.end()).find(|&slot| {
                self.blocks.get(slot).is_some() && {
                    let block = self.block(slot);
                    !block.is_dead() && !block.is_orphan()
                }
            })
        })
    }

    /// The dead slots that links may lead to. No change may be under way.
    pub(crate) fn dying(&self) -> Vec<u32> {
        let mut dying = self.killed.lock().clone();
        let mending = self.removal.lock();
        if let RemovalStage::Closing(_) | RemovalStage::Sweeping { .. } = mending.stage {
            dying.extend_from_slice(&mending.batch);
        }
        dying
    }

    /// Does a share of the repair, unless somebody else is at it.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(crate) unsafe fn repair(
        &self,
        haste: RemovalOccasion,
        epochs: &Epochs,
        space: &mut WalkWorkspace,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            self.repair_by(self.codebook(), haste, epochs, space);
            if let (Some(upper), Some(codebook)) = (&self.upper, self.codebook()) {
                upper.repair(codebook, haste, epochs, space);
            }
        }
    }

    /// The number of dead slots, which are not free yet.
    pub(crate) fn dead_slots(&self) -> usize {
        // One after the other: the thread that closes a batch holds both locks in the other order.
        let killed = self.killed.lock().len();
        let mending = self.removal.lock().batch.len();
        killed + mending
    }

    /// Whether no dead slots are left to be mended out of the links, or so few that a sweep over
    /// all slots is not worth it.
    pub(crate) fn is_repaired(&self) -> bool {
        let is_mended = |graph: &Graph| {
            let few = graph.killed.lock().len() < graph.worth_a_sweep();
            few && graph.removal.lock().batch.is_empty()
        };
        is_mended(self)
            && self
                .upper
                .as_ref()
                .is_none_or(|upper| is_mended(upper.graph()))
    }

    /// The number of dead slots that are worth a sweep in idle time.
    fn worth_a_sweep(&self) -> usize {
        BATCH_MIN.max((self.slots.end() / IDLE_SHARE) as usize)
    }

    /// Does a share of the repair of this level, unless somebody else is at it.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(super) unsafe fn repair_by(
        &self,
        codebook: Option<&Codebook>,
        haste: RemovalOccasion,
        epochs: &Epochs,
        space: &mut WalkWorkspace,
    ) {
        let Some(mut mending) = self.removal.try_lock() else {
            return;
        };
        let mending = &mut *mending;
        let Some(codebook) = codebook else {
            // Nothing is linked, so only those who found a dead slot in a table can read it.
            return self.repair_unlinked(epochs, mending);
        };
        match mending.stage {
            RemovalStage::Idle => {
                let full = match haste {
                    RemovalOccasion::Change => (self.slots.end() / BATCH_SHARE) as usize,
                    RemovalOccasion::Idle => self.worth_a_sweep(),
                };
                if self.close_batch(full.max(BATCH_MIN), mending) {
                    mending.stage = RemovalStage::Closing(epochs.advance());
                }
            }
            RemovalStage::Closing(mark) => {
                if epochs.passed(mark) {
                    // Slots that are given out later don't link to the batch, as no walk takes its
                    // slots for living ones.
                    let end = self.slots.end();
                    mending.dying.clear();
                    mending.dying.resize(end as usize / 64 + 1, 0);
                    for &slot in &mending.batch {
                        mending.dying[slot as usize / 64] |= 1 << (slot % 64);
                    }
                    mending.stage = RemovalStage::Sweeping { cursor: 0, end };
                }
            }
            RemovalStage::Sweeping { cursor, end } => {
                let to = end.min(cursor.saturating_add(PASSED_PER_DEATH));
                for slot in cursor..to {
                    if self.links_to_dying(slot, mending) {
                        // SAFETY: the caller's promise; what is linked can be reached.
                        unsafe { self.repair_slot(codebook, slot, mending, space) };
                    }
                }
                mending.stage = match to == end {
                    false => RemovalStage::Sweeping { cursor: to, end },
                    true => RemovalStage::Bereaving { next: 0 },
                };
            }
            RemovalStage::Bereaving { next } => {
                let to = mending.batch.len().min(next + BATCH_MIN);
                for &dead in &mending.batch[next..to] {
                    // SAFETY: the caller's promise; the batch is not free yet.
                    unsafe { self.relink_neighbours(codebook, dead, space) };
                }
                mending.stage = match to == mending.batch.len() {
                    false => RemovalStage::Bereaving { next: to },
                    true => RemovalStage::Draining(epochs.advance()),
                };
            }
            RemovalStage::Draining(mark) => self.drain(epochs, mark, mending),
        }
    }

    /// Does a share of the repair of a graph without links.
    fn repair_unlinked(&self, epochs: &Epochs, mending: &mut DeadSlotRemoval) {
        if let RemovalStage::Draining(mark) = mending.stage {
            self.drain(epochs, mark, mending);
        } else if self.close_batch(BATCH_MIN, mending) {
            mending.stage = RemovalStage::Draining(epochs.advance());
        }
    }

    /// Makes a batch of the slots that have been killed if they are enough.
    fn close_batch(&self, full: usize, mending: &mut DeadSlotRemoval) -> bool {
        let mut killed = self.killed.lock();
        let is_full = killed.len() >= full;
        if is_full {
            std::mem::swap(&mut *killed, &mut mending.batch);
        }
        is_full
    }

    /// Frees the slots of the batch once no one can read them any more.
    fn drain(&self, epochs: &Epochs, mark: Mark, mending: &mut DeadSlotRemoval) {
        if epochs.passed(mark) {
            self.slots.give_back(mending.batch.drain(..));
            mending.stage = RemovalStage::Idle;
        }
    }

    fn links_to_dying(&self, slot: u32, mending: &DeadSlotRemoval) -> bool {
        let mut found = false;
        // A slot that was given out may have no room yet.
        if self.blocks.get(slot).is_some() {
            let block = self.block(slot);
            block.for_each_link(|link| found |= mending.is_dying(link));
        }
        found
    }

    /// Takes the dying slots out of the links of a slot, and links it with the best of their
    /// neighbours.
    ///
    /// # Safety
    /// The epoch is pinned.
    unsafe fn repair_slot(
        &self,
        codebook: &Codebook,
        slot: u32,
        mending: &DeadSlotRemoval,
        space: &mut WalkWorkspace,
    ) {
        let mut links = self.block(slot).lock();
        let (dying, kept): (Vec<u32>, Vec<u32>) =
            links.iter().partition(|link| mending.is_dying(*link));
        for &dead in &dying {
            self.block(dead).lose_any_link();
        }
        links.replace(kept.iter().copied());
        if links.is_dead() {
            return;
        }
        let mut heirs = Vec::new();
        for dead in dying {
            self.block(dead).for_each_link(|heir| {
                let new = heir != slot && !kept.contains(&heir) && !heirs.contains(&heir);
                if new && !self.block(heir).is_dead() {
                    heirs.push(heir);
                }
            });
        }
        // SAFETY: the caller's promise; heirs were alive a moment ago, so they can be reached.
        unsafe {
            self.query_of(codebook, slot, &mut space.pair);
            let heirs = heirs.into_iter();
            let measured = self.measure(codebook, heirs, &mut space.pair, &mut space.batch);
            space.pool.reset(HEIRS_TRIED_MAX);
            measured.for_each(|(heir, distance)| space.pool.offer(distance, heir));
        }
        space.candidates.clear();
        let candidate = |(distance, slot)| LinkCandidate { distance, slot };
        space.candidates.extend(space.pool.iter().map(candidate));
        for index in 0..space.candidates.len() {
            if links.degree() >= self.degree {
                break;
            }
            let heir = space.candidates[index];
            // SAFETY: as above.
            if unsafe { self.is_worth_a_link(codebook, heir, links.iter(), space) } {
                self.block(heir.slot).gain_link();
                links.push(heir.slot);
            }
        }
    }

    /// Takes back the links of a dead slot, and links again each neighbour that had its last link
    /// from it.
    ///
    /// # Safety
    /// The epoch is pinned, and the slot is not free yet.
    unsafe fn relink_neighbours(&self, codebook: &Codebook, dead: u32, space: &mut WalkWorkspace) {
        let mut links = self.block(dead).lock();
        let heirs: Vec<u32> = links.iter().collect();
        links.replace(std::iter::empty());
        drop(links);
        for heir in heirs {
            let block = self.block(heir);
            // Walks begin at the entry, so it needs no link.
            if block.lose_any_link() && !block.is_dead() && self.entry() != Some(heir) {
                // SAFETY: the caller's promise; the heir is alive.
                unsafe { self.relink(codebook, heir, space) };
            }
        }
    }
}
