//! The upper level: a graph of one slot in so many, from which walks of the graph start.
//!
//! A graph of one level has no map of the whole. Where vectors form clusters, links stay within
//! them: a walk that starts in another cluster than its query ends there, and a slot that is linked
//! by such a walk gets the wrong neighbours for good. The upper levels of HNSW (Malkov and
//! Yashunin, 2016) are that map. One of them is enough here, as it starts from
//! [landmarks](super::starts) when it is large.
//!
//! The level is a [`Graph`] of its own, with copies of the codes. The id of one of its slots is the
//! slot below. A slot below that dies takes the one above with it, before it can become free.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::pool::CandidatePool;
use super::reach::WalkReach;
use super::space::WalkWorkspace;
use super::starts::scattered;
use super::{Graph, RemovalOccasion, SlotLayout};
use crate::codes::Codebook;
use crate::epoch::Epochs;

/// One slot in so many has one above it.
const SHARE: u32 = 32;

/// Number of links that a slot of the upper level keeps when it has to choose.
const DEGREE: usize = 40;

/// Number of candidates of a slot of the upper level that looks for its links.
const BUILD_BEAM: usize = 64;

/// Width of a walk that looks for starts, for each of the default widths that the walk from there
/// is wide.
const WIDTH: f64 = 16.0;

/// Number of default widths of a walk that looks for links: a slot that is linked by a walk from a
/// wrong start is in the wrong place for good.
pub(super) const LINK_WIDTHS: f64 = 2.0;

/// Number of slots that a walk starts from.
const STARTS: usize = 4;

/// The upper level of a graph.
pub(crate) struct UpperLevel {
    graph: Graph,
    /// The slot above each slot that has one.
    places: Mutex<BTreeMap<u32, u32>>,
}

impl UpperLevel {
    /// An empty level for a graph of this layout.
    pub(super) fn new(layout: SlotLayout) -> UpperLevel {
        UpperLevel {
            graph: Graph::level(layout.code_bytes, DEGREE, BUILD_BEAM),
            places: Mutex::default(),
        }
    }

    /// Bytes of blocks and tables.
    pub(super) fn memory_bytes(&self) -> usize {
        // About half of a node of the tree is in use.
        let places = 2 * self.places.lock().len() * size_of::<(u32, u32)>();
        let blocks = self.graph.slots.end() as usize * self.graph.layout.stride;
        places + blocks + self.graph.own_tables_bytes()
    }

