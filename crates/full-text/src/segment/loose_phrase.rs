//! Phrases whose terms may be some places away from where they belong.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::SegmentReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{Bm25Weight, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, TERMINATED, Term};

use super::schema::TEXT;
use crate::phrase::phrase_frequency;

/// Matches documents that have a phrase, with slop.
#[derive(Clone, Debug)]
pub(crate) struct LoosePhraseQuery {
    terms: Vec<(u32, Term)>,
    slop: u32,
}

impl LoosePhraseQuery {
    /// Makes the query of terms with their offsets in the phrase, at least one.
    pub fn new(terms: &[(u32, String)], slop: u32) -> LoosePhraseQuery {
        let terms = terms.iter();
        let terms = terms.map(|(offset, term)| (*offset, Term::from_field_text(TEXT, term)));
        LoosePhraseQuery {
            terms: terms.collect(),
            slop,
        }
    }
}

impl Query for LoosePhraseQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let similarity = match scoring {
            EnableScoring::Enabled {
                statistics_provider,
                ..
            } => {
                let terms: Vec<Term> = self.terms.iter().map(|(_, term)| term.clone()).collect();
                Some(Bm25Weight::for_terms(statistics_provider, &terms)?)
            }
            EnableScoring::Disabled { .. } => None,
        };
        Ok(Box::new(LoosePhraseWeight {
            query: self.clone(),
            similarity,
        }))
    }
}

struct LoosePhraseWeight {
    query: LoosePhraseQuery,
    similarity: Option<Bm25Weight>,
}

impl Weight for LoosePhraseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let index = reader.inverted_index(TEXT)?;
        let mut parts = Vec::new();
        for (offset, term) in &self.query.terms {
            let option = IndexRecordOption::WithFreqsAndPositions;
            let Some(postings) = index.read_postings(term, option)? else {
                return Ok(Box::new(EmptyScorer));
            };
            parts.push((*offset, postings));
        }
        let similarity = self.similarity.as_ref();
        let similarity = similarity.map(|similarity| similarity.boost_by(boost));
        let lengths = reader.get_fieldnorms_reader(TEXT)?;
        let phrase = LoosePhrase::new(parts, self.query.slop);
        let mut scorer = LoosePhraseScorer {
            phrase,
            similarity,
            lengths,
            document: 0,
            frequency: 0,
        };
        scorer.find_from(0);
        Ok(Box::new(scorer))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Ok(Explanation::new("the phrase, with slop", 1.0))
    }
}

/// The postings of a phrase's terms.
pub(crate) struct LoosePhrase {
    /// The offset of each term in the phrase, and its postings.
    parts: Vec<(u32, SegmentPostings)>,
    slop: u32,
    /// The positions of each term in a document.
    positions: Vec<Vec<u32>>,
}

impl LoosePhrase {
    /// A phrase of the postings of its terms, each with its offset and with positions.
    pub fn new(parts: Vec<(u32, SegmentPostings)>, slop: u32) -> LoosePhrase {
        LoosePhrase {
            positions: vec![Vec::new(); parts.len()],
            parts,
            slop,
        }
    }

    /// The first document from `document` on that has all terms, in whatever places, or
    /// [`TERMINATED`].
    fn document_with_all(&mut self, mut document: DocId) -> DocId {
        let mut agreed = 0;
        let count = self.parts.len();
        for at in (0..count).cycle() {
            if agreed == count || document == TERMINATED {
                break;
            }
            let (_, postings) = &mut self.parts[at];
            if postings.doc() < document {
                postings.seek(document);
            }
            match postings.doc() == document {
                true => agreed += 1,
                false => (document, agreed) = (postings.doc(), 1),
            }
        }
        document
    }

    /// How often a document has the phrase. Documents must be asked for in their order.
    pub fn frequency_in(&mut self, document: DocId) -> u32 {
        match self.document_with_all(document) == document {
            true => self.frequency(),
            false => 0,
        }
    }

    /// How often the document has the phrase at which all postings are.
    fn frequency(&mut self) -> u32 {
        for ((_, postings), positions) in self.parts.iter_mut().zip(&mut self.positions) {
            positions.clear();
            postings.append_positions_with_offset(0, positions);
        }
        let offsets = self.parts.iter().map(|(offset, _)| *offset);
        let positions = self.positions.iter().map(Vec::as_slice);
        let parts: Vec<(u32, &[u32])> = offsets.zip(positions).collect();
        phrase_frequency(&parts, self.slop)
    }
}

struct LoosePhraseScorer {
    phrase: LoosePhrase,
    similarity: Option<Bm25Weight>,
    lengths: FieldNormReader,
    /// The document that matches, and how often it has the phrase.
    document: DocId,
    frequency: u32,
}

impl LoosePhraseScorer {
    /// Goes to the first match from `document` on.
    fn find_from(&mut self, mut document: DocId) -> DocId {
        loop {
            document = self.phrase.document_with_all(document);
            if document == TERMINATED {
                break;
            }
            self.frequency = self.phrase.frequency();
            if self.frequency > 0 {
                break;
            }
            document += 1;
        }
        self.document = document;
        document
    }
}

impl DocSet for LoosePhraseScorer {
    fn advance(&mut self) -> DocId {
        match self.document {
            TERMINATED => TERMINATED,
            document => self.find_from(document + 1),
        }
    }

    fn seek(&mut self, target: DocId) -> DocId {
        match self.document >= target {
            true => self.document,
            false => self.find_from(target),
        }
    }

    fn doc(&self) -> DocId {
        self.document
    }

    fn size_hint(&self) -> u32 {
        let documents = self.phrase.parts.iter();
        let documents = documents.map(|(_, postings)| postings.doc_freq());
        documents.min().unwrap_or(0)
    }
}

impl Scorer for LoosePhraseScorer {
    fn score(&mut self) -> Score {
        let length = self.lengths.fieldnorm_id(self.document);
        let similarity = self.similarity.as_ref();
        similarity.map_or(1.0, |similarity| similarity.score(length, self.frequency))
    }
}
