//! An ordered map of keys to values whose clones are cheap and stay as they are.
//!
//! It is a B-tree of shared nodes. A change copies the nodes on the way to its key that a clone
//! still has, and no others. All nodes are charged to one number, those of old clones included.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// The most entries of a leaf, and the most children of another node.
const NODE_MAX: usize = 64;
/// A node with fewer is merged with the node next to it, if both fit into one of three quarters.
const NODE_FEW: usize = NODE_MAX / 4;
const MERGED_MAX: usize = NODE_MAX / 4 * 3;
/// The entries of a leaf, and the children of another node, of a map that is made at once.
const MADE_LEN: usize = NODE_MAX / 4 * 3;
/// Places that a node gets at a time, as each takes memory before it is used.
const PLACES_AT_ONCE: usize = 8;
/// Bytes that an entry takes in addition to its key and its value: two handles, and what an
/// allocation of each of them costs.
const ENTRY_BYTES: u64 = size_of::<(Bytes, Bytes)>() as u64 + ALLOCATIONS_BYTES;
/// Bytes that a new entry may cost in addition to these: its share of places that are free, and of
/// nodes.
const SHARE_BYTES: u64 = 32;
const ALLOCATIONS_BYTES: u64 = 64;
/// Bytes that a node takes in addition to its entries.
const NODE_BYTES: u64 = 128;

/// The map.
#[derive(Clone)]
pub(in crate::engine) struct ResidentMap {
    root: Arc<TreeNode>,
    used: Arc<AtomicU64>,
}

#[derive(Clone)]
enum TreeNode {
    Leaf {
        entries: Vec<(Bytes, Bytes)>,
        charge: CountedBytes,
    },
    /// The children, each under a key that none of its own keys is below. The key of the first is
    /// not looked at.
    Inner {
        children: Vec<(Bytes, Arc<TreeNode>)>,
        #[expect(dead_code, reason = "held for its drop")]
        charge: CountedBytes,
    },
}

/// Bytes that are counted while the value lives.
struct CountedBytes {
    used: Arc<AtomicU64>,
    bytes: u64,
}

/// The entries of a range, from either end. It keeps the map as it was.
pub(crate) struct ResidentRange {
    map: ResidentMap,
    low: Bound<Bytes>,
    high: Bound<Bytes>,
    front: Option<(Arc<TreeNode>, usize)>,
    back: Option<(Arc<TreeNode>, usize)>,
}

impl CountedBytes {
    fn new(used: &Arc<AtomicU64>, bytes: u64) -> CountedBytes {
        used.fetch_add(bytes, Ordering::Relaxed);
        CountedBytes {
            used: Arc::clone(used),
            bytes,
        }
    }

