//! The analysis of texts: how a text becomes tokens, by the analyzer that an index names.
//!
//! Documents, queries and highlights go through the same pipeline, so that a word of a query finds
//! the words of documents that are alike. A pipeline splits the text, drops tokens that are too
//! long, folds case, drops stop words and reduces words to stems, each as far as its analyzer says.
//! A token's position counts the tokens that the split gives, also those that are dropped later: a
//! phrase knows of the gap that a stop word leaves.

use std::ops::Range;
use std::sync::OnceLock;

use index::TextAnalyzer;
use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter,
    TextAnalyzer as TokenPipeline, TextAnalyzerBuilder, Token, TokenStream, Tokenizer,
    WhitespaceTokenizer,
};

/// Bytes of the longest token that is indexed. Longer ones are data, such as encoded pictures.
const TOKEN_BYTES_MAX: usize = 255;

/// How many analyzers there are: `Cjk` is the last of them.
const ANALYZERS: usize = TextAnalyzer::Cjk as usize + 1;

/// The pipelines, made at their first use: the lists of stop words become sets.
static PIPELINES: [OnceLock<TokenPipeline>; ANALYZERS] = [const { OnceLock::new() }; ANALYZERS];

/// A token of a text.
pub(crate) struct TextToken<'a> {
    /// The token as the index has it: folded and stemmed.
    pub term: &'a str,
    /// How many tokens are before it in the text, of which some may have been dropped.
    pub position: u32,
    /// Its place in the text.
    pub bytes: Range<usize>,
}

/// Calls `take` with each token of a text, in the order of the text.
pub(crate) fn for_each_token(
    text: &str,
    analyzer: TextAnalyzer,
    mut take: impl FnMut(TextToken<'_>),
) {
    let mut pipeline = pipeline(analyzer).clone();
    let mut tokens = pipeline.token_stream(text);
    while tokens.advance() {
        let token = tokens.token();
        take(TextToken {
            term: &token.text,
            position: u32::try_from(token.position).unwrap_or(u32::MAX),
            bytes: token.offset_from..token.offset_to,
        });
    }
}

/// The words of a text as the analyzer splits and folds them: neither stop words nor endings are
/// dropped, and `cjk` makes no pairs.
pub(crate) fn folded_words(text: &str, analyzer: TextAnalyzer) -> Vec<String> {
    let mut folding = match analyzer {
        TextAnalyzer::Whitespace => TokenPipeline::from(WhitespaceTokenizer::default()),
        _ => words(SimpleTokenizer::default()).build(),
    };
    let mut tokens = folding.token_stream(text);
    let mut words = Vec::new();
    while tokens.advance() {
        words.push(tokens.token().text.clone());
    }
    words
}

fn pipeline(analyzer: TextAnalyzer) -> &'static TokenPipeline {
    PIPELINES[analyzer as usize].get_or_init(|| new_pipeline(analyzer))
}

fn new_pipeline(analyzer: TextAnalyzer) -> TokenPipeline {
    match analyzer {
        TextAnalyzer::Standard => {
            let words = words(SimpleTokenizer::default());
            words.filter(stop_words(Language::English)).build()
        }
        TextAnalyzer::Simple => words(SimpleTokenizer::default()).build(),
        TextAnalyzer::Whitespace => {
            let words = TokenPipeline::builder(WhitespaceTokenizer::default());
            words.filter(short_tokens()).build()
        }
        TextAnalyzer::English => stems(Language::English),
        TextAnalyzer::German => stems(Language::German),
        TextAnalyzer::French => stems(Language::French),
        TextAnalyzer::Spanish => stems(Language::Spanish),
        TextAnalyzer::Italian => stems(Language::Italian),
        TextAnalyzer::Portuguese => stems(Language::Portuguese),
        TextAnalyzer::Russian => stems(Language::Russian),
        TextAnalyzer::Cjk => words(CjkTokenizer::default()).build(),
    }
}

/// The tokens of a split that are not too long, in lower case.
fn words<T: Tokenizer>(split: T) -> TextAnalyzerBuilder<impl Tokenizer> {
    let tokens = TokenPipeline::builder(split);
    tokens.filter(short_tokens()).filter(LowerCaser)
}

/// The stems of a language's words.
fn stems(language: Language) -> TokenPipeline {
    let words = words(SimpleTokenizer::default());
    let words = words.filter(stop_words(language));
    words.filter(Stemmer::new(language)).build()
}

