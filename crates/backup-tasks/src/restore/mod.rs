//! The ways back from a point, except by CQL: into a running server, and into a new directory.

mod names;
mod offline;
mod online;
mod record;

pub(crate) use names::in_keyspace;
pub use offline::{RestoredDirectory, restore_directory};
pub(crate) use online::check_kind;
