//! Saving an index to files while it is changed and searched.

use std::path::Path;
use std::sync::Arc;

use super::manifest::{self, DOCUMENTS_FILE, INDEX_FILE, SnapshotManifest};
use super::segment_name;
use crate::segment::TextSegment;
use crate::snapshot_directory::SnapshotFolder;
use crate::state::TextState;
use crate::{TextFileError, TextIndex};

/// The progress of a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextSaveProgress {
    /// Bytes that are written, or taken over from the last snapshot, so far.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Counts bytes, and checks whether a save is to go on.
struct SaveSteps<'a> {
    progress: TextSaveProgress,
    keep_going: &'a mut dyn FnMut(TextSaveProgress) -> bool,
}

impl SaveSteps<'_> {
    fn passed(&mut self, bytes: u64) -> bool {
        // Copies and checksums may have more bytes than were counted before.
        let done = self.progress.done + bytes;
        self.progress.done = done.min(self.progress.total);
        (self.keep_going)(self.progress)
    }
}

impl TextIndex {
    /// Writes the index as it is now into an existing directory, while searches and changes go on.
    ///
    /// Segments that are in files already, from the last snapshot on, are taken over as hard links
    /// where that can be done. So until this has returned, the last snapshot is the good one: save
    /// to a new directory each time, and rename it into its place afterwards. After an error,
    /// remove the directory. Segments that were in memory are used in place in their new files
    /// afterwards.
    ///
    /// `keep_going` is called before the first byte and after each MiB; false ends the save.
    ///
    /// # Errors
    /// If the system refuses, the save was stopped, or the index was opened from files that turned
    /// out to be damaged.
    pub fn save_while(
        &self,
        directory: &Path,
        mut keep_going: impl FnMut(TextSaveProgress) -> bool,
    ) -> Result<(), TextFileError> {
        let _saving = self.saving.lock();
        self.refuse_damage()?;
        let state = self.state.lock().clone();
        let folder = Arc::new(SnapshotFolder::open(directory)?);
        let documents = manifest::encode_documents(&state);
        let index = SnapshotManifest::of(self.options, &state).encode();
        let total = state.segments.iter().map(|part| part.segment.bytes());
        let total = total.sum::<u64>() + (documents.len() + index.len()) as u64;
        let mut steps = SaveSteps {
            progress: TextSaveProgress { done: 0, total },
            keep_going: &mut keep_going,
        };
        if !steps.passed(0) {
            return Err(TextFileError::stopped());
        }
        for part in &state.segments {
            let name = segment_name(part.number);
            write_segment(&folder, &name, &part.segment, &mut steps)?;
        }
        DOCUMENTS_FILE.write(&folder, documents, &mut |bytes| steps.passed(bytes))?;
        INDEX_FILE.write(&folder, index, &mut |bytes| steps.passed(bytes))?;
        folder.sync()?;
        // If a file could not be read meanwhile, zeros may have been copied.
        self.refuse_damage()?;
        self.use_files(&folder, &state);
        Ok(())
    }

    fn refuse_damage(&self) -> Result<(), TextFileError> {
        match self.damage.found() {
            None => Ok(()),
            Some(damage) => Err(TextFileError::Unusable(format!(
                "the index is from damaged files and cannot be saved: {damage}"
            ))),
        }
    }

    /// Uses the files that were written in place of segments in memory. A segment whose file can't
    /// be mapped stays in memory.
    fn use_files(&self, folder: &Arc<SnapshotFolder>, saved: &TextState) {
        for part in &saved.segments {
            if let Some(stored) = part.segment.stored() {
                stored.set_folder(folder);
                continue;
            }
            let name = segment_name(part.number);
            let positions = self.options.positions;
            let mapped = TextSegment::open(folder, &name, positions, true, &self.damage);
            let Ok(mapped) = mapped else { continue };
            let mut state = self.state.lock();
            let mut parts = state.segments.iter_mut();
            if let Some(now) = parts.find(|now| now.number == part.number) {
                now.segment = Arc::new(mapped);
            }
        }
    }
}

/// Writes the file of a segment, or takes it over.
fn write_segment(
    folder: &SnapshotFolder,
    name: &str,
    segment: &TextSegment,
    steps: &mut SaveSteps<'_>,
) -> Result<(), TextFileError> {
    let linked = segment
        .stored()
        .is_some_and(|stored| stored.link(name, folder));
    match linked {
        true if steps.passed(segment.bytes()) => Ok(()),
        true => Err(TextFileError::stopped()),
        false => segment.write(folder, name, &mut |bytes| steps.passed(bytes)),
    }
}
