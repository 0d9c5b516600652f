//! Tests that a word which is not reserved is a name in every position of a name.

use std::fmt::Write;

use cql::parser::parse_statement;

/// The positions, each with the words that mean something else there.
const POSITIONS: &str = include_str!("positions.txt");

/// Cassandra's unreserved keywords, and further words that the parser knows.
const WORDS: &str = "\
    keys as cluster clustering compact storage tables type types values map list filtering \
    permission permissions keyspaces all user users role roles identity superuser superusers \
    nosuperuser login nologin options password generated hashed exists custom trigger contains \
    internals only static frozen tuple function functions aggregate aggregates sfunc stype \
    finalfunc initcond returns language called input like per partition group datacenters cidrs \
    access default mbean mbeans replace unset masked unmask select_masked vector ann between \
    check indexes ttl count writetime maxwritetime key cast json distinct ascii bigint blob \
    boolean counter decimal double duration float inet int smallint text timestamp tinyint uuid \
    varchar varint timeuuid date time timeout bypass cache attach detach prune rebuild service \
    service_level level levels effective attached no_such_word executable tablets id local_key \
    similarity";

/// Puts a name into a position.
fn with_name(position: &str, name: &str) -> String {
    let parts = position.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named = parts.map(|part| match part.strip_prefix('W') {
        Some(rest) if !rest.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
            format!("{name}{rest}")
        }
        _ => part.to_owned(),
    });
    named.collect()
}

fn positions() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let lines = POSITIONS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| match line.split_once(" | ") {
        Some((position, others)) => (position, others.split(' ').collect()),
        None => (line, Vec::new()),
    })
}

#[test]
fn an_unreserved_word_is_a_name_in_every_position() {
    let mut wrong = String::new();
    let mut tried = 0;
    for (position, others) in positions() {
        for word in WORDS.split(' ') {
            let text = with_name(position, word);
            let quoted = with_name(position, &format!("\"{word}\""));
            let quoted =
                parse_statement(&quoted).unwrap_or_else(|error| panic!("{quoted}: {error}"));
            let is_same = match parse_statement(&text) {
                Ok(parsed) => parsed == quoted,
                Err(_) => false,
            };
            let expected = !others.contains(&word);
            if is_same != expected {
                writeln!(wrong, "{text}").expect("writing to a string never fails");
            }
            tried += 1;
        }
    }
    assert!(tried > 20_000, "{tried}");
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn exists_alone_is_the_condition() {
    for end in ["", ";", " /* */"] {
        let text = format!("UPDATE t SET v = 1 WHERE k = 1 IF EXISTS{end}");
        let quoted = "UPDATE t SET v = 1 WHERE k = 1 IF \"exists\" = 1";
        let parsed = parse_statement(&text).unwrap();
        assert_ne!(parsed, parse_statement(quoted).unwrap());
    }
    let batch =
        "BEGIN BATCH DELETE FROM t WHERE k = 1 IF EXISTS DELETE FROM t WHERE k = 2 APPLY BATCH";
    assert!(parse_statement(batch).is_ok());
}
