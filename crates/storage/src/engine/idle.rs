//! Spaces that have rows in memory and are not written to.

use std::collections::HashMap;

use super::SpaceId;

/// The spaces with rows in memory, as they were when they were looked at last.
#[derive(Debug, Default)]
pub(super) struct IdleSpaces {
    seen: HashMap<SpaceId, ObservedMemtable>,
}

#[derive(Clone, Copy, Debug)]
struct ObservedMemtable {
    contents: MemtableContents,
    /// The looks since then that found the same.
    looks: u32,
}

/// The number of the memtable that a space writes to, and the number of its entries.
type MemtableContents = (u64, usize);

impl IdleSpaces {
    /// Looks at all spaces. Returns those that so many looks on end have found with the same rows
    /// in memory. They are returned once.
    pub(super) fn poll(
        &mut self,
        spaces: &HashMap<SpaceId, fjall::Keyspace>,
        looks: u32,
    ) -> Vec<SpaceId> {
        let contents = spaces
            .iter()
            .map(|(space, keyspace)| (*space, keyspace.active_memtable()));
        self.note(contents, looks)
    }

    fn note(
        &mut self,
        spaces: impl Iterator<Item = (SpaceId, MemtableContents)>,
        looks: u32,
    ) -> Vec<SpaceId> {
        let mut before = std::mem::take(&mut self.seen);
        let mut idle = Vec::new();
        for (space, contents) in spaces.filter(|(_, (_, entries))| *entries > 0) {
            let seen = match before.remove(&space) {
                Some(seen) if seen.contents == contents => ObservedMemtable {
                    looks: seen.looks.saturating_add(1),
                    ..seen
                },
                _ => ObservedMemtable { contents, looks: 0 },
            };
            if seen.looks == looks {
                idle.push(space);
            }
            self.seen.insert(space, seen);
        }
        idle
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use schema::TableId;
    use test_support::blocking::eventually;

    use super::super::{DiskEngine, EngineOptions, LockedDirectory, SpaceOptions, SyncTarget};
    use super::*;

    /// An engine with one space, and room for much more than a test writes.
    fn engine(path: &std::path::Path) -> DiskEngine {
        let options = EngineOptions {
            cache_bytes: 1 << 20,
            memtable_bytes: 64 << 20,
            write_buffer_bytes: 256 << 20,
            resident_bytes: 0,
        };
        let (directory, _) = LockedDirectory::open(path).unwrap();
        directory.mark_made().unwrap();
        let engine = DiskEngine::open(directory, options, Arc::new(|_, _| None)).unwrap();
        let options = SpaceOptions {
            separate_values: false,
            resident: false,
        };
        engine.create_space(SpaceId::META, options).unwrap();
        engine
    }

    fn put(engine: &DiskEngine, key: u32, value_bytes: usize) {
        let key = Bytes::copy_from_slice(&key.to_be_bytes());
        let batch = vec![(SpaceId::META, key, Some(vec![1; value_bytes].into()))];
        engine.commit(batch, SyncTarget::Kernel, 0).unwrap();
    }

    #[test]
    fn a_space_that_is_not_written_to_is_written_out() {
        let directory = tempfile::tempdir().unwrap();
        let engine = engine(directory.path());
        for key in 0..100 {
            put(&engine, key, 10_000);
        }
        assert!(engine.write_buffer_bytes() > 1_000_000);
        for _ in 0..3 {
            engine.write_out_idle(3);
            assert!(engine.write_buffer_bytes() > 1_000_000, "not so soon");
        }
        engine.write_out_idle(3);
        eventually("the memory is free", || engine.write_buffer_bytes() == 0);
        let value = engine.get(SpaceId::META, &7_u32.to_be_bytes()).unwrap();
        assert_eq!(value.map(|value| value.len()), Some(10_000));
    }

    #[test]
    fn memory_that_a_reader_held_at_a_write_out_is_freed_with_the_reader() {
        let directory = tempfile::tempdir().unwrap();
        let engine = engine(directory.path());
        put(&engine, 1, 1_000_000);
        let snapshot = engine.snapshot().unwrap();
        put(&engine, 1, 7);
        engine.write_out_idle(0);
        let files = directory.path().join("db/keyspaces/1/tables");
        let is_written = || std::fs::read_dir(&files).is_ok_and(|files| files.count() > 0);
        eventually("a file is written", is_written);
        engine.write_out_idle(1_000);
        assert!(engine.write_buffer_bytes() > 1_000_000, "it is read");
        let value = engine.get_at(&snapshot, SpaceId::META, &1_u32.to_be_bytes());
        assert_eq!(value.unwrap().map(|value| value.len()), Some(1_000_000));
        drop(snapshot);
        eventually("the memory is free", || {
            engine.write_out_idle(1_000);
            engine.write_buffer_bytes() == 0
        });
    }

    #[test]
    fn a_space_is_idle_after_looks_that_find_the_same_rows() {
        let [written, idle] = [1, 2].map(|of| SpaceId::new(TableId(uuid::Uuid::from_u128(of)), 0));
        let mut spaces = IdleSpaces::default();
        for entries in 1..=3 {
            let found = spaces.note([(written, (1, entries)), (idle, (7, 9))].into_iter(), 3);
            assert!(found.is_empty());
        }
        let look = |spaces: &mut IdleSpaces, contents| spaces.note([contents].into_iter(), 3);
        assert_eq!(look(&mut spaces, (idle, (7, 9))), [idle]);
        assert!(look(&mut spaces, (idle, (7, 9))).is_empty(), "once");
        assert!(look(&mut spaces, (idle, (8, 0))).is_empty(), "written out");
        for _ in 0..3 {
            assert!(look(&mut spaces, (idle, (8, 1))).is_empty());
        }
        assert_eq!(look(&mut spaces, (idle, (8, 1))), [idle]);
    }
}
