//! A file that is read where it is, for structures of other crates.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::memory::{FileFaults, Mapping};

/// The bytes of a file that is never written to again, mapped into memory.
///
/// If the file is cut short while it is mapped, or its disk fails, all of its bytes are zeros from
/// then on, and [`FileMap::is_unreadable`] returns true. So a reader of the map checks
/// that before the result leaves.
pub struct FileMap {
    /// None for a file without bytes, which can't be mapped.
    mapping: Option<Mapping>,
    faults: Arc<FileFaults>,
}

impl FileMap {
    /// Maps the first `len` bytes of a file. `name` is for messages.
    ///
    /// # Errors
    /// The error of the system.
    pub fn new(file: &File, len: usize, name: &str) -> io::Result<FileMap> {
        let faults = Arc::<FileFaults>::default();
        let mapping = match len {
            0 => None,
            len => {
                let of = faults.file(name.to_owned());
                Some(Mapping::read_only(file, len, &of)?)
            }
        };
        Ok(FileMap { mapping, faults })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.mapping {
            // SAFETY: the map is read-only, and the file is finished when it is mapped.
            Some(mapping) => unsafe { mapping.bytes() },
            None => &[],
        }
    }

    /// Whether bytes could not be read, so that zeros took their place.
    pub fn is_unreadable(&self) -> bool {
        self.faults.unreadable().is_some()
    }
}

#[cfg(not(miri))]
#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_read_until_it_is_cut_short() {
        let page = rustix::param::page_size();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 2 * page]).unwrap();
        let map = FileMap::new(&file, 2 * page, "a file").unwrap();
        assert!(map.bytes().iter().all(|byte| *byte == 7));
        assert!(!map.is_unreadable());
        file.set_len(0).unwrap();
        assert_eq!(map.bytes()[page], 0);
        assert!(map.is_unreadable());
    }

    #[test]
    fn a_file_without_bytes_has_an_empty_map() {
        let file = tempfile::tempfile().unwrap();
        assert!(FileMap::new(&file, 0, "a file").unwrap().bytes().is_empty());
    }
}
