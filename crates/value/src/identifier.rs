//! Names as CQL text, and the words that can't be names.

use std::fmt;

/// The reserved words, in order: Cassandra's, and `TRUE` and `FALSE`, which are constants wherever
/// they occur. Any other keyword is a name where a name may occur.
const RESERVED: [&str; 59] = [
    "ADD",
    "ALLOW",
    "ALTER",
    "AND",
    "APPLY",
    "ASC",
    "AUTHORIZE",
    "BATCH",
    "BEGIN",
    "BY",
    "COLUMNFAMILY",
    "CREATE",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DROP",
    "ENTRIES",
    "EXECUTE",
    "FALSE",
    "FROM",
    "FULL",
    "GRANT",
    "IF",
    "IN",
    "INDEX",
    "INFINITY",
    "INSERT",
    "INTO",
    "IS",
    "KEYSPACE",
    "LIMIT",
    "MATERIALIZED",
    "MODIFY",
    "NAN",
    "NORECURSIVE",
    "NOT",
    "NULL",
    "OF",
    "ON",
    "OR",
    "ORDER",
    "PRIMARY",
    "RENAME",
    "REVOKE",
    "SCHEMA",
    "SELECT",
    "SET",
    "TABLE",
    "TO",
    "TOKEN",
    "TRUE",
    "TRUNCATE",
    "UNLOGGED",
    "UPDATE",
    "USE",
    "USING",
    "VIEW",
    "WHERE",
    "WITH",
];

/// Whether a word can't be a name unless it is quoted.
pub fn is_reserved(word: &str) -> bool {
    const LONGEST: usize = "COLUMNFAMILY".len();
    if word.len() > LONGEST {
        return false;
    }
    let upper = word.to_ascii_uppercase();
    RESERVED.binary_search(&upper.as_str()).is_ok()
}

/// A name as CQL text. It is put in double quotes unless it means the same without them.
pub struct Identifier<'a>(pub &'a str);

impl fmt::Display for Identifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_plain(self.0) {
            f.write_str(self.0)
        } else {
            f.write_str(&quoted(self.0))
        }
    }
}

/// A name in double quotes, which no version of a server takes for a keyword.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn is_plain(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !is_reserved(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserved_words_are_in_order() {
        assert!(RESERVED.is_sorted());
    }

    #[test]
    fn only_reserved_words_are_refused_as_names() {
        for word in ["select", "With", "TOKEN", "nan", "add", "where", "true"] {
            assert!(is_reserved(word), "{word}");
        }
        for word in [
            "key",
            "ttl",
            "json",
            "int",
            "vector",
            "ann",
            "timestamp",
            "withe",
            "x",
        ] {
            assert!(!is_reserved(word), "{word}");
        }
    }
}
