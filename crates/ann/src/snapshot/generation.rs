//! The segments of a generation, which the next one may keep.

use std::io;

use platform::{OpenDirectory, files};

use super::VectorSegment;

/// A generation that was written or opened, of which the next one may keep segments.
#[derive(Debug)]
pub(crate) struct SavedGeneration {
    pub(super) directory: OpenDirectory,
    pub(super) segments: Vec<VectorSegment>,
}

impl SavedGeneration {
    /// The files of full vectors.
    #[cfg(test)]
    pub(super) fn segments(&self) -> &[VectorSegment] {
        &self.segments
    }
}

/// Makes `name` in `new` a file with the bytes of that in `old`, by `link`. If that fails, as on
/// file systems without links and to a directory on another one, it makes a copy, which is on the
/// disk before this returns.
pub(super) fn link_or_copy(
    link: impl FnOnce(&OpenDirectory, &str, &OpenDirectory) -> io::Result<()>,
    old: &OpenDirectory,
    name: &str,
    new: &OpenDirectory,
) -> io::Result<()> {
    match link(old, name, new) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => {
            let mut from = old.open_file(name)?;
            let mut to = new.create_file(name)?;
            io::copy(&mut from, &mut to)?;
            files::sync(&to, &new.path_of(name))
        }
    }
}

#[cfg(not(miri))]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_linked_is_copied() {
        let parent = tempfile::tempdir().unwrap();
        let directory = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            OpenDirectory::open(&path).unwrap()
        };
        let [old, linked, copied] = ["old", "linked", "copied"].map(directory);
        fs::write(old.path_of("vectors"), "vectors").unwrap();
        let inode =
            |directory: &OpenDirectory| fs::metadata(directory.path_of("vectors")).unwrap().ino();

        link_or_copy(OpenDirectory::link_file, &old, "vectors", &linked).unwrap();
        assert_eq!(inode(&linked), inode(&old));

        let no_links = |_: &OpenDirectory, _: &str, _: &OpenDirectory| {
            Err(io::ErrorKind::CrossesDevices.into())
        };
        link_or_copy(no_links, &old, "vectors", &copied).unwrap();
        assert_ne!(inode(&copied), inode(&old));
        assert_eq!(fs::read(copied.path_of("vectors")).unwrap(), b"vectors");

        link_or_copy(no_links, &old, "missing", &copied).unwrap_err();
        let error = link_or_copy(OpenDirectory::link_file, &old, "vectors", &copied);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
