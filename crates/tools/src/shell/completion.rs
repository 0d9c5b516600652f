//! Completion: the words that may follow where the cursor is.

use std::collections::BTreeMap;

use value::identifier::Identifier;

use super::tokens::{ShellToken, ShellTokenKind, tokens};

/// Keywords of CQL and words of the shell, in order.
const KEYWORDS: [&str; 111] = [
    "ADD",
    "AGGREGATE",
    "ALL",
    "ALLOW",
    "ALTER",
    "AND",
    "ANN",
    "APPLY",
    "AS",
    "ASC",
    "BATCH",
    "BEGIN",
    "BETWEEN",
    "BM25",
    "BY",
    "CALLED",
    "CAST",
    "CLUSTER",
    "CLUSTERING",
    "COMPACT",
    "CONSISTENCY",
    "CONTAINS",
    "COUNT",
    "COUNTER",
    "CREATE",
    "CUSTOM",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ENTRIES",
    "EXISTS",
    "EXIT",
    "EXPAND",
    "FILTERING",
    "FLOAT",
    "FROM",
    "FROZEN",
    "FULL",
    "FUNCTION",
    "GRANT",
    "GROUP",
    "HELP",
    "IDENTITY",
    "IF",
    "IN",
    "INDEX",
    "INDEXES",
    "INSERT",
    "INT",
    "INTO",
    "IS",
    "JSON",
    "KEY",
    "KEYS",
    "KEYSPACE",
    "KEYSPACES",
    "LIKE",
    "LIMIT",
    "LIST",
    "LOGGED",
    "LOGIN",
    "MAP",
    "MATERIALIZED",
    "NOT",
    "NULL",
    "OF",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER",
    "PAGING",
    "PARTITION",
    "PASSWORD",
    "PER",
    "PERMISSIONS",
    "PRIMARY",
    "RENAME",
    "REPLACE",
    "REVOKE",
    "ROLE",
    "ROLES",
    "SCHEMA",
    "SELECT",
    "SERIAL",
    "SET",
    "SOURCE",
    "STATIC",
    "STORAGE",
    "SUPERUSER",
    "TABLE",
    "TABLES",
    "TEXT",
    "TIMESTAMP",
    "TIMEUUID",
    "TO",
    "TOKEN",
    "TRACING",
    "TRUNCATE",
    "TTL",
    "TYPE",
    "TYPES",
    "UNLOGGED",
    "UPDATE",
    "USE",
    "USING",
    "VALUES",
    "VECTOR",
    "WHERE",
    "WITH",
];

/// Commands that begin with a character of their own.
const COMMANDS: [&str; 8] = [
    "\\?", "\\d", "\\i", "\\q", "\\timing", "\\x", ".export", ".import",
];

/// Words after which a table is named.
const BEFORE_TABLES: [&str; 5] = ["FROM", "INTO", "TABLE", "TRUNCATE", "UPDATE"];

/// Words that begin most statements.
const BEGINS: [&str; 7] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DESCRIBE", "USE",
];

/// Words after DESCRIBE.
const DESCRIBED: [&str; 8] = [
    "CLUSTER",
    "INDEX",
    "KEYSPACE",
    "KEYSPACES",
    "SCHEMA",
    "TABLE",
    "TABLES",
    "TYPE",
];

/// Whether a word is a keyword, in whatever case.
pub(super) fn is_keyword(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    KEYWORDS.binary_search(&word.as_str()).is_ok()
}

/// Names of what the server has: the columns of tables by keyspace and table.
#[derive(Clone, Debug, Default)]
pub(super) struct SchemaNames {
    /// The keyspace in use.
    pub used: Option<String>,
    /// Columns by keyspace and table.
    pub keyspaces: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl SchemaNames {
    /// The tables of a keyspace, or of the one in use.
    fn tables<'n>(&'n self, keyspace: Option<&str>) -> Option<&'n BTreeMap<String, Vec<String>>> {
        let name = keyspace.or(self.used.as_deref())?;
        self.keyspaces.get(name)
    }
}

