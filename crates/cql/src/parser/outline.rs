//! Outlines of statements, found without parsing them: the tables that a write changes, and calls
//! of functions. The gateway passes most statements on and needs no more of them.

use super::lexer::{Lexer, SyntaxToken, TokenKind};
use super::names::unquoted;
use crate::ast::TableName;

/// The data that a statement changes, as far as its first words show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedData {
    /// Rows of this table, by an INSERT, UPDATE or DELETE.
    Rows(TableName),
    /// The data that the statements of a batch change ([`changed_by_batch`]).
    Batch,
    /// All rows of this table, by a TRUNCATE.
    All(TableName),
}

/// Finds the data that a statement changes. `None` if it changes no rows, or is malformed before
/// the end of the table's name.
///
/// Only the tokens up to that name are read, and only the name is allocated.
pub fn changed(text: &str) -> Option<ChangedData> {
    let mut lexer = Lexer::new(text);
    let first = lexer.next_token().ok()?;
    if is_word(&first, "INSERT") {
        let into = lexer.next_token().ok()?;
        return is_word(&into, "INTO").then(|| table_name(&mut lexer).map(ChangedData::Rows))?;
    }
    if is_word(&first, "UPDATE") {
        return table_name(&mut lexer).map(ChangedData::Rows);
    }
    if is_word(&first, "DELETE") {
        loop {
            let token = lexer.next_token().ok()?;
            if is_word(&token, "FROM") {
                return table_name(&mut lexer).map(ChangedData::Rows);
            }
            if token.kind == TokenKind::End {
                return None;
            }
        }
    }
    if is_word(&first, "TRUNCATE") {
        let mut ahead = lexer.clone();
        let next = ahead.next_token().ok()?;
        if is_word(&next, "TABLE") || is_word(&next, "COLUMNFAMILY") {
            lexer = ahead;
        }
        return table_name(&mut lexer).map(ChangedData::All);
    }
    is_word(&first, "BEGIN").then_some(ChangedData::Batch)
}

/// Finds the tables whose rows a batch changes, one for each of its statements in their order.
/// `None` if the text is no batch, or is malformed as far as it is read.
///
/// The statements are not parsed: INSERT, UPDATE and DELETE are reserved words, so a statement
/// begins wherever one of them occurs.
pub fn changed_by_batch(text: &str) -> Option<Vec<TableName>> {
    let mut lexer = Lexer::new(text);
    if !is_word(&lexer.next_token().ok()?, "BEGIN") {
        return None;
    }
    let mut tables = Vec::new();
    // True between DELETE and FROM, where words are the names of columns.
    let mut deletes = false;
    loop {
        let token = lexer.next_token().ok()?;
        if token.kind == TokenKind::End {
            return (!deletes).then_some(tables);
        }
        if is_word(&token, "DELETE") {
            deletes = true;
            continue;
        }
        let is_start = if deletes {
            is_word(&token, "FROM")
        } else if is_word(&token, "INSERT") {
            is_word(&lexer.next_token().ok()?, "INTO").then_some(())?;
            true
        } else {
            is_word(&token, "UPDATE")
        };
        if is_start {
            deletes = false;
            tables.push(table_name(&mut lexer)?);
        }
    }
}

