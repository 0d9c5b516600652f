//! Spaces that are held in memory, in addition to their files.
//!
//! The committer changes them in the batch that changes the files. So all of their data are as
//! durable as those of other spaces, and are read again at the start; no read of them waits for the
//! disk.
//!
//! A snapshot has to show one moment of all spaces, of those in memory too. Each batch has a number
//! (`journal`), which is part of it and can be read in a snapshot of the engine. The states of the
//! spaces before and after the batch that is being written are stored under such numbers, and the
//! later one is there before the batch is written: it is not looked at until a snapshot shows the
//! number.

mod map;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use map::new_entry_bytes;
pub(super) use map::{MapBuilder, ResidentMap, ResidentRange, entry_bytes};

use super::{EntryBatch, SpaceId};

/// The spaces in memory.
pub(super) struct InMemorySpaces {
    budget_bytes: u64,
    used: Arc<AtomicU64>,
    states: ArcSwap<VersionPair>,
}

/// The last two states, which are one and the same while no batch is written.
#[derive(Clone)]
struct VersionPair {
    older: Arc<SpacesVersion>,
    newer: Arc<SpacesVersion>,
}

/// The spaces as a batch left them.
#[derive(Clone, Default)]
pub(crate) struct SpacesVersion {
    /// The number of the batch.
    number: u64,
    spaces: HashMap<SpaceId, ResidentMap>,
}

impl InMemorySpaces {
    /// No spaces, with room for so many bytes.
    pub(super) fn new(budget_bytes: u64) -> InMemorySpaces {
        let none = Arc::new(SpacesVersion::default());
        InMemorySpaces {
            budget_bytes,
            used: Arc::default(),
            states: ArcSwap::from_pointee(VersionPair {
                older: Arc::clone(&none),
                newer: none,
            }),
        }
    }

    /// Whether there are no spaces in memory.
    pub(super) fn is_empty(&self) -> bool {
        let states = self.states.load();
        states.older.spaces.is_empty() && states.newer.spaces.is_empty()
    }

    /// The newest state. While a batch is written it may be ahead of the disk, so only the thread
    /// that writes may call this.
    pub(super) fn newest(&self) -> Arc<SpacesVersion> {
        Arc::clone(&self.states.load().newer)
    }

    /// The state that belongs to a snapshot in which the last batch has this number; `None` if that
    /// is too long ago.
    pub(super) fn at(&self, number: u64) -> Option<Arc<SpacesVersion>> {
        let states = self.states.load();
        let of = [&states.newer, &states.older];
        of.into_iter().find(|state| state.number <= number).cloned()
    }

    /// Makes the state that a batch with this number leads to, which counts once a snapshot shows
    /// the number. Returns whether the batch changes any space in memory.
    pub(super) fn prepare(&self, number: u64, batch: &EntryBatch) -> bool {
        let older = self.newest();
        let mut changes = batch
            .iter()
            .filter(|(space, ..)| older.spaces.contains_key(space))
            .peekable();
        if changes.peek().is_none() {
            return false;
        }
        let mut newer = SpacesVersion::clone(&older);
        newer.number = number;
        for (space, key, value) in changes {
            if let Some(map) = newer.spaces.get_mut(space) {
                match value {
                    Some(value) => map.put(key.clone(), value.clone()),
                    None => map.remove(key),
                }
            }
        }
        let newer = Arc::new(newer);
        self.states.store(Arc::new(VersionPair { older, newer }));
        true
    }

    /// Lets the state before the last batch go, once that batch is written. Who has taken an older
    /// snapshot meanwhile takes another.
    pub(super) fn settle(&self) {
        self.set(self.newest());
    }

    /// Takes back the state of a batch that was refused.
    pub(super) fn withdraw(&self) {
        let older = Arc::clone(&self.states.load().older);
        self.set(older);
    }

    /// Begins a map whose bytes count.
    pub(super) fn builder(&self) -> MapBuilder {
        MapBuilder::new(&self.used)
    }

    /// Adds a space. Only the thread that writes may call this.
    pub(super) fn add(&self, space: SpaceId, map: ResidentMap) {
        let mut state = SpacesVersion::clone(&self.newest());
        state.spaces.insert(space, map);
        self.set(Arc::new(state));
    }

    /// Drops all spaces. Reads go to the files until they are added again.
    pub(super) fn clear(&self) {
        self.set(Arc::new(SpacesVersion::default()));
    }

    /// Drops a space.
    pub(super) fn drop_space(&self, space: SpaceId) {
        let newest = self.newest();
        if newest.spaces.contains_key(&space) {
            let mut state = SpacesVersion::clone(&newest);
            state.spaces.remove(&space);
            self.set(Arc::new(state));
        }
    }

    fn set(&self, state: Arc<SpacesVersion>) {
        self.states.store(Arc::new(VersionPair {
            older: Arc::clone(&state),
            newer: state,
        }));
    }

    /// Bytes that may be added. Deletions have an eighth of the budget more, as they make room.
    pub(super) fn room_bytes(&self, is_deletion: bool) -> u64 {
        let most = match is_deletion {
            true => self.most_bytes(),
            false => self.budget_bytes,
        };
        most.saturating_sub(self.used_bytes())
    }

    /// Bytes that are held, those included that only readers still hold.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that may be held, deletions included.
    fn most_bytes(&self) -> u64 {
        self.budget_bytes.saturating_add(self.budget_bytes / 8)
    }

    /// Bytes that are read at a start. They are more than what writes may take, as the sweep of a
    /// range deletion may split it without asking for room.
    pub(super) fn start_bytes(&self) -> u64 {
        self.most_bytes().saturating_add(self.budget_bytes / 8)
    }

    /// Bytes that may be held.
    pub(super) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }
}

impl SpacesVersion {
    /// A space; `None` if it is not in memory.
    pub(super) fn space(&self, space: SpaceId) -> Option<&ResidentMap> {
        self.spaces.get(&space)
    }

    /// The ids of the spaces.
    pub(super) fn ids(&self) -> impl Iterator<Item = SpaceId> {
        self.spaces.keys().copied()
    }
}

/// The bytes by which an entry grows a space, with a key of this length and with the lengths of its
/// old and its new value; `None` for none. It may grow it by less.
pub(super) fn growth(key: usize, old: Option<usize>, new: Option<usize>) -> i64 {
    match (old, new) {
        (None, None) => 0,
        (None, Some(new)) => new_entry_bytes(key, new) as i64,
        (Some(old), None) => -(entry_bytes(key, old) as i64),
        (Some(old), Some(new)) => new as i64 - old as i64,
    }
}
