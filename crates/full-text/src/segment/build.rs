//! Writing documents as a segment, on the calling thread.

use std::sync::Arc;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer, TokenizerManager};
use tantivy::{Index, SingleSegmentIndexWriter, TantivyDocument};

use super::directory::SegmentDirectory;
use super::schema::{self, GIVEN_TERMS, TEXT};
use super::{IDS, LENGTHS, bytes_of};
use crate::document::AnalysedText;

/// Bytes that the writer plans with: of these it makes its first table of terms, which grows.
const PLANNED_BYTES: usize = 1 << 20;

/// Writes documents of an index with or without positions, each with its id.
pub(super) fn build(
    documents: &[(u32, Arc<AnalysedText>)],
    positions: bool,
) -> tantivy::Result<SegmentDirectory> {
    let directory = SegmentDirectory::default();
    let texts = documents.iter().map(|(_, text)| Arc::clone(text));
    let tokenizers = TokenizerManager::new();
    tokenizers.register(GIVEN_TERMS, GivenTerms(texts.collect()));
    let builder = Index::builder()
        .schema(schema::schema(positions))
        .settings(schema::settings())
        .tokenizers(tokenizers);
    let mut writer: SingleSegmentIndexWriter<TantivyDocument> =
        builder.single_segment_index_writer(directory.clone(), PLANNED_BYTES)?;
    for number in 0..documents.len() {
        let mut document = TantivyDocument::new();
        document.add_text(TEXT, number.to_string());
        writer.add_document(document)?;
    }
    writer.finalize()?;
    directory.put(IDS, bytes_of(documents.iter().map(|(id, _)| *id)));
    let lengths = documents.iter().map(|(_, text)| text.length());
    directory.put(LENGTHS, bytes_of(lengths));
    Ok(directory)
}

/// Gives the terms of documents that were analysed before. The text that it is given is the number
/// of one.
#[derive(Clone)]
struct GivenTerms(Arc<[Arc<AnalysedText>]>);

impl Tokenizer for GivenTerms {
    type TokenStream<'a> = GivenTermStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> GivenTermStream<'a> {
        let number: Option<usize> = text.parse().ok();
        let texts: &'a [Arc<AnalysedText>] = &self.0;
        let text = number.and_then(|number| texts.get(number));
        GivenTermStream {
            terms: Box::new(text.into_iter().flat_map(|text| text.terms())),
            positions: &[],
            next: 0,
            frequency: 0,
            token: Token::default(),
        }
    }
}

/// The tokens of a document, term by term.
struct GivenTermStream<'a> {
    terms: Box<dyn Iterator<Item = (&'a str, &'a [u32], u32)> + 'a>,
    /// The positions of the current term, if the index has any.
    positions: &'a [u32],
    /// How many tokens of the current term were given, and how many it has.
    next: u32,
    frequency: u32,
    token: Token,
}

impl TokenStream for GivenTermStream<'_> {
    fn advance(&mut self) -> bool {
        while self.next == self.frequency {
            let Some((term, positions, frequency)) = self.terms.next() else {
                return false;
            };
            self.token.text.clear();
            self.token.text.push_str(term);
            (self.positions, self.next, self.frequency) = (positions, 0, frequency);
        }
        let position = self.positions.get(self.next as usize);
        self.token.position = position.map_or(0, |position| *position as usize);
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
