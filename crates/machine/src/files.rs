//! Steps of writing the files of a snapshot.
//!
//! Whoever writes them says before each step which it is, and syncs through [`sync`]. A simulation has steps fail, and knows at
//! a crash what was never synced: that may be lost or torn then.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::Simulation;

/// What is about to be done with a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A file gets a name: it is made, or linked.
    Make,
    /// Bytes are written to a file.
    Write,
    /// What is at that path is replaced by another file.
    Replace,
    /// A file is read.
    Read,
}

/// Says that a step follows.
///
/// # Errors
/// If it is not to be taken, as if the system had refused it.
pub fn step(step: Step, path: &Path) -> io::Result<()> {
    match Simulation::of_thread() {
        Some(simulation) => simulation.step(step, path),
        None => Ok(()),
    }
}

/// Waits until a file, or the names in a directory, are on the disk.
///
/// # Errors
/// As the system says.
pub fn sync(file: &File, path: &Path) -> io::Result<()> {
    match Simulation::of_thread() {
        Some(simulation) => simulation.sync(path),
        None => file.sync_all(),
    }
}
