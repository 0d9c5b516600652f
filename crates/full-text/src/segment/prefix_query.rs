//! Documents with a term that begins with a prefix.

use tantivy::BitSet;
use tantivy::index::SegmentReader;
use tantivy::query::{
    BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Score};

use super::schema::TEXT;

/// Matches documents with a term that begins so. Each has the score 1.
#[derive(Clone, Debug)]
pub(crate) struct PrefixQuery {
    prefix: String,
}

impl PrefixQuery {
    pub fn new(prefix: &str) -> PrefixQuery {
        PrefixQuery {
            prefix: prefix.to_owned(),
        }
    }
}

impl Query for PrefixQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(PrefixWeight {
            prefix: self.prefix.clone().into_bytes(),
        }))
    }
}

struct PrefixWeight {
    prefix: Vec<u8>,
}

impl Weight for PrefixWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let index = reader.inverted_index(TEXT)?;
        let mut documents = BitSet::with_max_value(reader.max_doc());
        let mut terms = index.terms().range().ge(&self.prefix).into_stream()?;
        while terms.advance() && terms.key().starts_with(&self.prefix) {
            let option = IndexRecordOption::Basic;
            let mut block = index.read_block_postings_from_terminfo(terms.value(), option)?;
            while !block.docs().is_empty() {
                for document in block.docs() {
                    documents.insert(*document);
                }
                block.advance();
            }
        }
        let documents = BitSetDocSet::from(documents);
        Ok(Box::new(ConstScorer::new(documents, boost)))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Ok(Explanation::new("a term begins with the prefix", 1.0))
    }
}
