//! Opens the snapshot of an index.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::directory::IndexDirectory;
use super::fault::{LogGap, PersistenceError};
use super::manifest::{Manifest, difference, with_fewer_columns, with_present_names, words};
use super::saver::CurrentGeneration;
use super::{LogFacts, Snapshots, rows};
use crate::identity::{IndexIdentity, StructureClass};
use crate::indexes::{IndexContent, Structure, file_memory};
use crate::items::{ChangeKind, IndexedRows, UnreadRows};
use crate::memory::{Claim, NoMemory, ProcessMemory};
use crate::options::IndexesOptions;
use crate::present::TimeSource;

/// The part of the log's time to live that is reserved for reading its rows: one in this many.
const TTL_RESERVE: u32 = 20;

/// The memory of a row as a multiple of its bytes in the file of rows. Write time and expiry take
/// twice as much while the list of them grows, and the key is stored a second time in tables.
const MEMORY_OF_ROWS: u64 = 3;

/// The interval at which memory is tried again.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The result of opening a snapshot.
pub(crate) enum ReopenOutcome {
    /// There is no usable snapshot, so the index is to be built.
    Nothing,
    /// The index as it was saved.
    Index(Box<ReopenedIndex>),
}

/// An index that was opened from a snapshot.
pub(crate) struct ReopenedIndex {
    /// The structure and the keys of the index.
    pub content: IndexContent,
    /// The rows of the index.
    pub items: IndexedRows,
    /// The rows that have still to be read from the table.
    pub unread: UnreadRows,
    /// The snapshot on the disk.
    pub saved: CurrentGeneration,
    /// Whether the log may lack rows after the position. Then the table has to be scanned.
    pub to_reconcile: bool,
}

impl Snapshots {
    /// When the table of an index was last truncated by the knowledge of its snapshot, milliseconds
    /// since the epoch. Blocks.
    pub(crate) fn truncated_ms(&self, identity: &IndexIdentity) -> Option<i64> {
        self.interval?;
        let manifest = Manifest::read(&self.place(identity).path).ok()??;
        let is_of_table = manifest.is_of_table(identity.table.id);
        manifest.truncated_ms().filter(|_| is_of_table)
    }

    /// The index that the snapshot of an index holds, if it keeps fewer columns and differs in
    /// nothing else: the process ended before the index was built again with all of them. Blocks.
    pub(crate) fn former(&self, identity: &IndexIdentity, log: &LogFacts) -> Option<IndexIdentity> {
        self.interval?;
        let manifest = Manifest::read(&self.place(identity).path).ok()??;
        let saved = with_present_names(manifest.identity, &words(identity, log.id));
        with_fewer_columns(&saved, identity, log.id)
    }

    /// Opens the snapshot of an index. One that can't be used is logged and deleted. One that
    /// `memory` has no room for, or that the system can't read, is logged and stays until the index
    /// is saved again. `present` goes by the clock of the log's times. Blocks.
    pub(crate) fn open(
        &self,
        identity: &IndexIdentity,
        log: &LogFacts,
        present: &TimeSource,
        indexes: &IndexesOptions,
        memory: &ProcessMemory,
    ) -> ReopenOutcome {
        let index = &identity.name;
        if self.interval.is_none() {
            return ReopenOutcome::Nothing;
        }
        if let Err(error) = self.enter() {
            tracing::error!(%index, %error, "the directory of snapshots can't be used; the index is built anew");
            return ReopenOutcome::Nothing;
        }
        // The former saver of the index was cancelled. If it was just publishing a snapshot, this
        // waits until that is done.
        drop(self.standing());
        let place = self.place(identity);
        match self.read(&place, identity, log, present, indexes, memory) {
            Ok(None) => ReopenOutcome::Nothing,
            Ok(Some(opened)) => ReopenOutcome::Index(Box::new(opened)),
            Err(error) => {
                match &error {
                    PersistenceError::Differs { .. } => {
                        tracing::info!(%index, reason = %error, "the snapshot does not fit the index; the index is built anew");
                    }
                    PersistenceError::NoMemory(_) => {
                        tracing::error!(%index, %error, "there is no memory to open the snapshot; the index is built anew, as far as memory allows");
                    }
                    _ => {
                        tracing::error!(%index, %error, "the snapshot can't be used; the index is built anew");
                    }
                }
                // A snapshot that the system can't read may be sound. The next save replaces it.
                if !error.is_of_the_system() {
                    self.delete(&place.path);
                }
                ReopenOutcome::Nothing
            }
        }
    }

