//! The ways back from a point, except by CQL: into a running server, and into a new directory.

mod choice;
mod names;
mod offline;
mod online;
mod record;

pub use choice::TableChoice;
pub(crate) use choice::files_of;
pub(crate) use names::in_keyspace;
pub use offline::{RestoredDirectory, restore_directory};
pub(crate) use online::folder;
pub(crate) use record::undo_interrupted;
