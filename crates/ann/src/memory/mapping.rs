//! A piece of address space: anonymous memory or a range of a file, unmapped when dropped.

use std::fs::File;
use std::io;
use std::ptr::NonNull;

use super::MappedFile;
#[cfg(not(miri))]
use super::faults::RegisteredRange;

/// An owned range of mapped memory. It hands out its address; what may be read and written there,
/// and when, is up to its holder.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// The entry of a mapped file in the table for the handler of faults.
    #[cfg(not(miri))]
    entered: Option<RegisteredRange>,
}

// SAFETY: a mapping is an address and a length; it reads and writes nothing by itself.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` gives the address and takes none of the memory.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The address of the first byte, valid for [`len`](Mapping::len) bytes while `self` lives.
    /// Aligned to a page at least.
    #[cfg(test)]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The mapped bytes.
    ///
    /// # Safety
    /// No one writes to the memory, or to its file, while the slice lives.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the range is mapped readable while `self` lives; the rest is the caller's
        // promise.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The address of the byte at `offset`.
    ///
    /// # Panics
    /// If `offset` is beyond the end.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.len, "{offset} lies beyond {}", self.len);
        // SAFETY: it was checked that the offset is within the mapping or just after it.
        unsafe { self.start.add(offset) }
    }
}

#[cfg(not(miri))]
mod system {
    use std::ptr::null_mut;

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

    use super::{File, MappedFile, Mapping, NonNull, RegisteredRange, io};

    /// The size of a huge page where it matters (x86-64, and AArch64 with pages of 4 KiB).
    const HUGE_PAGE_BYTES: usize = 2 << 20;

    const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    impl Mapping {
        /// Maps zeroed memory that takes room only where it is touched, in pages of the smallest
        /// size.
        pub(crate) fn anonymous(len: usize) -> io::Result<Mapping> {
            let mapping = Mapping::reserve(len)?;
            // A system that gives huge pages unasked would do so here.
            #[cfg(target_os = "linux")]
            mapping.advise(Advice::LinuxNoHugepage);
            Ok(mapping)
        }

        /// Maps zeroed memory that takes room only where it is touched, in huge pages if the system
        /// likes, and aligned to them.
        pub(crate) fn anonymous_huge(len: usize) -> io::Result<Mapping> {
            let mut mapping = Mapping::reserve(len + HUGE_PAGE_BYTES)?;
            mapping.trim_to(HUGE_PAGE_BYTES, len);
            #[cfg(target_os = "linux")]
            mapping.advise(Advice::LinuxHugepage);
            Ok(mapping)
        }

        /// Maps a range of a file. The file need not reach that far yet: bytes beyond its end may
        /// be touched once it does. `offset` is a multiple of the page size. Writes go to the file.
        /// The system is advised not to read ahead, as reads are random. `of` is notified if the
        /// file can't be read, and the mapping is zeros from then on.
        pub(crate) fn shared(
            file: &File,
            offset: u64,
            len: usize,
            of: &MappedFile,
        ) -> io::Result<Mapping> {
            Mapping::file(file, offset, len, READ_WRITE, of)
        }

        /// Maps the first `len` bytes of a file, for reading at random as above.
        pub(crate) fn read_only(file: &File, len: usize, of: &MappedFile) -> io::Result<Mapping> {
            Mapping::file(file, 0, len, ProtFlags::READ, of)
        }

        fn reserve(len: usize) -> io::Result<Mapping> {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            // SAFETY: the system chooses the address, so nothing that is mapped is replaced.
            let start = unsafe { mmap_anonymous(null_mut(), len, READ_WRITE, flags) }?;
            Ok(Mapping::of(start, len))
        }

        fn file(
            file: &File,
            offset: u64,
            len: usize,
            protection: ProtFlags,
            of: &MappedFile,
        ) -> io::Result<Mapping> {
            let flags = MapFlags::SHARED;
            // SAFETY: the system chooses the address, so nothing that is mapped is replaced.
            let start = unsafe { mmap(null_mut(), len, protection, flags, file, offset) }?;
            let mut mapping = Mapping::of(start, len);
            mapping.advise(Advice::Random);
            let writable = protection.contains(ProtFlags::WRITE);
            mapping.entered = Some(RegisteredRange::new(mapping.start, len, writable, of));
            Ok(mapping)
        }

        fn of(start: *mut std::ffi::c_void, len: usize) -> Mapping {
            let start = NonNull::new(start.cast()).expect("no mapping begins at address 0");
            Mapping {
                start,
                len,
                entered: None,
            }
        }

        /// Unmaps what surrounds the first `len` bytes that begin at a multiple of `alignment`.
        fn trim_to(&mut self, alignment: usize, len: usize) {
            let before = self.start.align_offset(alignment);
            let behind = before + len;
            // SAFETY: both ranges are within the mapping, and no one has seen its address yet.
            unsafe {
                unmap(self.start, before);
                unmap(self.start.add(behind), self.len - behind);
                self.start = self.start.add(before);
            }
            self.len = len;
        }

        /// Gives the system a hint. If it is not taken, nothing but speed changes.
        fn advise(&self, advice: Advice) {
            // SAFETY: the range is ours, and none of the advice given here changes what it holds.
            let _ = unsafe { madvise(self.start.as_ptr().cast(), self.len, advice) };
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // The entry goes first: another mapping may get the address as soon as this one is
            // unmapped.
            self.entered = None;
            // SAFETY: the owner that dropped the mapping gave up all pointers into it.
            unsafe { unmap(self.start, self.len) }
        }
    }

