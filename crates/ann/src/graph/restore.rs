//! A graph on its way into a snapshot and back.
//!
//! Links change while blocks are copied one after the other, so a snapshot may hold a graph that
//! never existed: a link that moved between two blocks may be in neither or in both. But every link
//! leads to a slot of the snapshot. When the graph comes back, links are counted again, and a slot
//! that has lost its last link that way is linked again. (A slot that no one linked to when it was
//! saved stays as it was.)

use super::Graph;
use super::space::WalkWorkspace;
use crate::IdSet;
use crate::codes::CodeMeta;
use crate::memory::RecordArray;

/// The slots that a snapshot takes.
#[derive(Debug, Default)]
pub(crate) struct CapturedSlots {
    /// Slots that ids have.
    pub alive: IdSet,
    /// Dead slots that walks pass through, as links may still lead to them.
    pub dead: IdSet,
}

impl CapturedSlots {
    fn contains(&self, slot: u32) -> bool {
        self.alive.contains(slot) || self.dead.contains(slot)
    }
}

/// A defect in the block of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockDefect {
    pub slot: u32,
    pub what: &'static str,
}

impl Graph {
    /// Chooses a living slot of a snapshot for walks to start at: the present entry, if it is one.
    pub(crate) fn entry_among(&self, captured: &CapturedSlots) -> Option<u32> {
        let alive = &captured.alive;
        let entry = self.entry().filter(|slot| alive.contains(*slot));
        let is_linked = |slot: &u32| self.block(*slot).degree() > 0;
        entry
            .or_else(|| alive.iter().find(is_linked))
            .or_else(|| alive.iter().next())
    }

    /// Copies the block of a slot to `bytes`, a stride of zeros. A slot that is not captured
    /// becomes a free one.
    ///
    /// # Safety
    /// The slots captured are filled, and cannot be given away during the call.
    pub(crate) unsafe fn store(&self, slot: u32, captured: &CapturedSlots, bytes: &mut [u8]) {
        if !captured.contains(slot) {
            return self.layout.store_free(bytes);
        }
        let dead = captured.dead.contains(slot);
        let keeps = |link| captured.contains(link);
        // SAFETY: the caller's promise.
        unsafe { self.block(slot).store(bytes, dead, keeps) };
    }

    /// Takes over the blocks of a snapshot. `ids` are all ids and their slots, all below `slots`;
    /// `entry` is one of the slots. A block becomes that of the first id that has its slot.
    ///
    /// The blocks' codes are taken as they are; those of the format's version 1 lack errors.
    /// Returns the slots that have to be linked again.
    pub(crate) fn restore(
        &mut self,
        (blocks, lacks_errors): (RecordArray, bool),
        slots: u32,
        ids: &[(u32, u32)],
        entry: Option<u32>,
    ) -> Result<Vec<u32>, BlockDefect> {
        self.blocks = blocks;
        if lacks_errors {
            for slot in 0..slots {
                let error_of = |code: &[u8], meta: &CodeMeta| {
                    let codebook = self.codebook();
                    codebook.map_or(0.0, |codebook| codebook.error_of(code, meta))
                };
                // SAFETY: no one else has the graph yet.
                unsafe { self.block(slot).modernise(error_of) };
            }
        }
        let mut taken = IdSet::default();
        for &(id, slot) in ids {
            let block = self.block(slot);
            if block.is_dead() {
                let what = "an id has a slot without a vector";
                return Err(BlockDefect { slot, what });
            }
            if taken.insert(slot) {
                block.lock().unshare(id);
            }
        }
        let in_degrees = self.count_links(slots, taken.len(), entry)?;
        let (mut free, mut killed, mut bereaved) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, &links) in (0..).zip(&in_degrees) {
            let block = self.block(slot);
            if links == 0 && !block.is_orphan() && !block.is_dead() && entry != Some(slot) {
                bereaved.push(slot);
            }
            block.correct_in_degree(links);
            if let Some(codebook) = self.codebook()
                && codebook.has_centres()
                && block.is_linked()
            {
                // SAFETY: no one else has the graph yet.
                unsafe { self.offer_example(codebook, slot) };
            }
            if block.is_dead() {
                let is_free = links == 0 && block.degree() == 0;
                if is_free { &mut free } else { &mut killed }.push(slot);
            }
        }
        // Slots are taken from the end.
        free.reverse();
        self.slots.restore(slots, free);
        *self.killed.get_mut() = killed;
        if entry.is_some() {
            self.change_entry(None, entry);
        }
        Ok(bereaved)
    }

    /// Checks all blocks, and counts the links that lead to each slot.
    fn count_links(
        &self,
        slots: u32,
        taken: usize,
        entry: Option<u32>,
    ) -> Result<Vec<u32>, BlockDefect> {
        let centres = self
            .codebook()
            .map_or(0, |codebook| codebook.centres().len());
        let mut in_degrees = vec![0u32; slots as usize];
        let mut alive = 0;
        for slot in 0..slots {
            let block = self.block(slot);
            let defect = |what| BlockDefect { slot, what };
            block.check(slots, centres).map_err(defect)?;
            if block.degree() > 0 && entry.is_none() {
                return Err(defect("a block has links, and there is no entry"));
            }
            block.for_each_link(|link| in_degrees[link as usize] += 1);
            alive += usize::from(!block.is_dead());
            if alive > taken {
                return Err(defect("there are more vectors than ids"));
            }
        }
        if let Some(slot) = entry.filter(|slot| self.block(*slot).is_dead()) {
            let what = "walks start at a slot without a vector";
            return Err(BlockDefect { slot, what });
        }
        Ok(in_degrees)
    }

    /// Links slots of a restored graph again.
    ///
    /// # Safety
    /// The epoch is pinned, and the slots are alive.
    pub(crate) unsafe fn relink_all(&self, slots: Vec<u32>, space: &mut WalkWorkspace) {
        if let (Some(codebook), Some(_)) = (self.codebook(), self.entry()) {
            for slot in slots {
                // SAFETY: the caller's promise.
                unsafe { self.relink(codebook, slot, space) };
            }
        }
    }

    /// The upper level as words, for a snapshot. No change may be under way.
    pub(crate) fn upper_words(&self) -> Vec<u32> {
        self.upper
            .as_ref()
            .map_or(Vec::new(), |upper| upper.words())
    }

    /// Takes over the upper level of a snapshot; false if the words are none.
    pub(crate) fn restore_upper(&mut self, words: &[u32]) -> bool {
        let Some(mut upper) = self.upper.take() else {
            return false;
        };
        let is_there = |slot| slot < self.slots.end() && self.block(slot).is_linked();
        let restored = upper.restore(self, words, is_there);
        self.upper = Some(upper);
        restored
    }

    /// Builds the upper level of a restored graph that came without one.
    ///
    /// # Safety
    /// The epoch is pinned, and no one else has the graph yet.
    pub(crate) unsafe fn rebuild_upper(&self, space: &mut WalkWorkspace) {
        if let (Some(upper), Some(codebook)) = (&self.upper, self.codebook()) {
            // SAFETY: the caller's promise.
            unsafe { upper.rebuild(self, codebook, space) };
        }
    }
}
