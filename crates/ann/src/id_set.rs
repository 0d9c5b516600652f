//! A set of ids: a bit for each, in pages that exist where ids do.

/// Number of words in a page.
const WORDS: usize = 1024;
/// Number of ids in a page: 8 KiB of bits.
const PAGE: usize = WORDS * 64;

/// A set of dense ids, such as those that a search is restricted to ([`crate::Filter::Ids`]).
#[derive(Debug, Default)]
pub struct IdSet {
    pages: Vec<Option<Box<[u64; WORDS]>>>,
    len: usize,
}

impl IdSet {
    /// The number of ids in the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set has an id.
    pub fn contains(&self, id: u32) -> bool {
        let (page, word, bit) = place(id);
        match self.pages.get(page) {
            Some(Some(words)) => words[word] & bit != 0,
            _ => false,
        }
    }

    /// Whether the set has no ids.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an id; false if the set already had it.
    pub fn insert(&mut self, id: u32) -> bool {
        let (page, word, bit) = place(id);
        if page >= self.pages.len() {
            self.pages.resize(page + 1, None);
        }
        let words = self.pages[page].get_or_insert_with(|| Box::new([0; WORDS]));
        let added = words[word] & bit == 0;
        words[word] |= bit;
        self.len += usize::from(added);
        added
    }

    /// Removes an id; false if the set did not have it.
    pub fn remove(&mut self, id: u32) -> bool {
        let (page, word, bit) = place(id);
        let Some(Some(words)) = self.pages.get_mut(page) else {
            return false;
        };
        let removed = words[word] & bit != 0;
        words[word] &= !bit;
        self.len -= usize::from(removed);
        removed
    }

    /// The smallest id in the set that is at least `from`.
    pub fn next_from(&self, from: u32) -> Option<u32> {
        let (first_page, first_word, bit) = place(from);
        let mut word = first_word;
        // Of the first word only the bits from `from` on count.
        let mut mask = !(bit - 1);
        for (page, words) in self.pages.iter().enumerate().skip(first_page) {
            if let Some(words) = words {
                for (index, &bits) in words.iter().enumerate().skip(word) {
                    let bits = bits & mask;
                    mask = !0;
                    if bits != 0 {
                        let id = page * PAGE + index * 64 + bits.trailing_zeros() as usize;
                        return u32::try_from(id).ok();
                    }
                }
            }
            (word, mask) = (0, !0);
        }
        None
    }

    /// All ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let id = self.next_from(next?)?;
            next = id.checked_add(1);
            Some(id)
        })
    }

    /// Number of bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count();
        self.pages.capacity() * size_of::<Option<Box<[u64; WORDS]>>>()
            + pages * size_of::<[u64; WORDS]>()
    }
}

/// The page of an id, its word in the page, and its bit in the word.
fn place(id: u32) -> (usize, usize, u64) {
    let id = id as usize;
    (id / PAGE, id % PAGE / 64, 1 << (id % 64))
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
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!(set.next_from(from), model.range(from..).next().copied());
            prop_assert!(set.iter().eq(model.iter().copied()));
        }
    }
}