    fn set(&mut self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Clone for CountedBytes {
    fn clone(&self) -> CountedBytes {
        CountedBytes::new(&self.used, self.bytes)
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The bytes that an entry takes at least.
pub(in crate::engine) fn entry_bytes(key: usize, value: usize) -> u64 {
    ENTRY_BYTES + key as u64 + value as u64
}

/// The bytes by which a new entry may grow a map.
pub(in crate::engine) fn new_entry_bytes(key: usize, value: usize) -> u64 {
    entry_bytes(key, value) + SHARE_BYTES
}

/// Inserts into the places of a node, of which there are few that are free.
fn insert_at<T>(places: &mut Vec<T>, at: usize, one: T) {
    if places.len() == places.capacity() {
        places.reserve_exact(PLACES_AT_ONCE);
    }
    places.insert(at, one);
}

/// Gives free places back, but for a few.
fn give_back<T>(places: &mut Vec<T>) {
    if places.capacity() - places.len() > 2 * PLACES_AT_ONCE {
        places.shrink_to(places.len() + PLACES_AT_ONCE);
    }
}

fn leaf_bytes(entries: &Vec<(Bytes, Bytes)>) -> u64 {
    let places = entries.capacity() * size_of::<(Bytes, Bytes)>();
    let contents = entries.iter();
    let contents =
        contents.map(|(key, value)| ALLOCATIONS_BYTES + (key.len() + value.len()) as u64);
    NODE_BYTES + places as u64 + contents.sum::<u64>()
}

fn inner(used: &Arc<AtomicU64>, children: Vec<(Bytes, Arc<TreeNode>)>) -> TreeNode {
    let bytes = NODE_BYTES + (NODE_MAX * size_of::<(Bytes, Arc<TreeNode>)>()) as u64;
    TreeNode::Inner {
        children,
        charge: CountedBytes::new(used, bytes),
    }
}

impl TreeNode {
    fn leaf(used: &Arc<AtomicU64>, entries: Vec<(Bytes, Bytes)>) -> TreeNode {
        let charge = CountedBytes::new(used, leaf_bytes(&entries));
        TreeNode::Leaf { entries, charge }
    }

    fn len(&self) -> usize {
        match self {
            TreeNode::Leaf { entries, .. } => entries.len(),
            TreeNode::Inner { children, .. } => children.len(),
        }
    }

    /// Puts an entry below a node. Returns the right half, with the key that it begins at, if the
    /// node had to be split.
    fn put(
        node: &mut Arc<TreeNode>,
        used: &Arc<AtomicU64>,
        key: Bytes,
        value: Bytes,
    ) -> Option<(Bytes, Arc<TreeNode>)> {
        match Arc::make_mut(node) {
            TreeNode::Leaf { entries, charge } => {
                match entries.binary_search_by(|(known, _)| known.cmp(&key)) {
                    Ok(at) => entries[at].1 = value,
                    Err(at) => insert_at(entries, at, (key, value)),
                }
                let right = (entries.len() > NODE_MAX).then(|| entries.split_off(NODE_MAX / 2));
                give_back(entries);
                charge.set(leaf_bytes(entries));
                let right = right?;
                let first = right.first()?.0.clone();
                Some((first, Arc::new(TreeNode::leaf(used, right))))
            }
            TreeNode::Inner { children, .. } => {
                let at = child_of(children, &key);
                let (_, child) = children.get_mut(at)?;
                let (first, right) = TreeNode::put(child, used, key, value)?;
                insert_at(children, at + 1, (first, right));
                if children.len() <= NODE_MAX {
                    return None;
                }
                let right = children.split_off(NODE_MAX / 2);
                give_back(children);
                let first = right.first()?.0.clone();
                Some((first, Arc::new(inner(used, right))))
            }
        }
    }

    /// Removes a key that is below the node. Says whether the node is empty now.
    fn remove(node: &mut Arc<TreeNode>, key: &[u8]) -> bool {
        match Arc::make_mut(node) {
            TreeNode::Leaf { entries, charge } => {
                if let Ok(at) = entries.binary_search_by(|(known, _)| known[..].cmp(key)) {
                    entries.remove(at);
                    give_back(entries);
                }
                charge.set(leaf_bytes(entries));
                entries.is_empty()
            }
            TreeNode::Inner { children, .. } => {
                let at = child_of(children, key);
                let Some((_, child)) = children.get_mut(at) else {
                    return children.is_empty();
                };
                if TreeNode::remove(child, key) {
                    children.remove(at);
                } else if child.len() < NODE_FEW {
                    merge(children, at);
                }
                children.is_empty()
            }
        }
    }
}

/// The position of the child that has a key, if any has.
fn child_of(children: &[(Bytes, Arc<TreeNode>)], key: &[u8]) -> usize {
    let behind = children.partition_point(|(first, _)| first[..] <= *key);
    behind.saturating_sub(1)
}

/// Merges a small child with the one after it, or before it, if both fit.
fn merge(children: &mut Vec<(Bytes, Arc<TreeNode>)>, small: usize) {
    let left = if small + 1 < children.len() {
        small
    } else {
        small.saturating_sub(1)
    };
    let fits = match (children.get(left), children.get(left + 1)) {
        (Some((_, left)), Some((_, right))) => left.len() + right.len() <= MERGED_MAX,
        _ => false,
    };
    if !fits {
        return;
    }
    let (first, right) = children.remove(left + 1);
    match (
        Arc::make_mut(&mut children[left].1),
        Arc::unwrap_or_clone(right),
    ) {
        (TreeNode::Leaf { entries, charge }, TreeNode::Leaf { entries: more, .. }) => {
            entries.reserve_exact(more.len());
            entries.extend(more);
            charge.set(leaf_bytes(entries));
        }
        (TreeNode::Inner { children, .. }, TreeNode::Inner { children: more, .. }) => {
            let mut more = more.into_iter();
            children.extend(more.next().map(|(_, child)| (first, child)));
            children.extend(more);
        }
        _ => unreachable!("all leaves are equally deep"),
    }
}

fn is_below(key: &[u8], low: &Bound<Bytes>) -> bool {
    match low {
        Bound::Unbounded => false,
        Bound::Included(low) => key < &low[..],
        Bound::Excluded(low) => key <= &low[..],
    }
}

fn is_above(key: &[u8], high: &Bound<Bytes>) -> bool {
    match high {
        Bound::Unbounded => false,
        Bound::Included(high) => key > &high[..],
        Bound::Excluded(high) => key >= &high[..],
    }
}

/// The leaf and the position of the first entry within a low bound.
fn first(node: &Arc<TreeNode>, low: &Bound<Bytes>) -> Option<(Arc<TreeNode>, usize)> {
    match &**node {
        TreeNode::Leaf { entries, .. } => {
            let at = entries.partition_point(|(key, _)| is_below(key, low));
            (at < entries.len()).then(|| (Arc::clone(node), at))
        }
        TreeNode::Inner { children, .. } => {
            let from = match low {
                Bound::Unbounded => 0,
                Bound::Included(key) | Bound::Excluded(key) => child_of(children, key),
            };
            let mut children = children.iter().skip(from);
            children.find_map(|(_, child)| first(child, low))
        }
    }
}

/// The leaf and the position of the last entry within a high bound.
fn last(node: &Arc<TreeNode>, high: &Bound<Bytes>) -> Option<(Arc<TreeNode>, usize)> {
    match &**node {
        TreeNode::Leaf { entries, .. } => {
            let behind = entries.partition_point(|(key, _)| !is_above(key, high));
            Some((Arc::clone(node), behind.checked_sub(1)?))
        }
        TreeNode::Inner { children, .. } => {
            let to = match high {
                Bound::Unbounded => children.len().saturating_sub(1),
                Bound::Included(key) | Bound::Excluded(key) => child_of(children, key),
            };
            let mut children = children.iter().take(to + 1).rev();
            children.find_map(|(_, child)| last(child, high))
        }
    }
}

/// Makes a map of entries that come in the order of their keys.
pub(in crate::engine) struct MapBuilder {
    used: Arc<AtomicU64>,
    leaves: Vec<(Bytes, Arc<TreeNode>)>,
    /// The entries of the next leaf.
    entries: Vec<(Bytes, Bytes)>,
}

impl MapBuilder {
    /// Without any entries. The map's bytes are added to `used`.
    pub(in crate::engine) fn new(used: &Arc<AtomicU64>) -> MapBuilder {
        MapBuilder {
            used: Arc::clone(used),
            leaves: Vec::new(),
            entries: Vec::with_capacity(MADE_LEN),
        }
    }

    /// Adds an entry whose key is greater than all before.
    pub(in crate::engine) fn push(&mut self, key: Bytes, value: Bytes) {
        self.entries.push((key, value));
        if self.entries.len() == MADE_LEN {
            let entries = std::mem::replace(&mut self.entries, Vec::with_capacity(MADE_LEN));
            self.end_leaf(entries);
        }
    }

    fn end_leaf(&mut self, mut entries: Vec<(Bytes, Bytes)>) {
        entries.shrink_to_fit();
        if let Some((first, _)) = entries.first() {
            let first = first.clone();
            let leaf = Arc::new(TreeNode::leaf(&self.used, entries));
            self.leaves.push((first, leaf));
        }
    }

    pub(in crate::engine) fn build(mut self) -> ResidentMap {
        let entries = std::mem::take(&mut self.entries);
        self.end_leaf(entries);
        let MapBuilder {
            used, mut leaves, ..
        } = self;
        while leaves.len() > 1 {
            leaves = leaves
                .chunks(MADE_LEN)
                .filter_map(|children| {
                    let first = children.first()?.0.clone();
                    Some((first, Arc::new(inner(&used, children.to_vec()))))
                })
                .collect();
        }
        match leaves.pop() {
            Some((_, root)) => ResidentMap { root, used },
            None => ResidentMap::new(&used),
        }
    }
}

impl ResidentMap {
    /// An empty map. Its bytes are added to `used`.
    pub(in crate::engine) fn new(used: &Arc<AtomicU64>) -> ResidentMap {
        ResidentMap {
            root: Arc::new(TreeNode::leaf(used, Vec::new())),
            used: Arc::clone(used),
        }
    }

    pub(in crate::engine) fn get(&self, key: &[u8]) -> Option<&Bytes> {
        let mut node = &*self.root;
        loop {
            match node {
                TreeNode::Leaf { entries, .. } => {
                    let at = entries
                        .binary_search_by(|(known, _)| known[..].cmp(key))
                        .ok()?;
                    return Some(&entries[at].1);
                }
                TreeNode::Inner { children, .. } => {
                    node = &*children.get(child_of(children, key))?.1;
                }
            }
        }
    }

    pub(in crate::engine) fn put(&mut self, key: Bytes, value: Bytes) {
        if let Some(right) = TreeNode::put(&mut self.root, &self.used, key, value) {
            let left = (Bytes::new(), Arc::clone(&self.root));
            self.root = Arc::new(inner(&self.used, vec![left, right]));
        }
    }

    pub(in crate::engine) fn remove(&mut self, key: &[u8]) {
        // Nothing is copied for a key that is not there.
        if self.get(key).is_none() {
            return;
        }
        if TreeNode::remove(&mut self.root, key) {
            self.root = Arc::new(TreeNode::leaf(&self.used, Vec::new()));
        }
        while let TreeNode::Inner { children, .. } = &*self.root
            && let [(_, only)] = children.as_slice()
        {
            self.root = Arc::clone(only);
        }
    }

    /// The entries between two bounds.
    pub(in crate::engine) fn range(
        &self,
        (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> ResidentRange {
        ResidentRange {
            map: self.clone(),
            low: low.map(Bytes::from),
            high: high.map(Bytes::from),
            front: None,
            back: None,
        }
    }
}

impl Iterator for ResidentRange {
    type Item = (Bytes, Bytes);

    fn next(&mut self) -> Option<(Bytes, Bytes)> {
        let (leaf, at) = match self.front.take() {
            Some(front) => front,
            None => first(&self.map.root, &self.low)?,
        };
        let TreeNode::Leaf { entries, .. } = &*leaf else {
            return None;
        };
        let (key, value) = entries.get(at)?.clone();
        if is_above(&key, &self.high) {
            return None;
        }
        self.low = Bound::Excluded(key.clone());
        if at + 1 < entries.len() {
            self.front = Some((leaf, at + 1));
        }
        Some((key, value))
    }
}

impl DoubleEndedIterator for ResidentRange {
    fn next_back(&mut self) -> Option<(Bytes, Bytes)> {
        let (leaf, at) = match self.back.take() {
            Some(back) => back,
            None => last(&self.map.root, &self.high)?,
        };
        let TreeNode::Leaf { entries, .. } = &*leaf else {
            return None;
        };
        let (key, value) = entries.get(at)?.clone();
        if is_below(&key, &self.low) {
            return None;
        }
        self.high = Bound::Excluded(key.clone());
        if let Some(before) = at.checked_sub(1) {
            self.back = Some((leaf, before));
        }
        Some((key, value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key(number: u16) -> Bytes {
        Bytes::copy_from_slice(&number.to_be_bytes())
    }

    fn bound(kind: u8, number: u16) -> Bound<Vec<u8>> {
        match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(number.to_be_bytes().to_vec()),
            _ => Bound::Excluded(number.to_be_bytes().to_vec()),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_is_an_ordered_map_whose_clones_stay(
            changes in proptest::collection::vec((0..700_u16, 0..4_u8), 0..3_000),
            kept_at in 0..3_000_usize,
            (low, high) in ((0..3_u8, 0..700_u16), (0..3_u8, 0..700_u16)),
        ) {
            let used = Arc::new(AtomicU64::new(0));
            let mut map = ResidentMap::new(&used);
            let mut model = BTreeMap::new();
            let mut kept = None;
            for (at, (number, kind)) in changes.into_iter().enumerate() {
                if at == kept_at {
                    kept = Some((map.clone(), model.clone()));
                }
                if kind == 0 {
                    map.remove(&key(number));
                    model.remove(&key(number));
                } else {
                    let value = Bytes::from(vec![kind; usize::from(kind)]);
                    map.put(key(number), value.clone());
                    model.insert(key(number), value);
                }
            }
            for (map, model) in kept.iter().chain([&(map.clone(), model.clone())]) {
                let range = (bound(low.0, low.1), bound(high.0, high.1));
                let is_in = |key: &&Bytes| {
                    !is_below(key, &range.0.clone().map(Bytes::from))
                        && !is_above(key, &range.1.clone().map(Bytes::from))
                };
                let expected: Vec<_> = model.iter().filter(|(key, _)| is_in(key)).collect();
                let found: Vec<_> = map.range(range.clone()).collect();
                prop_assert_eq!(found.iter().map(|(k, v)| (k, v)).collect::<Vec<_>>(), expected);
                let mut back: Vec<_> = map.range(range.clone()).rev().collect();
                back.reverse();
                prop_assert_eq!(&back, &found);
                let mut both = map.range(range.clone());
                let (mut front, mut end) = (Vec::new(), Vec::new());
                loop {
                    let Some(one) = both.next() else { break };
                    front.push(one);
                    let Some(one) = both.next_back() else { break };
                    end.push(one);
                }
                front.extend(end.into_iter().rev());
                prop_assert_eq!(&front, &found);
                for number in 0..700 {
                    prop_assert_eq!(map.get(&key(number)), model.get(&key(number)));
                }
            }
            let live: u64 = model.iter().map(|(k, v)| entry_bytes(k.len(), v.len())).sum();
            prop_assert!(used.load(Ordering::Relaxed) >= live);
            drop((map, kept));
            prop_assert_eq!(used.load(Ordering::Relaxed), 0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_map_made_at_once_is_as_one_made_by_puts(
            numbers in proptest::collection::btree_set(0..5_000_u16, 0..4_000),
            changes in proptest::collection::vec((0..5_000_u16, 0..2_u8), 0..500),
        ) {
            let used = Arc::new(AtomicU64::new(0));
            let mut builder = MapBuilder::new(&used);
            let mut model = BTreeMap::new();
            for number in numbers {
                builder.push(key(number), Bytes::from_static(b"value"));
                model.insert(key(number), Bytes::from_static(b"value"));
            }
            let mut map = builder.build();
            let live: u64 = model.iter().map(|(k, v)| entry_bytes(k.len(), v.len())).sum();
            let made = used.load(Ordering::Relaxed);
            prop_assert!(made <= live / 20 * 21 + 4 * 4096, "{made} for {live}");
            for (number, kind) in changes {
                if kind == 0 {
                    map.remove(&key(number));
                    model.remove(&key(number));
                } else {
                    map.put(key(number), Bytes::from_static(b"other"));
                    model.insert(key(number), Bytes::from_static(b"other"));
                }
            }
            let all: Vec<_> = map.range((Bound::Unbounded, Bound::Unbounded)).collect();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
            drop(map);
            prop_assert_eq!(used.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn new_entries_cost_no_more_than_is_said() {
        let used = Arc::new(AtomicU64::new(0));
        let mut map = ResidentMap::new(&used);
        let empty = used.load(Ordering::Relaxed);
        let mut said = 0;
        // In an order that results in half-full leaves.
        for number in 0..20_000 {
            map.put(key(number), Bytes::new());
            said += new_entry_bytes(2, 0);
            // The places that the last leaf and the nodes above it have too many.
            let spare = 4 * (64 * NODE_MAX) as u64;
            let took = used.load(Ordering::Relaxed) - empty;
            assert!(took <= said + spare, "{took} for {said}");
        }
    }

    #[test]
    fn removed_entries_leave_no_bytes() {
        let used = Arc::new(AtomicU64::new(0));
        let mut map = ResidentMap::new(&used);
        let empty = used.load(Ordering::Relaxed);
        for number in 0..20_000 {
            map.put(key(number), Bytes::from_static(b"value"));
        }
        for number in (0..20_000).filter(|number| number % 64 != 0) {
            map.remove(&key(number));
        }
        let few = used.load(Ordering::Relaxed);
        assert!(few < 20_000 / 64 * 4 * ENTRY_BYTES, "{few}");
        for number in 0..20_000 {
            map.remove(&key(number));
        }
        assert_eq!(used.load(Ordering::Relaxed), empty);
    }
}
