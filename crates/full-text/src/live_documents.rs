//! Which documents of a part are live, and their lengths in all.

use ann::IdSet;
use tantivy::fieldnorm::FieldNormReader;

/// The documents of a part of the index, of which some are dead: their ids have newer documents, or
/// none.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveDocuments {
    /// The numbers of the dead documents.
    pub dead: IdSet,
    /// The number of the live ones.
    pub count: u32,
    /// The sum of the lengths of the live ones, in tokens.
    pub tokens: u64,
    /// The sum of the lengths of the live ones as segments round them.
    pub rounded: u64,
}

impl LiveDocuments {
    /// Counts one more live document, of a length in tokens.
    pub fn add(&mut self, length: u32) {
        self.count += 1;
        self.tokens += u64::from(length);
        self.rounded += u64::from(rounded(length));
    }

    /// Marks a document dead; of a dead one, this changes nothing.
    pub fn kill(&mut self, document: u32, length: u32) {
        if self.dead.insert(document) {
            self.count = self.count.saturating_sub(1);
            self.tokens = self.tokens.saturating_sub(u64::from(length));
            self.rounded = self.rounded.saturating_sub(u64::from(rounded(length)));
        }
    }

    /// Whether a document, which the part has, is live.
    pub fn is_live(&self, document: u32) -> bool {
        self.dead.is_empty() || !self.dead.contains(document)
    }
}

/// A length as segments have it: exact up to 40, then rounded down by up to an eighth.
fn rounded(length: u32) -> u32 {
    FieldNormReader::id_to_fieldnorm(FieldNormReader::fieldnorm_to_id(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_dies_once() {
        let mut live = LiveDocuments::default();
        live.add(3);
        live.add(45);
        assert_eq!((live.count, live.tokens, live.rounded), (2, 48, 3 + 44));
        assert!(live.is_live(1));
        for _ in 0..2 {
            live.kill(1, 45);
            assert_eq!((live.count, live.tokens, live.rounded), (1, 3, 3));
            assert!(live.is_live(0) && !live.is_live(1));
        }
    }
}
