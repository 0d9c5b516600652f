//! The bytes of a document in a file.

use super::{AnalysedText, TermEnd};
use crate::byte_reader::ByteReader;

impl AnalysedText {
    /// Appends the document's bytes.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        let mut number = |number: usize| into.extend_from_slice(&(number as u32).to_le_bytes());
        number(self.text.len());
        number(self.ends.len());
        number(self.positions.len());
        into.extend_from_slice(self.text.as_bytes());
        for end in &self.ends {
            into.extend_from_slice(&end.text.to_le_bytes());
            into.extend_from_slice(&end.tokens.to_le_bytes());
        }
        for position in &self.positions {
            into.extend_from_slice(&position.to_le_bytes());
        }
    }

    /// Reads a document; `None` if the bytes are none.
    pub(crate) fn decode(reader: &mut ByteReader<'_>) -> Option<AnalysedText> {
        let text_bytes = reader.u32()? as usize;
        let terms = reader.u32()? as usize;
        let positions = reader.u32()? as usize;
        let text = std::str::from_utf8(reader.take(text_bytes)?).ok()?;
        let numbers: Vec<u32> = reader.numbers(terms.checked_mul(2)?)?.collect();
        let (pairs, _) = numbers.as_chunks::<2>();
        let ends: Vec<TermEnd> = pairs
            .iter()
            .map(|[text, tokens]| TermEnd {
                text: *text,
                tokens: *tokens,
            })
            .collect();
        let positions: Vec<u32> = reader.numbers(positions)?.collect();
        let mut before = TermEnd::default();
        for end in &ends {
            let follows = end.text >= before.text && end.tokens > before.tokens;
            if !follows || !text.is_char_boundary(end.text as usize) {
                return None;
            }
            before = *end;
        }
        let has_all = positions.is_empty() || positions.len() == before.tokens as usize;
        (has_all && before.text as usize == text.len()).then(|| AnalysedText {
            text: text.into(),
            ends: ends.into(),
            positions: positions.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use index::FullTextOptions;

    use super::*;

    #[test]
    fn a_document_is_read_as_it_was_written_and_not_from_parts_of_it() {
        for (text, positions) in [("Red shoes, red hat", true), ("red red", false), ("", true)] {
            let options = FullTextOptions {
                positions,
                ..FullTextOptions::default()
            };
            let document = AnalysedText::of(text, options);
            let mut bytes = Vec::new();
            document.encode(&mut bytes);
            let decode = |bytes: &[u8]| AnalysedText::decode(&mut ByteReader::new(bytes));
            assert_eq!(decode(&bytes).as_ref(), Some(&document));
            for end in 0..bytes.len() {
                assert_eq!(decode(&bytes[..end]), None);
            }
        }
    }
}
