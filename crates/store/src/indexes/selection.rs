//! The keys of an index under their lock, and long looks at them that let writers in.
//!
//! A filtered search checks for thousands of ids whether their rows satisfy the filter. If it held
//! the lock all that time, a writer would wait for it, and every other search for the writer. So a
//! [`RowSelection`] gives the lock up as soon as a writer waits, and takes it again.

#![expect(
    clippy::disallowed_methods,
    reason = "`self_cell` forgets the guard of what it has made whole"
)]

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use filter_columns::{Conjunction, FilterCondition, IdSet};
use self_cell::self_cell;

use crate::filter::SearchFilter;
use crate::keys::KeyTable;

/// The part of all rows that may satisfy a filter if their ids are to be found first: one in this
/// many.
const FEW_SHARE: usize = 4;

/// The number of rows that are looked at before a writer is let in.
const LOOKS: u32 = 64;

/// The keys of an index, under a lock that knows whether a writer waits.
pub(crate) struct SharedKeys {
    table: RwLock<KeyTable>,
    writers: AtomicUsize,
}

/// The rows of an index that a search may find. They may change while it looks.
pub(super) struct RowSelection<'a> {
    keys: &'a SharedKeys,
    filter: Option<&'a SearchFilter>,
    now_s: u32,
    /// Whether writers are let in.
    is_open: bool,
    held: RefCell<Option<LockedConjunction<'a>>>,
    looks: Cell<u32>,
}

/// The keys, locked, and the conditions that are looked up in them.
struct LockedKeys<'a> {
    keys: RwLockReadGuard<'a, KeyTable>,
    conditions: &'a [FilterCondition],
}

self_cell!(
    struct LockedConjunction<'a> {
        owner: LockedKeys<'a>,

        #[covariant]
        dependent: Conjunction,
    }
);

impl SharedKeys {
    /// Shares a table of keys.
    pub(crate) fn new(table: KeyTable) -> SharedKeys {
        SharedKeys {
            table: RwLock::new(table),
            writers: AtomicUsize::new(0),
        }
    }

    /// The keys, for reading.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, KeyTable> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys, for writing.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, KeyTable> {
        // Counted while it waits, so that long looks at the keys let it in.
        self.writers.fetch_add(1, Ordering::Relaxed);
        let table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        self.writers.fetch_sub(1, Ordering::Relaxed);
        table
    }
}