/// The completions of what is before the cursor: the place where they begin, and each as it
/// replaces the text from there to the cursor.
pub(super) fn completions(before: &str, names: &SchemaNames) -> (usize, Vec<String>) {
    let all: Vec<ShellToken> = tokens(before, 0).collect();
    if all.last().is_some_and(is_within_text) {
        return (before.len(), Vec::new());
    }
    let from = statement_start(&all);
    let (start, prefix) = match all.last() {
        Some(last) if matches!(last.kind, ShellTokenKind::Word | ShellTokenKind::QuotedName) => {
            (last.range.start, &before[last.range.clone()])
        }
        _ => (before.len(), ""),
    };
    let earlier: Vec<&ShellToken> = all[from..]
        .iter()
        .filter(|token| {
            !matches!(
                token.kind,
                ShellTokenKind::Blank | ShellTokenKind::LineBreak
            )
        })
        .filter(|token| token.range.end <= start)
        .collect();
    let text = |token: &ShellToken| &before[token.range.clone()];
    if let [first] = earlier[..]
        && matches!(text(first), "\\" | ".")
        && first.range.end == start
    {
        return (
            first.range.start,
            matching(&COMMANDS, &before[first.range.start..]),
        );
    }
    (start, following(before, &earlier, prefix, names))
}

/// The words that begin with a prefix and may follow these tokens of a statement.
fn following(
    before: &str,
    earlier: &[&ShellToken],
    prefix: &str,
    names: &SchemaNames,
) -> Vec<String> {
    let text = |token: &ShellToken| &before[token.range.clone()];
    let last = earlier.last().map(|token| text(token).to_ascii_uppercase());
    match last.as_deref() {
        // After the point of `keyspace.`
        Some(".") => {
            let keyspace = earlier.iter().rev().nth(1);
            let keyspace = keyspace.map(|token| unquoted(text(token)));
            let tables = keyspace.and_then(|keyspace| names.keyspaces.get(&keyspace));
            identifiers(tables.into_iter().flat_map(BTreeMap::keys), prefix)
        }
        Some("USE" | "KEYSPACE") => identifiers(names.keyspaces.keys(), prefix),
        Some(word) if BEFORE_TABLES.contains(&word) || is_describe_of_name(earlier, word) => {
            let tables = names.tables(None);
            let tables = tables.into_iter().flat_map(BTreeMap::keys);
            let mut found = identifiers(tables, prefix);
            found.extend(identifiers(names.keyspaces.keys(), prefix));
            if word.starts_with("DESC") {
                found.extend(in_case(matching(&DESCRIBED, prefix), prefix));
            }
            found
        }
        _ => {
            let tables = mentioned(earlier, before, names);
            let mut found = identifiers(tables.into_iter().flatten(), prefix);
            // Without a beginning all keywords would be a wall of words.
            if !prefix.is_empty() {
                found.extend(in_case(matching(&KEYWORDS, prefix), prefix));
            } else if earlier.is_empty() {
                found.extend(BEGINS.map(str::to_owned));
            }
            found
        }
    }
}

/// Whether the cursor is within a string, a quoted name or a comment.
fn is_within_text(token: &ShellToken) -> bool {
    match token.kind {
        ShellTokenKind::Comment => true,
        ShellTokenKind::Text => !token.is_closed,
        _ => false,
    }
}

/// The first token after the last semicolon.
fn statement_start(all: &[ShellToken]) -> usize {
    let last = all
        .iter()
        .rposition(|token| token.kind == ShellTokenKind::Semicolon);
    last.map_or(0, |position| position + 1)
}

/// Whether the word is the DESCRIBE of a statement, after which a name may follow at once. DESC
/// also ends an ordering.
fn is_describe_of_name(earlier: &[&ShellToken], word: &str) -> bool {
    earlier.len() == 1 && matches!(word, "DESC" | "DESCRIBE")
}