fn short_tokens() -> RemoveLongFilter {
    // The filter's limit is the first length that it drops.
    RemoveLongFilter::limit(TOKEN_BYTES_MAX + 1)
}

fn stop_words(language: Language) -> StopWordFilter {
    // There is a list for each language of an analyzer; without one no word would be dropped.
    StopWordFilter::new(language).unwrap_or_else(|| StopWordFilter::remove(Vec::new()))
}

/// A split for languages that write no spaces. Of a run of Chinese, Japanese and Korean characters
/// each pair of neighbours is a token, and a run of one character is a token itself. Other text is
/// split at all that is neither a letter nor a digit.
#[derive(Clone, Default)]
struct CjkTokenizer {
    token: Token,
}

/// The tokens that a [`CjkTokenizer`] gives for one text.
struct CjkTokenStream<'a> {
    text: &'a str,
    /// The byte at which the search for the next token begins.
    at: usize,
    token: &'a mut Token,
}

impl Tokenizer for CjkTokenizer {
    type TokenStream<'a> = CjkTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> CjkTokenStream<'a> {
        self.token.reset();
        CjkTokenStream {
            text,
            at: 0,
            token: &mut self.token,
        }
    }
}

impl CjkTokenStream<'_> {
    /// The place of the next token, after which `at` is where the one after it is looked for.
    fn next_place(&mut self) -> Option<Range<usize>> {
        let rest = &self.text[self.at..];
        let (skipped, first) = rest
            .char_indices()
            .find(|(_, letter)| letter.is_alphanumeric())?;
        let begin = self.at + skipped;
        let end = begin + first.len_utf8();
        if !is_cjk(first) {
            let rest = &self.text[end..];
            let is_outside = |letter: char| !letter.is_alphanumeric() || is_cjk(letter);
            let length = rest.find(is_outside).unwrap_or(rest.len());
            self.at = end + length;
            return Some(begin..self.at);
        }
        let mut following = self.text[end..].chars();
        let Some(second) = following.next().filter(|letter| is_cjk(*letter)) else {
            self.at = end;
            return Some(begin..end);
        };
        let pair = begin..end + second.len_utf8();
        // The run's last character begins no pair.
        let goes_on = following.next().is_some_and(is_cjk);
        self.at = if goes_on { end } else { pair.end };
        Some(pair)
    }
}

