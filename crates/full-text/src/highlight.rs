//! The excerpt of a document that shows why a query found it.

use std::collections::HashMap;
use std::ops::Range;

use index::FullTextOptions;

use crate::analysis::for_each_token;
use crate::clause::QueryClause;
use crate::fuzzy::FuzzyWord;
use crate::query::TextQuery;
use crate::statistics::QueryStatistics;

/// Weights are sums of whole numbers, so that equal excerpts have equal ones: this is an idf of 1.
const WEIGHT_OF_ONE: f32 = 1_000_000.0;

/// The form of excerpts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighlightOptions {
    /// Characters of the longest excerpt, without tags and before HTML's escapes.
    pub max_num_chars: usize,
    /// The tag before a word of the query.
    pub pre_tag: String,
    /// The tag after it.
    pub post_tag: String,
}

impl Default for HighlightOptions {
    fn default() -> HighlightOptions {
        HighlightOptions {
            max_num_chars: 150,
            pre_tag: "<b>".to_owned(),
            post_tag: "</b>".to_owned(),
        }
    }
}

/// The excerpt of a document with the greatest sum of the idf of distinct terms of the query, in
/// HTML, with tags around each word of the query; or nothing if the document has none of them.
///
/// Of excerpts that are equal in this the first is taken. A term that a prefix or a fuzzy word
/// matches counts 1, as in scores. Words that exclude documents are not marked.
pub fn highlight(
    query: &TextQuery,
    statistics: &QueryStatistics,
    options: FullTextOptions,
    document: &str,
    form: &HighlightOptions,
) -> Option<String> {
    let mut marks = HighlightMarks::of(query, statistics);
    let hits = marks.hits(document, options);
    let core = best_run(&hits, form.max_num_chars)?;
    let excerpt = widened(document, &core, form.max_num_chars);
    let marked = marked_places(&hits, &excerpt, form.max_num_chars);
    Some(html(document, excerpt, &marked, form))
}

/// The words that are marked.
struct HighlightMarks<'a> {
    /// Terms and their marks; nothing for one that no prefix or fuzzy word matches.
    known: HashMap<String, Option<TermMark>>,
    /// How many terms have a mark.
    count: usize,
    prefixes: Vec<&'a str>,
    fuzzy: Vec<FuzzyWord>,
}

/// One of the distinct terms that are marked.
#[derive(Clone, Copy)]
struct TermMark {
    number: usize,
    weight: u64,
}

/// A word of the document that is marked.
struct MarkedWord {
    bytes: Range<usize>,
    chars: Range<usize>,
    mark: TermMark,
}

