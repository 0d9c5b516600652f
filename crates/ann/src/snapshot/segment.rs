//! The files of full vectors.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use super::checksum::Checksum;
use super::layout::{HEADER_BYTES, VERSION};
use super::{Shape, SnapshotError};

const MAGIC: &[u8; 8] = b"ANNVECTS";

/// A file of full vectors in a generation that was written or opened: what the next generation needs
/// to know of it to use it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(super) number: u32,
    pub(super) slots: Range<u32>,
    /// Bytes of a vector.
    pub(super) vector_bytes: u32,
    pub(super) checksums: Vec<Checksum>,
}

impl Segment {
    /// The slots whose vectors it holds.
    pub(crate) fn slots(&self) -> Range<u32> {
        self.slots.clone()
    }

    /// Whether it is what a generation of this shape has under its number.
    pub(super) fn fits(&self, shape: &Shape) -> bool {
        self.vector_bytes == shape.vector_bytes
            && self.number < shape.segments()
            && self.slots == shape.segment(self.number)
    }
}

/// The name of a segment's file: the same in every generation.
pub(super) fn file_name(number: u32) -> String {
    format!("vectors-{number:05}")
}

/// The first bytes of a segment's file, as drawn in `docs/snapshot-format.md`.
pub(super) fn header(shape: &Shape, number: u32) -> [u8; HEADER_BYTES] {
    let slots = shape.segment(number);
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    let fields = [VERSION, shape.vector_bytes, slots.start, slots.len() as u32];
    for (place, field) in bytes[8..].chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

/// Holds the header of the file `path` against the one it should have.
pub(super) fn check_header(
    found: &[u8; HEADER_BYTES],
    expected: &[u8; HEADER_BYTES],
    path: &Path,
) -> Result<(), SnapshotError> {
    if found[..8] != expected[..8] {
        return Err(SnapshotError::NotASnapshot {
            path: path.to_owned(),
        });
    }
    if found != expected {
        let what = "its header is not that of these vectors";
        return Err(SnapshotError::damaged(path, 0, what));
    }
    Ok(())
}

/// Makes `new` a file with the bytes of `old`: by `link`, or by a copy that is on the disk before this
/// returns, as file systems without links, and directories on another one, have no better.
pub(super) fn link_or_copy(
    link: impl FnOnce(&Path, &Path) -> io::Result<()>,
    old: &Path,
    new: &Path,
) -> io::Result<()> {
    match link(old, new) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => {
            fs::copy(old, new)?;
            fs::OpenOptions::new().write(true).open(new)?.sync_all()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_five_digits_or_more() {
        assert_eq!(file_name(0), "vectors-00000");
        assert_eq!(file_name(123_456), "vectors-123456");
    }

    #[cfg(not(miri))]
    #[test]
    fn what_cannot_be_linked_is_copied() {
        use std::os::unix::fs::MetadataExt;

        let directory = tempfile::tempdir().unwrap();
        let path = |name| directory.path().join(name);
        fs::write(path("old"), "vectors").unwrap();
        let inode = |name| fs::metadata(path(name)).unwrap().ino();

        link_or_copy(|a, b| fs::hard_link(a, b), &path("old"), &path("linked")).unwrap();
        assert_eq!(inode("linked"), inode("old"));

        let no_links = |_: &Path, _: &Path| Err(io::ErrorKind::CrossesDevices.into());
        link_or_copy(no_links, &path("old"), &path("copied")).unwrap();
        assert_ne!(inode("copied"), inode("old"));
        assert_eq!(fs::read(path("copied")).unwrap(), b"vectors");

        link_or_copy(no_links, &path("missing"), &path("nothing")).unwrap_err();
        let error = link_or_copy(|a, b| fs::hard_link(a, b), &path("old"), &path("copied"));
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
