use index::TextAnalyzer;
use index::full_text::words_as_they_are;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::analysis::for_each_token;

fn options(analyzer: TextAnalyzer, positions: bool) -> FullTextOptions {
    FullTextOptions {
        analyzer,
        positions,
    }
}

fn simple(text: &str) -> Result<QueryClause, TextQueryError> {
    parse(text, options(TextAnalyzer::Simple, true))
}

/// A clause as a text that is easy to compare: `[+a b -"c d"~1^2]`.
fn shown(clause: &QueryClause) -> String {
    let boosted = |text: String, boost: f32| match boost == 1.0 {
        true => text,
        false => format!("{text}^{boost}"),
    };
    match clause {
        QueryClause::Nothing => "nothing".to_owned(),
        QueryClause::Term { term, boost } => boosted(term.clone(), *boost),
        QueryClause::Phrase { terms, slop, boost } => {
            let mut next = 0;
            let words = terms.iter().map(|(offset, term)| {
                let gaps = "_ ".repeat((offset - next) as usize);
                next = offset + 1;
                format!("{gaps}{term}")
            });
            let words: Vec<String> = words.collect();
            let words = words.join(" ");
            match slop {
                0 => boosted(format!("\"{words}\""), *boost),
                _ => boosted(format!("\"{words}\"~{slop}"), *boost),
            }
        }
        QueryClause::Prefix { prefix, boost } => boosted(format!("{prefix}*"), *boost),
        QueryClause::Fuzzy {
            term,
            distance,
            boost,
        } => boosted(format!("{term}~{distance}"), *boost),
        QueryClause::Boolean {
            must,
            should,
            must_not,
        } => {
            let parts = [("+", must), ("", should), ("-", must_not)];
            let parts = parts.into_iter().flat_map(|(sign, clauses)| {
                let shown = clauses.iter().map(shown);
                shown.map(move |clause| format!("{sign}{clause}"))
            });
            let parts: Vec<String> = parts.collect();
            format!("[{}]", parts.join(" "))
        }
    }
}

