//! Which statements the tool `cql` lets pass.

use super::failure::CallFailure;

/// White space of CQL. A comment is none here: servers end one at different characters, so a
/// statement after it might be another than the one that was looked at.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Checks a statement by its first word.
///
/// A request of the native protocol has one statement, and servers refuse a second one after a
/// semicolon. So a text that begins with SELECT changes nothing.
///
/// # Errors
/// If the statement may change something and writes are not allowed, or if it concerns the
/// connection, which calls share.
pub fn check(query: &str, writes_are_allowed: bool) -> Result<(), CallFailure> {
    let query = query.trim_start_matches(SPACE);
    let end = query.find(|letter: char| !letter.is_ascii_alphabetic());
    let word = query[..end.unwrap_or(query.len())].to_ascii_uppercase();
    match &*word {
        "SELECT" | "DESCRIBE" | "DESC" => Ok(()),
        "USE" => Err(CallFailure::new(
            "USE is refused, as calls share connections",
            "name the keyspace with the table: FROM shop.products",
        )),
        "" if !writes_are_allowed => Err(CallFailure::new(
            "the statement does not begin with SELECT or DESCRIBE",
            "begin with one of them, without a comment before it",
        )),
        _ if !writes_are_allowed => Err(CallFailure::new(
            format!("{word} is refused: this tool only reads, by SELECT and DESCRIBE"),
            "the user can let it write by starting `annulus mcp` with --allow-writes",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statements_that_read_pass() {
        for query in [
            "SELECT * FROM a.b",
            "\n\t select json a FROM b",
            "DESCRIBE TABLES",
            "desc keyspace a",
            "SELECT(a) FROM b",
        ] {
            assert_eq!(check(query, false), Ok(()), "{query}");
        }
        for query in [
            "INSERT INTO a.b (c) VALUES (1)",
            "delete from a.b where c = 1",
            "DROP TABLE a.b",
            "TRUNCATE a.b",
            "BEGIN BATCH APPLY BATCH",
            "GRANT SELECT ON a.b TO c",
            "selected",
            "-- \r DELETE FROM a.b WHERE c = 1 \n SELECT",
            "/* */ SELECT * FROM a.b",
            "// x\nSELECT * FROM a.b",
            "\u{a0}SELECT * FROM a.b",
            ";",
            "",
        ] {
            assert!(check(query, false).is_err(), "{query}");
        }
    }

    #[test]
    fn all_but_use_passes_where_writes_are_allowed() {
        for query in ["INSERT INTO a.b (c) VALUES (1)", "-- x\nDROP TABLE a.b"] {
            assert_eq!(check(query, true), Ok(()), "{query}");
        }
        for allowed in [false, true] {
            assert!(check("USE shop", allowed).is_err());
        }
    }

    #[test]
    fn a_refusal_names_the_flag() {
        let failure = check("insert into a.b (c) values (1)", false).unwrap_err();
        assert!(failure.error.starts_with("INSERT"), "{failure:?}");
        assert!(failure.hint.contains("--allow-writes"), "{failure:?}");
    }
}
