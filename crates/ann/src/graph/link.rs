//! Linking: a slot finds its neighbours, and they get links to it.

use super::Graph;
use super::reach::WalkReach;
use super::space::{LinkCandidate, WalkWorkspace};
use super::upper_level::LINK_WIDTHS;
use crate::codes::{Codebook, squared_norm};

/// The alpha of Vamana, for squared distances: a candidate gets no link of its own if it is nearer,
/// by this factor, to a neighbour that is already chosen.
const ALPHA: f32 = 1.2;

/// One in so many links is taken at least, even if all lead in one direction: where a new cluster
/// begins, its first slots are found only by these links.
const LEAST_SHARE: usize = 4;

/// Number of neighbours that a slot's walk is to find for sure. The walk looks as much farther than
/// the last of them as the build beam is wider than this, and no farther. Real data are built in
/// three quarters of the time of a walk that always fills the beam, to as good a graph.
const WANTED: usize = 32;

/// Number of deviations by which the estimate of an equal vector may be off.
const EQUALS_WITHIN: f32 = 4.0;

/// Number of attempts to become part of a graph whose entry others change at the same time.
const ATTEMPTS_MAX: usize = 16;

/// A slot that is on its way into the graph.
pub(crate) struct NewSlot<'a, J, R> {
    pub slot: u32,
    /// The id that the slot is for.
    pub id: u32,
    /// The vector that its code is made of.
    pub vector: &'a [f32],
    /// Lets the id have another slot instead, if that has the same vector; false if it has not.
    pub joins: J,
    /// Reads the vector of a slot.
    pub read: R,
}

impl Graph {
    /// Fills a slot and links it with its neighbours, so that walks find it. The walk to its
    /// neighbours may meet a slot that seems to have the same vector. If `joins` accepts that one
    /// instead, it is returned, and this slot has not been linked.
    ///
    /// # Safety
    /// The epoch is pinned, the graph is trained, and there is room for the slot, which is the
    /// caller's.
    pub(crate) unsafe fn link<J, R>(
        &self,
        codebook: &Codebook,
        new: NewSlot<'_, J, R>,
        space: &mut WalkWorkspace,
    ) -> Option<u32>
    where
        J: Fn(u32) -> bool,
        R: Fn(u32) -> Vec<f32>,
    {
        let NewSlot {
            slot,
            id,
            vector,
            joins,
            read,
        } = new;
        let raw_norm = squared_norm(vector);
        codebook.prepare_link(vector, &mut space.query);
        // SAFETY: the caller's promise; what a walk finds has been reached since then.
        unsafe {
            self.walk_for_links(codebook, space);
            if !codebook.links_by_product() {
                self.spread.learn(|rank| space.pool.distance(rank));
            }
            // Before the slot is filled, which a slot with the same vector makes needless.
            let equal = self.seemingly_equal(codebook, raw_norm, space);
            if let Some(equal) = equal.into_iter().find(|equal| joins(*equal)) {
                return Some(equal);
            }
            let centre = self.centre_for(codebook, space, read);
            self.fill(slot, id, (vector, centre), space);
            self.link_found(codebook, slot, space);
            if let Some(upper) = &self.upper {
                upper.link(codebook, slot, (vector, centre), space);
            }
        }
        None
    }

    /// Links a slot again by its code, after it has lost its last link.
    ///
    /// # Safety
    /// The epoch is pinned since the slot could be reached, and the slot has a code.
    pub(super) unsafe fn relink(&self, codebook: &Codebook, slot: u32, space: &mut WalkWorkspace) {
        // SAFETY: the caller's promise, for both.
        unsafe {
            self.query_of(codebook, slot, &mut space.query);
            self.walk_for_links(codebook, space);
            self.link_found(codebook, slot, space);
        }
    }

