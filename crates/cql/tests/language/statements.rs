//! Tests a table of statements: each is accepted, or refused with an exact text.

use std::fmt::Write;

use cql::parser::parse_statement;

const TABLE: &str = include_str!("statements.txt");

/// The statements of the table, each with the outcome written below it.
pub fn cases() -> Vec<(String, &'static str)> {
    let mut lines = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut cases = Vec::new();
    while let Some(statement) = lines.next() {
        let outcome = lines.next().expect("every statement has an outcome");
        let outcome = outcome.strip_prefix("    ").expect("outcomes are indented");
        cases.push((statement.replace("\\n", "\n"), outcome));
    }
    cases
}

#[test]
fn every_statement_has_the_outcome_of_the_table() {
    let mut differences = String::new();
    for (statement, expected) in cases() {
        let outcome = match parse_statement(&statement) {
            Ok(_) => "ok".to_owned(),
            Err(error) => format!("{:?}: {}", error.kind, error.message),
        };
        if outcome != expected {
            writeln!(
                differences,
                "{statement}\n    {outcome}\n  not\n    {expected}"
            )
            .expect("writing to a string never fails");
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

#[test]
fn the_table_holds_both_outcomes() {
    let accepted = cases()
        .iter()
        .filter(|(_, outcome)| *outcome == "ok")
        .count();
    assert!(accepted > 100, "{accepted}");
    assert!(cases().len() - accepted > 100);
}
