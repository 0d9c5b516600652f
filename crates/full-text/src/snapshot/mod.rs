//! The files of an index.
//!
//! | file | content |
//! | --- | --- |
//! | `index` | the options, and of each segment its number, its documents and which are dead |
//! | `segment-N` | a segment (`crate::segment`) |
//! | `documents` | the documents that no segment has yet |
//!
//! Each has checksums. `index` is written last, so a directory without it has no finished snapshot.

mod check;
mod frame;
mod manifest;
mod open;
mod save;
mod verify;

pub use check::check_snapshot;
pub use save::TextSaveProgress;
pub use verify::TextFilesState;

/// The name of the file that lists the others.
const INDEX: &str = "index";
/// The name of the file of documents without a segment.
const DOCUMENTS: &str = "documents";

/// The name of a segment's file.
fn segment_name(number: u32) -> String {
    format!("segment-{number}")
}
