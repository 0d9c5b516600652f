//! The directory of an index's snapshot, and the generations in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use platform::files;
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_64;

use super::Snapshots;
use super::fault::PersistenceError;
use super::manifest::{CURRENT, Manifest};
use crate::identity::IndexIdentity;

/// The beginning of the name of a generation's directory.
const GENERATION: &str = "generation-";

/// The number of characters of a name that are in the directory's name for human readers. The rest
/// of the directory's name distinguishes indexes.
const NAME_MAX: usize = 64;

/// The directory of one index.
#[derive(Clone, Debug)]
pub(super) struct IndexDirectory {
    /// The path of the directory.
    pub path: PathBuf,
}

/// The directory of a generation that is being written.
pub(super) struct NewGeneration {
    /// The number of the generation.
    pub number: u64,
    /// The path of the directory.
    pub path: PathBuf,
}

impl IndexDirectory {
    /// The directory of an index below `root`. Its name has the keyspace, the index and the token
    /// range.
    pub(super) fn of(root: &Path, identity: &IndexIdentity) -> IndexDirectory {
        let (name, range) = (&identity.name, &identity.range);
        let whole = format!("{}\0{}", name.keyspace, name.index);
        let directory = format!(
            "{}.{}-{:016x}-{:016x}-{:016x}",
            readable(&name.keyspace),
            readable(&name.index),
            xxh3_64(whole.as_bytes()),
            range.start,
            range.end
        );
        IndexDirectory {
            path: root.join(directory),
        }
    }

    /// The path of a generation.
    pub(super) fn generation(&self, number: u64) -> PathBuf {
        self.path.join(generation_name(number))
    }

    /// Makes the directory of a new generation, with a number above all that exist.
    pub(super) fn begin(&self) -> Result<NewGeneration, PersistenceError> {
        fs::create_dir_all(&self.path).map_err(PersistenceError::io("make", &self.path))?;
        let entries = fs::read_dir(&self.path).map_err(PersistenceError::io("read", &self.path))?;
        let numbers = entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.strip_prefix(GENERATION)?.parse::<u64>().ok()
        });
        let number = numbers.max().unwrap_or(0) + 1;
        let path = self.generation(number);
        fs::create_dir(&path).map_err(PersistenceError::io("make", &path))?;
        Ok(NewGeneration { number, path })
    }

    /// Makes a generation the current one and deletes the others. Fails if `cancel` says that the
    /// index was dropped.
    pub(super) fn publish(
        &self,
        snapshots: &Snapshots,
        manifest: &Manifest,
        cancel: &CancellationToken,
    ) -> Result<(), PersistenceError> {
        let _standing = snapshots.standing();
        if cancel.is_cancelled() {
            return Err(PersistenceError::Stopped);
        }
        // The manifest must not name anything that is not on the disk: the generation and its files
        // come first.
        let generation = self.generation(manifest.generation);
        for directory in [Some(&*generation), Some(&*self.path), self.path.parent()]
            .into_iter()
            .flatten()
        {
            let synced = fs::File::open(directory).and_then(|file| files::sync(&file, directory));
            synced.map_err(PersistenceError::io("write", directory))?;
        }
        manifest.publish(&self.path)?;
        self.sweep(manifest.generation);
        Ok(())
    }

    /// Deletes a generation that could not be made the current one. It stays if it is current all
    /// the same, as the failure may have come after the rename. The next save deletes it if it
    /// can't be deleted now.
    pub(super) fn give_up(&self, new: &NewGeneration) {
        let stands = |manifest: Manifest| manifest.generation == new.number;
        if Manifest::read(&self.path).is_ok_and(|current| !current.is_some_and(stands)) {
            // The directory may never have been made.
            let _ = fs::remove_dir_all(&new.path);
        }
    }

    /// Deletes all generations but the current one. The next save deletes those that can't be
    /// deleted now.
    fn sweep(&self, stands: u64) {
        let stays = self.generation(stands);
        let Ok(entries) = fs::read_dir(&self.path) else {
            return;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path != stays && !path.ends_with(CURRENT) {
                let deleted = match path.is_dir() {
                    true => fs::remove_dir_all(&path),
                    false => fs::remove_file(&path),
                };
                if let Err(error) = deleted {
                    tracing::debug!(path = %path.display(), %error, "an old file of a snapshot can't be deleted");
                }
            }
        }
    }
}

