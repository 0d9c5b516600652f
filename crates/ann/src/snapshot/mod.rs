//! An index in files: written beside changes, opened by memory map and used at once.
//!
//! A snapshot is a *generation*, a directory with a file `graph` (blocks, ids, tables, checksums) and
//! *segments* `vectors-NNNNN` of full vectors. `docs/snapshot-format.md` draws them to the byte.
//!
//! - [`Writer`] streams a generation out, in steps of at most a few MiB, so that whoever saves holds
//!   nothing up. Segments whose vectors did not change are linked from the last generation.
//! - [`Reader`] verifies `graph`, then puts the files' pages in the place of arrays' chunks. Segments are
//!   verified later, one by one, while they are already searched.
//! - [`Contents`] is what an index is made of beside blocks and vectors.
//!
//! The module knows nothing of graphs: blocks and vectors are bytes to it.

mod checksum;
mod contents;
mod error;
mod header;
mod layout;
mod reader;
mod segment;
#[cfg(all(test, not(miri)))]
mod tests;
mod writer;

pub(crate) use contents::Contents;
pub use error::SnapshotError;
pub(crate) use layout::Shape;
pub(crate) use reader::Reader;
pub(crate) use segment::Segment;
pub(crate) use writer::Writer;

// Blocks and vectors are mapped as they lie.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "snapshots are little-endian"
);
