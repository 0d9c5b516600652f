//! The graph: every slot links to some that are near it.
//!
//! It is the graph of Vamana (Subramanya et al., DiskANN, 2019): every slot links to a few others
//! that are near it and are in different directions, so that a walk which always goes on from the
//! nearest slot it knows comes near any query in a few steps. Distances along the way are estimated
//! from [codes](crate::codes); exact ones are the caller's business. A walk starts from the slots
//! that a short walk of the [upper level](upper_level) finds ([`starts`]).
//!
//! # A slot's life
//!
//! A vector never changes in its slot. To replace one is to fill another slot and to *kill* the old
//! one; a killed slot is *dead*: nothing links to it any more, and walks pass through it to its
//! neighbours without counting it as a candidate. A [sweep](repair) over all slots, of which every
//! change does a piece, takes dead slots out of the links that still name them, and links the
//! neighbours of the dead with each other instead, as IP-DiskANN does (Xu et al., 2025). When the
//! sweep has passed all slots, nothing can reach the dead. When no one is left who may have read of
//! them before ([epochs](crate::epoch)), their slots are free.
//!
//! # Concurrency
//!
//! Any number of threads that have pinned the epoch may do anything at the same time. Links are
//! atomics and change under a lock in their own block; no one who only reads waits for it, and no
//! one holds two such locks. The contents of a slot are written before the first link from it or to
//! it.

mod block;
mod centre;
mod filtered_frontier;
mod link;
mod pool;
mod reach;
mod repair;
mod restore;
mod slots;
mod space;
mod starts;
mod upper_level;
mod visited;
mod walk;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

pub(crate) use block::{SlotBlock, SlotLayout};
pub(crate) use filtered_frontier::{BEAM_PER_PASSED, FilteredFrontier, WalkBounds};
pub(crate) use link::NewSlot;
pub(crate) use pool::{CandidateHeaps, SLOTS_MAX};
pub(crate) use reach::{DistanceGrowth, WalkReach};
pub(crate) use restore::{BlockDefect, CapturedSlots};
pub(crate) use slots::SlotAllocator;
pub(crate) use space::{WalkCounts, WalkWorkspace};

use centre::StaleCodes;
use repair::DeadSlotRemoval;
pub(crate) use repair::RemovalOccasion;
use upper_level::UpperLevel;

use crate::codes::{CodeMeta, CodeQuery, Codebook};
use crate::memory::{GrowError, RecordArray, RecordPlacement};

/// The graph: slots with their links.
pub(crate) struct Graph {
    layout: SlotLayout,
    blocks: RecordArray,
    /// The codebook, by which vectors become codes. Before there is one, slots are filled but not
    /// linked.
    codebook: OnceLock<Codebook>,
    slots: SlotAllocator,
    /// Number of links that a slot keeps when it has to choose.
    degree: usize,
    /// Number of candidates of a slot that looks for its links.
    build_beam: usize,
    /// One above the slot where walks start; 0 if no slot is linked.
    entry: AtomicU32,
    spread: DistanceGrowth,
    /// Slots that have died and are in no batch yet.
    killed: Mutex<Vec<u32>>,
    removal: Mutex<DeadSlotRemoval>,
    /// Slots whose codes are worse than others from centres that there are now would be.
    outdated: StaleCodes,
    /// The level above; None for that level itself.
    upper: Option<Box<UpperLevel>>,
}

impl Graph {
    pub(crate) fn new(code_bytes: usize, degree: usize, build_beam: usize) -> Graph {
        let level = Graph::level(code_bytes, degree, build_beam);
        let upper = Some(Box::new(UpperLevel::new(level.layout)));
        Graph { upper, ..level }
    }

    /// A graph without a level above it.
    fn level(code_bytes: usize, degree: usize, build_beam: usize) -> Graph {
        let layout = SlotLayout::new(code_bytes, degree);
        Graph {
            layout,
            blocks: RecordArray::new(layout.stride, RecordPlacement::Memory),
            codebook: OnceLock::new(),
            slots: SlotAllocator::default(),
            degree,
            build_beam,
            entry: AtomicU32::new(0),
            spread: DistanceGrowth::default(),
            killed: Mutex::new(Vec::new()),
            removal: Mutex::new(DeadSlotRemoval::default()),
            outdated: StaleCodes::default(),
            upper: None,
        }
    }

    pub(crate) fn layout(&self) -> &SlotLayout {
        &self.layout
    }

    /// The codebook; None until the graph has been [trained](Graph::train).
    pub(crate) fn codebook(&self) -> Option<&Codebook> {
        self.codebook.get()
    }

