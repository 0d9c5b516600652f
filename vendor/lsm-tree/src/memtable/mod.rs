// Copyright (c) 2024-present, fjall-rs
// This source code is licensed under both the Apache 2.0 and MIT License
// (found in the LICENSE-* files in the repository)

use crate::key::InternalKey;
use crate::{
    value::{InternalValue, SeqNo, UserValue},
    ValueType,
};
use crossbeam_skiplist::{map::Entry, SkipMap};
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicBool, AtomicU64};

pub use crate::tree::inner::MemtableId;

/// The memtable serves as an intermediary, ephemeral, sorted storage for new items
///
/// When the Memtable exceeds some size, it should be flushed to a table.
pub struct Memtable {
    #[doc(hidden)]
    pub id: MemtableId,

    /// The actual content, stored in a lock-free skiplist.
    #[doc(hidden)]
    pub items: SkipMap<InternalKey, UserValue>,

    /// Approximate active memtable size.
    ///
    /// If this grows too large, a flush is triggered.
    pub(crate) approximate_size: AtomicU64,

    /// Highest encountered sequence number.
    ///
    /// This is used so that `get_highest_seqno` has O(1) complexity.
    pub(crate) highest_seqno: AtomicU64,

    pub(crate) requested_rotation: AtomicBool,
}

impl Memtable {
    /// Returns the memtable ID.
    pub fn id(&self) -> MemtableId {
        self.id
    }

    /// Returns `true` if the memtable was already flagged for rotation.
    pub fn is_flagged_for_rotation(&self) -> bool {
        self.requested_rotation
            .load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Flags the memtable as requested for rotation.
    pub fn flag_rotated(&self) {
        self.requested_rotation
            .store(true, std::sync::atomic::Ordering::Relaxed);
    }

    #[doc(hidden)]
    #[must_use]
    pub fn new(id: MemtableId) -> Self {
        Self {
            id,
            items: SkipMap::default(),
            approximate_size: AtomicU64::default(),
            highest_seqno: AtomicU64::default(),
            requested_rotation: AtomicBool::default(),
        }
    }

    /// Creates an iterator over all items.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = InternalValue> + '_ {
        self.items.iter().map(|entry| InternalValue {
            key: entry.key().clone(),
            value: entry.value().clone(),
        })
    }

