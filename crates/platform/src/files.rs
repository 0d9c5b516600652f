//! Steps of writing the files of a snapshot.
//!
//! Code that writes such files calls [`step`] before each step, and syncs through [`sync`]. A
//! simulation lets steps fail, and knows at a crash what was never synced, which may then be lost
//! or torn.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::Simulation;

/// A step that is about to be done with a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStep {
    /// A file gets a name: it is made, or linked.
    Make,
    /// Bytes are written to a file.
    Write,
    /// The file at a path is replaced by another file.
    Replace,
    /// A file is read.
    Read,
}

/// Announces the step that follows.
///
/// # Errors
/// If a simulation refuses the step, as the system may.
pub fn step(step: FileStep, path: &Path) -> io::Result<()> {
    match Simulation::of_thread() {
        Some(simulation) => simulation.step(step, path),
        None => Ok(()),
    }
}

/// Waits until a file, or the names in a directory, are on the disk.
///
/// # Errors
/// The error of the system.
pub fn sync(file: &File, path: &Path) -> io::Result<()> {
    match Simulation::of_thread() {
        Some(simulation) => simulation.sync(path),
        None => file.sync_all(),
    }
}
