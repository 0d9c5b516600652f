//! An index in files: written while changes go on, opened by memory map and used at once.
//!
//! A snapshot is a *generation*, a directory with a file `graph` (blocks, ids, tables, checksums)
//! and *segments* `vectors-NNNNN` of full vectors. `docs/snapshot-format.md` draws them to the
//! byte.
//!
//! - [`GenerationWriter`] streams a generation out, in steps of at most a few MiB, so that a save
//!   holds nothing up. Segments whose vectors did not change are linked from the last generation.
//! - [`open`] reads `graph` into memory and verifies it on the way, and returns
//!   [`OpenedGeneration`]. Blocks are read and not mapped, since all of them have to be read for
//!   verification, are on huge pages then, and cannot change after they were verified.
//! - [`MappedVectors`] has the files of full vectors. Their mapped pages take the place of an
//!   array's chunks, and are verified piece by piece while they are already searched.
//! - [`SavedGeneration`] is a directory that was written or opened, from which the next may keep
//!   segments.
//! - [`check_snapshot`] reads all files of a snapshot and looks for damage, without opening it.
//! - [`StoredContents`] has the options and tables of an index, without blocks and vectors.
//!
//! The module knows nothing of graphs: blocks and vectors are bytes to it.

mod check;
mod checksum;
mod contents;
mod error;
mod generation;
mod header;
mod layout;
mod reader;
mod segment;
mod source;
#[cfg(not(miri))]
#[cfg(test)]
mod tests;
mod writer;

pub use check::check_snapshot;
pub(crate) use contents::StoredContents;
pub use error::SnapshotError;
pub(crate) use generation::SavedGeneration;
pub(crate) use layout::SlotShape;
pub(crate) use reader::{OpenedGeneration, open};
use segment::VectorSegment;
pub(crate) use source::MappedVectors;
pub(crate) use writer::GenerationWriter;

// Blocks and vectors have the same layout in memory as in the files.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "snapshots are little-endian"
);
