//! Checking all of a generation against its checksums, to find damage before an index meets it.

use std::fs::File;
use std::path::Path;

use platform::OpenDirectory;

use super::SnapshotError;
use super::checksum::{self, Checksum, PIECE_BYTES, pieces};
use super::header::GraphFileHeader;
use super::reader::{open_file, open_segment, read_checksums, read_header};
use super::segment;
use super::writer::GRAPH;

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
) -> Result<u64, SnapshotError> {
    let opened = OpenDirectory::open(directory);
    let directory = opened.map_err(SnapshotError::io("open", directory))?;
    let path = directory.path_of(GRAPH);
    let (file, file_bytes) = open_file(&directory, GRAPH)?;
    let header = read_header(&file, file_bytes, &path)?;
    let header = GraphFileHeader::decode(&header, file_bytes, &path)?;
    let checksums = read_checksums(&file, &path, &header.layout, header.checksum)?;
    let body = header.layout.body();
    let body_bytes = body.end - body.start;
    let (of_body, mut of_segments) = checksums.split_at(pieces(body_bytes) as usize);
    if !check(&file, &path, body.start, body_bytes, of_body, pass)? {
        return Ok(0);
    }
    let mut files = 1;
    for number in 0..header.shape.segments() {
        let bytes = header.shape.segment_bytes(number);
        let (of_segment, rest) = of_segments.split_at(pieces(bytes) as usize);
        of_segments = rest;
        open_segment(&directory, &header.shape, number, of_segment)?;
        let name = segment::file_name(number);
        let (file, _) = open_file(&directory, &name)?;
        if !check(&file, &directory.path_of(&name), 0, bytes, of_segment, pass)? {
            break;
        }
        files += 1;
    }
    Ok(files)
}

/// Checks a stretch of a file; false if `pass` has ended it.
fn check(
    file: &File,
    path: &Path,
    start: u64,
    bytes: u64,
    checksums: &[Checksum],
    pass: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, SnapshotError> {
    let mut buffer = vec![0; PIECE_BYTES.min(bytes as usize)];
    for (number, checksum) in (0..).zip(checksums) {
        let before = number * PIECE_BYTES as u64;
        let piece_bytes = (bytes - before).min(PIECE_BYTES as u64);
        let piece = &mut buffer[..piece_bytes as usize];
        checksum::read_exact(file, path, start + before, piece)?;
        checksum::verify_piece(piece, path, start + before, *checksum)?;
        if !pass(piece_bytes) {
            return Ok(false);
        }
    }
    Ok(true)
}
