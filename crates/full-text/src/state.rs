//! All documents of an index at a moment.

use std::sync::Arc;

use ann::IdSet;

use crate::TextIndexError;
use crate::clause::QueryClause;
use crate::live_documents::LiveDocuments;
use crate::places::{DocumentPlace, PlaceTable};
use crate::segment::TextSegment;
use crate::waiting::WaitingDocuments;

/// The documents of an index. A copy costs little, and stays as it is while the index changes.
#[derive(Clone)]
pub(crate) struct TextState {
    /// The place of each id that has a document.
    pub places: PlaceTable,
    pub segments: Vec<SegmentPart>,
    /// Documents without a segment. The last of these takes new ones, and those before are being
    /// written as segments.
    pub waiting: Vec<WaitingPart>,
    /// The number of the next part.
    next_part: u32,
}

/// A segment in an index.
#[derive(Clone)]
pub(crate) struct SegmentPart {
    pub number: u32,
    pub segment: Arc<TextSegment>,
    pub live: LiveDocuments,
}

/// Documents without a segment in an index, as far as the state has them.
#[derive(Clone, Default)]
pub(crate) struct WaitingPart {
    pub number: u32,
    pub documents: Arc<WaitingDocuments>,
    /// The number of documents, dead ones included. There may be later ones.
    pub count: u32,
    pub live: LiveDocuments,
}

/// The documents of some ids, by the parts that have them: their numbers, ascending.
pub(crate) struct PlacedDocuments {
    pub segments: Vec<Vec<u32>>,
    pub waiting: Vec<Vec<u32>>,
}

impl Default for TextState {
    fn default() -> TextState {
        TextState {
            places: PlaceTable::default(),
            segments: Vec::new(),
            waiting: vec![WaitingPart::default()],
            next_part: 1,
        }
    }
}