impl TokenStream for CjkTokenStream<'_> {
    fn advance(&mut self) -> bool {
        self.token.text.clear();
        self.token.position = self.token.position.wrapping_add(1);
        let Some(place) = self.next_place() else {
            return false;
        };
        self.token.offset_from = place.start;
        self.token.offset_to = place.end;
        self.token.text.push_str(&self.text[place]);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Whether a character is a letter of Han, Hiragana, Katakana or Hangul.
fn is_cjk(letter: char) -> bool {
    let is_in_block = matches!(
        u32::from(letter),
        0x1100..=0x11FF // Hangul, parts of syllables
            | 0x3005..=0x3007 // Han, repetition and zero
            | 0x3021..=0x3029 // Han, numerals of merchants
            | 0x3031..=0x3035 // Kana, repetition
            | 0x3038..=0x303C // Han, numerals of merchants
            | 0x3041..=0x30FF // Hiragana, Katakana
            | 0x3131..=0x318E // Hangul of old encodings
            | 0x31F0..=0x31FF // Katakana of Ainu
            | 0x3400..=0x4DBF // Han, extension A
            | 0x4E00..=0x9FFF // Han
            | 0xA960..=0xA97F // Hangul, more parts
            | 0xAC00..=0xD7FF // Hangul, syllables and more parts
            | 0xF900..=0xFAFF // Han for compatibility
            | 0xFF66..=0xFFDC // Katakana and Hangul of half the width
            | 0x1AFF0..=0x1B16F // Kana, more letters
            | 0x20000..=0x3FFFD // Han, further extensions
    );
    is_in_block && letter.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens with their positions.
    fn tokens(text: &str, analyzer: TextAnalyzer) -> Vec<(String, u32)> {
        let mut tokens = Vec::new();
        for_each_token(text, analyzer, |token| {
            tokens.push((token.term.to_owned(), token.position));
        });
        tokens
    }

    fn terms(text: &str, analyzer: TextAnalyzer) -> Vec<String> {
        let tokens = tokens(text, analyzer).into_iter();
        tokens.map(|(term, _)| term).collect()
    }

    #[test]
    fn each_analyzer_gives_its_terms() {
        use TextAnalyzer::{
            Cjk, English, French, German, Italian, Portuguese, Russian, Simple, Spanish, Standard,
            Whitespace,
        };

        for (analyzer, text, expected) in [
            (
                Standard,
                "The Running FOXES, and 2 cats!",
                "running foxes 2 cats",
            ),
            (
                Simple,
                "The Running FOXES, and 2 cats!",
                "the running foxes and 2 cats",
            ),
            (
                Whitespace,
                "The Running FOXES,\tand 2",
                "The Running FOXES, and 2",
            ),
            (English, "The Running FOXES, and 2 cats!", "run fox 2 cat"),
            (German, "Die Häuser und der Garten", "haus gart"),
            (French, "Les chevaux et la maison", "cheval maison"),
            (Spanish, "Los gatos de la casa", "gat cas"),
            (Italian, "I gatti e la casa", "gatt cas"),
            (Portuguese, "Os gatos e a casa", "gat cas"),
            (Russian, "Кошки и дома", "кошк дом"),
            (Cjk, "Hello, 世界 and 東京都", "hello 世界 and 東京 京都"),
        ] {
            let expected: Vec<&str> = expected.split(' ').collect();
            assert_eq!(terms(text, analyzer), expected, "{analyzer:?}");
        }
    }

    #[test]
    fn positions_count_the_words_that_are_dropped() {
        let long = "x".repeat(TOKEN_BYTES_MAX + 1);
        let text = format!("The cat of {long} dogs");
        let expected = [("cat".to_owned(), 1), ("dogs".to_owned(), 4)];
        assert_eq!(tokens(&text, TextAnalyzer::Standard), expected);

        let longest = "x".repeat(TOKEN_BYTES_MAX);
        for analyzer in [TextAnalyzer::Simple, TextAnalyzer::Whitespace] {
            assert_eq!(terms(&format!("{long} {longest}"), analyzer), [&*longest]);
        }
    }

    #[test]
    fn places_of_tokens_are_those_of_the_text() {
        let text = "Über, «Straßen» 漢字かな混じりabc 한국어 x";
        for analyzer in [TextAnalyzer::German, TextAnalyzer::Cjk] {
            let mut end = 0;
            for_each_token(text, analyzer, |token| {
                let place = &text[token.bytes.clone()];
                assert!(place.chars().all(char::is_alphanumeric), "{place}");
                assert!(token.bytes.end > end);
                end = token.bytes.end;
            });
            assert_eq!(end, text.len());
        }
    }

    #[test]
    fn runs_of_cjk_characters_become_pairs() {
        for (text, expected) in [
            ("", ""),
            ("中", "中"),
            ("中国", "中国"),
            ("中国人", "中国 国人"),
            ("中。国", "中 国"),
            ("abc中国def", "abc 中国 def"),
            ("x中y", "x 中 y"),
            ("カタカナ", "カタ タカ カナ"),
            ("ラーメン", "ラー ーメ メン"),
            ("한국어 책", "한국 국어 책"),
            ("東京タワー2号", "東京 京タ タワ ワー 2 号"),
            ("𠀀𠀁𠀂", "𠀀𠀁 𠀁𠀂"),
        ] {
            let expected: Vec<&str> = expected.split_whitespace().collect();
            let tokens = tokens(text, TextAnalyzer::Cjk);
            let terms: Vec<&str> = tokens.iter().map(|(term, _)| term.as_str()).collect();
            assert_eq!(terms, expected, "{text}");
            let positions = tokens.iter().map(|(_, position)| *position);
            assert!(positions.eq(0..u32::try_from(expected.len()).unwrap()));
        }
    }

    #[test]
    fn folded_words_are_neither_stemmed_nor_dropped() {
        assert_eq!(folded_words("The", TextAnalyzer::English), ["the"]);
        assert_eq!(folded_words("Running", TextAnalyzer::English), ["running"]);
        assert_eq!(folded_words("Wi-Fi", TextAnalyzer::Standard), ["wi", "fi"]);
        assert_eq!(folded_words("Wi-Fi", TextAnalyzer::Whitespace), ["Wi-Fi"]);
        assert_eq!(folded_words("東京都", TextAnalyzer::Cjk), ["東京都"]);
        assert!(folded_words("!?", TextAnalyzer::Simple).is_empty());
    }
}
