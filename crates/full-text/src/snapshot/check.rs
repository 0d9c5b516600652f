//! Checking all files of a snapshot against their checksums, to find damage before an index meets
//! it.

use std::path::Path;

use super::manifest::{self, DOCUMENTS_FILE, INDEX_FILE, SnapshotManifest};
use super::segment_name;
use crate::TextFileError;
use crate::segment::{ContainerCheck, read_header};
use crate::snapshot_directory::SnapshotFolder;

/// Reads all files of a snapshot and checks their checksums; keeps none of it in memory. `pass` is
/// called with the number of bytes of each piece read, and ends the check when it returns false.
/// Returns the number of files that were read to their ends.
///
/// # Errors
/// Names the first file that is not as it was written, or can't be read. A snapshot that its owner
/// replaced meanwhile lacks files.
pub fn check_snapshot(
    directory: &Path,
    pass: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, TextFileError> {
    let folder = SnapshotFolder::open(directory)?;
    let (manifest, bytes) = INDEX_FILE.read(&folder, SnapshotManifest::decode)?;
    if !pass(bytes) {
        return Ok(0);
    }
    let (_, bytes) = DOCUMENTS_FILE.read(&folder, manifest::decode_documents)?;
    let mut files = 2;
    if !pass(bytes) {
        return Ok(files);
    }
    for listed in manifest.segments {
        let name = segment_name(listed.number);
        let path = folder.path_of(&name);
        let (file, file_bytes) = folder.open_file(&name)?;
        let mut check = ContainerCheck::new(read_header(&file, file_bytes, &path)?);
        while !check.is_done() {
            let bytes = check.step(&file, &path)?;
            if !pass(bytes) {
                return Ok(files);
            }
        }
        files += 1;
    }
    Ok(files)
}
