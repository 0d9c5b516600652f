//! The ids of a set that share their upper 16 bits, by their lower 16 bits.

use std::sync::Arc;

/// Number of words in the bits of a page.
const WORDS: usize = 1024;
/// Most ids that a page lists. As bits they take 4 bytes each, and more if there are fewer.
const MOST_LISTED: usize = 2048;

/// A bit for each id of a page: 8 KiB.
pub(super) type Words = [u64; WORDS];

/// The ids of a page, at least one. Copies of a set share their pages until one of them changes.
#[derive(Clone, Debug)]
pub(super) enum IdPage {
    /// The ids, ascending.
    Listed(Arc<Vec<u16>>),
    /// A bit for each id.
    Bits {
        words: Arc<Words>,
        /// The number of bits that are set.
        len: u32,
    },
}

impl IdPage {
    /// A page of these ids, which ascend; `None` if there are none.
    pub fn from_ascending(ids: Vec<u16>) -> Option<IdPage> {
        if ids.len() > MOST_LISTED {
            let mut words = [0; WORDS];
            ids.into_iter().for_each(|id| set(&mut words, id));
            return IdPage::from_words(&words);
        }
        (!ids.is_empty()).then(|| IdPage::Listed(Arc::new(ids)))
    }

    /// A page of the ids whose bits are set; `None` if none is.
    pub fn from_words(words: &Words) -> Option<IdPage> {
        let len = words.iter().map(|word| word.count_ones()).sum();
        match len as usize {
            0 => None,
            len if len <= MOST_LISTED => {
                let mut ids = Vec::with_capacity(len);
                ids.extend(SetBits::from(words, 0));
                Some(IdPage::Listed(Arc::new(ids)))
            }
            _ => Some(IdPage::Bits {
                words: Arc::new(*words),
                len,
            }),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            IdPage::Listed(ids) => ids.len(),
            IdPage::Bits { len, .. } => *len as usize,
        }
    }

    pub fn contains(&self, id: u16) -> bool {
        match self {
            IdPage::Listed(ids) => ids.binary_search(&id).is_ok(),
            IdPage::Bits { words, .. } => is_set(words, id),
        }
    }

    /// Adds an id; false if the page already had it.
    pub fn insert(&mut self, id: u16) -> bool {
        match self {
            IdPage::Listed(ids) => {
                let Err(at) = ids.binary_search(&id) else {
                    return false;
                };
                let ids = Arc::make_mut(ids);
                ids.insert(at, id);
                if ids.len() > MOST_LISTED
                    && let Some(page) = IdPage::from_ascending(std::mem::take(ids))
                {
                    *self = page;
                }
                true
            }
            IdPage::Bits { words, len } => {
                let added = !is_set(words, id);
                if added {
                    set(Arc::make_mut(words), id);
                    *len += 1;
                }
                added
            }
        }
    }

    /// Removes an id; false if the page did not have it. The page may be left without ids.
    pub fn remove(&mut self, id: u16) -> bool {
        match self {
            IdPage::Listed(ids) => {
                let found = ids.binary_search(&id);
                if let Ok(at) = found {
                    Arc::make_mut(ids).remove(at);
                }
                found.is_ok()
            }
            IdPage::Bits { words, len } => {
                let removed = is_set(words, id);
                if removed {
                    clear(Arc::make_mut(words), id);
                    *len -= 1;
                    // Listed at half of what a list may have, so that a page that gains and loses
                    // the same id keeps its form.
                    if *len as usize * 2 <= MOST_LISTED {
                        *self = IdPage::Listed(Arc::new(SetBits::from(words, 0).collect()));
                    }
                }
                removed
            }
        }
    }