/// The name of a generation's directory.
pub(super) fn generation_name(number: u64) -> String {
    format!("{GENERATION}{number}")
}

/// Deletes a file that may not be there.
pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn readable(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    name.chars().take(NAME_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::indexes::tests::identity;
    use crate::options::{IndexesOptions, SnapshotOptions};

    fn snapshots(directory: &Path) -> Snapshots {
        let indexes = IndexesOptions {
            directory: directory.to_owned(),
            ..IndexesOptions::default()
        };
        Snapshots::new(&SnapshotOptions::default(), &indexes)
    }

    fn manifest(generation: u64) -> Manifest {
        Manifest {
            generation,
            position_ms: 0,
            log_ttl_s: 0,
            identity: BTreeMap::new(),
        }
    }

    #[test]
    fn names_are_told_apart_and_fit_a_file_system() {
        let path = |keyspace: &str, index: &str, end| {
            let mut identity = identity(index);
            identity.name.keyspace = keyspace.to_owned();
            identity.range.end = end;
            IndexDirectory::of(Path::new("/r"), &identity).path
        };
        let long = "x".repeat(300);
        let paths = [
            path("ks", "idx", i64::MAX),
            path("ks", "idx", 7),
            path("k", "s.idx", i64::MAX),
            path("k", "s/idx", i64::MAX),
            path("ks", &long, i64::MAX),
            path("ks", &format!("{long}y"), i64::MAX),
        ];
        for (at, path) in paths.iter().enumerate() {
            assert_eq!(path.parent(), Some(Path::new("/r")));
            assert!(path.file_name().unwrap().len() < 255);
            assert!(!paths[..at].contains(path), "{}", path.display());
        }
    }

    #[test]
    fn one_generation_stands() {
        let directory = tempfile::tempdir().unwrap();
        let snapshots = snapshots(directory.path());
        let place = snapshots.place(&identity("idx"));
        let cancel = CancellationToken::new();
        for expected in 1..4 {
            let new = place.begin().unwrap();
            assert_eq!(new.number, expected);
            let given_up = place.begin().unwrap();
            fs::write(given_up.path.join("graph"), "half").unwrap();
            place
                .publish(&snapshots, &manifest(new.number), &cancel)
                .unwrap();
            let stands = Manifest::read(&place.path).unwrap();
            assert_eq!(stands, Some(manifest(expected)));
            assert!(new.path.is_dir() && !given_up.path.exists());
        }
        let stands = NewGeneration {
            number: 3,
            path: place.generation(3),
        };
        let other = place.begin().unwrap();
        place.give_up(&stands);
        place.give_up(&other);
        assert!(stands.path.is_dir() && !other.path.exists());
        cancel.cancel();
        let refused = place.publish(&snapshots, &manifest(9), &cancel);
        assert!(matches!(refused, Err(PersistenceError::Stopped)));
        assert_eq!(Manifest::read(&place.path).unwrap(), Some(manifest(3)));
    }

    #[test]
    fn snapshots_of_dropped_indexes_are_deleted_and_one_process_works_here() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (snapshots(directory.path()), snapshots(directory.path()));
        let (stays, goes) = (identity("stays"), identity("goes"));
        for identity in [&stays, &goes] {
            first.place(identity).begin().unwrap();
        }
        first.enter().unwrap();
        first.enter().unwrap();
        let error = second.enter().unwrap_err().to_string();
        assert!(error.contains("in use by another process"), "{error}");
        second.retain(&[]);
        first.retain(std::slice::from_ref(&stays));
        assert!(first.place(&stays).path.is_dir());
        assert!(!first.place(&goes).path.exists());
        first.remove(&goes);
        drop(first);
        second.remove(&stays);
        assert!(!second.place(&stays).path.exists());
    }
}