    fn read(
        &self,
        place: &IndexDirectory,
        identity: &IndexIdentity,
        log: &LogFacts,
        present: &TimeSource,
        indexes: &IndexesOptions,
        memory: &ProcessMemory,
    ) -> Result<Option<ReopenedIndex>, PersistenceError> {
        let Some(manifest) = Manifest::read(&place.path)? else {
            return Ok(None);
        };
        let now = words(identity, log.id);
        let saved = with_present_names(manifest.identity.clone(), &now);
        if let Some((field, saved, now)) = difference(&saved, &now) {
            return Err(PersistenceError::Differs {
                path: place.path.join(super::manifest::CURRENT),
                field,
                saved,
                now,
            });
        }
        let directory = place.generation(manifest.generation);
        let class = identity.options.class();
        let _claim = self.claim(memory, memory_bytes(&directory, class, indexes)?)?;
        let structure = Structure::open(&identity.options, &directory, indexes)?;
        let path = directory.join("rows");
        let held = structure.ids();
        let restored = rows::read(
            &path,
            manifest.generation,
            &identity.keys,
            identity.filter_types(),
            &held,
            present.now_s(),
        )?;
        // These values were copied for ids that were changing, or their rows have expired since.
        for id in held.iter().filter(|id| !restored.has(*id)) {
            let removed = structure.change(id, ChangeKind::Remove, None);
            removed.map_err(|_| {
                PersistenceError::damaged(&path, 0, "a vector that no row has can't be removed")
            })?;
        }
        let (items, keys, unread) = restored.finish();
        let behind = reach(
            present.now(),
            manifest.position(),
            [manifest.log_ttl_s, log.ttl_s],
        );
        if let Err(error) = &behind {
            tracing::warn!(
                index = %identity.name,
                reason = %error,
                "the index is reconciled with its table before it serves"
            );
        }
        Ok(Some(ReopenedIndex {
            content: IndexContent::reopened(structure, identity.keys.clone(), keys),
            saved: CurrentGeneration {
                generation: manifest.generation,
                position: manifest.position(),
                revision: items.revision(),
            },
            items,
            unread,
            to_reconcile: behind.is_err(),
        }))
    }

    /// Claims memory for an index, and waits for a while for memory that is about to be freed.
    fn claim<'a>(&self, memory: &'a ProcessMemory, bytes: u64) -> Result<Claim<'a>, NoMemory> {
        let until = Instant::now() + self.memory_wait;
        loop {
            match memory.claim(bytes) {
                Err(_) if Instant::now() < until && !self.stopping.is_cancelled() => {
                    std::thread::sleep(LOOK_INTERVAL);
                }
                claimed => return claimed,
            }
        }
    }
}

/// About the memory that the index of a generation takes, bytes, without mapped files.
fn memory_bytes(
    generation: &Path,
    class: StructureClass,
    indexes: &IndexesOptions,
) -> Result<u64, PersistenceError> {
    let entries = fs::read_dir(generation).map_err(PersistenceError::io("read", generation))?;
    let mut bytes = 0;
    for entry in entries {
        let entry = entry.map_err(PersistenceError::io("read", generation))?;
        let file = entry
            .metadata()
            .map_err(PersistenceError::io("look at", &entry.path()))?;
        bytes += match entry.file_name().to_str() {
            Some("rows") => MEMORY_OF_ROWS * file.len(),
            name => file_memory(class, name, file.len(), indexes),
        };
    }
    Ok(bytes)
}

/// Fails unless the log still has every row since the position, and time to read them. It has the
/// rows that are younger than the shorter of the two times to live.
fn reach(now: Duration, position: Duration, ttls_s: [u64; 2]) -> Result<(), LogGap> {
    let behind = now.checked_sub(position).ok_or(LogGap::ClockSetBack)?;
    // A value of 0 means for ever.
    let Some(log_ttl_s) = ttls_s.into_iter().filter(|ttl_s| *ttl_s != 0).min() else {
        return Ok(());
    };
    let log_ttl = Duration::from_secs(log_ttl_s);
    match behind <= log_ttl - log_ttl / TTL_RESERVE {
        true => Ok(()),
        false => Err(LogGap::Expired { behind, log_ttl }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_reaches_as_far_as_its_rows_live() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let reaches = |position, ttls_s| reach(hours(100), position, ttls_s).is_ok();
        let day_s = 86_400;
        assert!(reaches(hours(100), [day_s; 2]));
        assert!(reaches(hours(78), [day_s; 2]));
        assert!(
            !reaches(hours(77), [day_s; 2]),
            "too little is left to read it in"
        );
        assert!(!reaches(hours(78), [day_s, day_s / 2]));
        assert!(!reaches(hours(78), [day_s / 2, day_s]));
        assert!(reaches(hours(0), [0, 0]));
        assert!(!reaches(hours(0), [0, day_s]));
        for ttls_s in [[day_s; 2], [0; 2]] {
            let refused = reach(hours(100), hours(101), ttls_s);
            assert_eq!(refused, Err(LogGap::ClockSetBack));
        }
    }
}
