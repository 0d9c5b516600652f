//! From a snapshot to an index.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ann::Placement;

use super::fault::{Fault, OutOfReach};
use super::manifest::{Manifest, difference, words};
use super::place::Place;
use super::saver::Saved;
use super::{LogFacts, Snapshots, rows};
use crate::identity::IndexIdentity;
use crate::index_actor::VectorIndex;
use crate::items::{Items, Unread};
use crate::memory::{Claim, Memory, NoMemory};
use crate::options::IndexesOptions;
use crate::present::Present;

/// Of the time for which log rows live, this part is for reading them: one in so many.
const TTL_RESERVE: u32 = 20;

/// A row takes about so many times the memory of what it takes in the file of rows: its write time and expiry
/// twice as much while the list of them grows, and the key a second time in tables.
const MEMORY_OF_ROWS: u64 = 3;

/// Memory that is too little is waited for so long: an index that has just been given up is freed with the last
/// search of it.
const FREED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// What there is to begin with.
pub enum Opened {
    /// Nothing: the index is to be built.
    Nothing,
    /// An index as it was.
    Index(Box<Reopened>),
}

/// An index that was opened.
pub struct Reopened {
    /// Its vectors and keys.
    pub vectors: VectorIndex,
    /// Its rows.
    pub items: Items,
    /// Rows to be read.
    pub unread: Unread,
    /// What stands on the disk.
    pub saved: Saved,
    /// Whether the log may lack rows behind the position, so that the table has to be scanned.
    pub to_reconcile: bool,
}

impl Snapshots {
    /// When the table of an index was last truncated as far as its snapshot knows, milliseconds since the epoch.
    /// Blocks.
    pub fn truncated_ms(&self, identity: &IndexIdentity) -> Option<i64> {
        self.interval?;
        let manifest = Manifest::read(&self.place(identity).path).ok()??;
        let is_of_table = manifest.is_of_table(identity.table.id);
        manifest.truncated_ms().filter(|_| is_of_table)
    }

    /// Opens the snapshot of an index. What can't be used is logged and deleted. One that `memory` has no room
    /// for is logged and stays until the index is saved again. `present`: by the clock that the log's times go by.
    /// Blocks.
    pub fn open(
        &self,
        identity: &IndexIdentity,
        log: &LogFacts,
        present: &Present,
        indexes: &IndexesOptions,
        memory: &Memory,
    ) -> Opened {
        let index = &identity.name;
        if self.interval.is_none() {
            return Opened::Nothing;
        }
        if let Err(error) = self.enter() {
            tracing::error!(%index, %error, "no snapshot can be used");
            return Opened::Nothing;
        }
        // Whoever saved the index before was cancelled; what it was just publishing stands from here on.
        drop(self.standing());
        let place = self.place(identity);
        match self.read(&place, identity, log, present, indexes, memory) {
            Ok(None) => Opened::Nothing,
            Ok(Some(opened)) => Opened::Index(Box::new(opened)),
            Err(error) => {
                match &error {
                    Fault::Differs { .. } => {
                        tracing::info!(%index, reason = %error, "the snapshot is of no use; the index is built anew");
                    }
                    Fault::NoMemory(_) => {
                        tracing::error!(%index, %error, "there is no memory to open the snapshot; the index is built anew, as far as there is");
                    }
                    _ => {
                        tracing::error!(%index, %error, "the snapshot can't be used; the index is built anew");
                    }
                }
                // What the system does not let us read may be sound; the next save takes its place.
                if !error.is_of_the_system() {
                    self.delete(&place.path);
                }
                Opened::Nothing
            }
        }
    }

    fn read(
        &self,
        place: &Place,
        identity: &IndexIdentity,
        log: &LogFacts,
        present: &Present,
        indexes: &IndexesOptions,
        memory: &Memory,
    ) -> Result<Option<Reopened>, Fault> {
        let Some(manifest) = Manifest::read(&place.path)? else {
            return Ok(None);
        };
        if let Some((field, saved, now)) = difference(&manifest.identity, &words(identity, log.id))
        {
            return Err(Fault::Differs {
                path: place.path.join(super::manifest::CURRENT),
                field,
                saved,
                now,
            });
        }
        let directory = place.generation(manifest.generation);
        let _claim = self.claim(memory, memory_bytes(&directory, indexes.vectors)?)?;
        let options = identity.options.ann(indexes.vectors);
        let vectors = ann::Index::open_in(&directory, options, &indexes.directory)?;
        let path = directory.join("rows");
        let held = vectors.ids();
        let restored = rows::read(
            &path,
            manifest.generation,
            &identity.keys,
            &held,
            present.now_s(),
        )?;
        // Copied for ids that were changing, or expired since.
        for id in held.iter().filter(|id| !restored.has(*id)) {
            vectors.remove(id).map_err(|_| {
                Fault::damaged(&path, 0, "a vector that no row has can't be removed")
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
        Ok(Some(Reopened {
            vectors: VectorIndex::reopened(&identity.options, identity.keys.clone(), vectors, keys),
            saved: Saved {
                generation: manifest.generation,
                position: manifest.position(),
                revision: items.revision(),
            },
            items,
            unread,
            to_reconcile: behind.is_err(),
        }))
    }

    /// Memory for an index, which may be on its way to be free.
    fn claim<'a>(&self, memory: &'a Memory, bytes: u64) -> Result<Claim<'a>, NoMemory> {
        let until = Instant::now() + FREED_WITHIN;
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

/// About how much memory the index of a generation takes, less what is mapped.
fn memory_bytes(generation: &Path, placement: Placement) -> Result<u64, Fault> {
    let entries = fs::read_dir(generation).map_err(Fault::io("read", generation))?;
    let mut bytes = 0;
    for entry in entries {
        let entry = entry.map_err(Fault::io("read", generation))?;
        let file = entry
            .metadata()
            .map_err(Fault::io("look at", &entry.path()))?;
        bytes += match entry.file_name().to_str() {
            Some("graph") => file.len(),
            Some("rows") => MEMORY_OF_ROWS * file.len(),
            _ if placement == Placement::Memory => file.len(),
            _ => 0,
        };
    }
    Ok(bytes)
}

/// Whether the log has every row since the position: it has those that have lived for less than any of the
/// times for which its rows were to live.
fn reach(now: Duration, position: Duration, ttls_s: [u64; 2]) -> Result<(), OutOfReach> {
    let behind = now.checked_sub(position).ok_or(OutOfReach::ClockSetBack)?;
    // 0: for ever.
    let Some(log_ttl_s) = ttls_s.into_iter().filter(|ttl_s| *ttl_s != 0).min() else {
        return Ok(());
    };
    let log_ttl = Duration::from_secs(log_ttl_s);
    match behind <= log_ttl - log_ttl / TTL_RESERVE {
        true => Ok(()),
        false => Err(OutOfReach::Expired { behind, log_ttl }),
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
            assert_eq!(refused, Err(OutOfReach::ClockSetBack));
        }
    }
}
