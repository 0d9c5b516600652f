//! An index in files: written beside changes, opened by memory map and used at once.
//!
//! A snapshot is a *generation*, a directory with a file `graph` (blocks, ids, tables, checksums) and
//! *segments* `vectors-NNNNN` of full vectors. `docs/snapshot-format.md` draws them to the byte.
//!
//! - [`Writer`] streams a generation out, in steps of at most a few MiB, so that whoever saves holds
//!   nothing up. Segments whose vectors did not change are linked from the last generation.
//! - [`open`] reads `graph` into memory and verifies it on the way; what it finds is [`Opened`]. Blocks are
//!   read rather than mapped, as all of them have to be read for that in any case, lie on huge pages
//!   then, and cannot become other than what was verified.
//! - [`Source`] is the files of full vectors: mapped, their pages take the place of an array's chunks, and are
//!   verified piece by piece while they are already searched.
//! - [`Generation`] is a directory that was written or opened, from which the next may keep segments.
//! - [`check_snapshot`] reads all of one and looks for damage, without opening it.
//! - [`Contents`] is what an index is made of beside blocks and vectors.
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
#[cfg(all(test, not(miri)))]
mod tests;
mod writer;

pub use check::check_snapshot;
pub(crate) use contents::Contents;
pub use error::SnapshotError;
pub(crate) use generation::Generation;
pub(crate) use layout::Shape;
pub(crate) use reader::{Opened, open};
use segment::Segment;
pub(crate) use source::Source;
pub(crate) use writer::Writer;

// Blocks and vectors are mapped as they lie.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "snapshots are little-endian"
);
