//! A set of ids: pages of 65,536 ids each, which list few ids and have a bit for each of many.

mod page;

use std::ops::{BitAndAssign, BitOrAssign, SubAssign};

use page::{IdPage, Words};

/// Number of ids for each page below which ids are sorted to make a set, and not put into bits.
const SPARSE: usize = 64;

/// A set of dense ids, such as those that a search is restricted to ([`crate::IdFilter::Ids`]).
///
/// A copy of a set takes no time to speak of: it shares the set's pages until one of the two
/// changes.
#[derive(Clone, Debug, Default)]
pub struct IdSet {
    pages: Vec<Option<IdPage>>,
    len: usize,
}

impl IdSet {
    /// The number of ids in the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set has an id.
    pub fn contains(&self, id: u32) -> bool {
        let (page, low) = place(id);
        match self.pages.get(page) {
            Some(Some(page)) => page.contains(low),
            _ => false,
        }
    }

    /// Whether the set has no ids.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an id; false if the set already had it.
    pub fn insert(&mut self, id: u32) -> bool {
        let (page, low) = place(id);
        if page >= self.pages.len() {
            self.pages.resize(page + 1, None);
        }
        let added = match &mut self.pages[page] {
            Some(page) => page.insert(low),
            missing => {
                *missing = IdPage::from_ascending(vec![low]);
                true
            }
        };
        self.len += usize::from(added);
        added
    }

    /// Removes an id; false if the set did not have it.
    pub fn remove(&mut self, id: u32) -> bool {
        let (number, low) = place(id);
        let Some(Some(page)) = self.pages.get_mut(number) else {
            return false;
        };
        let removed = page.remove(low);
        if page.len() == 0 {
            self.pages[number] = None;
        }
        self.len -= usize::from(removed);
        removed
    }

    /// The smallest id in the set that is at least `from`.
    pub fn next_from(&self, from: u32) -> Option<u32> {
        self.iter_from(from).next()
    }

    /// All ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter_from(0)
    }

    fn iter_from(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let (first, first_low) = place(from);
        let pages = self.pages.iter().enumerate().skip(first);
        pages.flat_map(move |(number, page)| {
            let low = if number == first { first_low } else { 0 };
            let ids = page.iter().flat_map(move |page| page.iter_from(low));
            ids.map(move |low| (number as u32) << 16 | u32::from(low))
        })
    }

    /// Number of bytes on the heap. Pages that copies of the set share count in each.
    pub fn memory_bytes(&self) -> usize {
        let of_pages: usize = self.pages.iter().flatten().map(IdPage::memory_bytes).sum();
        self.pages.capacity() * size_of::<Option<IdPage>>() + of_pages
    }

    fn count(&mut self) {
        self.len = self.pages.iter().flatten().map(IdPage::len).sum();
    }
}

/// The page of an id, and the id in the page.
fn place(id: u32) -> (usize, u16) {
    ((id >> 16) as usize, id as u16)
}

/// A set of ids that come in any order, and may repeat.
impl FromIterator<u32> for IdSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> Self {
        let mut ids = Vec::from_iter(ids);
        let pages = ids.iter().max().map_or(0, |last| place(*last).0 + 1);
        let mut set = IdSet {
            pages: vec![None; pages],
            len: 0,
        };
        if ids.len() < SPARSE * pages {
            ids.sort_unstable();
            ids.dedup();
            for ids in ids.chunk_by(|a, b| place(*a).0 == place(*b).0) {
                let lows = ids.iter().map(|id| place(*id).1).collect();
                set.pages[place(ids[0]).0] = IdPage::from_ascending(lows);
            }
        } else {
            let mut bits: Vec<Words> = vec![[0; _]; pages];
            for (page, low) in ids.into_iter().map(place) {
                page::set(&mut bits[page], low);
            }
            set.pages = bits.iter().map(IdPage::from_words).collect();
        }
        set.count();
        set
    }
}

