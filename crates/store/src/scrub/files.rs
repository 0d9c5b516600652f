//! Checks of index snapshots, whether they are in use or not.

use std::fs;
use std::path::Path;

use crate::database::CheckedFiles;
use crate::snapshot::check_place;

/// Reads the snapshots of all indexes below the directory of their files and checks every checksum.
/// It goes on after damaged files, and changes nothing. Calls `pass` with the number of bytes read,
/// and its result says whether to go on. Files in use, which have no names, are not read, as they
/// are written again at each start.
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

/// The bytes of all files below a directory that can be seen.
pub(super) fn bytes_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_of(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
