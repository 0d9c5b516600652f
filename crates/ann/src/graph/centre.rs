//! The choice of the centre that a new vector's code is taken from ([`crate::codes`]).
//!
//! A vector takes the nearest of the mean and the centres of the neighbours that its walk has
//! found. If the error of its code would still hide which of its neighbours is nearer than another,
//! and these neighbours are much nearer to it than any centre, there is a cluster here that has no
//! centre yet: their middle becomes one. So centres come up where data have clusters, as narrow as
//! they are and in whatever order they come, and nowhere else.
//!
//! The vectors that came before the centre of their cluster have worse codes. They are noted as
//! [outdated](StaleCodes), and later changes give each of them another slot.

use std::collections::{BTreeSet, VecDeque};

use parking_lot::Mutex;

use super::Graph;
use super::pool::CandidatePool;
use super::space::WalkWorkspace;
use crate::codes::{Codebook, ORIGIN};

/// The ranks of two neighbours whose distances have to be distinguished.
const RANKS: (usize, usize) = (4, 16);

/// The share of the difference of these two distances that an error may have. A search measures
/// what it is in doubt of, three errors beyond the last neighbour, and with this share these are as
/// many again as it looks for.
const ERROR_SHARE: f32 = 0.17;

/// The squared distance from a vector to the middle of its neighbours, as a share of that to the
/// last of these: they surround it.
const MIDDLE_SHARE: f32 = 0.55;

/// Factor by which squared lengths must fall for a centre to be worth it.
const GAIN: f32 = 3.0;

/// The bytes of centres are at most this share of those of the blocks.
const BYTES_SHARE: usize = 4;

/// Number of neighbours of a new vector whose codes are looked at.
const LOOKED_AT: usize = 64;

/// The most slots that are noted as outdated at once.
const NOTED_MAX: usize = 1 << 16;

/// Slots whose codes are worse than others from centres that there are now would be. It is no harm
/// if one of them holds something else by now.
#[derive(Debug, Default)]
pub(crate) struct StaleCodes(Mutex<SlotQueue>);

/// Slots in the order in which they were noted, each once.
#[derive(Debug, Default)]
struct SlotQueue {
    queue: VecDeque<u32>,
    all: BTreeSet<u32>,
}

impl StaleCodes {
    fn note(&self, slots: impl Iterator<Item = u32>) {
        let mut noted = self.0.lock();
        for slot in slots {
            if noted.queue.len() < NOTED_MAX && noted.all.insert(slot) {
                noted.queue.push_back(slot);
            }
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of slots.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().queue.len()
    }

    /// Takes one of the slots.
    pub(crate) fn take(&self) -> Option<u32> {
        let mut noted = self.0.lock();
        let slot = noted.queue.pop_front()?;
        noted.all.remove(&slot);
        Some(slot)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let noted = self.0.lock();
        (noted.queue.capacity() + 2 * noted.all.len()) * size_of::<u32>()
    }
}

impl Graph {
    /// The centre for the code of the vector that `space.query` was made of. `space.pool` has what
    /// its walk has found, and `read` gives the vector of a slot.
    ///
    /// # Safety
    /// The epoch is pinned since before the walk.
    pub(super) unsafe fn centre_for(
        &self,
        codebook: &Codebook,
        space: &mut WalkWorkspace,
        read: impl Fn(u32) -> Vec<f32>,
    ) -> u32 {
        let WalkWorkspace { query, pool, .. } = space;
        if !codebook.has_centres() {
            return ORIGIN;
        }
        let (mut centre, mut squared) = (ORIGIN, query.squared_length());
        let mut last = ORIGIN;
        for (_, slot) in pool.iter().take(LOOKED_AT) {
            // SAFETY: the caller's promise.
            let other = unsafe { self.block(slot).meta() }.centre;
            if other != last {
                last = other;
                let from = codebook.squared_from(query, other);
                if from < squared {
                    (centre, squared) = (other, from);
                }
            }
        }
        let (near, far) = RANKS;
        // What has the largest products is no neighbour.
        let distances = pool.distance(near).zip(pool.distance(far));
        let distances = distances.filter(|_| !codebook.links_by_product());
        let mut is_new = false;
        if let Some((nearer, farther)) = distances {
            let error = codebook.error(squared);
            if error > ERROR_SHARE * (farther - nearer) && MIDDLE_SHARE * GAIN * farther < squared {
                let neighbours: Vec<Vec<f32>> =
                    pool.iter().take(far).map(|(_, slot)| read(slot)).collect();
                let neighbours = neighbours.iter().map(Vec::as_slice);
                if let Some(new) = codebook.add_centre(neighbours, self.centres_max(codebook)) {
                    is_new = true;
                    let from = codebook.squared_from(query, new);
                    if from < squared {
                        (centre, squared) = (new, from);
                    }
                }
            }
        }
        // A renewed vector has nothing to say of its neighbours that it had not before.
        if is_new || codebook.centres().len() > 0 && !space.is_renewal {
            let WalkWorkspace { pool, .. } = space;
            self.note_outdated(codebook, pool, squared);
        }
        centre
    }

    /// Notes the neighbours whose codes would be much better from a centre at this squared
    /// distance.
    fn note_outdated(&self, codebook: &Codebook, pool: &CandidatePool, squared: f32) {
        let nearest = pool.iter().take(LOOKED_AT);
        self.outdated.note(nearest.filter_map(|(distance, slot)| {
            let block = self.block(slot);
            // SAFETY: the walk that found the slot has pinned the epoch.
            let meta = unsafe { block.meta() };
            let reachable = squared.max(MIDDLE_SHARE * distance);
            let is_worse = codebook.squared_residual(&meta) > GAIN * reachable;
            (is_worse && !block.is_shared()).then_some(slot)
        }));
    }

    /// The most centres that there may be.
    fn centres_max(&self, codebook: &Codebook) -> usize {
        let blocks = self.slots.end() as usize * self.layout.stride;
        blocks / BYTES_SHARE / codebook.centre_bytes().max(1)
    }
}