    /// Creates an iterator over a range of items.
    pub(crate) fn range<'a, R: RangeBounds<InternalKey> + 'a>(
        &'a self,
        range: R,
    ) -> impl DoubleEndedIterator<Item = InternalValue> + 'a {
        self.items.range(range).map(|entry| InternalValue {
            key: entry.key().clone(),
            value: entry.value().clone(),
        })
    }

    // ANNULUS 1
    /// Creates an iterator over the newest versions below a sequence number of the keys in a range.
    ///
    /// The range must have all versions of a key or none.
    #[doc(hidden)]
    pub fn newest_versions(
        &self,
        range: (Bound<InternalKey>, Bound<InternalKey>),
        seqno: SeqNo,
    ) -> NewestVersions<'_> {
        NewestVersions {
            items: &self.items,
            low: range.0,
            high: range.1,
            front: None,
            seqno,
            passed: 0,
        }
    }

    /// Returns the item by key if it exists.
    ///
    /// The item with the highest seqno will be returned, if `seqno` is None.
    #[doc(hidden)]
    pub fn get(&self, key: &[u8], seqno: SeqNo) -> Option<InternalValue> {
        if seqno == 0 {
            return None;
        }

        // NOTE: This range start deserves some explanation...
        // InternalKeys are multi-sorted by 2 categories: user_key and Reverse(seqno). (tombstone doesn't really matter)
        // We search for the lowest entry that is greater or equal the user's prefix key
        // and has the seqno (or lower) we want (because the seqno is stored in reverse order)
        //
        // Example: We search for "abc"
        //
        // key -> seqno
        //
        // a   -> 7
        // abc -> 5 <<< This is the lowest key (highest seqno) that matches the key with seqno=None
        // abc -> 4
        // abc -> 3 <<< If searching for abc and seqno=4, we would get this
        // abcdef -> 6
        // abcdef -> 5
        //
        let lower_bound = InternalKey::new(key, seqno - 1, ValueType::Value);

        let mut iter = self
            .items
            .range(lower_bound..)
            .take_while(|entry| &*entry.key().user_key == key);

        iter.next().map(|entry| InternalValue {
            key: entry.key().clone(),
            value: entry.value().clone(),
        })
    }

    /// Gets approximate size of memtable in bytes.
    pub fn size(&self) -> u64 {
        self.approximate_size
            .load(std::sync::atomic::Ordering::Acquire)
    }

    /// Counts the number of items in the memtable.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns `true` if the memtable is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Inserts an item into the memtable
    #[doc(hidden)]
    pub fn insert(&self, item: InternalValue) -> (u64, u64) {
        #[expect(
            clippy::expect_used,
            reason = "keys are limited to 16-bit length + values are limited to 32-bit length"
        )]
        let item_size =
            (item.key.user_key.len() + item.value.len() + std::mem::size_of::<InternalValue>())
                .try_into()
                .expect("should fit into u64");

        let size_before = self
            .approximate_size
            .fetch_add(item_size, std::sync::atomic::Ordering::AcqRel);

        let key = InternalKey::new(item.key.user_key, item.key.seqno, item.key.value_type);
        self.items.insert(key, item.value);

        self.highest_seqno
            .fetch_max(item.key.seqno, std::sync::atomic::Ordering::AcqRel);

        (item_size, size_before + item_size)
    }

    /// Returns the highest sequence number in the memtable.
    pub fn get_highest_seqno(&self) -> Option<SeqNo> {
        if self.is_empty() {
            None
        } else {
            Some(
                self.highest_seqno
                    .load(std::sync::atomic::Ordering::Acquire),
            )
        }
    }
}

// ANNULUS 1: the rest up to the tests.

/// Versions of a key that are passed one by one. Beyond these a seek is quicker.
const STEPS_MAX: usize = 4;

// ANNULUS 2
/// Versions that range iterators of this process have passed: those in memtables that were
/// overwritten or too new, and deleted keys.
static VERSIONS_PASSED: AtomicU64 = AtomicU64::new(0);

// ANNULUS 2
/// Returns the number of versions that range iterators of this process have passed so far.
#[doc(hidden)]
pub fn versions_passed() -> u64 {
    VERSIONS_PASSED.load(std::sync::atomic::Ordering::Relaxed)
}

// ANNULUS 2
pub(crate) fn count_passed(versions: u64) {
    if versions > 0 {
        VERSIONS_PASSED.fetch_add(versions, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Iterates over the newest visible version of each key, and seeks past the others.
#[doc(hidden)]
pub struct NewestVersions<'a> {
    items: &'a SkipMap<InternalKey, UserValue>,
    /// What lies between the ends is still to come.
    low: Bound<InternalKey>,
    high: Bound<InternalKey>,
    /// The item that was returned last from the front.
    front: Option<Entry<'a, InternalKey, UserValue>>,
    seqno: SeqNo,
    passed: u64,
}

impl<'a> NewestVersions<'a> {
    fn is_below_high(&self, key: &InternalKey) -> bool {
        match &self.high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        }
    }

    fn is_above_low(&self, key: &InternalKey) -> bool {
        match &self.low {
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
            Bound::Unbounded => true,
        }
    }

    /// The first item behind this one that is of another key, or of the same key and below `seqno`.
    fn behind(
        &mut self,
        item: &Entry<'a, InternalKey, UserValue>,
        seqno: SeqNo,
    ) -> Option<Entry<'a, InternalKey, UserValue>> {
        let mut next = item.next();
        for _ in 0..STEPS_MAX {
            match next {
                Some(version)
                    if version.key().user_key == item.key().user_key
                        && version.key().seqno >= seqno =>
                {
                    self.passed += 1;
                    next = version.next();
                }
                other => return other,
            }
        }
        let user_key = item.key().user_key.clone();
        if seqno == 0 {
            let last = InternalKey::new(user_key, 0, ValueType::Value);
            self.items.lower_bound(Bound::Excluded(&last))
        } else {
            let first = InternalKey::new(user_key, seqno - 1, ValueType::Value);
            self.items.lower_bound(Bound::Included(&first))
        }
    }
}