    /// The ids that are at least `from`, ascending.
    pub fn iter_from(&self, from: u16) -> IdPageIter<'_> {
        match self {
            IdPage::Listed(ids) => {
                let start = ids.partition_point(|id| *id < from);
                IdPageIter::Listed(ids[start..].iter())
            }
            IdPage::Bits { words, .. } => IdPageIter::Bits(SetBits::from(words, from)),
        }
    }

    /// The ids of both pages.
    pub fn intersection(&self, other: &IdPage) -> Option<IdPage> {
        match (self, other) {
            (IdPage::Bits { words: a, .. }, IdPage::Bits { words: b, .. }) => {
                combined(a, b, |a, b| a & b)
            }
            (IdPage::Listed(ids), page) | (page, IdPage::Listed(ids)) => {
                IdPage::from_ascending(kept(ids, |id| page.contains(id)))
            }
        }
    }

    /// The ids of either page.
    pub fn union(&self, other: &IdPage) -> Option<IdPage> {
        match (self, other) {
            (IdPage::Bits { words: a, .. }, IdPage::Bits { words: b, .. }) => {
                combined(a, b, |a, b| a | b)
            }
            (IdPage::Listed(a), IdPage::Listed(b)) if a.len() + b.len() <= MOST_LISTED => {
                let mut ids = [&a[..], &b[..]].concat();
                // The sort finds the two ascending runs, and merges them.
                ids.sort_unstable();
                ids.dedup();
                IdPage::from_ascending(ids)
            }
            (IdPage::Listed(ids), page) | (page, IdPage::Listed(ids)) => {
                let mut words = page.to_words();
                ids.iter().for_each(|id| set(&mut words, *id));
                IdPage::from_words(&words)
            }
        }
    }

    /// The ids of this page that the other does not have.
    pub fn difference(&self, other: &IdPage) -> Option<IdPage> {
        match (self, other) {
            (IdPage::Bits { words: a, .. }, IdPage::Bits { words: b, .. }) => {
                combined(a, b, |a, b| a & !b)
            }
            (IdPage::Listed(ids), _) => IdPage::from_ascending(kept(ids, |id| !other.contains(id))),
            (IdPage::Bits { words, .. }, IdPage::Listed(ids)) => {
                let mut words = **words;
                ids.iter().for_each(|id| clear(&mut words, *id));
                IdPage::from_words(&words)
            }
        }
    }

    fn to_words(&self) -> Words {
        match self {
            IdPage::Listed(ids) => {
                let mut words = [0; WORDS];
                ids.iter().for_each(|id| set(&mut words, *id));
                words
            }
            IdPage::Bits { words, .. } => **words,
        }
    }

    /// Number of bytes on the heap, without the counts that copies share.
    pub fn memory_bytes(&self) -> usize {
        match self {
            IdPage::Listed(ids) => size_of::<Vec<u16>>() + ids.capacity() * size_of::<u16>(),
            IdPage::Bits { .. } => size_of::<Words>(),
        }
    }
}

fn combined(a: &Words, b: &Words, with: impl Fn(u64, u64) -> u64) -> Option<IdPage> {
    let words = std::array::from_fn(|at| with(a[at], b[at]));
    IdPage::from_words(&words)
}

fn kept(ids: &[u16], keep: impl Fn(u16) -> bool) -> Vec<u16> {
    ids.iter().copied().filter(|id| keep(*id)).collect()
}

/// The word of an id, and its bit in the word.
fn place(id: u16) -> (usize, u64) {
    (usize::from(id) / 64, 1 << (id % 64))
}

fn is_set(words: &Words, id: u16) -> bool {
    let (word, bit) = place(id);
    words[word] & bit != 0
}

pub(super) fn set(words: &mut Words, id: u16) {
    let (word, bit) = place(id);
    words[word] |= bit;
}

fn clear(words: &mut Words, id: u16) {
    let (word, bit) = place(id);
    words[word] &= !bit;
}

/// The ids of a page, ascending.
pub(super) enum IdPageIter<'a> {
    Listed(std::slice::Iter<'a, u16>),
    Bits(SetBits<'a>),
}

impl Iterator for IdPageIter<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        match self {
            IdPageIter::Listed(ids) => ids.next().copied(),
            IdPageIter::Bits(bits) => bits.next(),
        }
    }
}

/// The bits that are set, ascending.
pub(super) struct SetBits<'a> {
    words: &'a Words,
    /// The word that is being read.
    word: usize,
    /// Its bits still to come.
    rest: u64,
}

impl<'a> SetBits<'a> {
    fn from(words: &'a Words, from: u16) -> Self {
        let (word, bit) = place(from);
        SetBits {
            words,
            word,
            rest: words[word] & !(bit - 1),
        }
    }
}

impl Iterator for SetBits<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        while self.rest == 0 {
            self.word += 1;
            self.rest = *self.words.get(self.word)?;
        }
        let bit = self.rest.trailing_zeros();
        self.rest &= self.rest - 1;
        Some((self.word as u32 * 64 + bit) as u16)
    }
}
