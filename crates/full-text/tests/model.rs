//! The answers of an index are those of a model that looks at each document: through changes,
//! merges, saves and reopening, with filters and tenants, and with fresh documents.

use std::collections::{BTreeMap, BTreeSet};

use ann::IdSet;
use full_text::{
    AdmittedIds, AnalysedText, FreshTexts, QueryStatistics, TextFilesState, TextIndex, TextQuery,
    TextView, check_snapshot,
};
use index::{FullTextOptions, TextAnalyzer};

/// More ids than may wait for a segment.
const IDS: u32 = 1500;
const WORDS: u32 = 60;
const STEPS: usize = 6000;
/// Changes between two looks at all answers.
const CHECKED_AFTER: usize = 1500;

/// Random numbers: SplitMix64.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % u64::from(end)) as u32
    }

    /// A word; some are frequent, others rare.
    fn word(&mut self) -> String {
        let below = self.below(WORDS) + 1;
        format!("w{}x", self.below(below))
    }

    fn text(&mut self) -> String {
        // Lengths that segments do not round, so that ranks are exact.
        let words = self.below(38);
        let words: Vec<String> = (0..words).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn query(&mut self, positions: bool) -> String {
        let [a, b, c] = [self.word(), self.word(), self.word()];
        match self.below(if positions { 12 } else { 9 }) {
            0 => a,
            1 => format!("{a} {b} {c}"),
            2 => format!("{a} AND {b}"),
            3 => format!("{a} AND NOT {b}"),
            4 => format!("+{a} {b} -{c}"),
            5 => "w1*".to_owned(),
            6 => format!("{a}~1"),
            7 => format!("{a}^2.5 ({b} AND {c})"),
            8 => "absent".to_owned(),
            9 => format!("\"{a} {b}\""),
            10 => format!("\"{a} {b}\"~3"),
            _ => format!("\"{a} {b}\" {c}"),
        }
    }
}

type Documents = BTreeMap<u32, AnalysedText>;

fn options(positions: bool) -> FullTextOptions {
    FullTextOptions {
        analyzer: TextAnalyzer::Simple,
        positions,
    }
}

/// The statistics of documents, those within a set alone.
fn counted(documents: &Documents, query: &TextQuery, within: Option<&IdSet>) -> QueryStatistics {
    let texts = documents.iter();
    let texts = texts.filter(|(id, _)| within.is_none_or(|ids| ids.contains(**id)));
    let texts: Vec<&AnalysedText> = texts.map(|(_, text)| text).collect();
    let having = |term: &str| {
        let texts = texts.iter();
        let having = texts.filter(|text| text.positions_of(term).is_some());
        having.count() as u64
    };
    let terms = query.terms().into_iter();
    QueryStatistics {
        documents: texts.len() as u64,
        tokens: texts.iter().map(|text| u64::from(text.length())).sum(),
        frequencies: terms.map(|term| (term.to_owned(), having(term))).collect(),
    }
}

fn assert_near(found: f32, expected: f32, part: f32, what: &str) {
    let difference = (found - expected).abs();
    assert!(
        difference <= part * expected.abs().max(1e-3),
        "{what}: {found}, not {expected}"
    );
}

fn assert_statistics(found: &QueryStatistics, expected: &QueryStatistics, is_exact: bool) {
    assert_eq!(found.documents, expected.documents);
    assert_eq!(found.tokens, expected.tokens);
    for (term, expected) in &expected.frequencies {
        let found = found.frequencies[term];
        let allowed = if is_exact { 0 } else { 1 + expected / 50 };
        assert!(
            found.abs_diff(*expected) <= allowed,
            "{term}: {found} {expected}"
        );
    }
}

