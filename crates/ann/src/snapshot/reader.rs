//! Opens a generation.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checksum::{self, Checksum, pieces};
use super::header::Header;
use super::layout::{HEADER_BYTES, Layout};
use super::segment::{self, Segment};
use super::writer::GRAPH;
use super::{Contents, Shape, SnapshotError};
use crate::Options;
use crate::memory::{Array, Mapping, Piece};

/// A generation that was opened: `graph` is verified, and the files are mapped.
pub(crate) struct Reader {
    directory: PathBuf,
    shape: Shape,
    contents: Contents,
    /// All of `graph`, copied on write.
    graph: Arc<Mapping>,
    segments: Vec<Segment>,
    /// All of each segment's file, for reading.
    vectors: Vec<Arc<Mapping>>,
}

impl Reader {
    /// Opens the generation in a directory. Verifies `graph`, and of each segment that it is there, as
    /// long as it should be and for these vectors.
    pub(crate) fn open(directory: &Path) -> Result<Reader, SnapshotError> {
        let path = directory.join(GRAPH);
        let (file, file_bytes) = open(&path)?;
        let header = read_header(&file, file_bytes, &path)?;
        let Header {
            shape,
            layout,
            mut contents,
            checksum,
            ..
        } = Header::decode(&header, file_bytes, &path)?;
        let mut checksums = read_checksums(&file, &path, &layout, checksum)?.into_iter();
        let body = layout.body();
        let body_bytes = body.end - body.start;
        let of_body: Vec<_> = take(&mut checksums, pieces(body_bytes));
        let tables_start = layout.blocks.end;
        // Fits: the header's lengths add up to the length of the file.
        let mut tables = Vec::with_capacity((body.end - tables_start) as usize);
        checksum::verify(
            &file,
            &path,
            body.start,
            body_bytes,
            &of_body,
            |offset, piece| {
                let blocks = tables_start.saturating_sub(offset).min(piece.len() as u64);
                tables.extend_from_slice(&piece[blocks as usize..]);
            },
        )?;
        let table = |range: &Range<u64>| {
            &tables[(range.start - tables_start) as usize..(range.end - tables_start) as usize]
        };
        if let Some(codebook) = &mut contents.codebook {
            codebook.mean = numbers(table(&layout.mean)).map(f32::from_bits).collect();
        }
        let ids = numbers(table(&layout.ids)).step_by(2);
        let slots = numbers(table(&layout.ids)).skip(1).step_by(2);
        contents.ids = ids.zip(slots).collect();
        contents.zero_ids = numbers(table(&layout.zero_ids)).collect();
        contents
            .check(&shape)
            .map_err(|what| SnapshotError::damaged(&path, tables_start, what))?;

        let graph = Mapping::private(&file, file_bytes as usize)
            .map_err(SnapshotError::io("map", &path))?;
        let mut reader = Reader {
            directory: directory.to_owned(),
            shape,
            contents,
            graph: Arc::new(graph),
            segments: Vec::new(),
            vectors: Vec::new(),
        };
        for number in 0..shape.segments() {
            let of_segment = take(&mut checksums, pieces(shape.segment_bytes(number)));
            reader.open_segment(number, of_segment)?;
        }
        Ok(reader)
    }