impl Iterator for NewestVersions<'_> {
    type Item = InternalValue;

    fn next(&mut self) -> Option<InternalValue> {
        let mut item = match self.front.take() {
            Some(last) => self.behind(&last, 0)?,
            None => self.items.lower_bound(self.low.as_ref())?,
        };
        loop {
            if !self.is_below_high(item.key()) {
                return None;
            }
            if item.key().seqno < self.seqno {
                let key = item.key().clone();
                let value = item.value().clone();
                let last = InternalKey::new(key.user_key.clone(), 0, ValueType::Value);
                self.low = Bound::Excluded(last);
                self.front = Some(item);
                return Some(InternalValue { key, value });
            }
            self.passed += 1;
            item = self.behind(&item, self.seqno)?;
        }
    }
}

impl DoubleEndedIterator for NewestVersions<'_> {
    fn next_back(&mut self) -> Option<InternalValue> {
        loop {
            // The oldest version of the last key.
            let oldest = self.items.upper_bound(self.high.as_ref())?;
            if !self.is_above_low(oldest.key()) {
                return None;
            }
            let user_key = oldest.key().user_key.clone();
            let first = InternalKey::new(user_key.clone(), SeqNo::MAX, ValueType::Value);
            self.high = Bound::Excluded(first);
            if oldest.key().seqno >= self.seqno {
                // All versions of the key are too new.
                self.passed += 1;
                continue;
            }
            let is_same = |version: &Entry<'_, InternalKey, UserValue>| {
                version.key().user_key == user_key && version.key().seqno < self.seqno
            };
            let newest = match oldest.prev().filter(is_same) {
                None => oldest,
                Some(_) => {
                    self.passed += 1;
                    let newest = InternalKey::new(user_key, self.seqno - 1, ValueType::Value);
                    self.items.lower_bound(Bound::Included(&newest))?
                }
            };
            return Some(InternalValue {
                key: newest.key().clone(),
                value: newest.value().clone(),
            });
        }
    }
}

