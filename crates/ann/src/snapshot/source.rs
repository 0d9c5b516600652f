//! The files of full vectors of an opened generation: they are put to use, and verified.

use std::io;
use std::sync::Arc;

use super::checksum::{self, PIECE_BYTES};
use super::layout::HEADER_BYTES;
use super::segment::{self, VectorSegment};
use super::{SavedGeneration, SnapshotError};
use crate::memory::{MappedPiece, Mapping, RecordArray};

/// Full vectors that are searched in place, and may turn out to be damaged.
pub(crate) struct MappedVectors {
    generation: Arc<SavedGeneration>,
    /// The mapping of each segment's whole file, for reading.
    mappings: Vec<Arc<Mapping>>,
}

impl MappedVectors {
    /// Puts the vectors of a generation into an empty array. Whole chunks are pages of the files,
    /// which must not be written to; the rest of the last chunk is a copy. The vectors are not
    /// verified. The array's faults are notified of a file that can't be read later.
    ///
    /// # Panics
    /// If the array's stride is not the size of a vector.
    pub(crate) fn map(
        generation: Arc<SavedGeneration>,
        array: &mut RecordArray,
    ) -> Result<MappedVectors, SnapshotError> {
        let mut mappings = Vec::new();
        for segment in &generation.segments {
            assert_eq!(array.stride(), segment.vector_bytes as usize);
            let name = segment::file_name(segment.number);
            let path = generation.directory.path_of(&name);
            let of = array.faults().file(path.display().to_string());
            let mapping = generation
                .directory
                .open_file(&name)
                .and_then(|file| Mapping::read_only(&file, segment.bytes() as usize, &of))
                .map_err(SnapshotError::io("map", &path))?;
            let mapping = Arc::new(mapping);
            put_records(array, &mapping, segment)?;
            mappings.push(mapping);
        }
        if let Some(file) = array.faults().unreadable() {
            return Err(SnapshotError::Unreadable { file });
        }
        Ok(MappedVectors {
            generation,
            mappings,
        })
    }

    /// Reads the vectors of a generation into an empty array, and verifies them on the way.
    ///
    /// # Panics
    /// If the array's stride is not the size of a vector.
    pub(crate) fn read(
        generation: &SavedGeneration,
        array: &mut RecordArray,
    ) -> Result<(), SnapshotError> {
        for segment in &generation.segments {
            assert_eq!(array.stride(), segment.vector_bytes as usize);
            let name = segment::file_name(segment.number);
            let path = generation.directory.path_of(&name);
            let file = generation
                .directory
                .open_file(&name)
                .map_err(SnapshotError::io("open", &path))?;
            for first in segment.slots.clone().step_by(array.records_per_chunk()) {
                array.ensure(first)?;
            }
            let before = u64::from(segment.slots.start) * u64::from(segment.vector_bytes);
            let visit = |offset: u64, piece: &[u8]| {
                let header = (HEADER_BYTES as u64).saturating_sub(offset) as usize;
                let vectors = &piece[header.min(piece.len())..];
                let start = (offset + header as u64) - HEADER_BYTES as u64;
                array.fill(before + start, vectors);
                Ok(())
            };
            checksum::verify(&file, &path, 0, segment.bytes(), &segment.checksums, visit)?;
        }
        Ok(())
    }

    /// Number of segments.
    pub(crate) fn segments(&self) -> usize {
        self.generation.segments.len()
    }

    /// Number of bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.generation
            .segments
            .iter()
            .map(VectorSegment::bytes)
            .sum()
    }

    /// Number of pieces in which a segment is verified.
    pub(crate) fn pieces(&self, number: usize) -> usize {
        self.generation.segments[number].checksums.len()
    }

    /// Reads a piece of a segment, compares it with its checksum, and returns its number of bytes.
    /// `buffer` saves an allocation a call.
    pub(crate) fn verify_piece(
        &self,
        number: usize,
        piece: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<u64, SnapshotError> {
        let segment = &self.generation.segments[number];
        let offset = (piece * PIECE_BYTES) as u64;
        let bytes = (segment.bytes() - offset).min(PIECE_BYTES as u64);
        buffer.resize(bytes as usize, 0);
        let name = segment::file_name(segment.number);
        let path = self.generation.directory.path_of(&name);
        match self.generation.directory.open_file(&name) {
            Ok(file) => checksum::read_exact(&file, &path, offset, buffer)?,
            // The owner has put another generation in its place. The mapping is still there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.read_mapped(number, offset, buffer);
            }
            Err(error) => return Err(SnapshotError::io("open", &path)(error)),
        }
        checksum::verify_piece(buffer, &path, offset, segment.checksums[piece])?;
        Ok(bytes)
    }

    fn read_mapped(&self, number: usize, offset: u64, buffer: &mut [u8]) {
        // SAFETY: the mapping is read-only, and files of a snapshot are not written to.
        let mapped = unsafe { self.mappings[number].bytes() };
        buffer.copy_from_slice(&mapped[offset as usize..][..buffer.len()]);
    }
}

/// Puts the records of a segment, which are in `mapping` after a header, into an array.
fn put_records(
    array: &mut RecordArray,
    mapping: &Arc<Mapping>,
    segment: &VectorSegment,
) -> Result<(), SnapshotError> {
    let slots = &segment.slots;
    let chunk_slots = array.records_per_chunk() as u32;
    for start in slots.clone().step_by(chunk_slots as usize) {
        let count = chunk_slots.min(slots.end - start);
        let offset = HEADER_BYTES + (start - slots.start) as usize * array.stride();
        if count == chunk_slots {
            let piece = MappedPiece {
                mapping: Arc::clone(mapping),
                offset,
            };
            array.adopt(start, piece)?;
        } else {
            array.ensure(start)?;
            // SAFETY: the mapping is read-only, and files of a snapshot are not written to.
            let mapped = unsafe { mapping.bytes() };
            let records = &mapped[offset..][..count as usize * array.stride()];
            array.fill(u64::from(start) * array.stride() as u64, records);
        }
    }
    Ok(())
}
