//! Checkpoints: the files of the database as they are at one moment, as hard links.
//!
//! A checkpoint is a data directory of its own. It costs no copy of data, as tables and files of
//! large values never change: the engine only makes new ones and removes old ones.
//!
//! - Most files are linked while writes go on. What came since is linked between two batches, on
//!   the thread that writes, so no batch is half in the checkpoint.
//! - Journals come before manifests. A memtable that is written out in between is in both, which a
//!   replay sees by the sequence numbers. In the other order it could be in neither.
//! - The newest journal goes on growing. So the checkpoint gets a copy of its batches up to that
//!   moment, which is made once writes go on.
//! - A manifest never changes: a new one takes its place, which the small file `current` names. In
//!   that moment the manifests of most spaces are as they were, and only `current` is read again.
//! - Journals and tables may be removed at any time. Journals are removed from the oldest on, once
//!   what they hold is in tables. For tables, the manifest is read again.
//! - The marker of the directory is written last. Without it no directory is opened.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::manifest::{self, FileDamage, SpaceManifest};
use super::{DiskEngine, OpenDatabase, SpaceId, directory, fault_error, journal};
use crate::StorageError;

/// The most looks at a manifest, or at the journals, that change meanwhile.
const LOOKS_MAX: usize = 100;
/// fjall's own table of spaces.
const TABLE_OF_SPACES: &str = "0";
/// fjall's lock, which a directory must have to be opened.
const LOCK: &str = "lock";

/// A checkpoint that is being made. Its directory is removed if it is dropped unfinished.
pub(crate) struct CheckpointDraft {
    root: PathBuf,
    /// The database's folder.
    source: PathBuf,
    /// The folder of the copy.
    target: PathBuf,
    incarnation: u64,
    /// The files that have a link, by their paths in the folder.
    linked: HashSet<PathBuf>,
    /// The manifests whose files were linked at the beginning, by the folders of their spaces.
    early: HashMap<PathBuf, SpaceManifest>,
    /// The folders of the spaces that are in the checkpoint, with their manifests.
    manifests: Vec<(PathBuf, SpaceManifest)>,
    spaces: HashMap<SpaceId, PathBuf>,
    /// The newest journal.
    journal: Option<(PathBuf, File)>,
    /// The number of the last batch that belongs to the checkpoint.
    written: u64,
    is_finished: bool,
}

/// A checkpoint's files.
#[derive(Debug, Default)]
pub(crate) struct CheckpointFiles {
    pub files: u64,
    pub bytes: u64,
    /// The folder of each space, in the checkpoint's directory.
    pub folders: HashMap<SpaceId, PathBuf>,
}

impl DiskEngine {
    /// Begins a checkpoint in a directory that must not exist, and links what is there. Writes go
    /// on meanwhile.
    pub(crate) fn begin_checkpoint(&self, root: &Path) -> Result<CheckpointDraft, StorageError> {
        let failed = |error| failed(root, error);
        let target = root.join(directory::DATABASE);
        directory::create_new_private(root).map_err(failed)?;
        let mut draft = CheckpointDraft {
            root: root.to_path_buf(),
            source: self.directory.database(),
            target,
            incarnation: self.incarnation.load(Ordering::Relaxed),
            linked: HashSet::new(),
            early: HashMap::new(),
            manifests: Vec::new(),
            spaces: HashMap::new(),
            journal: None,
            written: 0,
            is_finished: false,
        };
        fs::create_dir_all(draft.target.join(manifest::SPACES)).map_err(failed)?;
        for folder in self.with(|open| Ok(folders(open)))?.into_values() {
            // Of a space that is dropped meanwhile, nothing is in the checkpoint.
            if let Some(manifest) = draft.try_link_space(&folder)? {
                draft.early.insert(folder, manifest);
            }
        }
        Ok(draft)
    }