impl<'a> HighlightMarks<'a> {
    fn of(query: &'a TextQuery, statistics: &QueryStatistics) -> HighlightMarks<'a> {
        let mut marks = HighlightMarks {
            known: HashMap::new(),
            count: 0,
            prefixes: Vec::new(),
            fuzzy: Vec::new(),
        };
        for term in query.terms() {
            let mark = marks.new_mark(statistics.idf(term));
            marks.known.insert(term.to_owned(), Some(mark));
        }
        query.clause().for_each_scored(&mut |clause| match clause {
            QueryClause::Prefix { prefix, .. } => marks.prefixes.push(prefix),
            QueryClause::Fuzzy { term, distance, .. } => {
                marks.fuzzy.push(FuzzyWord::new(term, *distance));
            }
            QueryClause::Nothing
            | QueryClause::Term { .. }
            | QueryClause::Phrase { .. }
            | QueryClause::Boolean { .. } => {}
        });
        marks
    }

    fn new_mark(&mut self, weight: f32) -> TermMark {
        let number = self.count;
        self.count += 1;
        TermMark {
            number,
            // At least 1, so that a word that all documents have is marked, too.
            weight: (weight * WEIGHT_OF_ONE) as u64 + 1,
        }
    }

    fn mark(&mut self, term: &str) -> Option<TermMark> {
        if let Some(mark) = self.known.get(term) {
            return *mark;
        }
        if self.prefixes.is_empty() && self.fuzzy.is_empty() {
            return None;
        }
        let is_marked = self.prefixes.iter().any(|prefix| term.starts_with(prefix))
            || self.fuzzy.iter_mut().any(|word| word.accepts(term));
        let mark = is_marked.then(|| self.new_mark(1.0));
        self.known.insert(term.to_owned(), mark);
        mark
    }

    /// The words of a document that are marked, in its order.
    fn hits(&mut self, document: &str, options: FullTextOptions) -> Vec<MarkedWord> {
        let mut hits = Vec::new();
        let (mut bytes_before, mut chars_before) = (0, 0);
        for_each_token(document, options.analyzer, |token| {
            let Some(mark) = self.mark(token.term) else {
                return;
            };
            chars_before += chars_in(&document[bytes_before..token.bytes.start]);
            bytes_before = token.bytes.start;
            let length = chars_in(&document[token.bytes.clone()]);
            hits.push(MarkedWord {
                bytes: token.bytes,
                chars: chars_before..chars_before + length,
                mark,
            });
        });
        hits
    }
}

fn chars_in(text: &str) -> usize {
    text.chars().count()
}

/// The characters from one marked word to another, at most `most`, with the greatest sum of the
/// weights of distinct terms; and the first of such. A word that is longer than `most` has a part
/// of itself.
fn best_run(hits: &[MarkedWord], most: usize) -> Option<Range<usize>> {
    let mut times: HashMap<usize, usize> = HashMap::new();
    let (mut sum, mut first) = (0, 0);
    let mut best: Option<(u64, Range<usize>)> = None;
    for (last, hit) in hits.iter().enumerate() {
        let count = times.entry(hit.mark.number).or_default();
        *count += 1;
        if *count == 1 {
            sum += hit.mark.weight;
        }
        while first < last && hit.chars.end - hits[first].chars.start > most {
            let left = &hits[first].mark;
            let count = times.entry(left.number).or_default();
            *count -= 1;
            if *count == 0 {
                sum -= left.weight;
            }
            first += 1;
        }
        if best.as_ref().is_none_or(|(best, _)| sum > *best) {
            let begin = hits[first].chars.start;
            best = Some((sum, begin..hit.chars.end.min(begin + most)));
        }
    }
    best.map(|(_, run)| run)
}

/// The bytes of an excerpt of at most `most` characters around a run of characters. It begins and
/// ends at white space, where there is some.
fn widened(document: &str, run: &Range<usize>, most: usize) -> Range<usize> {
    let after = document.chars().skip(run.end).take(most).count();
    let spare = most.saturating_sub(run.len());
    let left = run.start.min(spare - (spare / 2).min(after));
    let right = after.min(spare - left);

    let byte = |character: usize| {
        let mut places = document.char_indices();
        places
            .nth(character)
            .map_or(document.len(), |(byte, _)| byte)
    };
    let (mut begin, mut end) = (byte(run.start - left), byte(run.end + right));
    let core = byte(run.start)..byte(run.end);
    if is_within_word(document, begin) {
        let before = &document[begin..core.start];
        let space = before
            .char_indices()
            .find(|(_, letter)| letter.is_whitespace());
        begin += space.map_or(0, |(space, _)| space);
    }
    if is_within_word(document, end) {
        let space = document[core.end..end].rfind(char::is_whitespace);
        end = space.map_or(end, |space| core.end + space);
    }
    let before = &document[begin..core.start];
    begin += before.len() - before.trim_start().len();
    end = core.end + document[core.end..end].trim_end().len();
    begin..end
}

/// Whether a place has no white space on either side.
fn is_within_word(document: &str, byte: usize) -> bool {
    let (before, after) = document.split_at(byte);
    let before = before.chars().next_back();
    let after = after.chars().next();
    let is_letter = |letter: Option<char>| letter.is_some_and(|letter| !letter.is_whitespace());
    is_letter(before) && is_letter(after)
}

/// The bytes within an excerpt that are marked. Words that overlap, as pairs of characters do, are
/// one place.
fn marked_places(hits: &[MarkedWord], excerpt: &Range<usize>, most: usize) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = Vec::new();
    for hit in hits {
        let begins = excerpt.contains(&hit.bytes.start);
        let ends = hit.bytes.end <= excerpt.end || hit.chars.len() > most;
        if !begins || !ends {
            continue;
        }
        let place = hit.bytes.start..hit.bytes.end.min(excerpt.end);
        match places.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => places.push(place),
        }
    }
    places
}

fn html(
    document: &str,
    excerpt: Range<usize>,
    marked: &[Range<usize>],
    form: &HighlightOptions,
) -> String {
    let mut html = String::with_capacity(2 * excerpt.len());
    let mut written = excerpt.start;
    for place in marked {
        push_escaped(&mut html, &document[written..place.start]);
        html.push_str(&form.pre_tag);
        push_escaped(&mut html, &document[place.clone()]);
        html.push_str(&form.post_tag);
        written = place.end;
    }
    push_escaped(&mut html, &document[written..excerpt.end]);
    html
}

