//! Links to the current snapshots, for a copy of the whole data directory.
//!
//! The files of a generation never change. So hard links to them are a copy that costs nothing, and
//! that stays when the generation goes.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::fault::PersistenceError;
use super::manifest::{self, Manifest};
use super::{Snapshots, directory};

/// The longest wait for the indexes to be saved before their snapshots are linked. Those that are
/// not saved by then are linked as they were saved last, and read more of the log later.
const SAVED_WITHIN: Duration = Duration::from_secs(30);

/// The snapshots that were linked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkedSnapshots {
    /// The indexes.
    pub indexes: u64,
    /// The files of all of them.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
}

impl Snapshots {
    /// Has all indexes saved that have changed, and waits for it, but not for long.
    pub(crate) async fn save_now(&self) {
        let mut answered = self.answered.subscribe();
        let before = *answered.borrow_and_update();
        let savers = self.savers.len() as u64;
        self.asked.send_modify(|round| *round += 1);
        let all = answered.wait_for(|now| now.saturating_sub(before) >= savers);
        if tokio::time::timeout(SAVED_WITHIN, all).await.is_err() {
            tracing::info!("indexes are not saved yet: their earlier snapshots are copied");
        }
    }

    /// Links the current snapshots of all indexes to `<target>/indexes/snapshots`. Blocks.
    pub(crate) fn link_to(&self, target: &Path) -> Result<LinkedSnapshots, PersistenceError> {
        let mut linked = LinkedSnapshots::default();
        if self.interval.is_none() {
            return Ok(linked);
        }
        let target = target.join("indexes").join("snapshots");
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(linked),
            entries => entries.map_err(PersistenceError::io("read", &self.root))?,
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if let Some(name) = path.file_name().filter(|_| path.is_dir()) {
                self.link_index(&path, &target.join(name), &mut linked)?;
            }
        }
        Ok(linked)
    }

    fn link_index(
        &self,
        place: &Path,
        target: &Path,
        linked: &mut LinkedSnapshots,
    ) -> Result<(), PersistenceError> {
        // No generation goes meanwhile.
        let _standing = self.standing();
        // A snapshot that can't be read is of no use in a copy either.
        let Ok(Some(current)) = Manifest::read(place) else {
            return Ok(());
        };
        let generation = directory::generation_name(current.generation);
        let (from, to) = (place.join(&generation), target.join(&generation));
        fs::create_dir_all(&to).map_err(PersistenceError::io("make", &to))?;
        let entries = fs::read_dir(&from).map_err(PersistenceError::io("read", &from))?;
        for entry in entries {
            let entry = entry.map_err(PersistenceError::io("read", &from))?;
            let path = to.join(entry.file_name());
            linked.bytes += link(&entry.path(), &path)?;
            linked.files += 1;
        }
        let path = target.join(manifest::CURRENT);
        linked.bytes += link(&place.join(manifest::CURRENT), &path)?;
        linked.files += 1;
        linked.indexes += 1;
        Ok(())
    }
}

/// Links a file. Returns its bytes.
fn link(from: &Path, to: &Path) -> Result<u64, PersistenceError> {
    let linked = fs::hard_link(from, to).and_then(|()| fs::metadata(to));
    let linked = linked.map_err(PersistenceError::io("link", to))?;
    Ok(linked.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::indexes::tests::identity;
    use crate::options::{IndexesOptions, SnapshotOptions};

    fn manifest(generation: u64) -> Manifest {
        Manifest {
            generation,
            position_ms: generation,
            log_ttl_s: 0,
            identity: BTreeMap::new(),
        }
    }

    #[test]
    fn links_stay_whole_when_the_next_generation_comes() {
        let directory = tempfile::tempdir().unwrap();
        let indexes = IndexesOptions {
            directory: directory.path().join("data"),
            ..IndexesOptions::default()
        };
        let snapshots = Snapshots::new(&SnapshotOptions::default(), &indexes);
        let target = directory.path().join("copy");
        let none = snapshots.link_to(&target).unwrap();
        assert_eq!(none, LinkedSnapshots::default(), "nothing is saved yet");

        let place = snapshots.place(&identity("idx"));
        let save = |bytes: &str| {
            let new = place.begin().unwrap();
            fs::write(new.path.join("rows"), bytes).unwrap();
            let cancel = CancellationToken::new();
            place
                .publish(&snapshots, &manifest(new.number), &cancel)
                .unwrap();
        };
        save("first");
        let begun = place.begin().unwrap();
        fs::write(begun.path.join("rows"), "half").unwrap();
        let linked = snapshots.link_to(&target).unwrap();
        assert_eq!((linked.indexes, linked.files), (1, 2));
        save("second");

        let copy = target
            .join("indexes/snapshots")
            .join(place.path.file_name().unwrap());
        assert_eq!(Manifest::read(&copy).unwrap(), Some(manifest(1)));
        assert_eq!(fs::read(copy.join("generation-1/rows")).unwrap(), b"first");
        assert!(!copy.join("generation-2").exists(), "it is not whole");
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_saves_has_an_end() {
        let indexes = IndexesOptions::default();
        let snapshots = Snapshots::new(&SnapshotOptions::default(), &indexes);
        snapshots.save_now().await;
        // A saver that never answers.
        let _counted = snapshots.savers.token();
        snapshots.save_now().await;
    }
}
