//! The outcome of reading files and checking them.

/// The files that were read, and the faults in them.
#[derive(Clone, Debug, Default)]
pub struct CheckedFiles {
    /// The number of files that were read to the end, or to their first fault.
    pub files: u64,
    /// The number of bytes read.
    pub bytes: u64,
    /// The faults, each with the name of its file.
    pub faults: Vec<String>,
}

impl CheckedFiles {
    /// Adds what was found elsewhere.
    pub fn add(&mut self, other: CheckedFiles) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.faults.extend(other.faults);
    }
}
