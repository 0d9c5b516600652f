//! The keys by id, and the ids by key. The values of the row's filter columns are stored next to
//! each key, as a search must see both together.
//!
//! The bytes of a key are stored once, under its id. A hash table of ids leads from key to id. Its
//! entries are verified through those bytes, so it costs five bytes an entry. Tables with
//! clustering columns also need the ids of a partition. These form a doubly linked list through two
//! arrays, and another hash table of ids finds the head of each list.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use filter_columns::FilterColumns;
use value::CqlType;

use super::lookup::IdsByHash;
use super::{PrimaryKey, prefix};

/// The end of a list of ids.
const NONE: u32 = u32::MAX;

/// The bytes that the allocator spends on a block in addition to those requested.
const ALLOCATION_OVERHEAD_BYTES: usize = 16;

/// The keys by id and the ids by key.
#[derive(Debug)]
pub(crate) struct KeyTable {
    keys: Vec<Option<Box<[u8]>>>,
    ids: IdsByHash,
    /// The lists of partitions; `None` for tables with one row a partition.
    partitions: Option<PartitionLists>,
    hasher: RandomState,
    /// The stored forms of the few keys that are found by another form.
    stored: HashMap<u32, Box<[u8]>>,
    /// The times at which rows expire, in seconds since the epoch.
    expiries: HashMap<u32, u32>,
    /// The times at which the first of a row's values of filter columns expires, in seconds since
    /// the epoch.
    filter_expiries: HashMap<u32, u32>,
    /// The values of filter columns.
    filters: FilterColumns,
    key_bytes: usize,
    /// The bytes that [`KeyTable::shown`] gives for all keys.
    shown_bytes: usize,
}

