//! Local files: those of a source, and small ones of state.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::error::BackupError;

/// A file of a source, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path relative to the root, with `/` between names.
    pub path: String,
    /// Its whole path.
    pub full: PathBuf,
    /// Its stamp.
    pub stamp: FileStamp,
}

/// The signs that change when a file does: its length, the time of its last change and its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FileStamp {
    /// Bytes of the file.
    pub bytes: u64,
    /// Seconds of the time.
    pub seconds: i64,
    /// Nanoseconds of the time.
    pub nanos: i64,
    /// The number of the inode.
    pub inode: u64,
}

impl FileStamp {
    /// The stamp of a file.
    pub fn of(metadata: &fs::Metadata) -> FileStamp {
        FileStamp {
            bytes: metadata.len(),
            seconds: metadata.mtime(),
            nanos: metadata.mtime_nsec(),
            inode: metadata.ino(),
        }
    }
}

/// All that is below a root.
#[derive(Debug, Default)]
pub struct SourceTree {
    /// Folders, in order of their paths relative to the root.
    pub folders: Vec<String>,
    /// Files, in order of their paths.
    pub files: Vec<SourceFile>,
}

/// Finds all files and folders below a root.
pub fn walk(root: &Path) -> Result<SourceTree, BackupError> {
    let mut tree = SourceTree::default();
    let mut waiting = vec![(root.to_owned(), String::new())];
    while let Some((folder, path)) = waiting.pop() {
        let entries = fs::read_dir(&folder).map_err(BackupError::file(&folder))?;
        for entry in entries {
            let entry = entry.map_err(BackupError::file(&folder))?;
            let full = entry.path();
            let wrong = |problem| BackupError::SourceFile {
                path: full.clone(),
                problem,
            };
            let name = entry.file_name();
            let name = name
                .to_str()
                .ok_or_else(|| wrong("its name is not UTF-8"))?;
            let slash = if path.is_empty() { "" } else { "/" };
            let path = format!("{path}{slash}{name}");
            let metadata = entry.metadata().map_err(BackupError::file(&full))?;
            if metadata.is_dir() {
                tree.folders.push(path.clone());
                waiting.push((full, path));
            } else if metadata.is_file() {
                let stamp = FileStamp::of(&metadata);
                tree.files.push(SourceFile { path, full, stamp });
            } else {
                return Err(wrong("it is neither a file nor a folder"));
            }
        }
    }
    tree.folders.sort_unstable();
    tree.files
        .sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(tree)
}

/// Makes a directory that is missing, with those above it. Others than its owner have no access, as
/// rows are not encrypted.
pub fn make_private(path: &Path) -> Result<(), BackupError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(BackupError::file(path))
}

/// Opens a file to write into it. One that is missing is made, and others than its owner have no
/// access to it.
pub fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Replaces a small file, so that after a crash it has its old content or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(BackupError::file(folder))?;
    let beginning = path.with_extension("new");
    let written = File::create(&beginning).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(BackupError::file(&beginning))?;
    fs::rename(&beginning, path).map_err(BackupError::file(path))?;
    sync_folder(folder)
}

/// Waits until the names in a folder are on the disk.
pub fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(BackupError::file(folder))
}

/// Reads a file that an option names, of `most` bytes at most. Pipes and devices are refused: they
/// may never end.
pub fn read_option(path: &Path, most: u64) -> Result<Vec<u8>, BackupError> {
    let wrong = |problem: String| BackupError::OptionFile {
        file: path.to_owned(),
        problem,
    };
    let failed = |error: io::Error| wrong(error.to_string());
    // To open a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let file = File::from(opened.map_err(|error| failed(error.into()))?);
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(wrong("it is not a plain file: name one".to_owned()));
    }
    // At once, so that a key leaves no copy in memory that was given back.
    let length = usize::try_from(metadata.len().min(most)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(length + 1);
    let mut begin = file.take(most.saturating_add(1));
    begin.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(wrong(format!(
            "it has more than {most} bytes, and such a file has less"
        )));
    }
    Ok(bytes)
}

/// Reads a small file. `None` if there is none.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, BackupError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(BackupError::file(path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_and_folders_are_found_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("b/empty")).unwrap();
        fs::write(root.join("b/file"), "abc").unwrap();
        fs::write(root.join("a"), "").unwrap();
        let tree = walk(root).unwrap();
        assert_eq!(tree.folders, ["b", "b/empty"]);
        let files: Vec<_> = tree
            .files
            .iter()
            .map(|file| (&*file.path, file.stamp.bytes))
            .collect();
        assert_eq!(files, [("a", 0), ("b/file", 3)]);
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        let error = walk(root).unwrap_err();
        assert!(error.to_string().contains("link"), "{error}");
    }

    #[test]
    fn an_option_names_a_plain_file_of_bounded_length() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, "abc").unwrap();
        assert_eq!(read_option(&plain, 3).unwrap(), b"abc");
        let error = read_option(&plain, 2).unwrap_err().to_string();
        assert!(error.contains("more than 2 bytes"), "{error}");
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RWXU).unwrap();
        for other in [&*pipe, Path::new("/dev/zero"), folder.path()] {
            let error = read_option(other, 3).unwrap_err().to_string();
            assert!(error.contains("not a plain file"), "{error}");
        }
        let error = read_option(&folder.path().join("none"), 3).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }

    #[test]
    fn a_file_of_state_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/state.json");
        assert_eq!(read(&path).unwrap(), None);
        for content in ["one", "another"] {
            replace(&path, content.as_bytes()).unwrap();
            assert_eq!(read(&path).unwrap().unwrap(), content.as_bytes());
        }
    }
}
