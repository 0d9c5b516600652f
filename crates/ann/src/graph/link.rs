//! Linking: a slot finds its neighbours, and they get links to it.

use super::Graph;
use super::reach::Reach;
use super::space::{Candidate, Space};
use crate::codes::Codebook;

/// The alpha of Vamana, for squared distances: a candidate gets no link of its own if it is nearer,
/// by this factor, to a neighbour that is already chosen.
const ALPHA: f32 = 1.2;

/// Number of neighbours that a slot's walk is to find for sure. The walk looks as much farther than
/// the last of them as the build beam is wider than this, and no farther. Real data are built in
/// three quarters of the time of a walk that always fills the beam, to as good a graph.
const WANTED: usize = 32;

/// Number of attempts to become part of a graph whose entry others change at the same time.
const ATTEMPTS_MAX: usize = 16;

impl Graph {
    /// Links a filled slot with its neighbours, so that walks find it. `vector` is what it was
    /// filled with. The walk to its neighbours may meet a slot with the same code. If `joins`
    /// accepts that one instead, it is returned, and this slot has not been linked.
    ///
    /// # Safety
    /// The epoch is pinned, the graph is trained, and the slot is filled and the caller's.
    pub(crate) unsafe fn link(
        &self,
        codebook: &Codebook,
        slot: u32,
        vector: &[f32],
        space: &mut Space,
        joins: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        codebook.prepare_link(vector, self.longest(), &mut space.query);
        // SAFETY: the caller's promise.
        unsafe { self.link_query(codebook, slot, space, joins) }
    }

    /// Links a slot anew by its code, after it has lost its last link.
    ///
    /// # Safety
    /// The epoch is pinned since the slot could be reached, and the slot has a code.
    pub(super) unsafe fn relink(&self, codebook: &Codebook, slot: u32, space: &mut Space) {
        // SAFETY: the caller's promise, for both.
        unsafe {
            self.query_of(codebook, slot, &mut space.query);
            self.link_query(codebook, slot, space, |_| false);
        }
    }

    /// Links a slot with what is near `space.query`, and makes sure that somebody links to it; or
    /// returns an equal slot that `joins` accepts.
    ///
    /// # Safety
    /// As for [`Graph::relink`].
    unsafe fn link_query(
        &self,
        codebook: &Codebook,
        slot: u32,
        space: &mut Space,
        joins: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        for attempt in 0..ATTEMPTS_MAX {
            let entry = self.entry();
            // SAFETY: the caller's promise.
            unsafe { self.walk_for_links(codebook, space) };
            if attempt == 0 {
                self.spread.learn(&space.pool);
                // On later attempts, others may have come by the links of this slot already.
                // SAFETY: as above; what a walk finds has been reached since then.
                let equal = unsafe { self.equals(codebook, slot, space) };
                if let Some(equal) = equal.into_iter().find(|equal| joins(*equal)) {
                    return Some(equal);
                }
            }
            let found = space.pool.iter().filter(|(_, other)| *other != slot);
            let found = found.map(|(distance, slot)| Candidate { distance, slot });
            space.candidates.clear();
            space.candidates.extend(found);
            if space.candidates.is_empty() {
                let living = entry.filter(|entry| !self.block(*entry).is_dead());
                match living {
                    Some(entry) if entry != slot => {
                        // Everything is farther away than floats can say.
                        let distance = f32::MAX;
                        let slot = entry;
                        space.candidates.push(Candidate { distance, slot });
                    }
                    // The slot is the first, or the last that is left.
                    _ if entry == Some(slot) || self.enter_by(entry, slot) => return None,
                    _ => continue,
                }
            }
            // SAFETY: the caller's promise; what a walk finds has been reached since then.
            unsafe { self.link_with_candidates(codebook, slot, space) };
            if !self.block(slot).is_orphan() {
                return None;
            }
        }
        None
    }

    /// Walks to `space.query`, and leaves the slots that may become its links in `space.pool`.
    ///
    /// # Safety
    /// As for [`Graph::walk`].
    unsafe fn walk_for_links(&self, codebook: &Codebook, space: &mut Space) {
        let width = self.build_beam;
        let wanted = WANTED.min(width);
        let error = codebook.error(space.query.squared_length());
        let reach = self.spread.reach(wanted, width);
        let reach = reach.unwrap_or(Reach::UNLIMITED).blurred(error);
        // SAFETY: the caller's promise.
        unsafe { self.walk(codebook, reach, width, wanted, space) };
    }

    /// Makes a slot the entry if `before` still is.
    fn enter_by(&self, before: Option<u32>, slot: u32) -> bool {
        let entered = self.change_entry(before, Some(slot));
        if entered && self.block(slot).is_dead() {
            self.leave_entry(slot);
        }
        entered
    }

    /// The slots in `space.pool` whose codes are equal to that of a slot.
    ///
    /// # Safety
    /// The epoch is pinned since all of them could be reached, and they have codes.
    unsafe fn equals(&self, codebook: &Codebook, slot: u32, space: &mut Space) -> Vec<u32> {
        let Space {
            query, batch, pool, ..
        } = space;
        // SAFETY: the caller's promise.
        let own = unsafe { self.measure(codebook, std::iter::once(slot), query, batch) };
        let Some((_, own)) = own.last() else {
            return Vec::new();
        };
        // Equal codes are equally far from anything.
        let as_far = pool.iter().filter(|&(distance, _)| distance == own);
        let block = self.block(slot);
        as_far
            .map(|(_, other)| other)
            .filter(|&other| other != slot)
            // SAFETY: the caller's promise.
            .filter(|&other| unsafe {
                let other = self.block(other);
                other.meta() == block.meta() && other.code() == block.code()
            })
            .collect()
    }