#[derive(Debug)]
struct PartitionLists {
    /// The number of columns of the partition key.
    columns: usize,
    /// The first id of each partition.
    heads: IdsByHash,
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl KeyTable {
    /// Makes an empty table. `partition_columns` is the number of partition key columns, if the ids
    /// of a partition have to be found.
    pub(crate) fn new(partition_columns: Option<usize>) -> KeyTable {
        KeyTable {
            keys: Vec::new(),
            ids: IdsByHash::default(),
            partitions: partition_columns.map(|columns| PartitionLists {
                columns,
                heads: IdsByHash::default(),
                next: Vec::new(),
                previous: Vec::new(),
            }),
            hasher: RandomState::new(),
            stored: HashMap::new(),
            expiries: HashMap::new(),
            filter_expiries: HashMap::new(),
            filters: FilterColumns::new(Vec::new()),
            key_bytes: 0,
            shown_bytes: 0,
        }
    }

    /// Makes the table keep values of filter columns of these types. It must have no keys yet.
    pub(crate) fn keep_filters(&mut self, types: Vec<CqlType>) {
        debug_assert!(self.len() == 0, "the keys have no values");
        self.filters = FilterColumns::new(types);
    }

    /// The values of filter columns.
    pub(crate) fn filters(&self) -> &FilterColumns {
        &self.filters
    }

    /// Replaces the values of the filter columns of an id that has a key.
    pub(crate) fn set_filters(&mut self, id: u32, values: &[Option<Bytes>]) {
        if !values.is_empty() {
            let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
            self.filters.set(id, &values);
        }
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// A number above all ids of the table.
    pub(crate) fn ids(&self) -> usize {
        self.keys.len()
    }

    /// The encoded key of an id.
    pub(crate) fn key(&self, id: u32) -> Option<&[u8]> {
        self.keys.get(id as usize)?.as_deref()
    }

    /// The key of an id, encoded in the form in which the database stores its values.
    pub(crate) fn shown(&self, id: u32) -> Option<&[u8]> {
        match self.stored.get(&id) {
            Some(stored) => Some(stored),
            None => self.key(id),
        }
    }

    /// The key of an id as [`KeyTable::shown`] gives it, unless its row has expired by `now_s`, in
    /// seconds since the epoch.
    pub(crate) fn found(&self, id: u32, now_s: u32) -> Option<&[u8]> {
        let shown = self.shown(id)?;
        let expires_s = self.expiries.get(&id);
        expires_s
            .is_none_or(|expires_s| *expires_s > now_s)
            .then_some(shown)
    }

    /// Notes the time at which the row of an id expires, in seconds since the epoch; 0 for never.
    pub(crate) fn set_expiry(&mut self, id: u32, expires_s: u32) {
        match expires_s {
            0 => self.expiries.remove(&id),
            _ => self.expiries.insert(id, expires_s),
        };
    }

    /// Notes the time at which the first of the values of an id's filter columns expires, in
    /// seconds since the epoch; 0 for never.
    pub(crate) fn set_filter_expiry(&mut self, id: u32, expires_s: u32) {
        match expires_s {
            0 => self.filter_expiries.remove(&id),
            _ => self.filter_expiries.insert(id, expires_s),
        };
    }

    /// Whether a value of the filter columns of an id has expired by `now_s`, in seconds since the
    /// epoch, so that the row has to be read again.
    pub(crate) fn is_in_doubt(&self, id: u32, now_s: u32) -> bool {
        let expires_s = self.filter_expiries.get(&id);
        expires_s.is_some_and(|expires_s| *expires_s <= now_s)
    }

    /// Notes the form in which the key of an id is stored. Returns false if it was stored so
    /// before.
    pub(crate) fn keep_form(&mut self, id: u32, key: &PrimaryKey) -> bool {
        if self.stored.get(&id) == key.stored.as_ref() {
            return false;
        }
        self.drop_form(id);
        self.put_form(id, key.as_bytes().len(), key.stored.clone());
        true
    }

    fn put_form(&mut self, id: u32, encoded_bytes: usize, stored: Option<Box<[u8]>>) {
        self.shown_bytes += stored.as_ref().map_or(encoded_bytes, |stored| stored.len());
        if let Some(stored) = stored {
            self.key_bytes += stored.len() + ALLOCATION_OVERHEAD_BYTES;
            self.stored.insert(id, stored);
        }
    }

    fn drop_form(&mut self, id: u32) -> Option<Box<[u8]>> {
        self.shown_bytes -= self.shown(id).map_or(0, <[u8]>::len);
        let stored = self.stored.remove(&id)?;
        self.key_bytes -= stored.len() + ALLOCATION_OVERHEAD_BYTES;
        Some(stored)
    }

    /// The id of an encoded key.
    pub(crate) fn id(&self, key: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        self.ids
            .find(hash, |id| self.keys[*id as usize].as_deref() == Some(key))
    }

    /// Makes room for so many more keys, and changes nothing else, so that readers of keys need not
    /// wait meanwhile. Without it, the insertion of the key that fills the table would take as long
    /// as that of all others together.
    pub(crate) fn make_room(&self, keys: usize) {
        let hash = |id: &u32| self.hasher.hash_one(key_of(&self.keys, *id));
        self.ids.make_room(keys, hash);
        if let Some(partitions) = &self.partitions {
            let partition_of = |id: u32| prefix(key_of(&self.keys, id), partitions.columns);
            let hash = |id: &u32| self.hasher.hash_one(partition_of(*id));
            partitions.heads.make_room(keys, hash);
        }
    }

    /// Inserts a key that the table doesn't hold, under an id that no key has.
    pub(crate) fn insert(&mut self, id: u32, key: PrimaryKey) {
        let at = id as usize;
        if at >= self.keys.len() {
            self.keys.resize(at + 1, None);
        }
        debug_assert!(self.keys[at].is_none(), "id {id} has a key");
        debug_assert!(self.id(key.as_bytes()).is_none(), "the key has an id");
        let hash = self.hasher.hash_one(key.as_bytes());
        self.key_bytes += key.as_bytes().len() + ALLOCATION_OVERHEAD_BYTES;
        self.put_form(id, key.encoded.len(), key.stored);
        self.keys[at] = Some(key.encoded);
        let keys = &self.keys;
        let hasher = &self.hasher;
        self.ids
            .table()
            .insert_unique(hash, id, |id| hasher.hash_one(key_of(keys, *id)));
        if let Some(partitions) = &mut self.partitions {
            partitions.link(id, keys, hasher);
        }
    }

    /// Removes the key of an id.
    pub(crate) fn remove(&mut self, id: u32) -> Option<PrimaryKey> {
        let bytes = self.keys.get(id as usize)?.as_deref()?;
        let hash = self.hasher.hash_one(bytes);
        if let Ok(entry) = self.ids.table().find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        if let Some(partitions) = &mut self.partitions {
            partitions.unlink(id, &self.keys, &self.hasher);
        }
        let stored = self.drop_form(id);
        self.expiries.remove(&id);
        self.filter_expiries.remove(&id);
        self.filters.remove(id);
        let encoded = self.keys[id as usize].take()?;
        self.key_bytes -= encoded.len() + ALLOCATION_OVERHEAD_BYTES;
        Some(PrimaryKey { encoded, stored })
    }

    /// The ids of the partition with that encoded key; empty for a table without clustering
    /// columns.
    pub(crate) fn partition(&self, partition: &[u8]) -> Vec<u32> {
        let Some(partitions) = &self.partitions else {
            return Vec::new();
        };
        let hash = self.hasher.hash_one(partition);
        let mut id = partitions
            .heads
            .find(hash, |id| {
                prefix(key_of(&self.keys, *id), partitions.columns) == partition
            })
            .unwrap_or(NONE);
        let mut ids = Vec::new();
        while id != NONE {
            ids.push(id);
            id = partitions.next[id as usize];
        }
        ids
    }

    /// The bytes of all keys in the form that [`KeyTable::shown`] gives.
    pub(crate) fn encoded_bytes(&self) -> usize {
        self.shown_bytes
    }

    /// The bytes of memory held, but for the values of filter columns, which count their own.
    pub(crate) fn memory_bytes(&self) -> usize {
        let partitions = self.partitions.as_ref().map_or(0, |partitions| {
            partitions.heads.allocation_size()
                + (partitions.next.capacity() + partitions.previous.capacity()) * size_of::<u32>()
        });
        self.key_bytes
            + self.keys.capacity() * size_of::<Option<Box<[u8]>>>()
            + self.stored.capacity() * size_of::<(u32, Box<[u8]>)>()
            + (self.expiries.capacity() + self.filter_expiries.capacity()) * size_of::<(u32, u32)>()
            + self.ids.allocation_size()
            + partitions
    }
}

/// The key of an id that is in a table. Panics if the id has no key.
fn key_of(keys: &[Option<Box<[u8]>>], id: u32) -> &[u8] {
    keys[id as usize]
        .as_deref()
        .expect("an id in the hash table has a key")
}

impl PartitionLists {
    /// Puts an id before the others of its partition.
    fn link(&mut self, id: u32, keys: &[Option<Box<[u8]>>], hasher: &RandomState) {
        let columns = self.columns;
        let partition_of = |id: u32| prefix(key_of(keys, id), columns);
        let partition = partition_of(id);
        if self.next.len() < keys.len() {
            self.next.resize(keys.len(), NONE);
            self.previous.resize(keys.len(), NONE);
        }
        let mut next = NONE;
        let hash = hasher.hash_one(partition);
        let heads = self.heads.table();
        match heads.find_mut(hash, |head| partition_of(*head) == partition) {
            Some(head) => {
                next = std::mem::replace(head, id);
                self.previous[next as usize] = id;
            }
            None => {
                heads.insert_unique(hash, id, |id| hasher.hash_one(partition_of(*id)));
            }
        }
        self.next[id as usize] = next;
        self.previous[id as usize] = NONE;
    }

    /// Removes an id from its partition. Its key must still be there.
    fn unlink(&mut self, id: u32, keys: &[Option<Box<[u8]>>], hasher: &RandomState) {
        let next = self.next[id as usize];
        let previous = self.previous[id as usize];
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        if previous != NONE {
            self.next[previous as usize] = next;
            return;
        }
        let hash = hasher.hash_one(prefix(key_of(keys, id), self.columns));
        if let Ok(mut head) = self.heads.table().find_entry(hash, |head| *head == id) {
            if next == NONE {
                head.remove();
            } else {
                *head.get_mut() = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::keys::tests::text_schema;

    #[derive(Clone, Debug)]
    enum KeyStep {
        Insert(u8, u8),
        Remove(u8, u8),
    }

    fn steps() -> impl Strategy<Value = Vec<KeyStep>> {
        let step = prop_oneof![
            3 => (0..6u8, 0..6u8).prop_map(|(p, c)| KeyStep::Insert(p, c)),
            2 => (0..6u8, 0..6u8).prop_map(|(p, c)| KeyStep::Remove(p, c)),
        ];
        proptest::collection::vec(step, 0..200)
    }

    #[test]
    fn reserved_keys_do_not_rebuild_the_tables() {
        const AT_A_TIME: u32 = 64;
        let schema = text_schema(1, 1);
        let mut table = KeyTable::new(Some(1));
        let room = |table: &mut KeyTable| {
            let heads = &mut table.partitions.as_mut().unwrap().heads;
            [table.ids.table().capacity(), heads.table().capacity()]
        };
        let mut grown = 0;
        for round in 0..100 {
            let before = room(&mut table);
            table.make_room(AT_A_TIME as usize);
            let made = room(&mut table);
            grown += usize::from(made != before);
            for id in (round * AT_A_TIME..).take(AT_A_TIME as usize) {
                let text = id.to_string();
                table.insert(id, schema.encode([text.as_bytes(), b"c"]));
            }
            assert_eq!(room(&mut table), made);
        }
        assert!(grown > 3, "{grown}");
        assert_eq!(table.len(), 6400);
        let key = schema.encode([b"77".as_slice(), b"c"]);
        assert_eq!(table.id(key.as_bytes()), Some(77));
    }

    proptest! {
        /// Compares the table with a map from key to id.
        #[test]
        fn equals_a_map(steps in steps()) {
            let schema = text_schema(1, 1);
            let mut table = KeyTable::new(Some(1));
            let mut model = BTreeMap::new();
            let mut free: Vec<u32> = (0..40).rev().collect();
            for step in steps {
                match step {
                    KeyStep::Insert(p, c) => {
                        let key = schema.encode([[p].as_slice(), [c].as_slice()]);
                        if table.id(key.as_bytes()).is_none() {
                            let id = free.pop().unwrap();
                            table.insert(id, key);
                            model.insert((p, c), id);
                        }
                    }
                    KeyStep::Remove(p, c) => {
                        let key = schema.encode([[p].as_slice(), [c].as_slice()]);
                        let id = table.id(key.as_bytes());
                        prop_assert_eq!(id, model.remove(&(p, c)));
                        if let Some(id) = id {
                            prop_assert_eq!(table.remove(id), Some(key));
                            prop_assert_eq!(table.key(id), None);
                            free.push(id);
                        }
                    }
                }
                prop_assert_eq!(table.len(), model.len());
            }
            for p in 0..6u8 {
                for c in 0..6u8 {
                    let key = schema.encode([[p].as_slice(), [c].as_slice()]);
                    prop_assert_eq!(table.id(key.as_bytes()), model.get(&(p, c)).copied());
                }
                let mut ids = table.partition(schema.encode_partition([[p].as_slice()]).as_bytes());
                ids.sort_unstable();
                let mut expected: Vec<u32> =
                    model.range((p, 0)..=(p, 255)).map(|(_, id)| *id).collect();
                expected.sort_unstable();
                prop_assert_eq!(ids, expected);
            }
            for id in model.into_values() {
                table.remove(id);
            }
            prop_assert_eq!(table.key_bytes, 0);
            prop_assert_eq!(table.ids.len(), 0);
        }
    }
}