    /// Unmaps a range.
    ///
    /// # Safety
    /// The range is mapped, and no one uses it any more.
    unsafe fn unmap(start: NonNull<u8>, len: usize) {
        if len > 0 {
            // SAFETY: the caller's promise. It fails only for a range that is none.
            let unmapped = unsafe { munmap(start.as_ptr().cast(), len) };
            debug_assert!(unmapped.is_ok(), "{unmapped:?}");
        }
    }
}

/// Miri knows no memory maps: under it all memory comes from the heap, and there are no files.
#[cfg(miri)]
mod heap {
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    use super::*;

    impl Mapping {
        pub(crate) fn anonymous(len: usize) -> io::Result<Mapping> {
            // SAFETY: no one maps an empty range: `layout` refuses a length of 0.
            let start = unsafe { alloc_zeroed(layout(len)) };
            let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Mapping { start, len })
        }

        pub(crate) fn anonymous_huge(len: usize) -> io::Result<Mapping> {
            Mapping::anonymous(len)
        }

        pub(crate) fn shared(_: &File, _: u64, len: usize, _: &MappedFile) -> io::Result<Mapping> {
            Mapping::anonymous(len)
        }

        pub(crate) fn read_only(_: &File, _: usize, _: &MappedFile) -> io::Result<Mapping> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: allocated with this layout by `anonymous`.
            unsafe { dealloc(self.start.as_ptr(), layout(self.len)) }
        }
    }

    fn layout(len: usize) -> Layout {
        assert!(len > 0);
        Layout::from_size_align(len, 4096).expect("a chunk fits the address space")
    }
}

#[cfg(not(miri))]
#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::*;
    use crate::memory::FileFaults;

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn huge_memory_is_aligned_zeroed_and_writable_to_its_ends() {
        let len = 5 << 20;
        let mapping = Mapping::anonymous_huge(len).unwrap();
        assert_eq!(mapping.start().align_offset(2 << 20), 0);
        assert_eq!(mapping.len(), len);
        // SAFETY: only this test has the memory.
        unsafe {
            assert!(mapping.bytes().iter().all(|&byte| byte == 0));
            mapping.at(0).write(1);
            mapping.at(len - 1).write(2);
            assert_eq!((mapping.bytes()[0], mapping.bytes()[len - 1]), (1, 2));
        }
    }

    #[test]
    fn a_file_is_read_where_it_lies() {
        let faults = Arc::<FileFaults>::default();
        let of = faults.file("a file".to_owned());
        let read_only = Mapping::read_only(&file_of(b"abc"), 3, &of).unwrap();
        // SAFETY: only this test has the file.
        assert_eq!(unsafe { read_only.bytes() }, b"abc");
    }

    #[test]
    fn shared_writes_reach_the_file_even_when_it_grows_after_the_mapping() {
        use std::os::unix::fs::FileExt;

        let page = rustix::param::page_size();
        let file = tempfile::tempfile().unwrap();
        let faults = Arc::<FileFaults>::default();
        let of = faults.file("a file".to_owned());
        let mapping = Mapping::shared(&file, page as u64, page, &of).unwrap();
        file.set_len(2 * page as u64).unwrap();
        // SAFETY: only this test has the file, which reaches far enough.
        unsafe { mapping.at(page - 1).write(9) };
        let mut byte = [0];
        file.read_exact_at(&mut byte, 2 * page as u64 - 1).unwrap();
        assert_eq!(byte, [9]);
        assert_eq!(faults.unreadable(), None);
    }

    #[test]
    fn a_file_that_ends_too_early_reads_as_zeros_and_is_named() {
        let page = rustix::param::page_size();
        let faults = Arc::<FileFaults>::default();
        let [short, other] = ["short", "other"].map(|name| faults.file(name.to_owned()));
        let sound = Mapping::read_only(&file_of(&vec![7; page]), page, &other).unwrap();
        for writable in [false, true] {
            let file = file_of(&vec![7; 3 * page]);
            let mapping = match writable {
                false => Mapping::read_only(&file, 3 * page, &short),
                true => Mapping::shared(&file, 0, 3 * page, &short),
            };
            let mapping = mapping.unwrap();
            file.set_len(page as u64).unwrap();
            // SAFETY: only this test has the file.
            unsafe {
                assert_eq!(mapping.at(0).read(), 7);
                assert_eq!(mapping.at(2 * page).read_volatile(), 0);
                assert_eq!(mapping.at(0).read_volatile(), 0);
                if writable {
                    mapping.at(page).write_volatile(3);
                    assert_eq!(mapping.at(page).read_volatile(), 3);
                }
                assert_eq!(sound.at(0).read_volatile(), 7);
            }
            assert_eq!(faults.unreadable().as_deref(), Some("short"));
        }
    }

    #[test]
    #[should_panic(expected = "lies beyond")]
    fn an_offset_beyond_the_end_is_a_bug() {
        Mapping::anonymous(10).unwrap().at(11);
    }
}