    /// What the index is made of beside blocks and vectors.
    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// How many blocks and vectors there are, and their sizes.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The files of full vectors, which the next generation may keep.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Refuses a snapshot of an index with other options than these. Beam widths and placement may
    /// differ: they are of the process, not of the data.
    pub(crate) fn expect_options(&self, options: &Options) -> Result<(), SnapshotError> {
        let found = &self.contents.options;
        let compare = |option, found: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
            let (found, expected) = (format!("{found:?}"), format!("{expected:?}"));
            if found == expected {
                return Ok(());
            }
            Err(SnapshotError::Options {
                path: self.directory.join(GRAPH),
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

    /// Puts the blocks into an array that is empty: whole chunks by their pages in the file, to be copied
    /// when they are written to, the rest of the last chunk by a copy.
    ///
    /// # Panics
    /// If the array's stride is not the size of a block.
    pub(crate) fn put_blocks(&self, array: &Array) -> Result<(), SnapshotError> {
        assert_eq!(array.stride(), self.shape.block_bytes as usize);
        put_records(array, &self.graph, 0..self.shape.slots)
    }

    /// Puts the full vectors into an array that is empty: whole chunks by their pages in the files, which
    /// must not be written to, the rest of the last chunk by a copy.
    ///
    /// # Panics
    /// If the array's stride is not the size of a vector.
    pub(crate) fn put_vectors(&self, array: &Array) -> Result<(), SnapshotError> {
        for (segment, vectors) in self.segments.iter().zip(&self.vectors) {
            assert_eq!(array.stride(), segment.vector_bytes as usize);
            put_records(array, vectors, segment.slots())?;
        }
        Ok(())
    }

    /// Reads a segment and holds it against its checksums: to be done for each in the background. The
    /// directory must still be where it was opened.
    pub(crate) fn verify_segment(&self, number: usize) -> Result<(), SnapshotError> {
        let path = self.directory.join(segment::file_name(number as u32));
        let (file, file_bytes) = open(&path)?;
        let bytes = self.shape.segment_bytes(number as u32);
        if file_bytes != bytes {
            return Err(wrong_length(&path, file_bytes));
        }
        let checksums = &self.segments[number].checksums;
        checksum::verify(&file, &path, 0, bytes, checksums, |_, _| {})
    }

    fn open_segment(&mut self, number: u32, checksums: Vec<Checksum>) -> Result<(), SnapshotError> {
        let path = self.directory.join(segment::file_name(number));
        let (file, file_bytes) = open(&path)?;
        let header = read_header(&file, file_bytes, &path)?;
        segment::check_header(&header, &segment::header(&self.shape, number), &path)?;
        if file_bytes != self.shape.segment_bytes(number) {
            return Err(wrong_length(&path, file_bytes));
        }
        let vectors = Mapping::read_only(&file, file_bytes as usize)
            .map_err(SnapshotError::io("map", &path))?;
        self.vectors.push(Arc::new(vectors));
        self.segments.push(Segment {
            number,
            slots: self.shape.segment(number),
            vector_bytes: self.shape.vector_bytes,
            checksums,
        });
        Ok(())
    }
}

/// Opens a file for reading, and says how long it is.
fn open(path: &Path) -> Result<(File, u64), SnapshotError> {
    let file = File::open(path).map_err(SnapshotError::io("open", path))?;
    let metadata = file.metadata().map_err(SnapshotError::io("open", path))?;
    Ok((file, metadata.len()))
}

/// The header of either kind of file. What is too short for one is no file of a snapshot.
fn read_header(
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

/// The list of checksums, held against its own.
fn read_checksums(
    file: &File,
    path: &Path,
    layout: &Layout,
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

fn wrong_length(path: &Path, file_bytes: u64) -> SnapshotError {
    SnapshotError::damaged(
        path,
        file_bytes,
        "the file is not as long as it was written",
    )
}

fn take(checksums: &mut impl Iterator<Item = Checksum>, count: u64) -> Vec<Checksum> {
    checksums.take(count as usize).collect()
}

/// A table's bytes as numbers of 32 bits.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks();
    words.iter().copied().map(u32::from_le_bytes)
}

/// Puts the records of `slots`, which lie in `mapping` behind a header, into an array.
fn put_records(
    array: &Array,
    mapping: &Arc<Mapping>,
    slots: Range<u32>,
) -> Result<(), SnapshotError> {
    let chunk_slots = array.records_per_chunk() as u32;
    let mut start = slots.start;
    while start < slots.end {
        let offset = HEADER_BYTES + (start - slots.start) as usize * array.stride();
        // Up to the end of the chunk, or of the records.
        let room = chunk_slots - start % chunk_slots;
        let count = room.min(slots.end - start);
        if count == chunk_slots {
            let piece = Piece {
                mapping: Arc::clone(mapping),
                offset,
            };
            array.adopt(start, piece)?;
        } else {
            array.ensure(start)?;
            let record = array.get(start).expect("the chunk was ensured");
            let bytes = count as usize * array.stride();
            assert!(offset + bytes <= mapping.len());
            // SAFETY: the source lies within the mapping, as the header says where it ends and the
            // file is as long; the target is the rest of a chunk or less, and nobody else knows it.
            unsafe { record.copy_from_nonoverlapping(mapping.at(offset).as_ptr(), bytes) };
        }
        start += count;
    }
    Ok(())
}