impl Drop for NewestVersions<'_> {
    fn drop(&mut self) {
        count_passed(self.passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueType;
    use test_log::test;

    #[test]
    #[expect(clippy::unwrap_used)]
    fn memtable_mvcc_point_read() {
        let memtable = Memtable::new(0);

        memtable.insert(InternalValue::from_components(
            *b"hello-key-999991",
            *b"hello-value-999991",
            0,
            ValueType::Value,
        ));

        let item = memtable.get(b"hello-key-99999", SeqNo::MAX);
        assert_eq!(None, item);

        let item = memtable.get(b"hello-key-999991", SeqNo::MAX);
        assert_eq!(*b"hello-value-999991", &*item.unwrap().value);

        memtable.insert(InternalValue::from_components(
            *b"hello-key-999991",
            *b"hello-value-999991-2",
            1,
            ValueType::Value,
        ));

        let item = memtable.get(b"hello-key-99999", SeqNo::MAX);
        assert_eq!(None, item);

        let item = memtable.get(b"hello-key-999991", SeqNo::MAX);
        assert_eq!((*b"hello-value-999991-2"), &*item.unwrap().value);

        let item = memtable.get(b"hello-key-99999", 1);
        assert_eq!(None, item);

        let item = memtable.get(b"hello-key-999991", 1);
        assert_eq!((*b"hello-value-999991"), &*item.unwrap().value);

        let item = memtable.get(b"hello-key-99999", 2);
        assert_eq!(None, item);

        let item = memtable.get(b"hello-key-999991", 2);
        assert_eq!((*b"hello-value-999991-2"), &*item.unwrap().value);
    }

    #[test]
    fn memtable_get() {
        let memtable = Memtable::new(0);

        let value =
            InternalValue::from_components(b"abc".to_vec(), b"abc".to_vec(), 0, ValueType::Value);

        memtable.insert(value.clone());

        assert_eq!(Some(value), memtable.get(b"abc", SeqNo::MAX));
    }

    #[test]
    fn memtable_get_highest_seqno() {
        let memtable = Memtable::new(0);

        memtable.insert(InternalValue::from_components(
            b"abc".to_vec(),
            b"abc".to_vec(),
            0,
            ValueType::Value,
        ));
        memtable.insert(InternalValue::from_components(
            b"abc".to_vec(),
            b"abc".to_vec(),
            1,
            ValueType::Value,
        ));
        memtable.insert(InternalValue::from_components(
            b"abc".to_vec(),
            b"abc".to_vec(),
            2,
            ValueType::Value,
        ));
        memtable.insert(InternalValue::from_components(
            b"abc".to_vec(),
            b"abc".to_vec(),
            3,
            ValueType::Value,
        ));
        memtable.insert(InternalValue::from_components(
            b"abc".to_vec(),
            b"abc".to_vec(),
            4,
            ValueType::Value,
        ));

        assert_eq!(
            Some(InternalValue::from_components(
                b"abc".to_vec(),
                b"abc".to_vec(),
                4,
                ValueType::Value,
            )),
            memtable.get(b"abc", SeqNo::MAX)
        );
    }

    #[test]
    fn memtable_get_prefix() {
        let memtable = Memtable::new(0);

        memtable.insert(InternalValue::from_components(
            b"abc0".to_vec(),
            b"abc".to_vec(),
            0,
            ValueType::Value,
        ));
        memtable.insert(InternalValue::from_components(
            b"abc".to_vec(),
            b"abc".to_vec(),
            255,
            ValueType::Value,
        ));

        assert_eq!(
            Some(InternalValue::from_components(
                b"abc".to_vec(),
                b"abc".to_vec(),
                255,
                ValueType::Value,
            )),
            memtable.get(b"abc", SeqNo::MAX)
        );

        assert_eq!(
            Some(InternalValue::from_components(
                b"abc0".to_vec(),
                b"abc".to_vec(),
                0,
                ValueType::Value,
            )),
            memtable.get(b"abc0", SeqNo::MAX)
        );
    }

    #[test]
    fn memtable_get_old_version() {
        let memtable = Memtable::new(0);

        memtable.insert(InternalValue::from_components(
            b"abc".to_vec(),
            b"abc".to_vec(),
            0,
            ValueType::Value,
        ));
        memtable.insert(InternalValue::from_components(
            b"abc".to_vec(),
            b"abc".to_vec(),
            99,
            ValueType::Value,
        ));
        memtable.insert(InternalValue::from_components(
            b"abc".to_vec(),
            b"abc".to_vec(),
            255,
            ValueType::Value,
        ));

        assert_eq!(
            Some(InternalValue::from_components(
                b"abc".to_vec(),
                b"abc".to_vec(),
                255,
                ValueType::Value,
            )),
            memtable.get(b"abc", SeqNo::MAX)
        );

        assert_eq!(
            Some(InternalValue::from_components(
                b"abc".to_vec(),
                b"abc".to_vec(),
                99,
                ValueType::Value,
            )),
            memtable.get(b"abc", 100)
        );

        assert_eq!(
            Some(InternalValue::from_components(
                b"abc".to_vec(),
                b"abc".to_vec(),
                0,
                ValueType::Value,
            )),
            memtable.get(b"abc", 50)
        );
    }
}
