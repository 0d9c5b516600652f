//! The memory of an index: flat arrays of records that grow while others read them.
//!
//! An [`RecordArray`] is a sequence of records of one size (its *stride*) in *chunks* of a power of
//! two of records. A chunk never moves, so a reader holds plain pointers, and growing touches
//! nothing that is there (except chunks of a snapshot, which are copied before they are written
//! to). The array only hands out places: the epochs (`epoch.rs`) decide when a record that no one
//! wants any more is used again.
//!
//! - [`RecordArray`]: the records, by index.
//! - `table`: the address of a chunk by its number, without a lock.
//! - `growth`: chunks are cut from regions of memory, or of a nameless file, as they are wanted.
//! - [`FileFaults`]: the files of an array that can no longer be read.
//! - [`Mapping`]: a piece of address space, the only owner of raw memory.
//!
//! # Full disks
//!
//! A write through a memory map has no way to say that the disk is full; the process is killed
//! (`SIGBUS`). So the space of a file's chunk is allocated before anyone can write to it, and a
//! full disk is a [`GrowError`] like any other. Nor can a read say that the file was cut short, or
//! that the disk fails. Then zeros are read, and [`FileFaults`] names the file.

mod array;
mod disk;
mod faults;
mod growth;
mod mapping;
mod table;

pub(crate) use array::{Footprint, MappedPiece, RecordArray, RetiredChunk};
pub(crate) use faults::{FileFaults, MappedFile};
pub use growth::GrowError;
pub(crate) use growth::RecordPlacement;
pub(crate) use mapping::Mapping;