impl TextState {
    /// A state of segments, whose ids must differ in all live documents.
    pub fn of(segments: Vec<SegmentPart>) -> Result<TextState, &'static str> {
        let mut state = TextState::default();
        for part in &segments {
            let documents = 0..part.segment.documents();
            for document in documents.filter(|document| part.live.is_live(*document)) {
                let place = DocumentPlace {
                    part: part.number,
                    document,
                };
                if state.places.set(part.segment.id(document), place).is_some() {
                    return Err("two documents have the same id");
                }
            }
            state.next_part = state.next_part.max(part.number.saturating_add(1));
        }
        state.segments = segments;
        let number = state.take_number();
        state.waiting = vec![WaitingPart {
            number,
            ..WaitingPart::default()
        }];
        Ok(state)
    }

    /// A number for a new part.
    pub fn take_number(&mut self) -> u32 {
        self.next_part += 1;
        self.next_part - 1
    }

    /// The documents without a segment that take new ones.
    pub fn open(&self) -> &WaitingPart {
        // There is always one: `seal` replaces it.
        &self.waiting[self.waiting.len() - 1]
    }

    /// Lets a document that was added to the open ones be the one of its id. Returns whether the id
    /// had none.
    pub fn publish(&mut self, id: u32, document: u32, length: u32) -> bool {
        let had_none = !self.remove(id);
        if let Some(open) = self.waiting.last_mut() {
            open.count = document + 1;
            open.live.add(length);
            let place = DocumentPlace {
                part: open.number,
                document,
            };
            self.places.set(id, place);
        }
        had_none
    }

    /// Takes an id out; false if it has no document.
    pub fn remove(&mut self, id: u32) -> bool {
        let former = self.places.remove(id);
        if let Some(place) = former {
            self.kill(place);
        }
        former.is_some()
    }

    /// Marks the document at a place dead.
    pub fn kill(&mut self, place: DocumentPlace) {
        let DocumentPlace { part, document } = place;
        if let Some(of) = self.segments.iter_mut().find(|of| of.number == part) {
            of.live.kill(document, of.segment.length(document));
        } else if let Some(of) = self.waiting.iter_mut().find(|of| of.number == part) {
            let length = of.length(document);
            of.live.kill(document, length);
        }
    }

    /// Begins a new part for new documents, if the open one has any.
    pub fn seal(&mut self) {
        if self.open().count > 0 {
            let number = self.take_number();
            self.waiting.push(WaitingPart {
                number,
                ..WaitingPart::default()
            });
        }
    }

    /// Puts a segment in the place of waiting documents, of which it has `written`. Those that died
    /// since are dead in it.
    pub fn replace_waiting(&mut self, number: u32, written: &[u32], segment: Option<TextSegment>) {
        if let Some(segment) = segment {
            let former = written.iter().map(|document| DocumentPlace {
                part: number,
                document: *document,
            });
            let part = self.moved(former, segment);
            self.segments.push(part);
        }
        self.waiting.retain(|part| part.number != number);
    }

    /// Puts a segment in the place of others, whose documents `former` it has, in this order.
    pub fn replace_segments(
        &mut self,
        numbers: &[u32],
        former: impl Iterator<Item = DocumentPlace>,
        segment: TextSegment,
    ) {
        let part = self.moved(former, segment);
        let is_replaced = |part: &SegmentPart| numbers.contains(&part.number);
        let at = self.segments.iter().position(is_replaced);
        self.segments.retain(|part| !is_replaced(part));
        let at = at.unwrap_or(0).min(self.segments.len());
        self.segments.insert(at, part);
    }

    /// A part of a segment whose documents have moved there from other places. Those that died on
    /// the way are no longer in the table, and are dead.
    fn moved(
        &mut self,
        former: impl Iterator<Item = DocumentPlace>,
        segment: TextSegment,
    ) -> SegmentPart {
        let number = self.take_number();
        let mut live = LiveDocuments::default();
        let mut dead = IdSet::default();
        for (document, former) in (0..segment.documents()).zip(former) {
            let id = segment.id(document);
            if self.places.get(id) == Some(former) {
                live.add(segment.length(document));
                let place = DocumentPlace {
                    part: number,
                    document,
                };
                self.places.set(id, place);
            } else {
                dead.insert(document);
            }
        }
        live.dead = dead;
        SegmentPart {
            number,
            segment: Arc::new(segment),
            live,
        }
    }

    /// The live documents of ids.
    pub fn documents_of(&self, ids: &IdSet) -> PlacedDocuments {
        let mut placed = PlacedDocuments {
            segments: vec![Vec::new(); self.segments.len()],
            waiting: vec![Vec::new(); self.waiting.len()],
        };
        for id in ids.iter() {
            let Some(DocumentPlace { part, document }) = self.places.get(id) else {
                continue;
            };
            if let Some(at) = self.segments.iter().position(|of| of.number == part) {
                if self.segments[at].live.is_live(document) {
                    placed.segments[at].push(document);
                }
            } else if let Some(at) = self.waiting.iter().position(|of| of.number == part)
                && self.waiting[at].live.is_live(document)
            {
                placed.waiting[at].push(document);
            }
        }
        for documents in placed.segments.iter_mut().chain(&mut placed.waiting) {
            documents.sort_unstable();
        }
        placed
    }

    /// All parts' live documents.
    pub fn live(&self) -> impl Iterator<Item = &LiveDocuments> {
        let of_segments = self.segments.iter().map(|part| &part.live);
        of_segments.chain(self.waiting.iter().map(|part| &part.live))
    }

    /// The number of live documents that have a term.
    pub fn frequency(&self, term: &str) -> Result<u64, TextIndexError> {
        let mut sum = 0;
        for part in &self.segments {
            sum += part.segment.frequency(term, &part.live)?;
        }
        for part in &self.waiting {
            let texts = part.documents.read();
            let documents = texts.with_term(term).iter();
            sum += documents
                .filter(|document| part.is_live(**document))
                .count() as u64;
        }
        Ok(sum)
    }
}

impl WaitingPart {
    /// Whether a document is one of the state's, and live.
    pub fn is_live(&self, document: u32) -> bool {
        document < self.count && self.live.is_live(document)
    }

    /// The length of a document in tokens.
    pub fn length(&self, document: u32) -> u32 {
        let texts = self.documents.read();
        texts.get(document).map_or(0, |(_, text)| text.length())
    }

    /// The live documents that may match a clause, with their ids. They are not locked, so a reader
    /// that looks at them may wait for others.
    pub fn candidates(&self, clause: &QueryClause) -> Vec<(u32, Arc<crate::AnalysedText>)> {
        let texts = self.documents.read();
        let candidates = texts.candidates(clause).into_iter();
        let live = candidates.filter(|document| self.is_live(*document));
        live.filter_map(|document| texts.get(document).cloned())
            .collect()
    }

    /// The live documents: their numbers, and their ids with their texts.
    pub fn live_texts(&self) -> (Vec<u32>, Vec<(u32, Arc<crate::AnalysedText>)>) {
        let texts = self.documents.read();
        let live = (0..self.count).filter(|document| self.is_live(*document));
        let live = live.filter_map(|document| Some((document, texts.get(document)?.clone())));
        live.unzip()
    }
}
