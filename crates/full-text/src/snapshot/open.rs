//! Opening a snapshot as an index.

use std::path::Path;
use std::sync::Arc;

use index::FullTextOptions;

use super::manifest::{self, DOCUMENTS_FILE, INDEX_FILE, SnapshotManifest};
use super::{INDEX, segment_name};
use crate::damage::DamageNote;
use crate::live_documents::LiveDocuments;
use crate::segment::TextSegment;
use crate::snapshot_directory::SnapshotFolder;
use crate::state::{SegmentPart, TextState};
use crate::{TextFileError, TextIndex};

impl TextIndex {
    /// Opens the snapshot in a directory. `options` must be those that the index was made with.
    ///
    /// Segments are used in place in the snapshot's files, which are never written to, and may be
    /// renamed or removed. Of large ones only a part is verified here; [`TextIndex::verify`]
    /// verifies the rest.
    ///
    /// # Errors
    /// If a file can't be read, is damaged, or is of an index with other options.
    pub fn open(options: FullTextOptions, directory: &Path) -> Result<TextIndex, TextFileError> {
        let folder = Arc::new(SnapshotFolder::open(directory)?);
        let (manifest, _) = INDEX_FILE.read(&folder, SnapshotManifest::decode)?;
        if !manifest.is_of(options) {
            return Err(TextFileError::Unusable(format!(
                "{} is of an index with the analyzer {} and 'positions': '{}', not {} and '{}'; \
                 build the index anew",
                folder.path_of(INDEX).display(),
                manifest.analyzer,
                manifest.positions,
                options.analyzer.name(),
                options.positions,
            )));
        }
        let (documents, _) = DOCUMENTS_FILE.read(&folder, manifest::decode_documents)?;
        let damage = DamageNote::default();
        let mut segments = Vec::new();
        for listed in manifest.segments {
            let name = segment_name(listed.number);
            let segment = TextSegment::open(&folder, &name, options.positions, false, &damage)?;
            if segment.documents() != listed.documents {
                let what = "it has another number of documents than the index lists";
                return Err(TextFileError::damaged(&folder.path_of(&name), what));
            }
            let mut live = LiveDocuments {
                dead: listed.dead.into_iter().collect(),
                ..LiveDocuments::default()
            };
            for document in 0..segment.documents() {
                if live.is_live(document) {
                    live.add(segment.length(document));
                }
            }
            segments.push(SegmentPart {
                number: listed.number,
                segment: Arc::new(segment),
                live,
            });
        }
        let state = TextState::of(segments)
            .map_err(|what| TextFileError::damaged(&folder.path_of(INDEX), what))?;
        let index = TextIndex::of(options, state, damage);
        for (id, text) in &documents {
            // Its segment has no document of this id that lives, or two would.
            if !index.add_waiting(*id, text) {
                let what = "a document in it is in a segment, too";
                return Err(TextFileError::damaged(
                    &folder.path_of(DOCUMENTS_FILE.name),
                    what,
                ));
            }
        }
        Ok(index)
    }
}
