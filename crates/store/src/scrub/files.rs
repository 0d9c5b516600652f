//! The snapshots of indexes, read and checked whether they are in use or not.

use std::fs;
use std::path::Path;

use crate::snapshot::check_place;

/// What was read, and what of it is not as it was written.
#[derive(Clone, Debug, Default)]
pub struct CheckedFiles {
    /// Files that were read to the end, or to their first fault.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// What is wrong, each with the file's name.
    pub faults: Vec<String>,
}

impl CheckedFiles {
    /// Takes in what was found elsewhere.
    pub fn add(&mut self, other: CheckedFiles) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.faults.extend(other.faults);
    }
}

/// Reads the snapshots of all indexes below the directory of their files, and checks every checksum; goes on behind what is
/// damaged, and changes nothing. `pass` hears of the bytes read, and says whether to go on. Files that are in use without a
/// name are none of it: they are written anew at each start.
pub fn check_snapshots(directory: &Path, pass: &mut dyn FnMut(u64) -> bool) -> CheckedFiles {
    let mut found = CheckedFiles::default();
    let Ok(entries) = fs::read_dir(directory.join("snapshots")) else {
        return found;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let mut wanted = true;
        let mut bytes = 0;
        let mut counted = |more| {
            bytes += more;
            wanted &= pass(more);
            wanted
        };
        if path.is_dir() {
            match check_place(&path, &mut counted) {
                Ok(files) => found.files += files,
                Err(fault) => found.faults.push(fault.to_string()),
            }
        }
        found.bytes += bytes;
        if !wanted {
            break;
        }
    }
    found
}

/// Bytes of all files below a directory, as far as they can be seen.
pub fn bytes_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_of(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