/// Replaces calls of functions without arguments in a statement: `now()` becomes the text that
/// `replacement` gives for `now`. A call for which it gives `None` stays. Returns `None` if nothing
/// was replaced.
///
/// `replacement` gets the name as the database sees it, without a keyspace. Calls with another
/// keyspace than `system` stay.
pub fn replace_calls(
    text: &str,
    mut replacement: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    let mut lexer = Lexer::new(text);
    let mut replaced = String::new();
    let mut copied = 0;
    // The tokens before the current one, the nearest first.
    let mut before: [Option<SyntaxToken<'_>>; 4] = [None; 4];
    loop {
        let token = lexer.next_token().ok()?;
        if token.kind == TokenKind::End {
            break;
        }
        if is_symbol(&token, ")")
            && let [Some(open), Some(name), point, keyspace] = before
            && is_symbol(&open, "(")
            && let Some(start) = call_start(&name, point, keyspace)
            && let Some(instead) = replacement(&as_seen(&name))
        {
            replaced.push_str(&text[copied..start]);
            replaced.push_str(&instead);
            copied = token.start + token.text.len();
        }
        before = [Some(token), before[0], before[1], before[2]];
    }
    if copied == 0 {
        return None;
    }
    replaced.push_str(&text[copied..]);
    Some(replaced)
}

/// The offset at which a function's name begins, its keyspace included. `None` if `name` is no
/// name, or has another keyspace than `system`.
fn call_start(
    name: &SyntaxToken<'_>,
    point: Option<SyntaxToken<'_>>,
    keyspace: Option<SyntaxToken<'_>>,
) -> Option<usize> {
    if !matches!(name.kind, TokenKind::Word | TokenKind::QuotedName) {
        return None;
    }
    match (point, keyspace) {
        (Some(point), Some(keyspace)) if is_symbol(&point, ".") => {
            (as_seen(&keyspace) == "system").then_some(keyspace.start)
        }
        _ => Some(name.start),
    }
}

fn table_name(lexer: &mut Lexer<'_>) -> Option<TableName> {
    let first = name(lexer)?;
    let point = lexer.clone().next_token().ok();
    if !point.is_some_and(|point| is_symbol(&point, ".")) {
        return Some(TableName {
            keyspace: None,
            name: first,
        });
    }
    lexer.next_token().ok()?;
    Some(TableName {
        keyspace: Some(first),
        name: name(lexer)?,
    })
}

fn name(lexer: &mut Lexer<'_>) -> Option<String> {
    let token = lexer.next_token().ok()?;
    matches!(token.kind, TokenKind::Word | TokenKind::QuotedName).then(|| as_seen(&token))
}

/// A name as the database sees it.
fn as_seen(token: &SyntaxToken<'_>) -> String {
    match token.kind {
        TokenKind::QuotedName => unquoted(token),
        _ => token.text.to_ascii_lowercase(),
    }
}

fn is_word(token: &SyntaxToken<'_>, word: &str) -> bool {
    token.kind == TokenKind::Word && token.text.eq_ignore_ascii_case(word)
}

fn is_symbol(token: &SyntaxToken<'_>, symbol: &str) -> bool {
    token.kind == TokenKind::Symbol && token.text == symbol
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(keyspace: Option<&str>, name: &str) -> Option<ChangedData> {
        Some(ChangedData::Rows(table(keyspace, name)))
    }

    fn table(keyspace: Option<&str>, name: &str) -> TableName {
        TableName {
            keyspace: keyspace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    #[test]
    fn the_table_of_a_modification_is_found() {
        for (text, expected) in [
            ("INSERT INTO T (id) VALUES (1)", rows(None, "t")),
            ("insert into k . t(id) values (?)", rows(Some("k"), "t")),
            (
                "-- x\nINSERT/**/INTO \"K\".\"T\" JSON ?",
                rows(Some("K"), "T"),
            ),
            (
                "// x\rINSERT INTO k.t (id) VALUES (1)",
                rows(Some("k"), "t"),
            ),
            ("UPDATE k.t USING TTL 3 SET a = 1", rows(Some("k"), "t")),
            ("DELETE FROM t WHERE id = 1", rows(None, "t")),
            (
                "DELETE a['from'], b FROM k.t WHERE id = 1",
                rows(Some("k"), "t"),
            ),
            ("BEGIN UNLOGGED BATCH INSERT", Some(ChangedData::Batch)),
            ("-- x\rTRUNCATE t", Some(ChangedData::All(table(None, "t")))),
            ("TRUNCATE t", Some(ChangedData::All(table(None, "t")))),
            (
                "TRUNCATE TABLE k.t",
                Some(ChangedData::All(table(Some("k"), "t"))),
            ),
            ("SELECT * FROM t", None),
            ("INSERT", None),
            ("INSERT INTO 'x'", None),
            ("DELETE a", None),
            ("USE k", None),
            ("", None),
            ("\u{e9}", None),
        ] {
            assert_eq!(changed(text), expected, "{text}");
        }
    }

    #[test]
    fn the_tables_of_a_batch_are_found_whatever_its_statements_say() {
        let text = "BEGIN UNLOGGED BATCH USING TIMESTAMP ? \
                    INSERT INTO k.a (id, u) VALUES (1, {street: 'UPDATE x', zip: ?}); \
                    UPDATE b SET u.zip = 7, c = 'DELETE', n = n * 2 WHERE id = 1 IF u.zip = 7 \
                    delete d['from'], \"insert\" FROM k . \"C\" WHERE id = 1; -- UPDATE y\n\
                    APPLY BATCH;";
        let expected = vec![
            table(Some("k"), "a"),
            table(None, "b"),
            table(Some("k"), "C"),
        ];
        assert_eq!(changed_by_batch(text), Some(expected));
        assert_eq!(changed_by_batch("BEGIN BATCH APPLY BATCH"), Some(vec![]));
        for text in [
            "BEGIN BATCH INSERT k.a (id) VALUES (1); APPLY BATCH",
            "BEGIN BATCH UPDATE 'b' SET a = 1 WHERE id = 1; APPLY BATCH",
            "BEGIN BATCH DELETE a WHERE id = 1; APPLY BATCH",
            "BEGIN BATCH 'not closed",
            "INSERT INTO a (id) VALUES (1)",
        ] {
            assert_eq!(changed_by_batch(text), None, "{text}");
        }
    }

    #[test]
    fn calls_are_replaced_wherever_they_stand_but_not_in_texts() {
        let replaced = |text: &str| {
            let mut number = 0;
            replace_calls(text, |name| {
                number += 1;
                (name == "now").then(|| format!("<{number}>"))
            })
        };
        assert_eq!(
            replaced("VALUES (now(), NOW ( ), system.now(), 'now()') -- now()").as_deref(),
            Some("VALUES (<1>, <2>, <3>, 'now()') -- now()")
        );
        assert_eq!(
            replaced("toTimestamp(now())").as_deref(),
            Some("toTimestamp(<1>)")
        );
        for text in ["mine.now()", "now(1)", "uuid()", "'now()'", "()", "now ("] {
            assert_eq!(replaced(text), None, "{text}");
        }
    }
}