    /// Links a slot with the best of `space.candidates`, which are sorted, and these with the slot.
    ///
    /// # Safety
    /// As for [`Graph::relink`]; the candidates have been reached since the epoch was pinned.
    unsafe fn link_with_candidates(&self, codebook: &Codebook, slot: u32, space: &mut Space) {
        let others: Vec<u32> = space.candidates.iter().map(|found| found.slot).collect();
        // SAFETY: the caller's promise.
        unsafe { self.choose(codebook, self.degree, space) };
        let chosen = space.chosen.clone();
        self.set_first_links(slot, &chosen);
        for &other in &chosen {
            // SAFETY: the caller's promise.
            unsafe { self.add_link(codebook, other, slot, space) };
        }
        // The chosen slots may have died meanwhile, or have had no room for another last link.
        for other in others {
            if !self.block(slot).is_orphan() {
                return;
            }
            if chosen.contains(&other) {
                continue;
            }
            // SAFETY: the caller's promise.
            unsafe { self.add_link(codebook, other, slot, space) };
        }
    }

    /// Gives a slot its links if it has none.
    fn set_first_links(&self, slot: u32, chosen: &[u32]) {
        let mut links = self.block(slot).lock();
        if links.degree() == 0 {
            chosen
                .iter()
                .for_each(|&other| self.block(other).gain_link());
            links.replace(chosen.iter().copied());
        }
    }

    /// Adds a link from one slot to another. A slot with too many links chooses among them.
    ///
    /// # Safety
    /// The epoch is pinned since both slots could be reached.
    pub(super) unsafe fn add_link(
        &self,
        codebook: &Codebook,
        from: u32,
        to: u32,
        space: &mut Space,
    ) {
        let mut links = self.block(from).lock();
        if links.is_dead() || links.iter().any(|link| link == to) {
            return;
        }
        if !links.is_full() {
            self.block(to).gain_link();
            links.push(to);
            return;
        }
        // SAFETY: the caller's promise; what a slot that is not dead links to can be reached.
        unsafe {
            self.query_of(codebook, from, &mut space.pair);
            let others = links.iter().chain([to]);
            let measured = self.measure(codebook, others, &mut space.pair, &mut space.batch);
            space.candidates.clear();
            let candidate = |(slot, distance)| Candidate { distance, slot };
            space.candidates.extend(measured.map(candidate));
            space.candidates.sort_unstable_by(Candidate::compare);
            self.choose(codebook, self.degree, space);
        }
        self.block(to).gain_link();
        // Of those not chosen, slots without another link stay, the nearest first, while there is
        // room.
        let capacity = self.layout.capacity;
        for index in 0..space.candidates.len() {
            let other = space.candidates[index].slot;
            if space.chosen.contains(&other) || self.block(other).lose_link() {
                continue;
            }
            if space.chosen.len() == capacity && !self.make_room(space) {
                self.block(other).lose_any_link();
                continue;
            }
            space.chosen.push(other);
        }
        links.replace(space.chosen.iter().copied());
    }

    /// Takes out the farthest chosen slot that can do without this link; false if there is none.
    fn make_room(&self, space: &mut Space) -> bool {
        let can_go = |slot: &u32| self.block(*slot).lose_link();
        let farthest = space.chosen.iter().rposition(can_go);
        if let Some(at) = farthest {
            space.chosen.remove(at);
        }
        farthest.is_some()
    }

    /// Chooses up to `degree` of `space.candidates`, which are sorted, and leaves them in
    /// `space.chosen`. Each is nearer to the slot in question than, by [`ALPHA`], to any chosen
    /// before it (the robust prune of Vamana). The candidates stay as they are.
    ///
    /// # Safety
    /// The epoch is pinned since the candidates could be reached.
    unsafe fn choose(&self, codebook: &Codebook, degree: usize, space: &mut Space) {
        let Space {
            candidates,
            chosen,
            pair,
            batch,
            left,
            ..
        } = space;
        chosen.clear();
        left.clear();
        left.extend_from_slice(candidates);
        let mut next = 0;
        while chosen.len() < degree
            && let Some(&Candidate { slot, .. }) = left.get(next)
        {
            chosen.push(slot);
            next += 1;
            if next == left.len() || chosen.len() == degree {
                break;
            }
            // SAFETY: the caller's promise.
            unsafe {
                self.query_of(codebook, slot, pair);
                let rest = left[next..].iter().map(|candidate| candidate.slot);
                let mut measured = self.measure(codebook, rest, pair, batch);
                let mut kept = next;
                for at in next..left.len() {
                    let candidate = left[at];
                    let Some((_, between)) = measured.next() else {
                        break;
                    };
                    if ALPHA * between > candidate.distance {
                        left[kept] = candidate;
                        kept += 1;
                    }
                }
                drop(measured);
                left.truncate(kept);
            }
        }
    }

    /// Whether a candidate is nearer to a slot than, by [`ALPHA`], to any that the slot links to.
    ///
    /// # Safety
    /// The epoch is pinned since all of them could be reached.
    pub(super) unsafe fn is_worth_a_link(
        &self,
        codebook: &Codebook,
        candidate: Candidate,
        links: impl Iterator<Item = u32>,
        space: &mut Space,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            self.query_of(codebook, candidate.slot, &mut space.pair);
            let mut measured = self.measure(codebook, links, &mut space.pair, &mut space.batch);
            measured.all(|(_, between)| ALPHA * between > candidate.distance)
        }
    }
}

impl Candidate {
    /// Nearest first, and by slot among equals, so that a build is repeatable.
    pub(super) fn compare(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
        let by_distance = a.distance.total_cmp(&b.distance);
        by_distance.then(a.slot.cmp(&b.slot))
    }
}
