use std::collections::HashMap;

use index::TextAnalyzer;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn options() -> FullTextOptions {
    FullTextOptions {
        analyzer: TextAnalyzer::Standard,
        positions: true,
    }
}

fn query(text: &str) -> TextQuery {
    TextQuery::parse(text, options()).unwrap()
}

fn document(text: &str) -> AnalysedText {
    AnalysedText::of(text, options())
}

fn statistics() -> QueryStatistics {
    let frequencies = [("red", 100), ("shoes", 10), ("hat", 3)];
    let frequencies = frequencies.map(|(term, count)| (term.to_owned(), count));
    QueryStatistics {
        documents: 1000,
        tokens: 6000,
        frequencies: HashMap::from(frequencies),
    }
}

fn score(text: &str, of: &str) -> Option<f32> {
    query(text).score(&document(of), &statistics())
}

#[test]
fn documents_match_by_the_words_of_a_query() {
    let text = "The quick brown Fox jumps over the lazy dog, doesn't it? Wi-Fi!";
    for (query_text, expected) in [
        ("FOX", true),
        ("cat", false),
        ("the", false),
        ("the it", false),
        ("cat fox", true),
        ("cat OR fox", true),
        ("cat AND fox", false),
        ("fox AND dog", true),
        ("the AND fox", true),
        ("fox NOT dog", false),
        ("fox AND NOT cat", true),
        ("NOT cat", false),
        ("(cat OR fox) AND (dog OR mouse)", true),
        ("(cat OR fox) AND (bird OR mouse)", false),
        ("+fox cat", true),
        ("+cat fox", false),
        ("fox -lazy", false),
        ("\"quick brown fox\"", true),
        ("\"quick fox\"", false),
        ("\"quick fox\"~1", true),
        ("\"fox brown\"", false),
        ("\"fox brown\"~2", true),
        ("\"over the lazy\"", true),
        ("\"over lazy\"", false),
        ("\"over of lazy\"", true),
        ("dog,", true),
        ("doesn't", true),
        ("wi-fi", true),
        ("fi-wi", false),
        ("jum*", true),
        ("jumps* cat", true),
        ("lazi*", false),
        ("quik~1", true),
        ("qiuck~1", true),
        ("qck~1", false),
        ("qck~", true),
        ("", false),
    ] {
        let query = query(query_text);
        assert_eq!(query.matches(&document(text)), expected, "{query_text}");
        let score = query.score(&document(text), &statistics());
        assert_eq!(score.is_some(), expected, "{query_text}");
        assert!(!query.matches(&document("")), "{query_text}");
    }
}

#[test]
fn scores_are_sums_of_those_of_terms() {
    let text = "red shoes, red hat";
    let statistics = statistics();
    let term =
        |term: &str, frequency| statistics.term_score(statistics.idf(term), 1.0, frequency, 4);
    let (red, shoes, hat) = (term("red", 2), term("shoes", 1), term("hat", 1));
    let idf = statistics.idf("red") + statistics.idf("shoes");
    let phrase = statistics.term_score(idf, 1.0, 1, 4);
    for (query, expected) in [
        ("red", red),
        ("red hat", red + hat),
        ("red AND shoes", red + shoes),
        ("+red hat", red + hat),
        ("+red coat", red),
        ("red NOT coat", red),
        ("red hat coat*", red + hat),
        ("red ha*", red + 1.0),
        ("ha*^2.5", 2.5),
        ("had~1^2", 2.0),
        ("\"red shoes\"", phrase),
        ("hat red red", hat + red + red),
    ] {
        let found = score(query, text).unwrap();
        assert!(
            (found - expected).abs() < 1e-5,
            "{query}: {found} {expected}"
        );
    }
    let found = score("(red^2 hat)^1.5", text).unwrap();
    let expected = red * 3.0 + hat * 1.5;
    assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    assert_eq!(score("red AND coat", text), None);
}

#[test]
fn rare_terms_and_short_documents_score_higher() {
    assert!(score("hat", "hat").unwrap() > score("shoes", "shoes").unwrap());
    assert!(score("hat", "hat").unwrap() > score("hat", "hat red shoes").unwrap());
    assert!(score("hat", "hat hat red").unwrap() > score("hat", "hat red red").unwrap());
}

#[test]
fn statistics_are_needed_of_terms_that_score() {
    let query = query("red \"hat of red\" wor* like~1 (shoes AND red) -coat");
    assert_eq!(query.terms(), ["red", "hat", "shoes"]);
    assert!(
        TextQuery::parse("the", options())
            .unwrap()
            .terms()
            .is_empty()
    );
}

/// A query of letters whose meaning is clear without a parser.
#[derive(Clone, Debug)]
enum PlainQuery {
    Word(char),
    Both(Box<PlainQuery>, Box<PlainQuery>),
    Either(Box<PlainQuery>, Box<PlainQuery>),
    Without(Box<PlainQuery>, Box<PlainQuery>),
    Pair(char, char),
}

impl PlainQuery {
    fn text(&self) -> String {
        match self {
            PlainQuery::Word(word) => word.to_string(),
            PlainQuery::Both(left, right) => format!("({} AND {})", left.text(), right.text()),
            PlainQuery::Either(left, right) => format!("({} {})", left.text(), right.text()),
            PlainQuery::Without(left, right) => format!("({} NOT {})", left.text(), right.text()),
            PlainQuery::Pair(left, right) => format!("\"{left} {right}\""),
        }
    }

    fn matches(&self, document: &[char]) -> bool {
        match self {
            PlainQuery::Word(word) => document.contains(word),
            PlainQuery::Both(left, right) => left.matches(document) && right.matches(document),
            PlainQuery::Either(left, right) => left.matches(document) || right.matches(document),
            PlainQuery::Without(left, right) => left.matches(document) && !right.matches(document),
            PlainQuery::Pair(left, right) => {
                document.windows(2).any(|pair| pair == [*left, *right])
            }
        }
    }
}

fn letter() -> impl Strategy<Value = char> {
    prop::sample::select(vec!['v', 'w', 'x', 'y', 'z'])
}

fn plain_query() -> impl Strategy<Value = PlainQuery> {
    let leaf = prop_oneof![
        letter().prop_map(PlainQuery::Word),
        (letter(), letter()).prop_map(|(left, right)| PlainQuery::Pair(left, right)),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        (inner.clone(), inner, 0..3_u8).prop_map(|(left, right, kind)| {
            let (left, right) = (Box::new(left), Box::new(right));
            match kind {
                0 => PlainQuery::Both(left, right),
                1 => PlainQuery::Either(left, right),
                _ => PlainQuery::Without(left, right),
            }
        })
    })
}

proptest! {
    #[test]
    fn matches_are_those_of_the_letters(plain in plain_query(), letters in vec(letter(), 0..6)) {
        let text: Vec<String> = letters.iter().map(char::to_string).collect();
        let document = document(&text.join(" "));
        let query = query(&plain.text());
        let expected = plain.matches(&letters);
        prop_assert_eq!(query.matches(&document), expected, "{}", plain.text());
        let score = query.score(&document, &statistics());
        prop_assert_eq!(score.is_some(), expected);
        prop_assert!(score.is_none_or(|score| score.is_finite() && score > 0.0));
    }
}