    /// Links what has come since the beginning. Only the thread that writes may call this: the
    /// checkpoint has all batches that it has committed.
    pub(crate) fn link_checkpoint(&self, draft: &mut CheckpointDraft) -> Result<(), StorageError> {
        self.with(|open| {
            draft.written = self.written.load(Ordering::Acquire);
            if draft.incarnation != self.incarnation.load(Ordering::Relaxed) {
                return Err(StorageError::Io(
                    "the storage was opened again after a disk error while a checkpoint was made: \
                     make it again"
                        .to_owned(),
                ));
            }
            draft.link_journals()?;
            draft.spaces = folders(open);
            let table_of_spaces = space_folder(TABLE_OF_SPACES);
            let folders: Vec<PathBuf> = draft.spaces.values().cloned().collect();
            for folder in folders.into_iter().chain([table_of_spaces]) {
                let manifest = match draft.unchanged(&folder) {
                    Some(manifest) => manifest,
                    None => draft.link_space(&folder)?,
                };
                draft.manifests.push((folder, manifest));
            }
            Ok(())
        })
    }

    /// Finishes a checkpoint: its directory can be opened afterwards. Writes go on meanwhile.
    pub(crate) fn finish_checkpoint(
        &self,
        mut draft: CheckpointDraft,
    ) -> Result<CheckpointFiles, StorageError> {
        let prefix = draft.copy_journal()?;
        // Journals are emptied when the storage is closed.
        if self.is_closed.load(Ordering::Acquire) {
            return Err(StorageError::Closed);
        }
        if prefix.is_some_and(|last| last < draft.written) {
            return Err(StorageError::Corrupt(format!(
                "the newest journal in {} lacks batches: run `annulus scrub`",
                draft.source.display()
            )));
        }
        let files = draft.finish().map_err(|error| failed(&draft.root, error))?;
        draft.is_finished = true;
        Ok(files)
    }
}

impl Drop for CheckpointDraft {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.root) {
            let path = self.root.display();
            tracing::warn!(%error, %path, "an unfinished checkpoint could not be removed");
        }
    }
}