    /// Links a slot with the upper level, if it is one of those that are to be there. Without room
    /// it is left out.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(super) unsafe fn link(
        &self,
        codebook: &Codebook,
        below: u32,
        (vector, centre): (&[f32], u32),
        space: &mut WalkWorkspace,
    ) {
        if !scattered(below).is_multiple_of(SHARE) {
            return;
        }
        let slots = self.graph.slots();
        let Some(slot) = slots.take() else { return };
        if self.graph.ensure(slot).is_err() {
            slots.give_back([slot]);
            return;
        }
        codebook.prepare_link(vector, &mut space.query);
        // SAFETY: the caller's promise; only we have the slot.
        unsafe {
            self.graph.walk_for_links(codebook, space);
            self.graph
                .fill_with(codebook, slot, below, (vector, centre), space);
            self.graph.link_found(codebook, slot, space);
        }
        self.places.lock().insert(below, slot);
    }

    /// The level as words, for a snapshot: the number of slots and the place of the entry among
    /// them, then for each slot the one below, the number of links, and the links as places in this
    /// list. No change may be under way.
    pub(super) fn words(&self) -> Vec<u32> {
        let places = self.places.lock();
        let mut alive: Vec<(u32, u32)> =
            places.iter().map(|(&below, &slot)| (slot, below)).collect();
        alive.sort_unstable();
        let place_of = |slot| alive.binary_search_by_key(&slot, |&(slot, _)| slot).ok();
        let entry = self.graph.entry().and_then(place_of).unwrap_or(0);
        let mut words = vec![alive.len() as u32, entry as u32];
        for &(slot, below) in &alive {
            words.extend([below, 0]);
            let count = words.len() - 1;
            self.graph.block(slot).for_each_link(|link| {
                if let Some(place) = place_of(link) {
                    words[count] += 1;
                    words.push(place as u32);
                }
            });
        }
        words
    }

    /// Takes over the level of a snapshot. Slots that `is_there` refuses are left out. False if the
    /// words are no level, or if there is no memory for it; then the level is empty.
    pub(super) fn restore(
        &mut self,
        below: &Graph,
        words: &[u32],
        is_there: impl Fn(u32) -> bool,
    ) -> bool {
        let Some((entry, slots)) = read(words, self.graph.layout.capacity) else {
            return false;
        };
        let mut places = vec![None; slots.len()];
        for (place, &(slot_below, _)) in places.iter_mut().zip(&slots) {
            // No slot has two above it.
            if !is_there(slot_below) || self.places.get_mut().contains_key(&slot_below) {
                continue;
            }
            let Some(slot) = self.graph.slots().take() else {
                break;
            };
            if self.graph.ensure(slot).is_err() {
                break;
            }
            let (from, to) = (below.block(slot_below), self.graph.block(slot));
            // SAFETY: no one else has either graph yet, and the slot below is filled.
            unsafe {
                to.write(slot_below, |code| {
                    code.copy_from_slice(from.code());
                    from.meta()
                });
            }
            *place = Some(slot);
            self.places.get_mut().insert(slot_below, slot);
        }
        for (place, (_, links)) in places.iter().zip(&slots) {
            let Some(slot) = *place else { continue };
            let links = links.iter().filter_map(|&link| places[link as usize]);
            let links: Vec<u32> = links.filter(|&link| link != slot).collect();
            for &link in &links {
                self.graph.block(link).gain_link();
            }
            self.graph.block(slot).lock().replace(links.into_iter());
        }
        let entry = places.get(entry).copied().flatten();
        if let Some(entry) = entry.or_else(|| places.into_iter().flatten().next()) {
            self.graph.change_entry(None, Some(entry));
        }
        true
    }

    /// Links the slots that are to be in the level, from their codes, as a snapshot that has none
    /// leaves them.
    ///
    /// # Safety
    /// The epoch is pinned, and no one else has the graphs yet.
    pub(super) unsafe fn rebuild(
        &self,
        below: &Graph,
        codebook: &Codebook,
        space: &mut WalkWorkspace,
    ) {
        for slot_below in 0..below.slots().end() {
            let from = below.block(slot_below);
            if !scattered(slot_below).is_multiple_of(SHARE) || !from.is_linked() {
                continue;
            }
            let Some(slot) = self.graph.slots().take() else {
                return;
            };
            if self.graph.ensure(slot).is_err() {
                return;
            }
            // SAFETY: the caller's promise; the slot below is filled.
            unsafe {
                self.graph.block(slot).write(slot_below, |code| {
                    code.copy_from_slice(from.code());
                    from.meta()
                });
                self.graph.relink(codebook, slot, space);
            }
            self.places.lock().insert(slot_below, slot);
        }
    }

    /// Takes the slot above one that has died out of the level.
    ///
    /// # Safety
    /// The epoch is pinned since the slot below could be reached.
    pub(super) unsafe fn kill(&self, below: u32) {
        if scattered(below).is_multiple_of(SHARE)
            && let Some(slot) = self.places.lock().remove(&below)
        {
            // SAFETY: the caller's promise.
            unsafe { self.graph.kill(slot) };
        }
    }

    /// Does a share of the level's repair.
    ///
    /// # Safety
    /// The epoch is pinned.
    pub(super) unsafe fn repair(
        &self,
        codebook: &Codebook,
        haste: RemovalOccasion,
        epochs: &Epochs,
        space: &mut WalkWorkspace,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.graph.repair_by(Some(codebook), haste, epochs, space) };
    }

    /// The level itself.
    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The slots below the nearest to `space.query` that a short walk of the level finds.
    ///
    /// # Safety
    /// The epoch is pinned since before the call, until the last use of the slots.
    pub(super) unsafe fn starts(
        &self,
        codebook: &Codebook,
        space: &mut WalkWorkspace,
    ) -> [Option<u32>; STARTS] {
        let mut pool = std::mem::take(&mut space.above);
        let width = (WIDTH * space.widths.max(1.0)) as usize;
        pool.reset_within(WalkReach::UNLIMITED, (width, width), width);
        // SAFETY: the caller's promise.
        unsafe { self.graph.walk_with(codebook, &mut pool, space) };
        let mut starts = [None; STARTS];
        for (start, (_, slot)) in starts.iter_mut().zip(CandidatePool::iter(&pool)) {
            *start = Some(self.graph.block(slot).id());
        }
        space.above = pool;
        starts
    }
}

/// A slot below, and the links of the one above it as places in the list of slots.
type SlotWords<'a> = (u32, &'a [u32]);

/// The place of the entry of a level's words, and the slots below with their links; None if they
/// are no level.
fn read(words: &[u32], capacity: usize) -> Option<(usize, Vec<SlotWords<'_>>)> {
    let [count, entry, rest @ ..] = words else {
        return None;
    };
    let (count, mut rest) = (*count, rest);
    let mut slots = Vec::new();
    while let [below, degree, more @ ..] = rest {
        let (links, others) = more.split_at_checked(*degree as usize)?;
        if links.len() > capacity || links.iter().any(|link| *link >= count) {
            return None;
        }
        slots.push((*below, links));
        rest = others;
    }
    let is_whole = rest.is_empty() && slots.len() == count as usize;
    is_whole.then_some((*entry as usize, slots))
}
