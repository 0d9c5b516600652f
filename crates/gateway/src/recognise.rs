//! A quick look at a statement's text that shows what the statement cannot be.
//!
//! Every answer here is "maybe" or "certainly not": comments, quoted names and literals may look
//! like the word that is searched for. After a "maybe" the statement is looked at closely; nothing
//! is changed only because of a "maybe".

/// The names of the tables that describe nodes (`system.local`, `system.peers` and
/// `system.peers_v2`) each contain one of these words.
const RING_TABLE_WORDS: [&[u8]; 2] = [b"local", b"peers"];

/// The kinds of statements, by their first words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementVerb {
    /// A statement that begins with `SELECT`.
    Select,
    /// A statement that begins with `INSERT`, `UPDATE`, `DELETE`, or with `BEGIN`, which begins a
    /// batch.
    Write,
    /// A statement that begins with `CREATE`.
    Create,
    /// A statement that begins with `ALTER`.
    Alter,
    /// A statement that begins with `DROP`.
    Drop,
    /// A statement that begins with `DESCRIBE` or `DESC`.
    Describe,
    /// A statement that begins with `USE`.
    Use,
    /// A statement that begins with `TRUNCATE`.
    Truncate,
    /// Any other statement.
    Other,
}

const VERBS: [(&[u8], StatementVerb); 12] = [
    (b"SELECT", StatementVerb::Select),
    (b"INSERT", StatementVerb::Write),
    (b"UPDATE", StatementVerb::Write),
    (b"DELETE", StatementVerb::Write),
    (b"BEGIN", StatementVerb::Write),
    (b"CREATE", StatementVerb::Create),
    (b"ALTER", StatementVerb::Alter),
    (b"DROP", StatementVerb::Drop),
    (b"DESCRIBE", StatementVerb::Describe),
    (b"DESC", StatementVerb::Describe),
    (b"USE", StatementVerb::Use),
    (b"TRUNCATE", StatementVerb::Truncate),
];

/// The kind of a statement.
pub(crate) fn verb(text: &[u8]) -> StatementVerb {
    let text = after_blanks(text);
    let word = text
        .iter()
        .position(|byte| !byte.is_ascii_alphabetic())
        .map_or(text, |end| &text[..end]);
    VERBS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word))
        .map_or(StatementVerb::Other, |(_, verb)| *verb)
}

/// Whether a statement may read a table that describes the cluster's nodes.
pub(crate) fn may_read_ring(text: &[u8]) -> bool {
    verb(text) == StatementVerb::Select
        && RING_TABLE_WORDS
            .iter()
            .any(|word| contains_in_any_case(text, word))
}

/// Whether a SELECT may search for vectors or for words. Each search names one of two functions,
/// also those of `RRF(...)` and of expressions.
pub(crate) fn may_search(text: &[u8]) -> bool {
    contains_in_any_case(text, b"ann") || contains_in_any_case(text, b"bm25")
}

/// A text without the blanks and comments before its first word.
fn after_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        text = if text.starts_with(b"--") || text.starts_with(b"//") {
            let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            &text[end.unwrap_or(text.len())..]
        } else if text.starts_with(b"/*") {
            let end = text[2..].windows(2).position(|pair| pair == b"*/");
            end.map_or(&[], |end| &text[2 + end + 2..])
        } else {
            return text;
        };
    }
}

/// Whether `text` contains `word` in any case; `word` is in lower case.
pub(crate) fn contains_in_any_case(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| {
        window[0].to_ascii_lowercase() == word[0] && window.eq_ignore_ascii_case(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_the_tables_of_nodes_are_suspected_however_they_are_written() {
        for text in [
            "SELECT * FROM system.local WHERE key='local'",
            "select peer from System.PEERS",
            "SELECT * FROM \"system\".\"peers_v2\"",
            "  \n-- who is there?\r\n/* SELECT */ // well\nSelect * from local",
            "SELECT\n*\nFROM\nsystem . peers",
        ] {
            assert!(may_read_ring(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn searches_are_suspected() {
        assert!(may_search(b"select a from t order by v Ann Of ?"));
        assert!(may_search(b"SELECT annual FROM t"));
        assert!(may_search(b"SELECT a FROM t WHERE Bm25(body, ?) > 0"));
        assert!(may_search(
            b"SELECT a FROM t ORDER BY 2 * bm25_score(body, ?)"
        ));
        assert!(!may_search(b"SELECT a FROM t ORDER BY v"));
    }

    #[test]
    fn verbs_are_known_in_any_case_and_after_comments() {
        for (text, expected) in [
            ("select 1", StatementVerb::Select),
            ("/* a */ Begin unlogged batch", StatementVerb::Write),
            ("INSERT", StatementVerb::Write),
            ("-- one\nCREATE TABLE t", StatementVerb::Create),
            ("alter table t", StatementVerb::Alter),
            ("drop\tindex i", StatementVerb::Drop),
            ("desc tables", StatementVerb::Describe),
            ("USE \"Shop\"", StatementVerb::Use),
            ("Truncate t", StatementVerb::Truncate),
            ("GRANT", StatementVerb::Other),
            ("", StatementVerb::Other),
        ] {
            assert_eq!(verb(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn other_statements_are_not() {
        for text in [
            "",
            ";",
            "SELECT",
            "SELECT name FROM shop.products WHERE id = ?",
            "INSERT INTO system.local (key) VALUES ('x')",
            "-- SELECT * FROM system.peers",
            "SELECTED * FROM system.peers",
            "/* SELECT * FROM system.peers",
            "/* never ends *",
            "CREATE TABLE local (id int PRIMARY KEY)",
        ] {
            assert!(!may_read_ring(text.as_bytes()), "{text}");
        }
    }
}
