//! Opening a generation.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use platform::OpenDirectory;

use super::checksum::{self, Checksum, pieces};
use super::generation::SavedGeneration;
use super::header::GraphFileHeader;
use super::layout::{GraphFileLayout, HEADER_BYTES};
use super::segment::{self, VectorSegment};
use super::writer::GRAPH;
use super::{SlotShape, SnapshotError, StoredContents};
use crate::NeighbourIndexOptions;
use crate::memory::{RecordArray, RecordPlacement};

/// A generation that was opened. `graph` is verified and in memory. Of the segments it is known
/// that they are there, as long as they should be, and for these vectors.
pub(crate) struct OpenedGeneration {
    /// The number of blocks and vectors, and their sizes.
    pub(crate) shape: SlotShape,
    /// The options and tables of the index.
    pub(crate) contents: StoredContents,
    /// The blocks, by slot.
    pub(crate) blocks: RecordArray,
    /// The directory and its files of vectors.
    pub(crate) generation: SavedGeneration,
}

/// Opens the generation in a directory.
pub(crate) fn open(directory: &Path) -> Result<OpenedGeneration, SnapshotError> {
    let opened = OpenDirectory::open(directory);
    let directory = opened.map_err(SnapshotError::io("open", directory))?;
    let path = directory.path_of(GRAPH);
    let (file, file_bytes) = open_file(&directory, GRAPH)?;
    let header = read_header(&file, file_bytes, &path)?;
    let header = GraphFileHeader::decode(&header, file_bytes, &path)?;
    let (shape, layout) = (header.shape, header.layout);
    let mut contents = header.contents;
    let checksums = read_checksums(&file, &path, &layout, header.checksum)?;
    let body = layout.body();
    let body_bytes = body.end - body.start;
    let (of_body, mut of_segments) = checksums.split_at(pieces(body_bytes) as usize);

    let mut blocks = RecordArray::new(shape.block_bytes as usize, RecordPlacement::Memory);
    if let Some(last) = shape.slots.checked_sub(1) {
        for first in (0..=last).step_by(blocks.records_per_chunk()) {
            blocks.ensure(first)?;
        }
    }
    let tables_start = layout.blocks.end;
    // The length fits: the header's lengths add up to the length of the file.
    let mut tables = Vec::with_capacity((body.end - tables_start) as usize);
    let visit = |offset: u64, piece: &[u8]| {
        let in_blocks = tables_start.saturating_sub(offset).min(piece.len() as u64);
        let (of_blocks, of_tables) = piece.split_at(in_blocks as usize);
        blocks.fill(offset - body.start, of_blocks);
        tables.extend_from_slice(of_tables);
        Ok(())
    };
    checksum::verify(&file, &path, body.start, body_bytes, of_body, visit)?;
    let table = |range: &Range<u64>| {
        &tables[(range.start - tables_start) as usize..(range.end - tables_start) as usize]
    };
    if let Some(codebook) = &mut contents.codebook {
        codebook.mean = numbers(table(&layout.mean)).map(f32::from_bits).collect();
    }
    contents.centres = numbers(table(&layout.centres))
        .map(f32::from_bits)
        .collect();
    contents.upper = numbers(table(&layout.upper)).collect();
    let ids = numbers(table(&layout.ids)).step_by(2);
    let slots = numbers(table(&layout.ids)).skip(1).step_by(2);
    contents.ids = ids.zip(slots).collect();
    contents.zero_ids = numbers(table(&layout.zero_ids)).collect();
    contents
        .check(&shape)
        .map_err(|what| SnapshotError::damaged(&path, tables_start, what))?;

    let mut segments = Vec::new();
    for number in 0..shape.segments() {
        let (of_segment, rest) = of_segments.split_at(pieces(shape.segment_bytes(number)) as usize);
        of_segments = rest;
        segments.push(open_segment(&directory, &shape, number, of_segment)?);
    }
    Ok(OpenedGeneration {
        shape,
        contents,
        blocks,
        generation: SavedGeneration {
            directory,
            segments,
        },
    })
}

