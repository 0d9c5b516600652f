//! Telling from a statement's text what it cannot be, at the cost of a glance.
//!
//! Every answer here is "maybe" or "certainly not": comments, quoted names and literals may look like what is
//! sought. A "maybe" has the statement looked at closely; nothing is changed because of it alone.

/// The words one of which the name of a table that tells of nodes contains: `system.local`, `system.peers` and
/// `system.peers_v2`.
const RING_TABLE_WORDS: [&[u8]; 2] = [b"local", b"peers"];

/// The first word of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// `SELECT`.
    Select,
    /// `INSERT`, `UPDATE`, `DELETE` or `BEGIN`, which begins a batch.
    Write,
    /// `CREATE`.
    Create,
    /// `ALTER`.
    Alter,
    /// `DROP`.
    Drop,
    /// `DESCRIBE` or `DESC`.
    Describe,
    /// `USE`.
    Use,
    /// `TRUNCATE`.
    Truncate,
    /// Any other.
    Other,
}

const VERBS: [(&[u8], Verb); 12] = [
    (b"SELECT", Verb::Select),
    (b"INSERT", Verb::Write),
    (b"UPDATE", Verb::Write),
    (b"DELETE", Verb::Write),
    (b"BEGIN", Verb::Write),
    (b"CREATE", Verb::Create),
    (b"ALTER", Verb::Alter),
    (b"DROP", Verb::Drop),
    (b"DESCRIBE", Verb::Describe),
    (b"DESC", Verb::Describe),
    (b"USE", Verb::Use),
    (b"TRUNCATE", Verb::Truncate),
];

/// The first word of a statement.
pub(crate) fn verb(text: &[u8]) -> Verb {
    let text = after_blanks(text);
    let word = text
        .iter()
        .position(|byte| !byte.is_ascii_alphabetic())
        .map_or(text, |end| &text[..end]);
    VERBS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word))
        .map_or(Verb::Other, |(_, verb)| *verb)
}

/// Whether a statement may read a table that tells of the cluster's nodes.
pub(crate) fn may_read_ring(text: &[u8]) -> bool {
    verb(text) == Verb::Select
        && RING_TABLE_WORDS
            .iter()
            .any(|word| contains_in_any_case(text, word))
}

/// Whether a SELECT may be a query for nearest neighbours.
pub(crate) fn may_order_by_ann(text: &[u8]) -> bool {
    contains_in_any_case(text, b"ann")
}

/// A text from its first word on: after blanks and comments.
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

/// Whether `text` contains `word`, which is in lower case.
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
    fn queries_for_neighbours_are_suspected() {
        assert!(may_order_by_ann(b"select a from t order by v Ann Of ?"));
        assert!(may_order_by_ann(b"SELECT annual FROM t"));
        assert!(!may_order_by_ann(b"SELECT a FROM t ORDER BY v"));
    }

    #[test]
    fn verbs_are_known_in_any_case_and_after_comments() {
        for (text, expected) in [
            ("select 1", Verb::Select),
            ("/* a */ Begin unlogged batch", Verb::Write),
            ("INSERT", Verb::Write),
            ("-- one\nCREATE TABLE t", Verb::Create),
            ("alter table t", Verb::Alter),
            ("drop\tindex i", Verb::Drop),
            ("desc tables", Verb::Describe),
            ("USE \"Shop\"", Verb::Use),
            ("Truncate t", Verb::Truncate),
            ("GRANT", Verb::Other),
            ("", Verb::Other),
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
