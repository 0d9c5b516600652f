//! Mapped files that can no longer be read.
//!
//! A reader of a memory map can't be notified that the file was cut short or that its disk fails:
//! the process gets `SIGBUS`, and would end by it. So every mapping of a file is entered into a
//! table (`ranges`). The handler of the signal (`handler`) looks the address up, notes the file in
//! the [`FileFaults`] of its array, and maps zeros over all of the mapping. The read goes on with
//! zeros, and a reader that used them checks [`FileFaults::unreadable`] before the result leaves.
//!
//! Bytes between the new end of a file and the end of its page are read as zeros without a
//! signal. Only a look at the file's length finds that.

#[cfg(not(miri))]
mod handler;
#[cfg(not(miri))]
mod ranges;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

#[cfg(not(miri))]
pub(super) use ranges::RegisteredRange;

/// The mapped files of an array, and the first of them that could not be read.
#[derive(Debug, Default)]
pub(crate) struct FileFaults {
    /// A file's place in `names` and 1, or 0 for none. The handler writes it.
    first: AtomicUsize,
    names: Mutex<Vec<String>>,
}

impl FileFaults {
    /// Enters a file that is to be mapped. `name` is for messages.
    pub(crate) fn file(self: &Arc<FileFaults>, name: String) -> MappedFile {
        let mut names = self.names.lock();
        names.push(name);
        MappedFile {
            faults: Arc::clone(self),
            number: names.len(),
        }
    }

    /// The name of a file that could not be read. If there is none, all that the calling thread has
    /// read up to now is what the files hold.
    pub(crate) fn unreadable(&self) -> Option<String> {
        // The fence keeps all reads of vectors before the look at the flag. The handler sets the
        // flag before there are zeros to be read.
        fence(Ordering::SeqCst);
        let place = self.first.load(Ordering::SeqCst).checked_sub(1)?;
        self.names.lock().get(place).cloned()
    }
}

/// A file of an array, for its mappings.
#[derive(Clone, Debug)]
#[cfg_attr(miri, expect(dead_code, reason = "under Miri no file is mapped"))]
pub(crate) struct MappedFile {
    faults: Arc<FileFaults>,
    /// The number of the file in its array, counted from 1.
    number: usize,
}
