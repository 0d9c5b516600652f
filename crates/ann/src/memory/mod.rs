//! Where the records of an index live: flat arrays that grow while others read them.
//!
//! An [`Array`] is a sequence of records of one size (its *stride*) in *chunks* of a power of two of
//! records. A chunk never moves, so a reader holds plain pointers, and growing touches nothing that
//! is there (but for chunks of a snapshot, which are copied before they are written to). What becomes of a record that nobody wants any more is not decided here but by the
//! epochs (`epoch.rs`): the array only hands out places.
//!
//! - [`Array`]: the records, by index.
//! - `table`: from the number of a chunk to its address, without a lock.
//! - `growth`: chunks are cut from regions of memory, or of a nameless file, as they are wanted.
//! - [`Faults`]: which file of an array can no longer be read.
//! - [`Mapping`]: a piece of address space, the only owner of raw memory.
//!
//! # Full disks
//!
//! A write through a memory map has no way to say that the disk is full; the process is killed
//! (`SIGBUS`). So the space of a file's chunk is allocated before anyone can write to it, and a full
//! disk is a [`GrowError`] like any other. Nor can a read say that the file was cut short, or that the
//! disk fails: then zeros are read, and [`Faults`] says so.

mod array;
mod disk;
mod faults;
mod growth;
mod mapping;
mod table;

pub(crate) use array::{Array, Footprint, Piece, Retired};
pub(crate) use faults::{Faults, MappedFile};
pub use growth::GrowError;
pub(crate) use growth::Place;
pub(crate) use mapping::Mapping;