    /// Links a slot with what its walk has found, and makes sure that some slot links to it.
    ///
    /// # Safety
    /// As for [`Graph::relink`].
    pub(super) unsafe fn link_found(
        &self,
        codebook: &Codebook,
        slot: u32,
        space: &mut WalkWorkspace,
    ) {
        for attempt in 0..ATTEMPTS_MAX {
            // Read first, so that `enter_by` fails if another slot becomes the entry meanwhile.
            let entry = self.entry();
            if attempt > 0 {
                // SAFETY: the caller's promise.
                unsafe { self.walk_for_links(codebook, space) };
            }
            let found = space.pool.iter().filter(|(_, other)| *other != slot);
            let found = found.map(|(distance, slot)| LinkCandidate { distance, slot });
            space.candidates.clear();
            space.candidates.extend(found);
            if space.candidates.is_empty() {
                let living = entry.filter(|entry| !self.block(*entry).is_dead());
                match living {
                    Some(entry) if entry != slot => {
                        // Everything is farther away than floats can say.
                        let distance = f32::MAX;
                        let slot = entry;
                        space.candidates.push(LinkCandidate { distance, slot });
                    }
                    // The slot is the first, or the last that is left.
                    _ if entry == Some(slot) || self.enter_by(entry, slot) => return,
                    _ => continue,
                }
            }
            // SAFETY: the caller's promise; what a walk finds has been reached since then.
            unsafe { self.link_with_candidates(codebook, slot, space) };
            if !self.block(slot).is_orphan() {
                return;
            }
        }
    }

    /// Walks to `space.query`, and leaves the slots that may become its links in `space.pool`.
    ///
    /// # Safety
    /// As for [`Graph::walk`].
    pub(super) unsafe fn walk_for_links(&self, codebook: &Codebook, space: &mut WalkWorkspace) {
        let width = self.build_beam;
        space.widths = LINK_WIDTHS;
        let wanted = WANTED.min(width);
        let reach = self.spread.reach(wanted, width);
        let reach = reach.unwrap_or(WalkReach::unlimited(wanted));
        // SAFETY: the caller's promise.
        unsafe { self.walk(codebook, reach, (width, width), wanted, space) };
    }

    /// Makes a slot the entry if `before` still is.
    fn enter_by(&self, before: Option<u32>, slot: u32) -> bool {
        let entered = self.change_entry(before, Some(slot));
        // Who killed the slot may have looked at the entry before it was this slot.
        if entered && self.block(slot).is_dead() {
            self.leave_entry(slot);
        }
        entered
    }

    /// The slots in `space.pool` whose vectors may be equal to that of `space.query`, which has the
    /// squared length `raw_norm`: no farther than estimates err, and as long.
    ///
    /// # Safety
    /// The epoch is pinned since all of them could be reached.
    unsafe fn seemingly_equal(
        &self,
        codebook: &Codebook,
        raw_norm: f32,
        space: &mut WalkWorkspace,
    ) -> Vec<u32> {
        let WalkWorkspace { query, pool, .. } = space;
        let mut equal = Vec::new();
        for (distance, slot) in pool.iter() {
            // SAFETY: the caller's promise.
            let meta = unsafe { self.block(slot).meta() };
            let distance = codebook.squared_distance(query, distance, &meta);
            let is_near = distance <= EQUALS_WITHIN * codebook.deviation(query, &meta);
            if !is_near && !codebook.links_by_product() {
                break;
            }
            if is_near && codebook.is_as_long(&meta, raw_norm) {
                equal.push(slot);
            }
        }
        equal
    }

    /// Links a slot with the best of `space.candidates`, which are sorted, and these with the slot.
    ///
    /// # Safety
    /// As for [`Graph::relink`]; the candidates have been reached since the epoch was pinned.
    unsafe fn link_with_candidates(
        &self,
        codebook: &Codebook,
        slot: u32,
        space: &mut WalkWorkspace,
    ) {
        // Copied, as `add_link` uses the same space for its own choice.
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
        // A slot that is linked again has links, and one that others have found meanwhile may have
        // some.
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
        space: &mut WalkWorkspace,
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
            let candidate = |(slot, distance)| LinkCandidate { distance, slot };
            space.candidates.extend(measured.map(candidate));
            space.candidates.sort_unstable_by(LinkCandidate::compare);
            self.choose(codebook, self.degree, space);
        }
        // The new link counts first. If the slot was not chosen, the loop takes it back.
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
    fn make_room(&self, space: &mut WalkWorkspace) -> bool {
        let can_go = |slot: &u32| self.block(*slot).lose_link();
        let farthest = space.chosen.iter().rposition(can_go);
        if let Some(at) = farthest {
            space.chosen.remove(at);
        }
        farthest.is_some()
    }

