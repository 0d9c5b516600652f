//! The ids whose rows have one value.

use ann::IdSet;

/// Number of ids for each page of an [`IdSet`] up to which a list is smaller than the set.
const LISTED: usize = 128;

/// The ids whose rows have one value: most values of a nearly unique column have one, and those of
/// a frequent value are ready as a set.
#[derive(Debug)]
pub(crate) enum IdPosting {
    One(u32),
    /// Ids, ascending.
    Few(Vec<u32>),
    Many(Box<IdSet>),
}

impl IdPosting {
    pub const EMPTY: IdPosting = IdPosting::Few(Vec::new());

    pub fn len(&self) -> usize {
        match self {
            IdPosting::One(_) => 1,
            IdPosting::Few(ids) => ids.len(),
            IdPosting::Many(ids) => ids.len(),
        }
    }

    pub fn contains(&self, id: u32) -> bool {
        match self {
            IdPosting::One(one) => *one == id,
            IdPosting::Few(ids) => ids.binary_search(&id).is_ok(),
            IdPosting::Many(ids) => ids.contains(id),
        }
    }

    /// Adds an id; false if it was there already.
    pub fn insert(&mut self, id: u32) -> bool {
        match self {
            IdPosting::One(one) if *one == id => false,
            IdPosting::One(one) => {
                *self = IdPosting::Few(vec![id.min(*one), id.max(*one)]);
                true
            }
            IdPosting::Few(ids) if ids.is_empty() => {
                *self = IdPosting::One(id);
                true
            }
            IdPosting::Few(ids) => {
                let Err(at) = ids.binary_search(&id) else {
                    return false;
                };
                ids.insert(at, id);
                let pages = ids.last().map_or(0, |last| (last >> 16) as usize + 1);
                if ids.len() > LISTED * pages {
                    *self = IdPosting::Many(Box::new(ids.iter().copied().collect()));
                }
                true
            }
            IdPosting::Many(ids) => ids.insert(id),
        }
    }

    /// Removes an id; false if it was not there.
    pub fn remove(&mut self, id: u32) -> bool {
        match self {
            IdPosting::One(one) => {
                let found = *one == id;
                if found {
                    *self = IdPosting::EMPTY;
                }
                found
            }
            IdPosting::Few(ids) => {
                let Ok(at) = ids.binary_search(&id) else {
                    return false;
                };
                ids.remove(at);
                if let [one] = ids[..] {
                    *self = IdPosting::One(one);
                }
                true
            }
            IdPosting::Many(ids) => {
                let removed = ids.remove(id);
                // A quarter of what makes a set, so that the same id may come and go.
                if ids.len() * 4 <= LISTED {
                    *self = IdPosting::Few(ids.iter().collect());
                }
                removed
            }
        }
    }

    /// About how many ids are touched to join them with a set.
    pub fn cost(&self) -> usize {
        match self {
            IdPosting::One(_) => 1,
            IdPosting::Few(ids) => ids.len(),
            // Words of bits are joined, and copies of pages shared.
            IdPosting::Many(ids) => ids.len() / 16,
        }
    }

    /// Number of bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        match self {
            IdPosting::One(_) => 0,
            IdPosting::Few(ids) => ids.capacity() * size_of::<u32>(),
            IdPosting::Many(ids) => size_of::<IdSet>() + ids.memory_bytes(),
        }
    }
}
