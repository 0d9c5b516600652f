//! The nameless file of an array: making it, allocating its space, and giving space back.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Makes sure that a range of a file has its space on the disk, so that no write to it through a
/// memory map can find the disk full. Bytes that were there stay; new ones read as zeros.
pub(super) type Allocate = fn(&File, Range<u64>) -> io::Result<()>;

/// Makes a file without a name, which goes with the process, however that ends.
pub(super) fn nameless_file(directory: &Path) -> io::Result<File> {
    if cfg!(miri) {
        return File::open("/dev/null");
    }
    tempfile::tempfile_in(directory)
}

/// Allocates by the system's own call, or by writing zeros where the system has none.
pub(super) fn allocate(file: &File, range: Range<u64>) -> io::Result<()> {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};

        let len = range.end - range.start;
        let mode = FallocateFlags::empty();
        match retry_on_intr(|| fallocate(file, mode, range.start, len)) {
            // Not every file system can allocate.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            done => return Ok(done?),
        }
    }
    write_zeros(file, range)
}

/// Gives the space of a range back, which then reads as zeros. Fails with
/// [`io::ErrorKind::Unsupported`], and changes nothing, where the system can't.
pub(super) fn punch_hole(file: &File, range: Range<u64>) -> io::Result<()> {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};

        let len = range.end - range.start;
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| fallocate(file, mode, range.start, len)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
            done => Ok(done?),
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let _ = (file, range);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Allocates by writing zeros. The range must have no content: it is after the end of the file, or
/// was released. (Where releasing is not supported, the zeros written instead still have their
/// space.)
fn write_zeros(file: &File, range: Range<u64>) -> io::Result<()> {
    use std::os::unix::fs::FileExt;

    if cfg!(miri) {
        return Ok(());
    }
    let zeros = [0; 64 << 10];
    let mut offset = range.start;
    while offset < range.end {
        let len = (range.end - offset).min(zeros.len() as u64) as usize;
        file.write_all_at(&zeros[..len], offset)?;
        offset += len as u64;
    }
    Ok(())
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn both_ways_of_allocating_take_the_space() {
        for allocate in [allocate as Allocate, write_zeros] {
            let file = tempfile::tempfile().unwrap();
            allocate(&file, 0..1 << 20).unwrap();
            let metadata = file.metadata().unwrap();
            assert_eq!(metadata.len(), 1 << 20);
            assert!(metadata.blocks() * 512 >= 1 << 20, "{}", metadata.blocks());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_hole_gives_space_back_and_reads_as_zeros() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 1 << 20], 0).unwrap();
        match punch_hole(&file, 0..1 << 19) {
            // The file system of the test may not know holes; then there is nothing to see.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return,
            done => done.unwrap(),
        }
        let mut bytes = [0; 2];
        file.read_exact_at(&mut bytes, (1 << 19) - 1).unwrap();
        assert_eq!(bytes, [0, 7]);
        assert!(file.metadata().unwrap().blocks() * 512 < 1 << 20);
    }
}