impl OpenedGeneration {
    /// Refuses a snapshot of an index with other options than these. Beam widths and placement may
    /// differ, as they are of the process and not of the data.
    pub(crate) fn expect_options(
        &self,
        options: &NeighbourIndexOptions,
    ) -> Result<(), SnapshotError> {
        let found = &self.contents.options;
        let compare = |option, found: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
            let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
            if found == expected {
                return Ok(());
            }
            Err(SnapshotError::Options {
                path: self.graph_path(),
                option,
                found,
                expected,
            })
        };
        compare("dimensions", &found.dimensions, &options.dimensions)?;
        compare("metric", &found.metric, &options.metric)?;
        compare("quantization", &found.quantization, &options.quantization)?;
        compare("codes", &found.codes, &options.codes)?;
        let connections = (&found.max_connections, &options.max_connections);
        compare("max_connections", connections.0, connections.1)
    }

    /// The error for a defect in the header of `graph` that only its user can see.
    pub(crate) fn damaged_header(&self, what: &'static str) -> SnapshotError {
        SnapshotError::damaged(&self.graph_path(), 0, what)
    }

    fn graph_path(&self) -> PathBuf {
        self.generation.directory.path_of(GRAPH)
    }
}

impl SavedGeneration {
    /// The error for a defect in the block of a slot that only its user can see.
    pub(crate) fn damaged_block(
        &self,
        shape: &SlotShape,
        slot: u32,
        what: &'static str,
    ) -> SnapshotError {
        let blocks = u64::from(slot) * u64::from(shape.block_bytes);
        let offset = HEADER_BYTES as u64 + blocks;
        SnapshotError::damaged(&self.directory.path_of(GRAPH), offset, what)
    }
}

pub(super) fn open_segment(
    directory: &OpenDirectory,
    shape: &SlotShape,
    number: u32,
    checksums: &[Checksum],
) -> Result<VectorSegment, SnapshotError> {
    let name = segment::file_name(number);
    let path = directory.path_of(&name);
    let (file, file_bytes) = open_file(directory, &name)?;
    let header = read_header(&file, file_bytes, &path)?;
    segment::check_header(&header, &segment::header(shape, number), &path)?;
    if file_bytes != shape.segment_bytes(number) {
        let what = "the file is not as long as it was written";
        return Err(SnapshotError::damaged(&path, file_bytes, what));
    }
    Ok(VectorSegment {
        number,
        slots: shape.segment(number),
        vector_bytes: shape.vector_bytes,
        checksums: checksums.to_vec(),
    })
}

/// Opens a file for reading, and returns its length as well.
pub(super) fn open_file(
    directory: &OpenDirectory,
    name: &str,
) -> Result<(File, u64), SnapshotError> {
    let opened = directory.open_file(name).and_then(|file| {
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    });
    opened.map_err(SnapshotError::io("open", &directory.path_of(name)))
}

/// Reads the header of either kind of file. A file that is too short for one is no file of a
/// snapshot.
pub(super) fn read_header(
    file: &File,
    file_bytes: u64,
    path: &Path,
) -> Result<[u8; HEADER_BYTES], SnapshotError> {
    if file_bytes < HEADER_BYTES as u64 {
        return Err(SnapshotError::NotASnapshot {
            path: path.to_owned(),
        });
    }
    let mut header = [0; HEADER_BYTES];
    checksum::read_exact(file, path, 0, &mut header)?;
    Ok(header)
}

/// Reads the list of checksums, and compares it with its own checksum.
pub(super) fn read_checksums(
    file: &File,
    path: &Path,
    layout: &GraphFileLayout,
    expected: Checksum,
) -> Result<Vec<Checksum>, SnapshotError> {
    let Range { start, end } = layout.checksums;
    let mut bytes = vec![0; (end - start) as usize];
    checksum::read_exact(file, path, start, &mut bytes)?;
    if Checksum::of(&bytes) != expected {
        let what = "its list of checksums has another checksum than when it was written";
        return Err(SnapshotError::damaged(path, start, what));
    }
    let (checksums, _) = bytes.as_chunks();
    Ok(checksums
        .iter()
        .copied()
        .map(Checksum::from_bytes)
        .collect())
}

/// A table's bytes as numbers of 32 bits.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks();
    words.iter().copied().map(u32::from_le_bytes)
}