/// Columns of the tables that the statement names before the cursor, or, where it names none, as in
/// `SELECT |`, of no table.
fn mentioned<'n>(
    earlier: &[&ShellToken],
    before: &str,
    names: &'n SchemaNames,
) -> Vec<&'n Vec<String>> {
    let mut found = Vec::new();
    for (position, token) in earlier.iter().enumerate() {
        if !matches!(
            token.kind,
            ShellTokenKind::Word | ShellTokenKind::QuotedName
        ) {
            continue;
        }
        let name = unquoted(&before[token.range.clone()]);
        let has_point = position > 1 && &before[earlier[position - 1].range.clone()] == ".";
        let keyspace = match has_point {
            true => Some(unquoted(&before[earlier[position - 2].range.clone()])),
            false => None,
        };
        let tables = names.tables(keyspace.as_deref());
        found.extend(tables.and_then(|tables| tables.get(&name)));
    }
    found
}

/// The name that a word means: in lower case, unless it is quoted.
fn unquoted(word: &str) -> String {
    match word.strip_prefix('"') {
        Some(quoted) => quoted.trim_end_matches('"').replace("\"\"", "\""),
        None => word.to_ascii_lowercase(),
    }
}

/// Names that begin with a prefix, as CQL writes them.
fn identifiers<'n>(names: impl Iterator<Item = &'n String>, prefix: &str) -> Vec<String> {
    let prefix = prefix.trim_start_matches('"').to_lowercase();
    let mut found: Vec<String> = names
        .filter(|name| name.to_lowercase().starts_with(&prefix))
        .map(|name| Identifier(name).to_string())
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Words that begin with a prefix, in whatever case.
fn matching(words: &[&str], prefix: &str) -> Vec<String> {
    let upper = prefix.to_ascii_uppercase();
    let found = words
        .iter()
        .filter(|word| word.to_ascii_uppercase().starts_with(upper.as_str()));
    found.map(|word| (*word).to_owned()).collect()
}

/// Keywords in the case in which the prefix is typed.
fn in_case(words: Vec<String>, prefix: &str) -> Vec<String> {
    match prefix.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => words.iter().map(|word| word.to_lowercase()).collect(),
        false => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> SchemaNames {
        let table = |name: &str, columns: &[&str]| {
            let columns = columns.iter().map(|column| (*column).to_owned());
            (name.to_owned(), columns.collect::<Vec<_>>())
        };
        let films = BTreeMap::from([
            table("films", &["id", "title", "embedding"]),
            table("Files", &["id"]),
        ]);
        let others = BTreeMap::from([table("notes", &["body"])]);
        SchemaNames {
            used: Some("movies".to_owned()),
            keyspaces: BTreeMap::from([("movies".to_owned(), films), ("other".to_owned(), others)]),
        }
    }

    fn of(before: &str) -> Vec<String> {
        completions(before, &names()).1
    }

    #[test]
    fn keywords_are_in_order() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("select") && !is_keyword("films"));
    }

    #[test]
    fn completions_follow_from_the_word_before() {
        for (before, expected) in [
            ("SEL", &["SELECT"][..]),
            ("sel", &["select"]),
            ("SELECT * FROM film", &["films"]),
            ("SELECT * FROM o", &["other"]),
            ("SELECT * FROM other.", &["notes"]),
            ("SELECT * FROM \"other\".no", &["notes"]),
            ("SELECT * FROM films WHERE ti", &["title"]),
            ("SELECT * FROM other.notes WHERE bo", &["body"]),
            ("INSERT INTO films (em", &["embedding"]),
            ("USE m", &["movies"]),
            ("desc film", &["films"]),
            ("x; UPDATE F", &["\"Files\"", "films"]),
            ("\\t", &["\\timing"]),
            (".i", &[".import"]),
            ("SELECT 'fro", &[]),
            ("SELECT -- fro", &[]),
        ] {
            let found = of(before);
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            let found: Vec<&str> = match before {
                // Keywords come after the names.
                _ if before.contains("WHERE") || before.contains('(') => {
                    found.into_iter().take(1).collect()
                }
                _ => found,
            };
            assert_eq!(found, expected, "{before}");
        }
        assert_eq!(completions("SELECT * FROM fil", &names()).0, 14);
        assert_eq!(completions("\\ti", &names()).0, 0);
    }

    #[test]
    fn unknown_keyspaces_have_no_tables() {
        assert!(of("SELECT * FROM nowhere.").is_empty());
        assert!(of("USE zz").is_empty());
    }
}