impl<'a> RowSelection<'a> {
    /// The rows that have not expired by `now_s`, in seconds since the epoch, and satisfy the
    /// filter. If the selection is not open, it stays as it is, and writers wait for its end.
    pub(super) fn new(
        keys: &'a SharedKeys,
        filter: Option<&'a SearchFilter>,
        now_s: u32,
        is_open: bool,
    ) -> RowSelection<'a> {
        RowSelection {
            keys,
            filter,
            now_s,
            is_open,
            held: RefCell::default(),
            looks: Cell::new(0),
        }
    }

    /// The ids of the rows if they are few, some of which may not satisfy the filter any more;
    /// `None` if asking one by one is faster.
    pub(super) fn few(&self) -> Option<IdSet> {
        let filter = self.filter?;
        let of_partitions = self.with(|keys, _| filter.of_partitions(keys));
        if let Some(ids) = of_partitions {
            return Some(ids.into_iter().filter(|id| self.admits(*id)).collect());
        }
        if !filter.is_plain() {
            return self.few_by_parts(filter);
        }
        if self.conditions().is_empty() {
            return None;
        }
        let selected = self.with(|keys, conjunction| {
            let few = FEW_SHARE * conjunction.estimate() <= keys.len();
            few.then(|| conjunction.select())
        })?;
        let shows = |id: &u32| self.look_at(|keys, _| self.shows(keys, *id));
        Some(selected.iter().filter(shows).collect())
    }

    /// The ids of all of these rows, some of which may not be among them any more.
    pub(super) fn all(&self) -> IdSet {
        if let Some(filter) = self.filter {
            let of_partitions = self.with(|keys, _| filter.of_partitions(keys));
            if let Some(ids) = of_partitions {
                return ids.into_iter().filter(|id| self.admits(*id)).collect();
            }
            if !self.conditions().is_empty() {
                let selected = self.with(|_, conjunction| conjunction.select());
                return selected.iter().filter(|id| self.admits(*id)).collect();
            }
        }
        let end = self.with(|keys, _| u32::try_from(keys.ids()).unwrap_or(u32::MAX));
        (0..end).filter(|id| self.admits(*id)).collect()
    }

    /// As [`RowSelection::few`], where the filter has parts that are made of others or on words.
    fn few_by_parts(&self, filter: &SearchFilter) -> Option<IdSet> {
        let has_conditions = !self.conditions().is_empty();
        let selected = self.with(|keys, conjunction| {
            let by_conditions = has_conditions.then(|| conjunction.estimate());
            let by_parts = filter.estimate(keys);
            let fewest = [by_conditions, by_parts].into_iter().flatten().min()?;
            if FEW_SHARE * fewest > keys.len() {
                return None;
            }
            match by_conditions == Some(fewest) {
                true => Some(conjunction.select()),
                false => filter.select(keys),
            }
        })?;
        Some(selected.iter().filter(|id| self.admits(*id)).collect())
    }

    /// Whether the row of an id is one of these now.
    pub(super) fn admits(&self, id: u32) -> bool {
        self.look_at(|keys, conjunction| {
            let has_conditions = !self.conditions().is_empty();
            self.shows(keys, id) && (!has_conditions || conjunction.matches(id))
        })
    }

    /// Looks at the encoded key of a row; `None` if it has none any more.
    pub(super) fn with_key<T>(&self, id: u32, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.look_at(|keys, _| keys.key(id).map(look))
    }

    /// Takes the lock now, if it is not held. Without open writers it is held to the end.
    pub(super) fn hold(&self) {
        self.with(|_, _| ());
    }

    /// Looks at the keys, which stay as they are meanwhile, and at the rows that are selected.
    pub(super) fn at_once<T>(&self, look: impl FnOnce(&KeyTable, &dyn Fn(u32) -> bool) -> T) -> T {
        let has_conditions = !self.conditions().is_empty();
        self.with(|keys, conjunction| {
            let admits = |id| self.shows(keys, id) && (!has_conditions || conjunction.matches(id));
            look(keys, &admits)
        })
    }

    /// Whether the row of an id can be found, and satisfies all but the filter's conditions.
    fn shows(&self, keys: &KeyTable, id: u32) -> bool {
        keys.found(id, self.now_s).is_some()
            && self
                .filter
                .is_none_or(|filter| filter.checks_hold(keys, id))
    }

    fn conditions(&self) -> &'a [FilterCondition] {
        self.filter.map_or(&[], SearchFilter::conditions)
    }

    /// Looks at one of many rows. Now and then it lets a writer in that waits.
    fn look_at<T>(&self, look: impl FnOnce(&KeyTable, &Conjunction<'_>) -> T) -> T {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        if looks.is_multiple_of(LOOKS) && self.keys.writers.load(Ordering::Relaxed) > 0 {
            self.let_writers_in();
        }
        self.with(look)
    }

    /// Gives the lock up until the rows are looked at again.
    pub(super) fn let_writers_in(&self) {
        if self.is_open {
            self.held.take();
        }
    }

    /// Looks at the keys and at the filter's conditions in them, under the lock.
    fn with<T>(&self, look: impl FnOnce(&KeyTable, &Conjunction<'_>) -> T) -> T {
        let mut held = self.held.borrow_mut();
        let held = held.get_or_insert_with(|| {
            let locked = LockedKeys {
                keys: self.keys.read(),
                conditions: self.conditions(),
            };
            LockedConjunction::new(locked, |locked| {
                locked.keys.filters().resolve(locked.conditions)
            })
        });
        held.with_dependent(|locked, conjunction| look(&locked.keys, conjunction))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::indexes::tests::identity;
    use crate::items::IndexedRows;

    /// The keys of one row, whose id is 0.
    fn one_row() -> SharedKeys {
        let schema = identity("idx").keys;
        let keys = SharedKeys::new(IndexedRows::key_table(&schema));
        keys.write().insert(0, schema.encode([b"0".as_slice()]));
        keys
    }

    #[test]
    fn a_writer_is_let_in_while_rows_are_looked_at() {
        let keys = one_row();
        let selection = RowSelection::new(&keys, None, 0, true);
        assert!(selection.admits(0));
        std::thread::scope(|scope| {
            scope.spawn(|| keys.write().remove(0));
            let began = Instant::now();
            while selection.admits(0) {
                assert!(began.elapsed() < Duration::from_secs(60), "nobody came in");
            }
        });
    }

    #[test]
    fn a_selection_that_is_not_open_stays_as_it_is() {
        let keys = one_row();
        let selection = RowSelection::new(&keys, None, 0, false);
        assert!(selection.admits(0));
        std::thread::scope(|scope| {
            scope.spawn(|| keys.write().remove(0));
            while keys.writers.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            assert!((0..10 * LOOKS).all(|_| selection.admits(0)));
            drop(selection);
        });
        assert!(!RowSelection::new(&keys, None, 0, true).admits(0));
    }
}
