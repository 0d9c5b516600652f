//! No text, however odd, makes the parser panic or hang.

use std::time::{Duration, Instant};

use cql::error::ErrorKind;
use cql::fuzzing;
use cql::parser::{MAX_NESTING, MAX_TOKENS, parse_statement};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::statements::cases;

/// A piece of a statement. Pieces are put together without sense.
#[expect(clippy::too_many_lines, reason = "one table of words")]
fn token() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "SELECT",
        "FROM",
        "WHERE",
        "INSERT INTO",
        "VALUES",
        "UPDATE",
        "SET",
        "DELETE",
        "BEGIN BATCH",
        "APPLY BATCH",
        "CREATE TABLE",
        "CREATE CUSTOM INDEX ON",
        "PRIMARY KEY",
        "ALTER TABLE",
        "WITH",
        "AND",
        "IN",
        "CONTAINS KEY",
        "IS NOT NULL",
        "ORDER BY",
        "ANN OF",
        "LIMIT",
        "TOKEN",
        "COUNT(*)",
        "CAST",
        "AS",
        "USING",
        "TTL",
        "IF",
        "NOT EXISTS",
        "t",
        "\"q\"",
        "a.b",
        "list",
        "vector",
        "frozen",
        "int",
        "DESCRIBE",
        "null",
        "true",
        "NaN",
        "P1D",
        "1h",
        "1",
        "1.5",
        "0xab",
        "'s'",
        "$$s$$",
        "550e8400-e29b-41d4-a716-446655440000",
        "?",
        ":n",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "=",
        "+",
        "-",
        "+=",
        ",",
        ".",
        ";",
        ":",
        "--",
        "/*",
        "*/",
        "//",
        "'",
        "\"",
        "$$",
        "\n",
        "\u{b5}s",
    ];
    prop_oneof![
        20 => select(WORDS).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ]
}

