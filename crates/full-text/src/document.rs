//! A document in the form in which an index takes it in.

mod stored;

use index::FullTextOptions;

use crate::analysis::for_each_token;

/// A document's terms, with their positions, and its length in tokens.
///
/// An index holds many of these until a segment has them, so they are compact: all terms are in one
/// buffer, sorted, and all positions in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalysedText {
    /// The distinct terms, sorted, one after another.
    text: Box<str>,
    /// Where each term ends.
    ends: Box<[TermEnd]>,
    /// The positions of the first term, then those of the second. Empty in an index without
    /// positions.
    positions: Box<[u32]>,
}

/// The ends of a term in the buffers of an [`AnalysedText`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TermEnd {
    /// The end of its letters.
    text: u32,
    /// The number of tokens that are this term or one before it.
    tokens: u32,
}

/// A token in the buffer of all tokens, while a text is analysed.
struct TokenPlace {
    begin: usize,
    end: usize,
    position: u32,
}

impl AnalysedText {
    /// Analyses a text as the options of an index say.
    pub fn of(text: &str, options: FullTextOptions) -> AnalysedText {
        let mut buffer = String::new();
        let mut tokens = Vec::new();
        for_each_token(text, options.analyzer, |token| {
            let begin = buffer.len();
            buffer.push_str(token.term);
            tokens.push(TokenPlace {
                begin,
                end: buffer.len(),
                position: token.position,
            });
        });
        let term = |token: &TokenPlace| &buffer[token.begin..token.end];
        // Stable, so that the positions of a term ascend.
        tokens.sort_by(|left, right| term(left).cmp(term(right)));

        let mut terms = String::new();
        let mut ends: Vec<TermEnd> = Vec::new();
        let mut last = None;
        for (before, token) in tokens.iter().enumerate() {
            let term = term(token);
            if last != Some(term) {
                terms.push_str(term);
                ends.push(TermEnd::default());
                last = Some(term);
            }
            if let Some(end) = ends.last_mut() {
                *end = TermEnd {
                    text: narrow(terms.len()),
                    tokens: narrow(before + 1),
                };
            }
        }
        let positions = tokens.iter().map(|token| token.position);
        AnalysedText {
            text: terms.into(),
            ends: ends.into(),
            positions: match options.positions {
                true => positions.collect(),
                false => Box::default(),
            },
        }
    }

    /// The number of tokens that the index has of the text: its length in BM25.
    pub fn length(&self) -> u32 {
        self.ends.last().map_or(0, |end| end.tokens)
    }

    /// The terms, sorted, each with its positions (none in an index without positions) and how
    /// often it occurs.
    pub fn terms(&self) -> impl Iterator<Item = (&str, &[u32], u32)> {
        (0..self.ends.len()).map(|at| {
            let (frequency, positions) = self.occurrences(at);
            (self.term(at), positions, frequency)
        })
    }

    /// How often a term occurs, and where; nothing if it doesn't.
    pub fn positions_of(&self, term: &str) -> Option<(u32, &[u32])> {
        let at = self.first_not_below(term);
        let is_there = at < self.ends.len() && self.term(at) == term;
        is_there.then(|| self.occurrences(at))
    }

    /// Whether a term begins with a prefix.
    pub(crate) fn has_prefix(&self, prefix: &str) -> bool {
        let at = self.first_not_below(prefix);
        at < self.ends.len() && self.term(at).starts_with(prefix)
    }

    /// Bytes of memory that the document takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<AnalysedText>()
            + self.text.len()
            + size_of_val(&*self.ends)
            + size_of_val(&*self.positions)
    }

    /// The ends of the term before one.
    fn begin(&self, at: usize) -> TermEnd {
        match at {
            0 => TermEnd::default(),
            _ => self.ends[at - 1],
        }
    }

    fn term(&self, at: usize) -> &str {
        &self.text[self.begin(at).text as usize..self.ends[at].text as usize]
    }

    fn occurrences(&self, at: usize) -> (u32, &[u32]) {
        let tokens = self.begin(at).tokens..self.ends[at].tokens;
        let positions = match self.positions.is_empty() {
            true => &[],
            false => &self.positions[tokens.start as usize..tokens.end as usize],
        };
        (tokens.end - tokens.start, positions)
    }

    /// The first of the sorted terms that is `term` or one after it.
    fn first_not_below(&self, term: &str) -> usize {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.term(middle) < term {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// A size within a text, which a frame of CQL bounds by far less than 4 GiB.
fn narrow(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use index::TextAnalyzer;

    use super::*;

    fn options(positions: bool) -> FullTextOptions {
        FullTextOptions {
            analyzer: TextAnalyzer::Standard,
            positions,
        }
    }

    #[test]
    fn terms_are_sorted_and_have_their_positions() {
        let document = AnalysedText::of("Red shoes, the red Hat: red!", options(true));
        let terms: Vec<_> = document.terms().collect();
        let expected: [(&str, &[u32], u32); 3] =
            [("hat", &[4], 1), ("red", &[0, 3, 5], 3), ("shoes", &[1], 1)];
        assert_eq!(terms, expected);
        assert_eq!(document.length(), 5);
        assert_eq!(document.positions_of("red"), Some((3, &[0, 3, 5][..])));
        for absent in ["", "a", "re", "redd", "the", "zebra"] {
            assert_eq!(document.positions_of(absent), None, "{absent}");
        }
    }

    #[test]
    fn an_index_without_positions_has_frequencies() {
        let document = AnalysedText::of("Red shoes, the red Hat: red!", options(false));
        let terms: Vec<_> = document.terms().collect();
        let expected: [(&str, &[u32], u32); 3] =
            [("hat", &[], 1), ("red", &[], 3), ("shoes", &[], 1)];
        assert_eq!(terms, expected);
        assert_eq!(document.length(), 5);
        let with_positions = AnalysedText::of("Red shoes, the red Hat: red!", options(true));
        assert_eq!(with_positions.memory_bytes() - document.memory_bytes(), 20);
    }

    #[test]
    fn prefixes_are_those_of_some_term() {
        let document = AnalysedText::of("wonder world zoo", options(true));
        for prefix in ["w", "wo", "won", "wonder", "worl", "zoo"] {
            assert!(document.has_prefix(prefix), "{prefix}");
        }
        for prefix in ["a", "wz", "wonders", "zooo", "zz"] {
            assert!(!document.has_prefix(prefix), "{prefix}");
        }
    }

    #[test]
    fn a_text_of_stop_words_has_no_term() {
        for text in ["", " ,. ", "the and of"] {
            let document = AnalysedText::of(text, options(true));
            assert_eq!((document.length(), document.terms().count()), (0, 0));
            assert!(!document.has_prefix(""));
            assert_eq!(document.positions_of("the"), None);
        }
    }
}
