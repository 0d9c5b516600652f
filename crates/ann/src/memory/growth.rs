//! The making of chunks: they are cut in order from regions of memory, or of a nameless file.
//!
//! A region is one mapping for many chunks: the system counts mappings (some 65,000 a process), and
//! huge pages need aligned stretches longer than a chunk. The parts of a region that have not been
//! handed out take address space and nothing else.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

use super::disk::{self, Allocate};
use super::{FileFaults, MappedFile, Mapping};

/// The size of a region, unless a chunk is larger. The first region of an array is a single chunk
/// without huge pages, so that a small index stays small.
const REGION_BYTES: usize = if cfg!(miri) { 0 } else { 64 << 20 };

/// Chunks of at least this length request huge pages. Shorter ones hold sparse tables, of which a
/// huge page would fill with zeros more than is used.
const HUGE_CHUNK_BYTES: usize = 1 << 20;

/// The place of an array's records.
#[derive(Clone, Debug)]
pub(crate) enum RecordPlacement {
    /// Anonymous memory, on huge pages from the second chunk on if the system gives them.
    Memory,
    /// A nameless file in this directory, mapped shared, so that the system may write it back and
    /// reclaim its pages. It takes the disk space of every chunk when the chunk is made.
    File(PathBuf),
}

/// The reason why an array could not grow. Nothing has changed; the call may be tried again later.
#[derive(Debug, thiserror::Error)]
pub enum GrowError {
    /// The disk has no room for a chunk.
    #[error(
        "the disk of {} is full: the vectors need {bytes} bytes more; free some space, or keep the \
         vectors in memory", directory.display()
    )]
    DiskFull {
        /// The directory of the array's file.
        directory: PathBuf,
        /// Bytes of a chunk.
        bytes: usize,
    },
    /// The file of the array could not be made or made longer.
    #[error("cannot keep vectors in a file in {}: {source}", directory.display())]
    File {
        /// The directory of the array's file, or that in which it was to be made.
        directory: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The system gave no memory or no address space.
    #[error("cannot get {bytes} bytes of memory for the index: {source}")]
    Memory {
        /// Bytes that were requested.
        bytes: usize,
        /// The error of the system.
        source: io::Error,
    },
}

/// Hands out chunks.
pub(super) struct ChunkAllocator {
    place: RecordPlacement,
    /// The file of [`RecordPlacement::File`], made with the first chunk.
    file: Option<(File, MappedFile)>,
    faults: Arc<FileFaults>,
    allocate: Allocate,
    /// Bytes of a chunk, a multiple of the page size.
    chunk_bytes: usize,
    /// The regions. All but the first have [`region_chunks`](ChunkAllocator::region_chunks) chunks.
    regions: Vec<Mapping>,
    handed_out: usize,
}

/// A chunk that was handed out, counted from 0 in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkOrdinal(usize);

impl ChunkAllocator {
    pub(super) fn new(
        place: RecordPlacement,
        chunk_bytes: usize,
        allocate: Allocate,
    ) -> ChunkAllocator {
        ChunkAllocator {
            place,
            file: None,
            faults: Arc::default(),
            allocate,
            chunk_bytes,
            regions: Vec::new(),
            handed_out: 0,
        }
    }

    pub(super) fn place(&self) -> &RecordPlacement {
        &self.place
    }

    /// The faults of the array's mapped files.
    pub(super) fn faults(&self) -> &Arc<FileFaults> {
        &self.faults
    }

    /// Makes a chunk, zeroed, and safe to write to: its space on the disk is allocated.
    pub(super) fn cut(&mut self) -> Result<NonNull<u8>, GrowError> {
        let cut = ChunkOrdinal(self.handed_out);
        let (region, offset) = self.locate(cut);
        if region == self.regions.len() {
            let mapping = self.map_region(region)?;
            self.regions.push(mapping);
        }
        self.secure(cut)?;
        self.handed_out += 1;
        Ok(self.regions[region].at(offset))
    }

    /// Allocates the space of a new chunk on the disk.
    fn secure(&self, cut: ChunkOrdinal) -> Result<(), GrowError> {
        let (RecordPlacement::File(directory), Some((file, _))) = (&self.place, &self.file) else {
            return Ok(());
        };
        let range = self.file_range(cut);
        (self.allocate)(file, range.clone()).map_err(|source| {
            // A part may have been allocated. If that can't be undone, it is still there when the
            // chunk is requested again.
            let _ = disk::punch_hole(file, range);
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => GrowError::DiskFull {
                    directory: directory.clone(),
                    bytes: self.chunk_bytes,
                },
                _ => GrowError::File {
                    directory: directory.clone(),
                    source,
                },
            }
        })
    }

    /// Number of chunks in every region but the first.
    fn region_chunks(&self) -> usize {
        (REGION_BYTES / self.chunk_bytes).max(1)
    }

    /// The region of a chunk and the chunk's byte offset in it.
    fn locate(&self, ChunkOrdinal(cut): ChunkOrdinal) -> (usize, usize) {
        match cut.checked_sub(1) {
            None => (0, 0),
            Some(later) => {
                let region = later / self.region_chunks();
                let chunk = later % self.region_chunks();
                (region + 1, chunk * self.chunk_bytes)
            }
        }
    }

    /// The bytes of a chunk in the file: chunks follow each other as they were handed out.
    fn file_range(&self, ChunkOrdinal(cut): ChunkOrdinal) -> std::ops::Range<u64> {
        let start = cut as u64 * self.chunk_bytes as u64;
        start..start + self.chunk_bytes as u64
    }

    fn map_region(&mut self, region: usize) -> Result<Mapping, GrowError> {
        let chunks = if region == 0 { 1 } else { self.region_chunks() };
        let bytes = chunks * self.chunk_bytes;
        let mapping = match &self.place {
            RecordPlacement::Memory if region > 0 && self.chunk_bytes >= HUGE_CHUNK_BYTES => {
                Mapping::anonymous_huge(bytes)
            }
            RecordPlacement::Memory => Mapping::anonymous(bytes),
            RecordPlacement::File(directory) => {
                if self.file.is_none() {
                    let made = disk::nameless_file(directory);
                    let made = made.map_err(|source| GrowError::File {
                        directory: directory.clone(),
                        source,
                    })?;
                    let name = format!("the nameless file in {}", directory.display());
                    self.file = Some((made, self.faults.file(name)));
                }
                let (file, of) = self.file.as_ref().expect("made above");
                let first =
                    ChunkOrdinal(region.saturating_sub(1) * self.region_chunks() + region.min(1));
                Mapping::shared(file, self.file_range(first).start, bytes, of)
            }
        };
        mapping.map_err(|source| GrowError::Memory { bytes, source })
    }
}