/// Keeps the ids that the other set has too.
impl BitAndAssign<&IdSet> for IdSet {
    fn bitand_assign(&mut self, other: &IdSet) {
        self.pages.truncate(other.pages.len());
        for (page, other) in self.pages.iter_mut().zip(&other.pages) {
            *page = match (&*page, other) {
                (Some(page), Some(other)) => page.intersection(other),
                _ => None,
            };
        }
        self.count();
    }
}

/// Adds the ids of the other set.
impl BitOrAssign<&IdSet> for IdSet {
    fn bitor_assign(&mut self, other: &IdSet) {
        if self.pages.len() < other.pages.len() {
            self.pages.resize(other.pages.len(), None);
        }
        for (page, other) in self.pages.iter_mut().zip(&other.pages) {
            if let Some(other) = other {
                *page = match &*page {
                    Some(page) => page.union(other),
                    None => Some(other.clone()),
                };
            }
        }
        self.count();
    }
}

/// Removes the ids that the other set has.
impl SubAssign<&IdSet> for IdSet {
    fn sub_assign(&mut self, other: &IdSet) {
        for (page, other) in self.pages.iter_mut().zip(&other.pages) {
            if let (Some(ids), Some(other)) = (&*page, other) {
                *page = ids.difference(other);
            }
        }
        self.count();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Ids that crowd the borders of words and pages.
    fn id() -> impl Strategy<Value = u32> {
        prop_oneof![
            0u32..200,
            65_500u32..65_600,
            Just(u32::MAX),
            Just(u32::MAX - 64)
        ]
    }

    /// Ids of two pages: a run that may be too long for a list, and some others.
    fn ids() -> impl Strategy<Value = BTreeSet<u32>> {
        let others = proptest::collection::vec(60_000u32..70_000, 0..200);
        (0u32..70_000, 0u32..5_000, 1usize..4, others).prop_map(|(start, len, step, others)| {
            (start..start + len)
                .step_by(step)
                .chain(others)
                .collect::<BTreeSet<_>>()
        })
    }

    fn assert_equals(set: &IdSet, model: &BTreeSet<u32>) {
        assert_eq!(set.len(), model.len());
        assert!(set.iter().eq(model.iter().copied()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn behaves_as_an_ordered_set(
            steps in proptest::collection::vec((any::<bool>(), id()), 0..200),
            from in id(),
        ) {
            let mut set = IdSet::default();
            let mut model = BTreeSet::new();
            for (add, id) in steps {
                if add {
                    prop_assert_eq!(set.insert(id), model.insert(id));
                } else {
                    prop_assert_eq!(set.remove(id), model.remove(&id));
                }
                prop_assert_eq!(set.contains(id), add);
            }
            prop_assert_eq!(set.next_from(from), model.range(from..).next().copied());
            assert_equals(&set, &model);
        }

        #[test]
        fn sets_are_joined_and_taken_from_each_other(a in ids(), b in ids()) {
            let (set, other) = (IdSet::from_iter(a.clone()), IdSet::from_iter(b.clone()));
            assert_equals(&set, &a);
            let mut both = set.clone();
            both &= &other;
            assert_equals(&both, &(&a & &b));
            let mut either = set.clone();
            either |= &other;
            assert_equals(&either, &(&a | &b));
            let mut first = set.clone();
            first -= &other;
            assert_equals(&first, &(&a - &b));
            assert_equals(&set, &a);
        }

        #[test]
        fn a_copy_keeps_its_ids_while_the_set_changes(before in ids(), after in ids()) {
            let mut set: IdSet = before.iter().rev().copied().collect();
            let copy = set.clone();
            for id in before.difference(&after) {
                prop_assert!(set.remove(*id));
            }
            for id in &after {
                prop_assert_eq!(set.insert(*id), !before.contains(id));
            }
            assert_equals(&set, &after);
            assert_equals(&copy, &before);
        }
    }
}