#[test]
fn queries_mean_their_trees() {
    for (text, expected) in [
        ("", "nothing"),
        ("  \n", "nothing"),
        ("Red", "red"),
        ("red shoes", "[red shoes]"),
        ("red OR shoes", "[red shoes]"),
        ("red AND shoes", "[+red +shoes]"),
        ("red or and not", "[red or and not]"),
        ("a AND b OR c AND d", "[[+a +b] [+c +d]]"),
        ("a b AND c d", "[a [+b +c] d]"),
        ("a NOT b", "[a -b]"),
        ("a AND NOT b", "[+a -b]"),
        ("NOT a AND b", "[+b -a]"),
        ("a OR b AND NOT c", "[a [+b -c]]"),
        ("+a b -c", "[+a b -c]"),
        ("+a", "a"),
        ("+a AND -b", "[+a -b]"),
        ("(a b) AND (c OR d)", "[+[a b] +[c d]]"),
        ("((a))", "a"),
        ("(a)(b)", "[a b]"),
        ("NOT a", "nothing"),
        ("-a -b", "nothing"),
        ("a (NOT b)", "a"),
        ("a AND (NOT b)", "[+a -b]"),
        ("a NOT (NOT b)", "a"),
        ("a NOT (b c)", "[a -[b c]]"),
        ("\"red shoes\"", "\"red shoes\""),
        ("\"red\"", "red"),
        ("\"\"", "nothing"),
        ("\"a \\\" b\\\\ (c) * d\"", "\"a b c d\""),
        ("\"red shoes\"~3^2", "\"red shoes\"~3^2"),
        ("a\"b c\"d", "[a \"b c\" d]"),
        ("Wor*", "wor*"),
        ("wor*^0.5 x", "[wor*^0.5 x]"),
        ("Word~1", "word~1"),
        ("word~", "word~2"),
        ("word~0^3", "word~0^3"),
        ("word^2.5", "word^2.5"),
        ("(a b)^2", "[a^2 b^2]"),
        ("(a^3 \"b c\")^2", "[a^6 \"b c\"^2]"),
        ("((a^2)^2 b)^2", "[a^8 b^2]"),
        ("(wor*)", "wor*"),
    ] {
        assert_eq!(
            simple(text).map(|clause| shown(&clause)),
            Ok(expected.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn punctuation_is_for_the_analyzer_and_escapes_take_signs_as_text() {
    for (text, expected) in [
        ("hello, world!", "[hello world]"),
        ("wi-fi", "\"wi fi\""),
        ("c++ it's", "[c \"it s\"]"),
        ("1.5 a/b?", "[\"1 5\" \"a b\"]"),
        ("title:red", "\"title red\""),
        ("... red", "red"),
        (r"\AND \OR \NOT", "[and or not]"),
        (r"A\ND", "and"),
        (r"\-a \+b", "[a b]"),
        (r"wor\* a\~1 b\^2", "[wor \"a 1\" \"b 2\"]"),
        (r#"\(a\) \"b c\""#, "[a b c]"),
        (r"a\\b a\ b", "[\"a b\" \"a b\"]"),
        (r"AND\*", "and"),
    ] {
        assert_eq!(
            simple(text).map(|clause| shown(&clause)),
            Ok(expected.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn words_become_the_terms_of_the_analyzer() {
    use TextAnalyzer::{Cjk, English, Standard, Whitespace};
    for (analyzer, text, expected) in [
        (English, "Running AND foxes", "[+run +fox]"),
        (English, "running*", "running*"),
        (English, "Foxes~1", "foxes~1"),
        (Standard, "the cat", "cat"),
        (Standard, "+the cat", "cat"),
        (Standard, "the AND cat AND of", "cat"),
        (Standard, "cat NOT the", "cat"),
        (Standard, "(the of) cat", "cat"),
        (Standard, "the of", "nothing"),
        (Standard, "the*", "the*"),
        (Standard, "\"man of the match\"", "\"man _ _ match\""),
        (Standard, "\"the man of\"", "man"),
        (Standard, "-the", "nothing"),
        (Whitespace, "Wi-Fi Red*", "[Wi-Fi Red*]"),
        (Cjk, "中国人 hello", "[\"中国 国人\" hello]"),
        (Cjk, "\"中国人\"", "\"中国 国人\""),
        (Cjk, "中国*", "中国*"),
    ] {
        let clause = parse(text, options(analyzer, true)).unwrap();
        assert_eq!(shown(&clause), expected, "{text}");
    }
}

#[test]
fn an_index_without_positions_serves_words_and_refuses_phrases() {
    let options = options(TextAnalyzer::Simple, false);
    for (text, expected) in [
        ("wi-fi red", "[[+wi +fi] red]"),
        ("wi-fi^2", "[+wi^2 +fi^2]"),
        ("\"red\"", "red"),
        ("red*", "red*"),
    ] {
        assert_eq!(shown(&parse(text, options).unwrap()), expected, "{text}");
    }
    let error = parse("a (\"red shoes\"~2)", options).unwrap_err();
    assert!(error.is_without_positions());
    assert_eq!(error.position, 3);
    let text = "phrase queries need an index with 'positions': 'true'";
    assert_eq!(error.to_string(), text);
    assert!(!parse("a (", options).unwrap_err().is_without_positions());
}

#[test]
fn a_malformed_query_is_refused_with_its_place() {
    for (text, position, fault) in [
        ("red AND", 4, "follows 'AND'"),
        ("AND red", 0, "'AND' is where"),
        ("red OR OR x", 7, "'OR' is where"),
        ("(red OR)", 5, "follows 'OR'"),
        ("red NOT", 4, "follows 'NOT'"),
        ("ü +", 2, "follows '+'"),
        (
            "rock - roll",
            5,
            "'-' must come directly before a word; as text it is \\-",
        ),
        ("--a", 1, "'-' is where"),
        ("NOT NOT a", 4, "'NOT' is where"),
        ("a (b", 2, "not closed"),
        ("a b)", 3, "closes none"),
        ("a ()", 2, "empty"),
        ("ä \"b c", 2, "not closed"),
        ("a\\", 1, "nothing follows this backslash"),
        ("\"a\\", 2, "nothing follows this backslash"),
        ("*", 0, "beginning of a word"),
        ("a *", 2, "beginning of a word"),
        ("\"a b\"*", 5, "beginning of a word"),
        ("wo*rd", 3, "a space must follow"),
        ("word~1x", 6, "a space must follow"),
        ("word^2-x", 6, "a space must follow"),
        ("word*~1", 5, "'~' must directly follow"),
        ("word~1*", 6, "beginning of a word"),
        ("(a)~1", 3, "'~' must directly follow"),
        (
            "word~3",
            4,
            "'~3' after a word: edits are a whole number of 0 to 2",
        ),
        ("word~0.8", 4, "'~0.8' after a word"),
        ("\"a b\"~", 5, "'~' after a phrase: a slop is"),
        ("\"a b\"~10001", 5, "0 to 10000"),
        ("word^", 4, "'^': a boost is"),
        ("word^0", 4, "above 0, and at most 1000"),
        ("word^1001", 4, "'^1001'"),
        ("a ^2", 2, "'^' must directly follow"),
        ("x ((a^1000)^1000)^2", 4, "multiply to at most 1000000"),
        ("x wi-fi*", 2, "'wi-fi' is 2 for the analyzer 'simple'"),
    ] {
        let error = simple(text).unwrap_err();
        assert!(error.fault.contains(fault), "{text}: {error}");
        assert_eq!(error.position, position, "{text}: {error}");
        let place = format!(", at character {} of the query", position + 1);
        assert!(error.to_string().ends_with(&place), "{error}");
    }
}

#[test]
fn bounds_of_queries_are_named() {
    let words = |count: usize| vec!["word"; count].join(" ");
    assert!(simple(&words(WORDS_MAX)).is_ok());
    let error = simple(&words(WORDS_MAX + 1)).unwrap_err();
    assert_eq!(error.fault, "a query has at most 1024 words");
    assert_eq!(error.position, 5 * WORDS_MAX);
    let phrase = |count: usize| format!("a \"{}\"", words(count));
    assert!(simple(&phrase(WORDS_MAX - 1)).is_ok());
    let error = simple(&phrase(WORDS_MAX)).unwrap_err();
    let fault = "a query has at most 1024 words";
    assert_eq!((error.fault.as_str(), error.position), (fault, 2));

    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(simple(&nested(DEPTH_MAX)).is_ok());
    let error = simple(&nested(DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(
        error.fault,
        "a query has at most 64 parentheses in one another"
    );
    assert_eq!(error.position, DEPTH_MAX);

    let fuzzy = |count: usize| vec!["word~1"; count].join(" ");
    assert!(simple(&fuzzy(FUZZY_WORDS_MAX)).is_ok());
    let error = simple(&fuzzy(FUZZY_WORDS_MAX + 1)).unwrap_err();
    assert_eq!(error.fault, "a query has at most 32 words with '~'");
    let long = |letters: usize| format!("{}~1", "ä".repeat(letters));
    assert!(simple(&long(FUZZY_LETTERS_MAX)).is_ok());
    let error = simple(&long(FUZZY_LETTERS_MAX + 1)).unwrap_err();
    assert_eq!(error.fault, "a word with '~' has at most 64 letters");
}

/// A query with the text that means it.
#[derive(Clone, Debug)]
struct WrittenQuery {
    text: String,
    clause: QueryClause,
}

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "bc", "and", "straße", "東京", "7"])
}

/// Words, phrases, prefixes and fuzzy words.
fn leaf() -> impl Strategy<Value = WrittenQuery> {
    let kinds = (word(), vec(word(), 2..4), 0..4_u32, 0..5_u8);
    kinds.prop_map(|(word, phrase, slop, kind)| {
        let (text, clause) = match kind {
            0 => {
                let prefix = word.to_owned();
                let clause = QueryClause::Prefix { prefix, boost: 1.0 };
                (format!("{word}*"), clause)
            }
            1 => {
                let distance = (slop % 3) as u8;
                let clause = QueryClause::Fuzzy {
                    term: word.to_owned(),
                    distance,
                    boost: 1.0,
                };
                (format!("{word}~{distance}"), clause)
            }
            2 => {
                let terms = (0..).zip(phrase.iter().map(|word| (*word).to_owned()));
                let clause = QueryClause::Phrase {
                    terms: terms.collect(),
                    slop,
                    boost: 1.0,
                };
                (format!("\"{}\"~{slop}", phrase.join(" ")), clause)
            }
            _ => {
                let term = word.to_owned();
                (word.to_owned(), QueryClause::Term { term, boost: 1.0 })
            }
        };
        WrittenQuery { text, clause }
    })
}

/// Lists of signed parts, in either of the forms that a list has.
fn written_query() -> impl Strategy<Value = WrittenQuery> {
    leaf().prop_recursive(3, 24, 4, |inner| {
        (inner.clone(), vec((inner, 0..3_u8), 1..4), any::<bool>()).prop_map(
            |(first, others, has_and)| {
                let (mut must, mut should, mut must_not) = (Vec::new(), Vec::new(), Vec::new());
                let in_parentheses = |query: &WrittenQuery| match query.clause {
                    QueryClause::Boolean { .. } => format!("({})", query.text),
                    _ => query.text.clone(),
                };
                let mut text = in_parentheses(&first);
                match has_and {
                    true => must.push(first.clause),
                    false => should.push(first.clause),
                }
                for (other, sign) in others {
                    let shown = in_parentheses(&other);
                    let part = match (has_and, sign) {
                        (true, 0) => format!(" AND NOT {shown}"),
                        (true, _) => format!(" AND {shown}"),
                        (false, 0) => format!(" -{shown}"),
                        (false, 1) => format!(" +{shown}"),
                        (false, _) => format!(" OR {shown}"),
                    };
                    text += &part;
                    match (has_and, sign) {
                        (_, 0) => must_not.push(other.clause),
                        (true, _) | (false, 1) => must.push(other.clause),
                        (false, _) => should.push(other.clause),
                    }
                }
                let clause = QueryClause::Boolean {
                    must,
                    should,
                    must_not,
                };
                WrittenQuery { text, clause }
            },
        )
    })
}

/// The tree of a text's words, each by the analyzer.
fn any_of_words(text: &str, options: FullTextOptions) -> QueryClause {
    let mut should = Vec::new();
    for word in text.split_whitespace() {
        let mut terms: Vec<(u32, String)> = Vec::new();
        for_each_token(word, options.analyzer, |token| {
            terms.push((token.position, token.term.to_owned()));
        });
        let first = terms.first().map_or(0, |(position, _)| *position);
        for (position, _) in &mut terms {
            *position -= first;
        }
        match terms.len() {
            0 => {}
            1 => should.extend(
                terms
                    .pop()
                    .map(|(_, term)| QueryClause::Term { term, boost: 1.0 }),
            ),
            _ => should.push(QueryClause::Phrase {
                terms,
                slop: 0,
                boost: 1.0,
            }),
        }
    }
    match should.len() {
        0 => QueryClause::Nothing,
        1 => should.remove(0),
        _ => QueryClause::Boolean {
            must: Vec::new(),
            should,
            must_not: Vec::new(),
        },
    }
}

/// Texts of signs, operators and words in any order.
fn typed_text() -> impl Strategy<Value = String> {
    let pieces = vec![
        "AND", "OR", "NOT", "and", "the", "red", "shoes", "wi-fi", "É", "東京", "\\", "\"", "(",
        ")", "*", "~", "~1", "^", "^2.5", "+", "-", " ", " ", " ", "\t", ".", ",", ":", "!", "'",
        "[", "]", "{", "}", "/", "&&", "||", "<", ">", "1.5",
    ];
    vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn written_queries_are_read_as_they_were_meant(query in written_query()) {
        prop_assert_eq!(simple(&query.text), Ok(query.clause), "{}", query.text);
    }

    #[test]
    fn words_as_they_are_have_no_operator(text in typed_text()) {
        for analyzer in [TextAnalyzer::Standard, TextAnalyzer::Whitespace, TextAnalyzer::Cjk] {
            let options = options(analyzer, true);
            let clause = parse(&words_as_they_are(&text), options);
            prop_assert_eq!(clause, Ok(any_of_words(&text, options)), "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_place_in_it(
        text in typed_text(),
        other in vec(any::<char>(), 0..24),
    ) {
        for text in [text, other.into_iter().collect()] {
            for positions in [true, false] {
                if let Err(error) = parse(&text, options(TextAnalyzer::Standard, positions)) {
                    prop_assert!(error.position <= text.chars().count(), "{} {}", text, error);
                }
            }
        }
    }
}