impl CheckpointDraft {
    /// Links all journals but the newest, which is opened.
    fn link_journals(&mut self) -> Result<(), StorageError> {
        for _ in 0..LOOKS_MAX {
            let paths = journal::paths(&self.source);
            let mut paths = paths.map_err(|error| failed(&self.source, error))?;
            let Some(newest) = paths.pop() else {
                return Ok(());
            };
            let opened = match File::open(&newest) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(|error| failed(&newest, error))?,
            };
            for path in paths.iter().rev() {
                // What it held is in tables by now, and so is what the older ones held.
                if !self.link(&name_of(path))? {
                    break;
                }
            }
            self.journal = Some((name_of(&newest), opened));
            return Ok(());
        }
        Err(StorageError::Io(
            "the journals changed too fast to make a checkpoint: try again".to_owned(),
        ))
    }

    /// The manifest of a space whose files were linked at the beginning, if it still counts.
    fn unchanged(&mut self, folder: &Path) -> Option<SpaceManifest> {
        let early = self.early.remove(folder)?;
        let current = fs::read(self.source.join(folder).join(manifest::CURRENT)).ok()?;
        (current == early.current).then_some(early)
    }

    /// Links the files of a space.
    fn link_space(&mut self, folder: &Path) -> Result<SpaceManifest, StorageError> {
        for _ in 0..LOOKS_MAX {
            if let Some(manifest) = self.try_link_space(folder)? {
                return Ok(manifest);
            }
        }
        Err(StorageError::Io(format!(
            "the files in {} changed too fast to make a checkpoint: try again",
            self.source.join(folder).display()
        )))
    }

    /// Links the files that a space's manifest names; `None` if one of them has gone meanwhile.
    fn try_link_space(&mut self, folder: &Path) -> Result<Option<SpaceManifest>, StorageError> {
        let manifest = match manifest::read_space(&self.source.join(folder)) {
            Err(FileDamage::Missing(_)) => return Ok(None),
            manifest => manifest.map_err(fault_error)?,
        };
        for file in &manifest.files {
            let Ok(path) = file.path.strip_prefix(&self.source) else {
                continue;
            };
            if !self.link(path)? {
                return Ok(None);
            }
        }
        Ok(Some(manifest))
    }

    /// Links a file, by its path in the database's folder. Returns whether it exists.
    fn link(&mut self, path: &Path) -> Result<bool, StorageError> {
        if self.linked.contains(path) {
            return Ok(true);
        }
        let target = self.target.join(path);
        let made = match target.parent() {
            Some(parent) => fs::create_dir_all(parent),
            None => Ok(()),
        };
        let linked = made.and_then(|()| fs::hard_link(self.source.join(path), &target));
        match linked {
            Ok(()) => {
                self.linked.insert(path.to_path_buf());
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(&self.root, error)),
        }
    }

    /// Copies the batches of the newest journal. Returns the number of the last one that has one.
    fn copy_journal(&mut self) -> Result<Option<u64>, StorageError> {
        let Some((name, journal)) = self.journal.take() else {
            return Ok(None);
        };
        let copied = journal::prefix_of(&journal, self.written).and_then(|prefix| {
            let mut journal = journal;
            journal.rewind()?;
            let mut copy = File::create_new(self.target.join(&name))?;
            io::copy(&mut journal.take(prefix.end), &mut copy)?;
            Ok(prefix.last_number)
        });
        let last = copied.map_err(|error| failed(&self.root, error))?;
        self.linked.insert(name);
        Ok(last)
    }

    /// Writes what is no link, removes what has gone meanwhile, and marks the directory as whole.
    fn finish(&mut self) -> io::Result<CheckpointFiles> {
        let mut named: HashSet<PathBuf> = HashSet::new();
        for (folder, manifest) in std::mem::take(&mut self.manifests) {
            let path = self.target.join(&folder);
            // It has no file yet if its rows are in a journal.
            fs::create_dir_all(path.join("tables"))?;
            write(&path.join(&manifest.name), &manifest.bytes)?;
            write(&path.join(manifest::CURRENT), &manifest.current)?;
            let files = manifest.files.iter();
            named.extend(files.filter_map(|file| {
                let path = file.path.strip_prefix(&self.source).ok()?;
                Some(path.to_path_buf())
            }));
            named.insert(folder.join(&manifest.name));
            named.insert(folder.join(manifest::CURRENT));
        }
        self.remove_unnamed(&named)?;
        let journals = self.linked.iter().filter(|path| is_journal(path));
        named.extend(journals.cloned());
        fs::copy(
            self.source.join(manifest::VERSION),
            self.target.join(manifest::VERSION),
        )?;
        write(&self.target.join(LOCK), &[])?;
        let mut found = CheckpointFiles::default();
        for path in &named {
            found.files += 1;
            found.bytes += fs::metadata(self.target.join(path))?.len();
        }
        for (space, folder) in &self.spaces {
            let folder = Path::new(directory::DATABASE).join(folder);
            found.folders.insert(*space, folder);
        }
        // In one call, as there may be thousands of folders.
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(File::open(&self.root)?)?;
        #[cfg(not(target_os = "linux"))]
        rustix::fs::sync();
        directory::mark_made(&self.root)?;
        if let Some(parent) = self.root.parent().filter(|of| !of.as_os_str().is_empty()) {
            directory::sync_folder(parent)?;
        }
        Ok(found)
    }

    /// Removes links that were made before the checkpoint's moment to files that no manifest
    /// names.
    fn remove_unnamed(&self, named: &HashSet<PathBuf>) -> io::Result<()> {
        for path in &self.linked {
            if !named.contains(path) && !is_journal(path) {
                fs::remove_file(self.target.join(path))?;
            }
        }
        let spaces = self.target.join(manifest::SPACES);
        for entry in fs::read_dir(&spaces)? {
            let path = entry?.path();
            if !path.join(manifest::CURRENT).exists() {
                fs::remove_dir_all(path)?;
            }
        }
        Ok(())
    }
}

/// Adds what a database needs beside the files of a checkpoint, as a copy of one may lack files
/// without content.
pub(super) fn complete(database: &Path) -> io::Result<()> {
    if !database.join(manifest::VERSION).exists() {
        return Ok(());
    }
    let lock = File::options()
        .create(true)
        .append(true)
        .open(database.join(LOCK));
    lock.map(drop)
}