/// A change of a statement's text.
#[derive(Clone, Debug)]
enum Mutation {
    Remove(Index, usize),
    Repeat(Index, usize),
    Insert(Index, String),
    Cut(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<Index>(), 1..12_usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        (any::<Index>(), 1..12_usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        (any::<Index>(), token()).prop_map(|(at, token)| Mutation::Insert(at, token)),
        any::<Index>().prop_map(Mutation::Cut),
    ]
}

fn mutate(text: &str, mutation: &Mutation) -> String {
    let characters: Vec<char> = text.chars().collect();
    let split = |at: &Index, length: usize| {
        let start = at.index(characters.len() + 1);
        let end = (start + length).min(characters.len());
        (
            characters[..start].iter().collect::<String>(),
            characters[start..end].iter().collect::<String>(),
            characters[end..].iter().collect::<String>(),
        )
    };
    match mutation {
        Mutation::Remove(at, length) => {
            let (before, _, after) = split(at, *length);
            before + &after
        }
        Mutation::Repeat(at, length) => {
            let (before, middle, after) = split(at, *length);
            before + &middle + &middle + &after
        }
        Mutation::Insert(at, token) => {
            let (before, _, after) = split(at, 0);
            before + token + &after
        }
        Mutation::Cut(at) => split(at, 0).0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn arbitrary_text(text: String) {
        fuzzing::statement(text.as_bytes());
    }

    #[test]
    fn arbitrary_sequences_of_tokens(tokens in prop::collection::vec(token(), 0..40)) {
        fuzzing::statement(tokens.join(" ").as_bytes());
        fuzzing::statement(tokens.concat().as_bytes());
    }

    #[test]
    fn damaged_statements(
        statement in any::<Index>(),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let cases = cases();
        let mut text = statement.get(&cases).0.clone();
        for mutation in &mutations {
            text = mutate(&text, mutation);
        }
        fuzzing::statement(text.as_bytes());
    }
}

/// Texts on which a careless parser would overflow its stack or take quadratic time.
fn repeated() -> Vec<String> {
    const LENGTH: usize = 200_000;
    let heads = [
        "",
        "SELECT ",
        "SELECT * FROM t WHERE ",
        "SELECT * FROM t WHERE a = ",
        "SELECT * FROM t WHERE a IN (",
        "INSERT INTO t (a) VALUES (",
        "UPDATE t SET ",
        "CREATE TABLE t (a ",
        "CREATE TABLE t (a int) WITH b = ",
        "BEGIN BATCH ",
    ];
    let units = [
        "(",
        "[",
        "{",
        "<",
        "1,",
        "1 ",
        "a,",
        "a.",
        "a(",
        "-",
        "?",
        "? ",
        "'",
        "''",
        "\"",
        "\"\"",
        "$$",
        "/*",
        "/**/",
        "--\n",
        "list<",
        "frozen<list<",
        "map<int,",
        "tuple<",
        "(int)",
        "(a)=",
        "((a",
        "{1:",
        "token(",
        "cast(a as ",
        "1h",
        "0x",
        "1a",
        "NOT ",
        "\u{b5}",
        "\u{1f600}",
        "\n",
        ";",
        "a=1 AND ",
        "IF ",
        "P1",
        "550e8400-e29b-41d4-a716-446655440000",
        "9",
    ];
    let mut texts = Vec::new();
    for head in heads {
        for unit in units {
            texts.push(head.to_owned() + &unit.repeat(LENGTH / unit.len()));
        }
    }
    // Many options: each is compared with all before it.
    let options: Vec<String> = (0..LENGTH / 10).map(|n| format!("a{n} = 1")).collect();
    texts.push(format!(
        "CREATE TABLE t (a int) WITH {}",
        options.join(" AND ")
    ));
    texts
}

#[test]
fn every_statement_of_the_table() {
    for (statement, _) in cases() {
        fuzzing::statement(statement.as_bytes());
    }
}

#[test]
fn long_repetitions_end_soon() {
    /// A time far above that of a linear pass without optimisation, and far below a quadratic one.
    const PATIENCE: Duration = Duration::from_secs(5);
    for text in repeated() {
        let start = Instant::now();
        fuzzing::statement(text.as_bytes());
        let head: String = text.chars().take(60).collect();
        assert!(start.elapsed() < PATIENCE, "{head}");
    }
}

#[test]
fn nesting_is_bounded() {
    let refused = |text: &str| {
        let error = parse_statement(text).unwrap_err().message;
        assert!(
            error.ends_with(&format!(
                "the statement is nested more than {MAX_NESTING} levels deep"
            )),
            "{error}"
        );
    };
    let deep = |open: &str, inner: &str, close: &str, depth: usize| {
        open.repeat(depth) + inner + &close.repeat(depth)
    };
    for (open, close) in [
        ("[", "]"),
        ("{", "}"),
        ("(1,", ")"),
        ("f(", ")"),
        ("(int)", ""),
    ] {
        let value = |depth| {
            format!(
                "INSERT INTO t (a) VALUES ({})",
                deep(open, "1", close, depth)
            )
        };
        assert!(parse_statement(&value(MAX_NESTING - 1)).is_ok(), "{open}");
        refused(&value(MAX_NESTING));
        refused(&value(10_000));
    }
    refused(&format!("SELECT {} FROM t", deep("f(", "a", ")", 10_000)));
    refused(&format!(
        "SELECT * FROM t WHERE {}",
        deep("(", "a = 1", ")", 10_000)
    ));
    let column = deep("frozen<list<", "int", ">>", 10_000);
    refused(&format!("CREATE TABLE t (a {column})"));
}

#[test]
fn the_number_of_tokens_is_bounded() {
    let list = "1,".repeat(MAX_TOKENS / 2 + 1);
    let error = parse_statement(&format!("SELECT * FROM t WHERE a IN ({list}1)")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::SyntaxError);
    assert!(error.message.contains("more than 1048576 words"), "{error}");
}

#[test]
fn long_names_are_shortened_in_messages() {
    let error = parse_statement(&"x".repeat(100_000)).unwrap_err();
    assert!(error.message.len() < 300, "{}", error.message.len());
    assert!(error.message.ends_with("xxx...'"), "{error}");
}
