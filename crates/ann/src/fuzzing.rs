//! Entry point of a fuzz target: any bytes as the files of a snapshot.
//!
//! Checksums keep almost every change of a file from being read any further. So the files are read
//! twice: as they are, and with lengths and checksums that are right. The offsets are those of
//! `docs/snapshot-format.md`.

use std::ops::Range;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use crate::{
    NeighbourIndex, NeighbourIndexOptions, SnapshotError, VectorPlacement, VectorsState,
    check_snapshot, snapshot,
};

const HEADER_BYTES: usize = 4096;
const CHECKSUM_BYTES: usize = 16;
const VECTORS_MAGIC: &[u8] = b"ANNVECTS";
/// The most bytes under one checksum, and of a file of vectors here.
const PIECE_BYTES: usize = 1 << 20;

/// Reads bytes as the files `graph` and `vectors-00000`, which follow one another.
///
/// The snapshot is refused with an error, or it is an index that can be searched and changed.
///
/// # Panics
/// If that does not hold, or no temporary file can be written.
pub fn snapshot(bytes: &[u8]) {
    let mut windows = bytes.windows(VECTORS_MAGIC.len());
    let split = windows.position(|window| window == VECTORS_MAGIC);
    let (graph, vectors) = bytes.split_at(split.unwrap_or(bytes.len()));
    let directory = in_memory();
    let read = |graph: &[u8], vectors: &[u8]| {
        let files = [("graph", graph), ("vectors-00000", vectors)];
        for (name, content) in files {
            std::fs::write(directory.path().join(name), content).expect("a temporary file");
        }
        let is_sound = check_snapshot(directory.path(), &mut |_| true).is_ok();
        for placement in [VectorPlacement::File, VectorPlacement::Memory] {
            if let Ok(index) = open(directory.path(), placement)
                && !matches!(index.verify_vectors(|| true), VectorsState::Damaged(_))
            {
                assert!(is_sound, "a snapshot that can be used passes the check");
                exercise(&index);
            }
        }
    };
    read(graph, vectors);
    if let Some((graph, vectors)) = repaired(graph, vectors) {
        read(&graph, &vectors);
    }
}

/// Opens a snapshot with the options that it names.
fn open(directory: &Path, placement: VectorPlacement) -> Result<NeighbourIndex, SnapshotError> {
    let options = snapshot::open(directory)?.contents.options;
    let options = NeighbourIndexOptions {
        placement,
        ..options
    };
    NeighbourIndex::open_in(directory, options, directory)
}

/// Searches an index and changes it.
fn exercise(index: &NeighbourIndex) {
    let dimensions = index.options().dimensions;
    let query: Vec<f32> = (0..dimensions).map(|at| 1.0 + (at % 3) as f32).collect();
    let ids: Vec<u32> = index.ids().iter().collect();
    assert_eq!(ids.len(), index.len());
    let search = |count: usize| {
        if let Ok(found) = index.search(&query, count) {
            assert_eq!(found.len(), count.min(index.len()));
        }
    };
    search(3);
    search(usize::from(u8::MAX));
    let unused = (0..).find(|id| !ids.contains(id)).expect("a free id");
    let _ = index.insert(unused, &query);
    if let [first, .., last] = ids[..] {
        let _ = index.replace(first, &query);
        let _ = index.remove(last);
    }
    search(3);
}

/// The files with the lengths and checksums that they need. `None` if `graph` is no longer than a
/// header, or a file has more bytes than are under one checksum.
fn repaired(graph: &[u8], vectors: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut graph, mut vectors) = (graph.to_vec(), vectors.to_vec());
    let number = |at: usize| Some(u32::from_le_bytes(*graph.get(at..)?.first_chunk()?));
    let (slots, vector_bytes) = (number(24)?, number(36)?);
    let vectors_bytes = (slots as usize).checked_mul(vector_bytes as usize)?;
    let has_vectors = vectors_bytes > 0;
    if has_vectors {
        let bytes = HEADER_BYTES.checked_add(vectors_bytes)?;
        if bytes > PIECE_BYTES {
            return None;
        }
        vectors.resize(bytes, 0);
        let fields = [1, vector_bytes, 0, slots].map(u32::to_le_bytes);
        vectors[..HEADER_BYTES].fill(0);
        put(&mut vectors, 0, VECTORS_MAGIC);
        put(&mut vectors, VECTORS_MAGIC.len(), fields.as_flattened());
    }
    let list = graph
        .len()
        .checked_sub((1 + usize::from(has_vectors)) * CHECKSUM_BYTES)?;
    if list <= HEADER_BYTES || list - HEADER_BYTES > PIECE_BYTES {
        return None;
    }
    let length = graph.len() as u64;
    put(&mut graph, 16, &length.to_le_bytes());
    put_checksum(&mut graph, list, HEADER_BYTES..list);
    if has_vectors {
        let checksum = xxh3_128(&vectors).to_le_bytes();
        put(&mut graph, list + CHECKSUM_BYTES, &checksum);
    }
    put_checksum(&mut graph, 96, list..length as usize);
    let of_header = HEADER_BYTES - CHECKSUM_BYTES;
    put_checksum(&mut graph, of_header, 0..of_header);
    Some((graph, vectors))
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// Writes the checksum of a range of bytes to an offset.
fn put_checksum(bytes: &mut [u8], at: usize, range: Range<usize>) {
    let checksum = xxh3_128(&bytes[range]).to_le_bytes();
    put(bytes, at, &checksum);
}

/// A temporary directory, in memory where the system has a place for that.
fn in_memory() -> tempfile::TempDir {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    directory.expect("a temporary directory")
}