/// The folders of the open spaces, in the database's folder.
fn folders(open: &OpenDatabase) -> HashMap<SpaceId, PathBuf> {
    let spaces = open.spaces.iter();
    spaces
        .map(|(space, keyspace)| {
            let name = name_of(keyspace.path());
            (*space, Path::new(manifest::SPACES).join(name))
        })
        .collect()
}

fn space_folder(name: &str) -> PathBuf {
    Path::new(manifest::SPACES).join(name)
}

fn name_of(path: &Path) -> PathBuf {
    path.file_name().map(PathBuf::from).unwrap_or_default()
}

/// Whether a path in the database's folder is that of a journal.
fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jnl")
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create_new(path)?.write_all(bytes)
}

fn failed(path: &Path, error: io::Error) -> StorageError {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => StorageError::Invalid(format!(
            "{path} exists already: a checkpoint needs a directory that does not exist"
        )),
        io::ErrorKind::CrossesDevices => StorageError::Invalid(format!(
            "a checkpoint in {path} is not possible, as it is on another file system than the \
             data: choose a place on the same one"
        )),
        io::ErrorKind::NotFound => StorageError::Io(format!(
            "a checkpoint in {path} is not possible: {error}; its parent directory must exist"
        )),
        _ => StorageError::Io(format!("a checkpoint in {path} could not be made: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::super::{EngineOptions, LockedDirectory, SpaceOptions, SyncTarget};
    use super::*;

    fn open(path: &Path) -> DiskEngine {
        let options = EngineOptions {
            cache_bytes: 1 << 20,
            memtable_bytes: 1 << 20,
            write_buffer_bytes: 4 << 20,
            resident_bytes: 0,
        };
        let (directory, is_new) = LockedDirectory::open(path).unwrap();
        if is_new {
            directory.mark_made().unwrap();
        }
        DiskEngine::open(directory, options, Arc::new(|_, _| None)).unwrap()
    }

    #[test]
    fn the_manifest_of_a_space_that_has_not_changed_is_read_once() {
        let home = tempfile::tempdir().unwrap();
        let engine = open(&home.path().join("data"));
        let options = SpaceOptions {
            separate_values: false,
            resident: false,
        };
        engine.create_space(SpaceId::META, options).unwrap();
        let (key, value) = (Bytes::from_static(b"key"), Bytes::from_static(b"value"));
        let batch = vec![(SpaceId::META, key, Some(value))];
        engine.commit(batch, SyncTarget::Disk, 0).unwrap();
        let target = home.path().join("copy");
        let mut draft = engine.begin_checkpoint(&target).unwrap();
        let folder = draft.early.keys().next().unwrap().clone();
        let early = &draft.early[&folder];
        let manifest = draft.source.join(&folder).join(&early.name);
        // It can't be read again.
        let whole = early.bytes.clone();
        fs::write(&manifest, b"").unwrap();
        engine.link_checkpoint(&mut draft).unwrap();
        fs::write(&manifest, whole).unwrap();
        engine.finish_checkpoint(draft).unwrap();
        let copy = open(&target);
        assert!(copy.get(SpaceId::META, b"key").unwrap().is_some());
    }

    #[test]
    fn a_space_whose_manifest_has_changed_is_linked_again() {
        let home = tempfile::tempdir().unwrap();
        let engine = open(&home.path().join("data"));
        let options = SpaceOptions {
            separate_values: false,
            resident: false,
        };
        engine.create_space(SpaceId::META, options).unwrap();
        let mut draft = engine.begin_checkpoint(&home.path().join("copy")).unwrap();
        let folder = draft.early.keys().next().unwrap().clone();
        draft.early.get_mut(&folder).unwrap().current.push(0);
        assert!(draft.unchanged(&folder).is_none());
        assert!(draft.early.is_empty());
        engine.link_checkpoint(&mut draft).unwrap();
        let has = |of: &(PathBuf, SpaceManifest)| of.0 == folder && of.1.current.len() > 1;
        assert!(draft.manifests.iter().any(has));
    }
}