/// Compares the best documents with those of the model.
fn assert_best(
    view: &TextView<'_>,
    documents: &Documents,
    query: &TextQuery,
    admitted: (AdmittedIds<'_>, &dyn Fn(u32) -> bool),
    limit: usize,
) {
    let statistics = view.statistics(query, None).unwrap();
    let (admitted, admits) = admitted;
    let scored = documents.iter().filter(|(id, _)| admits(**id));
    let scored = scored.filter_map(|(id, text)| Some((*id, query.score(text, &statistics)?)));
    let scores: BTreeMap<u32, f32> = scored.collect();
    let mut expected: Vec<f32> = scores.values().copied().collect();
    expected.sort_by(|a, b| b.total_cmp(a));
    expected.truncate(limit);

    let found = view.best(query, &statistics, limit, admitted).unwrap();
    assert_eq!(found.len(), expected.len(), "{query:?}");
    let ids: BTreeSet<u32> = found.iter().map(|found| found.id).collect();
    assert_eq!(ids.len(), found.len(), "each id once");
    for (found, expected) in found.iter().zip(expected) {
        let own = scores
            .get(&found.id)
            .unwrap_or_else(|| panic!("{found:?} {query:?}"));
        assert_near(found.score, *own, 1e-5, "the score of the document");
        assert_near(found.score, expected, 0.01, "the score of the rank");
    }
    let in_order = |pair: &[full_text::ScoredText]| {
        let by_score = pair[1].score.total_cmp(&pair[0].score);
        by_score.then(pair[0].id.cmp(&pair[1].id)).is_lt()
    };
    assert!(found.windows(2).all(in_order), "{found:?}");
}

fn assert_matching(
    view: &TextView<'_>,
    documents: &Documents,
    query: &TextQuery,
    admitted: (AdmittedIds<'_>, &dyn Fn(u32) -> bool),
    after: Option<u32>,
) {
    let (admitted, admits) = admitted;
    let matching = documents.iter().filter(|(_, text)| query.matches(text));
    let matching = matching.map(|(id, _)| *id);
    let expected: Vec<u32> = matching
        .filter(|id| admits(*id) && after.is_none_or(|after| *id > after))
        .take(40)
        .collect();
    let found = view.matching(query, admitted, after, 40).unwrap();
    assert_eq!(found, expected, "{query:?}");
}

/// Compares all answers of a view with those of the model.
fn assert_equal(view: &TextView<'_>, documents: &Documents, random: &mut RandomNumbers, of: bool) {
    assert_eq!(view.len(), documents.len());
    for _ in 0..8 {
        let text = random.query(of);
        let query = TextQuery::parse(&text, options(of)).unwrap();
        let found = view.statistics(&query, None).unwrap();
        assert_statistics(&found, &counted(documents, &query, None), false);
        let few: IdSet = (0..IDS / 20).map(|_| random.below(IDS)).collect();
        let many: IdSet = (0..IDS).filter(|_| random.below(3) > 0).collect();
        for ids in [&few, &many] {
            let found = view.statistics(&query, Some(ids)).unwrap();
            assert_statistics(&found, &counted(documents, &query, Some(ids)), true);
        }
        let is_odd = |id: u32| id % 2 == 1;
        let limit = [1, 10, 5000][random.below(3) as usize];
        let after = Some(random.below(IDS)).filter(|_| random.below(2) == 0);
        let filters: [(AdmittedIds<'_>, &dyn Fn(u32) -> bool); 4] = [
            (AdmittedIds::All, &|_| true),
            (AdmittedIds::Ids(&few), &|id| few.contains(id)),
            (AdmittedIds::Ids(&many), &|id| many.contains(id)),
            (AdmittedIds::Predicate(&is_odd), &is_odd),
        ];
        for filter in filters {
            assert_best(view, documents, &query, filter, limit);
            assert_matching(view, documents, &query, filter, after);
        }
        let all = documents.iter().filter(|(_, text)| query.matches(text));
        let ids = view.matching_ids(&query).unwrap();
        assert!(ids.iter().eq(all.map(|(id, _)| *id)), "{query:?}");
    }
}

/// Compares the answers of an index with some fresh documents.
fn assert_equal_with_fresh(index: &TextIndex, documents: &Documents, random: &mut RandomNumbers) {
    let of = index.options().positions;
    assert_equal(&index.view(FreshTexts::default()), documents, random, of);
    let mut documents = documents.clone();
    let mut hidden = IdSet::default();
    let mut texts = BTreeMap::new();
    for _ in 0..50 {
        // Some are new ids.
        let id = random.below(IDS + 50);
        hidden.insert(id);
        documents.remove(&id);
        texts.remove(&id);
        if random.below(3) > 0 {
            let text = AnalysedText::of(&random.text(), index.options());
            documents.insert(id, text.clone());
            texts.insert(id, text);
        }
    }
    let fresh = FreshTexts {
        hidden,
        texts: texts.iter().map(|(id, text)| (*id, text)).collect(),
    };
    assert_equal(&index.view(fresh), &documents, random, of);
}

/// Saves an index and opens it again.
fn reopened(index: &TextIndex, directory: &std::path::Path) -> TextIndex {
    std::fs::create_dir(directory).unwrap();
    index.save_while(directory, |_| true).unwrap();
    assert_eq!(
        index.memory().segments,
        0,
        "segments are used in their files"
    );
    let files = check_snapshot(directory, &mut |_| true).unwrap();
    assert_eq!(files, 2 + index.segment_count() as u64);
    let opened = TextIndex::open(index.options(), directory).unwrap();
    assert_eq!(opened.verify(|| true), TextFilesState::Verified);
    opened
}

fn follows_the_model(seed: u64, positions: bool) {
    let directory = tempfile::tempdir().unwrap();
    let mut random = RandomNumbers(seed);
    let mut index = TextIndex::new(options(positions));
    let mut documents = Documents::new();
    let mut most_segments = 0;
    for step in 1..=STEPS {
        let id = random.below(IDS);
        if random.below(5) == 0 {
            index.remove(id);
            documents.remove(&id);
        } else {
            let text = AnalysedText::of(&random.text(), options(positions));
            index.set(id, &text).unwrap();
            documents.insert(id, text);
        }
        most_segments = most_segments.max(index.segment_count());
        if step % 100 == 0 && random.below(4) == 0 {
            while index.maintain(&|| true) {}
        }
        if step % CHECKED_AFTER == 0 {
            assert_eq!(index.len(), documents.len());
            assert!(index.ids().iter().eq(documents.keys().copied()));
            assert_equal_with_fresh(&index, &documents, &mut random);
            if random.below(2) == 0 {
                let to = directory.path().join(step.to_string());
                let opened = reopened(&index, &to);
                assert_equal_with_fresh(&index, &documents, &mut random);
                index = opened;
                assert_equal_with_fresh(&index, &documents, &mut random);
            }
        }
    }
    assert!(most_segments > 3, "{most_segments}");
}

#[test]
fn an_index_with_positions_follows_the_model() {
    for seed in 0..2 {
        follows_the_model(seed, true);
    }
}

#[test]
fn an_index_without_positions_follows_the_model() {
    follows_the_model(7, false);
}

#[test]
fn scores_of_long_documents_are_those_of_the_formula() {
    let options = options(true);
    let mut random = RandomNumbers(3);
    let index = TextIndex::new(options);
    let mut documents = Documents::new();
    for id in 0..600 {
        let words: Vec<String> = (0..random.below(400)).map(|_| random.word()).collect();
        let text = AnalysedText::of(&words.join(" "), options);
        index.set(id, &text).unwrap();
        documents.insert(id, text);
    }
    while index.maintain(&|| true) {}
    for id in (0..600).filter(|id| id % 2 == 0) {
        index.remove(id);
        documents.remove(&id);
    }
    assert!(index.segment_count() > 0);
    let view = index.view(FreshTexts::default());
    for text in ["w0x", "w3x w40x", "\"w1x w2x\" w9x"] {
        let query = TextQuery::parse(text, options).unwrap();
        let exact = counted(&documents, &query, None);
        let statistics = view.statistics(&query, None).unwrap();
        assert_statistics(&statistics, &exact, false);
        let found = view
            .best(&query, &statistics, 50, AdmittedIds::All)
            .unwrap();
        assert!(!found.is_empty());
        for found in found {
            let expected = query.score(&documents[&found.id], &exact).unwrap();
            assert_near(found.score, expected, 0.03, text);
        }
    }
}
