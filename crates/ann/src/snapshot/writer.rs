//! Writing a generation, step by step.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use platform::OpenDirectory;
use platform::files::{self, FileStep};

use super::checksum::{Checksum, PIECE_BYTES, PieceChecksums};
use super::generation::{self, SavedGeneration};
use super::header::GraphFileHeader;
use super::layout::{GraphFileLayout, HEADER_BYTES, TableCounts};
use super::segment::{self, VectorSegment};
use super::{SlotShape, SnapshotError, StoredContents};

/// The name of the file of blocks and tables.
pub(super) const GRAPH: &str = "graph";

/// Writes one generation: all [blocks](GenerationWriter::put_blocks), every
/// [segment](GenerationWriter::next_segment), and at last the [contents](GenerationWriter::finish).
/// Blocks and segments may take turns in any order. Until it is finished, the generation has no
/// header and is refused when it is opened.
///
/// The index may change between the steps. A block and the full vector of its slot belong together,
/// so a slot must not be given to another vector between the first block and the last segment.
pub(crate) struct GenerationWriter {
    directory: OpenDirectory,
    shape: SlotShape,
    graph: ChecksummedFile,
    segments: Vec<VectorSegment>,
}

impl GenerationWriter {
    /// Begins a generation in a directory that exists and holds none.
    ///
    /// # Panics
    /// If a size of the shape is out of its range.
    pub(crate) fn create(
        directory: &Path,
        shape: SlotShape,
    ) -> Result<GenerationWriter, SnapshotError> {
        assert_eq!(shape.check(), Ok(()), "{shape:?}");
        let opened = OpenDirectory::open(directory);
        let directory = opened.map_err(SnapshotError::io("open", directory))?;
        Ok(GenerationWriter {
            // The place of the header stays empty until all else is written.
            graph: ChecksummedFile::create(&directory, GRAPH, HEADER_BYTES as u64)?,
            directory,
            shape,
            segments: Vec::new(),
        })
    }

    /// Writes the next blocks, in the order of their slots; best some MiB at a time.
    ///
    /// # Panics
    /// If these are not whole blocks, or more than the shape has.
    pub(crate) fn put_blocks(&mut self, blocks: &[u8]) -> Result<(), SnapshotError> {
        assert!(blocks.len().is_multiple_of(self.shape.block_bytes as usize));
        let written = self.graph.offset - HEADER_BYTES as u64;
        assert!(written + blocks.len() as u64 <= self.shape.blocks_bytes());
        self.graph.put(blocks)
    }

    /// The slots of the segment that has to be [written](GenerationWriter::write_segment) or
    /// [kept](GenerationWriter::keep_segment) next; `None` after the last.
    pub(crate) fn next_segment(&self) -> Option<Range<u32>> {
        let number = self.segments.len() as u32;
        (number < self.shape.segments()).then(|| self.shape.segment(number))
    }

    /// Writes the next segment and waits for the disk. `copy` is called with some slots after the
    /// other, and puts their vectors into the bytes it is given, at most a MiB (or one vector).
    /// Bytes that it does not write are zeros.
    ///
    /// # Panics
    /// If all segments are there.
    pub(crate) fn write_segment(
        &mut self,
        mut copy: impl FnMut(Range<u32>, &mut [u8]),
    ) -> Result<(), SnapshotError> {
        let slots = self.next_segment().expect("there is another segment");
        let number = self.segments.len() as u32;
        let mut file = ChecksummedFile::create(&self.directory, &segment::file_name(number), 0)?;
        file.put(&segment::header(&self.shape, number))?;
        let vector_bytes = self.shape.vector_bytes as usize;
        let step = (PIECE_BYTES / vector_bytes).max(1);
        let mut buffer = vec![0; step * vector_bytes];
        for start in slots.clone().step_by(step) {
            let some = start..start.saturating_add(step as u32).min(slots.end);
            let bytes = &mut buffer[..some.len() * vector_bytes];
            bytes.fill(0);
            copy(some, bytes);
            file.put(bytes)?;
        }
        file.sync()?;
        self.segments.push(VectorSegment {
            number,
            slots,
            vector_bytes: self.shape.vector_bytes,
            checksums: file.pieces.finish(),
        });
        Ok(())
    }

