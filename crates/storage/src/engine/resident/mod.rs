//! Spaces that are held in memory, beside their files.
//!
//! The committer changes them in the batch that changes the files. So all of their data are as
//! durable as those of other spaces, and are read again at the start; no read of them waits for the
//! disk.
//!
//! A snapshot has to show one moment of all spaces, of those in memory too. Each batch has a number
//! (`journal`), which is part of it and can be read in a snapshot of the engine. The states of the
//! spaces before and after the last batch that changed them are kept under such numbers, and the
//! later one is there before the batch is written: it is not looked at until a snapshot shows the
//! number.

mod map;

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
pub(super) use map::{ResidentMap, ResidentRange, entry_bytes};

use super::{Batch, Fate, SpaceId};

/// The spaces in memory.
pub(super) struct Resident {
    budget_bytes: u64,
    used: Arc<AtomicU64>,
    states: ArcSwap<States>,
}

/// The last two states.
#[derive(Clone)]
struct States {
    older: Arc<State>,
    newer: Arc<State>,
}

/// The spaces as a batch left them.
#[derive(Clone, Default)]
pub(crate) struct State {
    /// The number of the batch.
    number: u64,
    spaces: HashMap<SpaceId, ResidentMap>,
}

impl Resident {
    /// No spaces, with room for so many bytes.
    pub(super) fn new(budget_bytes: u64) -> Resident {
        let none = Arc::new(State::default());
        Resident {
            budget_bytes,
            used: Arc::default(),
            states: ArcSwap::from_pointee(States {
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
    /// that writes may ask.
    pub(super) fn newest(&self) -> Arc<State> {
        Arc::clone(&self.states.load().newer)
    }

    /// The state that belongs to a snapshot in which the last batch has this number; `None` if that
    /// is too long ago.
    pub(super) fn at(&self, number: u64) -> Option<Arc<State>> {
        let states = self.states.load();
        let of = [&states.newer, &states.older];
        of.into_iter().find(|state| state.number <= number).cloned()
    }

    /// Makes the state that a batch with this number leads to, which counts once a snapshot shows
    /// the number. Returns whether the batch changes any space in memory.
    pub(super) fn prepare(&self, number: u64, batch: &Batch) -> bool {
        let older = self.newest();
        let mut changes = batch
            .iter()
            .filter(|(space, ..)| older.spaces.contains_key(space))
            .peekable();
        if changes.peek().is_none() {
            return false;
        }
        let mut newer = State::clone(&older);
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
        self.states.store(Arc::new(States { older, newer }));
        true
    }

    /// Takes back the state of a batch that was refused.
    pub(super) fn withdraw(&self) {
        let older = Arc::clone(&self.states.load().older);
        self.set(older);
    }

    /// Adds a space with its entries. Only the thread that writes may call this.
    pub(super) fn add(&self, space: SpaceId, entries: impl IntoIterator<Item = (Bytes, Bytes)>) {
        let mut map = ResidentMap::new(&self.used);
        for (key, value) in entries {
            map.put(key, value);
        }
        let mut state = State::clone(&self.newest());
        state.spaces.insert(space, map);
        self.set(Arc::new(state));
    }

    /// Drops a space.
    pub(super) fn drop_space(&self, space: SpaceId) {
        let newest = self.newest();
        if newest.spaces.contains_key(&space) {
            let mut state = State::clone(&newest);
            state.spaces.remove(&space);
            self.set(Arc::new(state));
        }
    }

    /// Drops what no read looks for any more, as the rewriting of files does. The function gives
    /// the fate of each entry of a space.
    pub(super) fn forget(&self, mut fate: impl FnMut(SpaceId, &[u8], &Bytes) -> Fate) {
        let mut state = State::clone(&self.newest());
        for (space, map) in &mut state.spaces {
            let all = map.range((Bound::Unbounded, Bound::Unbounded));
            for (key, value) in all {
                match fate(*space, &key, &value) {
                    Fate::Keep => {}
                    Fate::Remove => map.remove(&key),
                    Fate::Replace(value) => map.put(key, value),
                }
            }
        }
        self.set(Arc::new(state));
    }

    fn set(&self, state: Arc<State>) {
        self.states.store(Arc::new(States {
            older: Arc::clone(&state),
            newer: state,
        }));
    }

    /// Bytes that may be added, if so many more than the budget may be held.
    pub(super) fn room_bytes(&self, more: u64) -> u64 {
        let used = self.used.load(Ordering::Relaxed);
        (self.budget_bytes + more).saturating_sub(used)
    }

    /// Bytes that may be held.
    pub(super) fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }
}

impl State {
    /// A space; `None` if it is not in memory.
    pub(super) fn space(&self, space: SpaceId) -> Option<&ResidentMap> {
        self.spaces.get(&space)
    }
}

/// The bytes by which a change of a space in memory grows it.
pub(super) fn growth(map: &ResidentMap, key: &[u8], value: Option<usize>) -> i64 {
    let bytes = |value: usize| entry_bytes(key.len(), value) as i64;
    let old = map.get(key).map_or(0, |value| bytes(value.len()));
    value.map_or(0, bytes) - old
}
