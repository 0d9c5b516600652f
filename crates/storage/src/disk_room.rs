//! Room on the disk, and the text for the operator when there is none.

use std::path::Path;

/// Bytes that may still be written in the directory's file system.
fn free_bytes(directory: &Path) -> Option<u64> {
    let statistics = rustix::fs::statvfs(directory).ok()?;
    Some(statistics.f_bavail.saturating_mul(statistics.f_frsize))
}

/// The text for the operator: the disk is full, or it failed.
pub(crate) fn describe(directory: &Path, cause: &str) -> String {
    /// With fewer free bytes the engine can't write out what it holds in memory.
    const FULL_BELOW_BYTES: u64 = 64 << 20;
    let path = directory.display();
    match free_bytes(directory) {
        Some(free) if free < FULL_BELOW_BYTES => format!(
            "the disk of {path} is full ({free} bytes free): nothing is written until there is room; \
             reads go on"
        ),
        _ => format!(
            "writing to {path} failed ({cause}): nothing is written until the disk takes it again; \
             reads go on"
        ),
    }
}
