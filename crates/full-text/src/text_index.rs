//! The index: its changes, and views of it.

use ann::IdSet;
use index::FullTextOptions;
use parking_lot::Mutex;

use crate::TextIndexError;
use crate::damage::DamageNote;
use crate::document::AnalysedText;
use crate::segment::TextSegment;
use crate::state::TextState;
use crate::view::{FreshTexts, TextView};

/// The fewest and the most documents that may wait for a segment, and how many of all documents
/// may.
const WAITING_MIN: usize = 256;
const WAITING_MAX: usize = 16_384;
const LIVE_PER_WAITING: usize = 16;
/// The most bytes of documents that wait for a segment.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The bytes of an index, by its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextMemory {
    /// Bytes of segments in memory.
    pub segments: usize,
    /// Bytes of documents that wait for a segment.
    pub documents: usize,
    /// Bytes of the table of ids, and of the sets of dead documents.
    pub tables: usize,
    /// Bytes of segments in mapped files, which are not in memory unless they are read.
    pub mapped: usize,
    /// The number of dead documents, which merges take out.
    pub dead: usize,
}

/// An index of texts by their words.
///
/// One task changes it at a time, any number of threads search it meanwhile, and another task may
/// call [`TextIndex::maintain`] and save it.
pub struct TextIndex {
    pub(crate) options: FullTextOptions,
    pub(crate) damage: DamageNote,
    /// All documents. It is locked for a moment at a time, and never while files or segments are
    /// written.
    pub(crate) state: Mutex<TextState>,
    /// Held by who adds documents to the open ones, or seals these.
    changing: Mutex<()>,
    /// Held by who writes waiting documents as segments.
    flushing: Mutex<()>,
    /// Held by who merges segments.
    pub(crate) merging: Mutex<()>,
    /// Held by who writes files.
    pub(crate) saving: Mutex<()>,
}

impl TextIndex {
    /// Makes an empty index.
    pub fn new(options: FullTextOptions) -> TextIndex {
        TextIndex::of(options, TextState::default(), DamageNote::default())
    }

    pub(crate) fn of(options: FullTextOptions, state: TextState, damage: DamageNote) -> TextIndex {
        TextIndex {
            options,
            damage,
            state: Mutex::new(state),
            changing: Mutex::new(()),
            flushing: Mutex::new(()),
            merging: Mutex::new(()),
            saving: Mutex::new(()),
        }
    }

    /// The options that it was made with.
    pub fn options(&self) -> FullTextOptions {
        self.options
    }

    /// Sets the document of an id, in place of the one that it has.
    ///
    /// # Errors
    /// If too many documents wait for a segment and none can be written. The document is in the
    /// index all the same.
    pub fn set(&self, id: u32, text: &AnalysedText) -> Result<(), TextIndexError> {
        self.add_waiting(id, text);
        match self.is_waiting(1) {
            true => self.write_waiting(1),
            false => Ok(()),
        }
    }

    /// Adds a document to those that wait. Returns whether its id had none.
    pub(crate) fn add_waiting(&self, id: u32, text: &AnalysedText) -> bool {
        let _changing = self.changing.lock();
        let open = self.state.lock().open().documents.clone();
        // Before the state knows of the document, no one sees it.
        let document = open.push(id, text);
        self.state.lock().publish(id, document, text.length())
    }

    /// Takes an id out, if the index has it.
    pub fn remove(&self, id: u32) {
        let _changing = self.changing.lock();
        self.state.lock().remove(id);
    }

    /// The ids that have a document.
    pub fn ids(&self) -> IdSet {
        let places = self.state.lock().places.clone();
        places.iter().map(|(id, _)| id).collect()
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.state.lock().places.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of segments.
    pub fn segment_count(&self) -> usize {
        self.state.lock().segments.len()
    }

    /// Bytes of all segments, and of the documents that wait for one.
    pub fn size_bytes(&self) -> u64 {
        let memory = self.memory();
        (memory.segments + memory.documents + memory.mapped) as u64
    }

    /// The bytes of the index, by its parts.
    pub fn memory(&self) -> TextMemory {
        let state = self.state.lock().clone();
        let mut memory = TextMemory {
            tables: state.places.memory_bytes(),
            ..TextMemory::default()
        };
        for part in &state.segments {
            let bytes = part.segment.bytes() as usize;
            match part.segment.stored() {
                Some(_) => memory.mapped += bytes,
                None => memory.segments += bytes,
            }
        }
        for part in &state.waiting {
            memory.documents += part.documents.read().bytes();
        }
        for live in state.live() {
            memory.tables += live.dead.memory_bytes();
            memory.dead += live.dead.len();
        }
        memory
    }

    /// A view for one search: all documents as they are now, with fresh ones in place of those
    /// of the same ids.
    pub fn view<'a>(&self, fresh: FreshTexts<'a>) -> TextView<'a> {
        let state = self.state.lock().clone();
        TextView::new(state, fresh)
    }

    /// Whether the open documents, times `factor`, are more than may wait.
    pub(crate) fn is_waiting(&self, factor: usize) -> bool {
        let (documents, count, live) = {
            let state = self.state.lock();
            let open = state.open();
            let documents = open.documents.clone();
            (documents, open.count as usize, state.places.len())
        };
        let most = (live / LIVE_PER_WAITING).clamp(WAITING_MIN, WAITING_MAX);
        count * factor >= most || documents.read().bytes() * factor >= WAITING_BYTES_MAX
    }

    /// Writes the documents that wait as segments, on this thread: those that were sealed, and the
    /// open ones if they, times `factor`, are more than may wait.
    pub(crate) fn write_waiting(&self, factor: usize) -> Result<(), TextIndexError> {
        let _flushing = self.flushing.lock();
        if self.is_waiting(factor) {
            let _changing = self.changing.lock();
            self.state.lock().seal();
        }
        loop {
            let sealed = {
                let state = self.state.lock();
                match state.waiting.split_last() {
                    Some((_, [sealed, ..])) => sealed.clone(),
                    _ => return Ok(()),
                }
            };
            let (written, texts) = sealed.live_texts();
            let segment = match texts.is_empty() {
                true => None,
                false => {
                    let positions = self.options.positions;
                    Some(TextSegment::build(&texts, positions, &self.damage)?)
                }
            };
            let mut state = self.state.lock();
            state.replace_waiting(sealed.number, &written, segment);
        }
    }
}
