//! The contents of the files `index` and `documents`.

use std::sync::Arc;

use ann::IdSet;
use index::{FullTextOptions, TextAnalyzer};

use super::frame::FileKind;
use super::{DOCUMENTS, INDEX};
use crate::byte_reader::ByteReader;
use crate::document::AnalysedText;
use crate::state::TextState;

pub(super) const INDEX_FILE: FileKind = FileKind {
    name: INDEX,
    magic: b"ANNTEXTI",
    bytes_max: 1 << 32,
};

pub(super) const DOCUMENTS_FILE: FileKind = FileKind {
    name: DOCUMENTS,
    magic: b"ANNTEXTD",
    bytes_max: 1 << 32,
};

/// The content of the file `index`.
#[derive(Debug, PartialEq)]
pub(super) struct SnapshotManifest {
    pub analyzer: String,
    pub positions: bool,
    pub segments: Vec<ListedSegment>,
}

/// A segment in a snapshot.
#[derive(Debug, PartialEq)]
pub(super) struct ListedSegment {
    pub number: u32,
    pub documents: u32,
    /// The dead documents, ascending.
    pub dead: Vec<u32>,
}

impl SnapshotManifest {
    pub fn of(options: FullTextOptions, state: &TextState) -> SnapshotManifest {
        let segments = state.segments.iter().map(|part| ListedSegment {
            number: part.number,
            documents: part.segment.documents(),
            dead: part.live.dead.iter().collect(),
        });
        SnapshotManifest {
            analyzer: options.analyzer.name().to_owned(),
            positions: options.positions,
            segments: segments.collect(),
        }
    }

    /// Whether the snapshot is of an index with these options.
    pub fn is_of(&self, options: FullTextOptions) -> bool {
        let analyzer = TextAnalyzer::of(&self.analyzer);
        analyzer == Some(options.analyzer) && self.positions == options.positions
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = INDEX_FILE.begin();
        bytes.push(u8::from(self.positions));
        bytes.push(self.analyzer.len() as u8);
        bytes.extend_from_slice(self.analyzer.as_bytes());
        let mut number = |number: u32| bytes.extend_from_slice(&number.to_le_bytes());
        number(self.segments.len() as u32);
        for segment in &self.segments {
            number(segment.number);
            number(segment.documents);
            number(segment.dead.len() as u32);
            segment.dead.iter().copied().for_each(&mut number);
        }
        bytes
    }

    pub fn decode(reader: &mut ByteReader<'_>) -> Option<SnapshotManifest> {
        let positions = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let analyzer = reader.u8()? as usize;
        let analyzer = std::str::from_utf8(reader.take(analyzer)?).ok()?.to_owned();
        let mut segments: Vec<ListedSegment> = Vec::new();
        for _ in 0..reader.u32()? {
            let (number, documents) = (reader.u32()?, reader.u32()?);
            let dead = reader.u32()? as usize;
            let dead: Vec<u32> = reader.numbers(dead)?.collect();
            let is_sound = dead.is_sorted_by(|one, next| one < next)
                && dead.last().is_none_or(|last| *last < documents)
                && segments.iter().all(|other| other.number != number);
            if !is_sound {
                return None;
            }
            segments.push(ListedSegment {
                number,
                documents,
                dead,
            });
        }
        Some(SnapshotManifest {
            analyzer,
            positions,
            segments,
        })
    }
}

/// The content of the file `documents`: those of a state that no segment has.
pub(super) fn encode_documents(state: &TextState) -> Vec<u8> {
    let texts: Vec<(u32, Arc<AnalysedText>)> = state
        .waiting
        .iter()
        .flat_map(|part| part.live_texts().1)
        .collect();
    let mut bytes = DOCUMENTS_FILE.begin();
    bytes.extend_from_slice(&(texts.len() as u32).to_le_bytes());
    for (id, text) in texts {
        bytes.extend_from_slice(&id.to_le_bytes());
        text.encode(&mut bytes);
    }
    bytes
}

/// Reads the documents, each of another id.
pub(super) fn decode_documents(reader: &mut ByteReader<'_>) -> Option<Vec<(u32, AnalysedText)>> {
    let mut documents = Vec::new();
    let mut ids = IdSet::default();
    for _ in 0..reader.u32()? {
        let id = reader.u32()?;
        if !ids.insert(id) {
            return None;
        }
        documents.push((id, AnalysedText::decode(reader)?));
    }
    Some(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let manifest = SnapshotManifest {
            analyzer: "english".to_owned(),
            positions: true,
            segments: vec![ListedSegment {
                number: 7,
                documents: 100,
                dead: vec![0, 99],
            }],
        };
        let bytes = manifest.encode();
        let content = &bytes[INDEX_FILE.begin().len()..];
        let decode = |bytes: &[u8]| SnapshotManifest::decode(&mut ByteReader::new(bytes));
        assert_eq!(decode(content).as_ref(), Some(&manifest));
        for end in 0..content.len() {
            assert_eq!(decode(&content[..end]), None);
        }
        let mut beyond = manifest;
        beyond.segments[0].documents = 99;
        let bytes = beyond.encode();
        assert_eq!(decode(&bytes[INDEX_FILE.begin().len()..]), None);
    }
}