    /// Takes the next segment over from the last generation. The caller must know that none of its
    /// vectors has changed. Returns false, with nothing done, if the old segment holds other slots
    /// (the last one grows), or is not there any more. The segment has to be written then.
    ///
    /// # Panics
    /// If all segments are there.
    pub(crate) fn keep_segment(&mut self, last: &SavedGeneration) -> Result<bool, SnapshotError> {
        assert!(self.next_segment().is_some(), "there is another segment");
        let number = self.segments.len();
        let Some(segment) = last.segments.get(number) else {
            return Ok(false);
        };
        if !segment.fits(&self.shape) {
            return Ok(false);
        }
        let name = segment::file_name(segment.number);
        let old = &last.directory;
        let bytes = old
            .open_file(&name)
            .and_then(|file| Ok(file.metadata()?.len()));
        if !bytes.is_ok_and(|bytes| bytes == self.shape.segment_bytes(segment.number)) {
            return Ok(false);
        }
        generation::link_or_copy(OpenDirectory::link_file, old, &name, &self.directory)
            .map_err(SnapshotError::io("link or copy", &old.path_of(&name)))?;
        self.segments.push(segment.clone());
        Ok(true)
    }

    /// Writes tables and header, and waits until all is on the disk.
    ///
    /// # Panics
    /// If blocks or segments are missing, or the contents do not go together.
    pub(crate) fn finish(
        mut self,
        contents: &StoredContents,
    ) -> Result<SavedGeneration, SnapshotError> {
        assert_eq!(contents.check(&self.shape), Ok(()));
        let mean = contents
            .codebook
            .as_ref()
            .map_or(&[][..], |parts| &parts.mean);
        let counts = TableCounts {
            mean_elements: mean.len() as u32,
            centre_elements: contents.centres.len() as u64,
            upper_words: contents.upper.len() as u64,
            ids: contents.ids.len() as u64,
            zero_ids: contents.zero_ids.len() as u64,
        };
        let layout =
            GraphFileLayout::new(&self.shape, &counts).expect("what is in memory fits a file");
        assert_eq!(self.graph.offset, layout.blocks.end, "blocks are missing");
        assert_eq!(self.next_segment(), None, "segments are missing");

        self.graph.put_all(mean, |element| element.to_le_bytes())?;
        self.graph
            .put_all(&contents.centres, |element| element.to_le_bytes())?;
        self.graph
            .put_all(&contents.upper, |word| word.to_le_bytes())?;
        self.graph.put_all(&contents.ids, |(id, slot)| {
            (u64::from(*slot) << 32 | u64::from(*id)).to_le_bytes()
        })?;
        self.graph
            .put_all(&contents.zero_ids, |id| id.to_le_bytes())?;
        let ChecksummedFile {
            path, file, pieces, ..
        } = self.graph;
        let of_segments = self.segments.iter().flat_map(|segment| &segment.checksums);
        let checksums: Vec<u8> = (pieces.finish().iter().chain(of_segments))
            .flat_map(|checksum| checksum.to_bytes())
            .collect();
        assert_eq!(
            layout.checksums.end - layout.checksums.start,
            checksums.len() as u64
        );
        let header = GraphFileHeader {
            shape: self.shape,
            counts,
            checksum: Checksum::of(&checksums),
            contents: contents.clone(),
            layout: layout.clone(),
        };
        files::step(FileStep::Write, &path)
            .and_then(|()| file.write_all_at(&checksums, layout.checksums.start))
            .and_then(|()| file.write_all_at(&header.encode(), 0))
            .and_then(|()| files::sync(&file, &path))
            .map_err(SnapshotError::io("write", &path))?;
        let synced = self.directory.sync();
        synced.map_err(SnapshotError::io("write", self.directory.path()))?;
        Ok(SavedGeneration {
            directory: self.directory,
            segments: self.segments,
        })
    }
}

/// A file that is written from front to back, with the checksums of its pieces.
struct ChecksummedFile {
    path: PathBuf,
    file: File,
    /// The offset at which the next bytes go.
    offset: u64,
    pieces: PieceChecksums,
}

impl ChecksummedFile {
    /// Makes a file. Bytes before `offset` have no part in the pieces.
    fn create(
        directory: &OpenDirectory,
        name: &str,
        offset: u64,
    ) -> Result<ChecksummedFile, SnapshotError> {
        let path = directory.path_of(name);
        let made = directory.create_file(name);
        let file = made.map_err(SnapshotError::io("make", &path))?;
        Ok(ChecksummedFile {
            path,
            file,
            offset,
            pieces: PieceChecksums::new(),
        })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        files::step(FileStep::Write, &self.path)
            .and_then(|()| self.file.write_all_at(bytes, self.offset))
            .map_err(SnapshotError::io("write", &self.path))?;
        self.pieces.update(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes `entries` as bytes, some at a time.
    fn put_all<T, const N: usize>(
        &mut self,
        entries: &[T],
        to_bytes: impl Fn(&T) -> [u8; N],
    ) -> Result<(), SnapshotError> {
        for some in entries.chunks(PIECE_BYTES / N) {
            let bytes: Vec<u8> = some.iter().flat_map(&to_bytes).collect();
            self.put(&bytes)?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), SnapshotError> {
        files::sync(&self.file, &self.path).map_err(SnapshotError::io("write", &self.path))
    }
}