    /// Chooses up to `degree` of `space.candidates`, which are sorted, and leaves them in
    /// `space.chosen`. First come those that are nearer to the slot in question than to any chosen
    /// before them: they lead in all directions, out of a cluster too (the heuristic of HNSW). Then
    /// the nearest of the others, as long as they are not nearer, by [`ALPHA`], to one of the first
    /// (the robust prune of Vamana). The candidates stay as they are.
    ///
    /// # Safety
    /// The epoch is pinned since the candidates could be reached.
    unsafe fn choose(&self, codebook: &Codebook, degree: usize, space: &mut WalkWorkspace) {
        let WalkWorkspace {
            candidates,
            chosen,
            pair,
            batch,
            left,
            spare,
            pruned,
            ..
        } = space;
        chosen.clear();
        spare.clear();
        pruned.clear();
        left.clear();
        left.extend_from_slice(candidates);
        let alpha = alpha(codebook);
        let mut next = 0;
        while chosen.len() < degree
            && let Some(&LinkCandidate { slot, .. }) = left.get(next)
        {
            chosen.push(slot);
            next += 1;
            if next == left.len() || chosen.len() == degree {
                break;
            }
            // SAFETY: the caller's promise.
            unsafe {
                self.query_of(codebook, slot, pair);
                let rest = spare.iter().chain(&left[next..]);
                let rest = rest.map(|candidate| candidate.slot);
                let mut measured = self.measure(codebook, rest, pair, batch);
                let mut stays = |candidate: &LinkCandidate, alpha: f32| {
                    let (_, between) = measured.next()?;
                    Some((alpha * between > candidate.distance, between))
                };
                spare.retain(|candidate| {
                    let stays = stays(candidate, alpha).is_some_and(|(stays, _)| stays);
                    if !stays {
                        pruned.push(*candidate);
                    }
                    stays
                });
                let mut kept = next;
                for at in next..left.len() {
                    let candidate = left[at];
                    match stays(&candidate, 1.0) {
                        Some((true, _)) => {
                            left[kept] = candidate;
                            kept += 1;
                        }
                        Some((false, between)) if alpha * between > candidate.distance => {
                            spare.push(candidate);
                        }
                        _ => pruned.push(candidate),
                    }
                }
                left.truncate(kept);
            }
        }
        let mut fill = |others: &mut Vec<LinkCandidate>, up_to: usize| {
            others.sort_unstable_by(LinkCandidate::compare);
            let room = up_to.saturating_sub(chosen.len());
            chosen.extend(others.iter().take(room).map(|candidate| candidate.slot));
        };
        // The upper level is all about ways from cluster to cluster.
        if self.upper.is_some() {
            fill(spare, degree);
        } else {
            pruned.append(spare);
        }
        fill(pruned, degree / LEAST_SHARE);
    }

    /// Whether a candidate is nearer to a slot than, by [`ALPHA`], to any that the slot links to.
    ///
    /// # Safety
    /// The epoch is pinned since all of them could be reached.
    pub(super) unsafe fn is_worth_a_link(
        &self,
        codebook: &Codebook,
        candidate: LinkCandidate,
        links: impl Iterator<Item = u32>,
        space: &mut WalkWorkspace,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            self.query_of(codebook, candidate.slot, &mut space.pair);
            let mut measured = self.measure(codebook, links, &mut space.pair, &mut space.batch);
            let alpha = alpha(codebook);
            measured.all(|(_, between)| alpha * between > candidate.distance)
        }
    }
}

/// The factor by which a candidate has to be nearer: products are no distances, and have none.
fn alpha(codebook: &Codebook) -> f32 {
    match codebook.links_by_product() {
        true => 1.0,
        false => ALPHA,
    }
}

impl LinkCandidate {
    /// Nearest first, and by slot among equals, so that a build is repeatable.
    pub(super) fn compare(a: &LinkCandidate, b: &LinkCandidate) -> std::cmp::Ordering {
        let by_distance = a.distance.total_cmp(&b.distance);
        by_distance.then(a.slot.cmp(&b.slot))
    }
}
