//! Statements that are known but not supported: why, and the way round.

use cql::error::CqlError;

/// The error for a statement that begins with these words, such as `CREATE MATERIALIZED VIEW`.
pub(super) fn refused(words: &str) -> CqlError {
    CqlError::invalid(format!(
        "{words} is not supported by Annulus: {}",
        remedy(words)
    ))
}

/// The reason and the way round, by the thing that the statement is about.
fn remedy(words: &str) -> &'static str {
    let is_about = |things: &[&str]| things.iter().any(|thing| words.contains(thing));
    if is_about(&["PRUNE"]) {
        "there are no views here that could have rows without a base; leave the statement out"
    } else if is_about(&["MATERIALIZED VIEW"]) {
        "it keeps no copy of a table under another key; create an index on the column, which finds \
         the same rows, or write a second table in the same batch"
    } else if is_about(&["COMPACT STORAGE"]) {
        "no table here has it, as it lays rows out for clients of Thrift; leave the statement out"
    } else if is_about(&["FUNCTION", "AGGREGATE"]) {
        "it runs no code of clients; use a built-in function, or compute in the application"
    } else if is_about(&["TRIGGER"]) {
        "it runs no code of clients; follow the CDC log of the table"
    } else if is_about(&["SERVICE"]) {
        "one node has no service levels; --search-share and --ingest-share divide its processors"
    } else if is_about(&["REBUILD"]) {
        "an index follows its table by itself; to build it anew, drop it and create it again"
    } else {
        "an index is built for the options that it has; drop the index and create it again"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_and_the_way_round_fit_the_statement() {
        for (words, part) in [
            ("CREATE MATERIALIZED VIEW", "second table"),
            ("DROP MATERIALIZED VIEW", "create an index"),
            ("PRUNE MATERIALIZED VIEW", "leave the statement out"),
            ("ALTER TABLE ... DROP COMPACT STORAGE", "Thrift"),
            ("CREATE OR REPLACE FUNCTION", "built-in"),
            ("DROP TRIGGER", "CDC log"),
            ("ATTACH SERVICE LEVEL", "--search-share"),
            ("LIST ALL SERVICE LEVELS", "--search-share"),
            ("ALTER INDEX", "options"),
            ("REBUILD INDEX", "follows its table"),
        ] {
            let message = refused(words).message;
            assert!(
                message.starts_with(&format!("{words} is not supported")),
                "{message}"
            );
            assert!(message.contains(part), "{message}");
        }
    }
}