    /// Gives the graph its codebook. No slot may have been linked before.
    pub(crate) fn train(&self, codebook: Codebook) {
        let first = self.codebook.set(codebook);
        debug_assert!(first.is_ok(), "a graph is trained once");
    }

    pub(crate) fn slots(&self) -> &SlotAllocator {
        &self.slots
    }

    /// The slots whose codes are out of date.
    pub(crate) fn outdated(&self) -> &StaleCodes {
        &self.outdated
    }

    /// The array of the blocks.
    pub(crate) fn blocks(&self) -> &RecordArray {
        &self.blocks
    }

    /// Bytes of the tables other than the blocks.
    pub(crate) fn tables_bytes(&self) -> usize {
        let upper = self.upper.as_ref().map_or(0, |upper| upper.memory_bytes());
        let centres = self.codebook().map(|codebook| codebook.centres());
        let centres = centres.map_or(0, |centres| centres.memory_bytes());
        self.own_tables_bytes() + upper + centres
    }

    /// Bytes of the tables of this level.
    fn own_tables_bytes(&self) -> usize {
        let killed = self.killed.lock().capacity() * size_of::<u32>();
        let outdated = self.outdated.memory_bytes();
        self.slots.memory_bytes() + killed + outdated + self.removal.lock().memory_bytes()
    }

    /// Makes room for a slot that [`SlotAllocator::take`] has given out.
    pub(crate) fn ensure(&self, slot: u32) -> Result<(), GrowError> {
        self.blocks.ensure(slot)
    }

    /// The block of a slot that there is room for.
    #[inline(always)]
    pub(crate) fn block(&self, slot: u32) -> SlotBlock<'_> {
        debug_assert!(self.blocks.get(slot).is_some());
        // SAFETY: there is room for every slot that was ever given out, since before it was linked
        // or entered in a table; chunks are zeroed, aligned to pages, and stay as long as the
        // array.
        unsafe { SlotBlock::new(self.blocks.get_unchecked(slot), self.layout) }
    }

    /// Fills a slot for `id`, with the code of `vector` from a centre if there is a codebook.
    ///
    /// # Safety
    /// The slot was given out by [`SlotAllocator::take`], there is room for it, and no one else has
    /// it.
    pub(crate) unsafe fn fill(
        &self,
        slot: u32,
        id: u32,
        (vector, centre): (&[f32], u32),
        space: &mut WalkWorkspace,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.codebook() {
                Some(codebook) => self.fill_with(codebook, slot, id, (vector, centre), space),
                None => self.block(slot).write(id, |_| CodeMeta::default()),
            }
        }
    }

    /// Fills a slot for `id` with the code of `vector` from a centre.
    ///
    /// # Safety
    /// As for [`Graph::fill`].
    unsafe fn fill_with(
        &self,
        codebook: &Codebook,
        slot: u32,
        id: u32,
        (vector, centre): (&[f32], u32),
        space: &mut WalkWorkspace,
    ) {
        let encode = |code: &mut [u8]| codebook.encode(vector, centre, &mut space.rotated, code);
        // SAFETY: the caller's promise.
        unsafe { self.block(slot).write(id, encode) };
        if self.upper.is_some() && codebook.has_centres() {
            // SAFETY: as above.
            unsafe { self.offer_example(codebook, slot) };
        }
    }

    /// Whether a slot links to others and is not dead.
    pub(crate) fn is_linked(&self, slot: u32) -> bool {
        // A slot that was given out just now may have no room yet.
        self.blocks.get(slot).is_some() && self.block(slot).is_linked()
    }

    /// The growth of distances from neighbour to neighbour.
    pub(crate) fn spread(&self) -> &DistanceGrowth {
        &self.spread
    }

    pub(crate) fn spread_mut(&mut self) -> &mut DistanceGrowth {
        &mut self.spread
    }

    /// The slot where walks start; None if no slot is linked.
    pub(crate) fn entry(&self) -> Option<u32> {
        self.entry.load(Ordering::Acquire).checked_sub(1)
    }

    /// Makes `slot` the entry if `before` still is.
    fn change_entry(&self, before: Option<u32>, slot: Option<u32>) -> bool {
        let word = |slot: Option<u32>| slot.map_or(0, |slot| slot + 1);
        let (before, after) = (word(before), word(slot));
        self.entry
            .compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Makes a query of the code in a slot.
    ///
    /// # Safety
    /// The slot has been filled with a code, and the epoch is pinned since it could be reached.
    unsafe fn query_of(&self, codebook: &Codebook, slot: u32, query: &mut CodeQuery) {
        let block = self.block(slot);
        // SAFETY: the caller's promise.
        let (code, meta) = unsafe { (block.code(), block.meta()) };
        codebook.prepare_code(code, &meta, query);
    }
}