fn push_escaped(html: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '&' => html.push_str("&amp;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#x27;"),
            _ => html.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use index::TextAnalyzer;

    use super::*;

    fn of(analyzer: TextAnalyzer) -> FullTextOptions {
        FullTextOptions {
            analyzer,
            positions: true,
        }
    }

    fn statistics() -> QueryStatistics {
        let frequencies = [("common", 900), ("rare", 2), ("fox", 50)];
        let frequencies = frequencies.map(|(term, count)| (term.to_owned(), count));
        QueryStatistics {
            documents: 1000,
            tokens: 50_000,
            frequencies: HashMap::from(frequencies),
        }
    }

    fn excerpt(query: &str, analyzer: TextAnalyzer, document: &str) -> Option<String> {
        let options = of(analyzer);
        let query = TextQuery::parse(query, options).unwrap();
        let form = HighlightOptions::default();
        highlight(&query, &statistics(), options, document, &form)
    }

    #[test]
    fn words_of_a_short_document_are_marked_in_the_whole_of_it() {
        use TextAnalyzer::{Cjk, English, Simple, Standard, Whitespace};
        for (query, analyzer, document, expected) in [
            (
                "fox",
                Standard,
                "The Fox, a fox!",
                "The <b>Fox</b>, a <b>fox</b>!",
            ),
            ("run", English, "Running runs", "<b>Running</b> <b>runs</b>"),
            (
                "\"red fox\"",
                Simple,
                "fox and red",
                "<b>fox</b> and <b>red</b>",
            ),
            ("wi-fi", Simple, "Wi-Fi here", "<b>Wi</b>-<b>Fi</b> here"),
            (
                "wor*",
                Simple,
                "work in words, sword",
                "<b>work</b> in <b>words</b>, sword",
            ),
            ("colour~1", Simple, "color, colon", "<b>color</b>, colon"),
            ("a +b -c", Simple, "a b c", "<b>a</b> <b>b</b> c"),
            ("中国人", Cjk, "我是中国人。", "我是<b>中国人</b>。"),
            ("x", Whitespace, "  x\n", "<b>x</b>"),
            (
                "fox",
                Simple,
                "<i>fox</i> & 'x'",
                "&lt;i&gt;<b>fox</b>&lt;/i&gt; &amp; &#x27;x&#x27;",
            ),
        ] {
            let found = excerpt(query, analyzer, document);
            assert_eq!(found.as_deref(), Some(expected), "{query}");
        }
    }

    #[test]
    fn a_document_without_a_word_of_the_query_has_no_excerpt() {
        for (query, document) in [
            ("fox", "a dog"),
            ("fox", ""),
            ("the", "the"),
            ("dog NOT fox", "fox"),
            ("zo*", "no zebra"),
        ] {
            assert_eq!(
                excerpt(query, TextAnalyzer::Standard, document),
                None,
                "{query}"
            );
        }
    }

    #[test]
    fn an_excerpt_has_the_rarest_terms_and_at_most_150_characters() {
        let filler = "filler words of no interest ".repeat(20);
        let document = format!("{filler}common fox common {filler}the rare one {filler}fox common");
        let found = excerpt("common rare", TextAnalyzer::Standard, &document).unwrap();
        assert!(found.contains("the <b>rare</b> one"), "{found}");
        assert!(!found.contains("common"), "{found}");
        let text = found.replace("<b>", "").replace("</b>", "");
        assert!(
            text.chars().count() <= 150 && text.chars().count() > 120,
            "{text}"
        );
        assert!(document.contains(&text));
        let words: Vec<&str> = document.split(' ').collect();
        assert!(text.split(' ').all(|word| words.contains(&word)), "{text}");

        // Two distinct terms outweigh one that occurs twice.
        let found = excerpt("common fox", TextAnalyzer::Standard, &document).unwrap();
        let expected = "<b>common</b> <b>fox</b> <b>common</b>";
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn excerpts_end_at_the_ends_of_a_document() {
        let filler = "filler ".repeat(50);
        let at_begin = excerpt("fox", TextAnalyzer::Standard, &format!("fox {filler}")).unwrap();
        assert!(at_begin.starts_with("<b>fox</b> filler"), "{at_begin}");
        let at_end = excerpt("fox", TextAnalyzer::Standard, &format!("{filler}fox")).unwrap();
        assert!(at_end.ends_with("filler <b>fox</b>"), "{at_end}");
        for excerpt in [at_begin, at_end] {
            let length = excerpt.chars().count() - "<b></b>".len();
            assert!((140..=150).contains(&length), "{length}");
        }
    }

    #[test]
    fn text_without_spaces_is_cut_within_its_bound() {
        let run = "漢字".repeat(200);
        let document = format!("{run}東京{run}");
        let found = excerpt("東京", TextAnalyzer::Cjk, &document).unwrap();
        assert!(found.contains("字<b>東京</b>漢"), "{found}");
        assert_eq!(found.chars().count(), 150 + "<b></b>".len());

        let long = "x".repeat(200);
        let found = excerpt(&long, TextAnalyzer::Simple, &long).unwrap();
        assert_eq!(found, format!("<b>{}</b>", "x".repeat(150)));
    }

    #[test]
    fn tags_and_length_are_those_of_the_form() {
        let options = of(TextAnalyzer::Standard);
        let query = TextQuery::parse("fox", options).unwrap();
        let form = HighlightOptions {
            max_num_chars: 10,
            pre_tag: "[".to_owned(),
            post_tag: "]".to_owned(),
        };
        let document = "one two fox three four";
        let found = highlight(&query, &statistics(), options, document, &form);
        assert_eq!(found.as_deref(), Some("two [fox]"));
    }
}
