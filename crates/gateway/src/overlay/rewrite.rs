//! Changes statements of an index service and of the CDC library, which are meant for ScyllaDB, so
//! that Cassandra understands them.
//!
//! - `system.group0_history`, `system_distributed.cdc_generation_timestamps` and
//!   `cdc_streams_descriptions_v2` become tables of the same names in the keyspace of the
//!   definitions.
//! - `BYPASS CACHE` is left out, as Cassandra does not know this hint.
//!
//! Texts are changed word by word: quoted text and comments stay as they are.

use crate::recognise::contains_in_any_case;

/// The keyspaces and names of ScyllaDB's tables that have a table in their place.
const TABLES: [(&str, &str); 3] = [
    ("system", "group0_history"),
    ("system_distributed", "cdc_generation_timestamps"),
    ("system_distributed", "cdc_streams_descriptions_v2"),
];

/// Whether a SELECT reads which generations of streams there are. Its answer stays the same for a
/// long time.
pub(crate) fn reads_generations(text: &str) -> bool {
    contains_in_any_case(text.as_bytes(), TABLES[1].1.as_bytes())
}

/// Changes a SELECT so that Cassandra understands it; `None` if no change is needed. `keyspace` is
/// that of the definitions.
pub(crate) fn select(text: &str, keyspace: &str) -> Option<String> {
    let holds = |word: &str| contains_in_any_case(text.as_bytes(), word.as_bytes());
    if !holds("bypass") && !TABLES.iter().any(|(_, table)| holds(table)) {
        return None;
    }
    let words: Vec<WordSpan> = WordIterator { text, at: 0 }.collect();
    let mut out = String::with_capacity(text.len() + keyspace.len());
    let mut copied = 0;
    let mut at = 0;
    while at < words.len() {
        let is = |offset: usize, name: &str| {
            words
                .get(at + offset)
                .is_some_and(|word| word.is(name, text))
        };
        let table = TABLES
            .iter()
            .find(|(system, table)| is(0, system) && is(1, ".") && is(2, table));
        if table.is_some() {
            out.push_str(&text[copied..words[at].start]);
            out.push('"');
            out.push_str(&keyspace.replace('"', "\"\""));
            out.push('"');
            copied = words[at].end;
            at += 3;
        } else if is(0, "bypass") && is(1, "cache") && is_end(words.get(at + 2), text) {
            out.push_str(&text[copied..words[at].start]);
            copied = words[at + 1].end;
            at += 2;
        } else {
            at += 1;
        }
    }
    (copied > 0).then(|| {
        out.push_str(&text[copied..]);
        out
    })
}

/// Whether the statement ends here. Only at the end are the words `BYPASS CACHE` a hint; elsewhere
/// they may be names.
fn is_end(word: Option<&WordSpan>, text: &str) -> bool {
    word.is_none_or(|word| word.is(";", text))
}

/// The position of a word, a sign or a quoted string in a text.
struct WordSpan {
    start: usize,
    end: usize,
}

impl WordSpan {
    /// Whether this is the given name or sign, in any case or in double quotes.
    fn is(&self, name: &str, text: &str) -> bool {
        let word = &text[self.start..self.end];
        match word.strip_prefix('"') {
            Some(quoted) => quoted.strip_suffix('"') == Some(name),
            None => word.eq_ignore_ascii_case(name),
        }
    }
}

/// An iterator over the words of a text, without blanks and comments.
struct WordIterator<'t> {
    text: &'t str,
    at: usize,
}

impl WordIterator<'_> {
    /// The end of a quoted string or comment that begins at `start` with `begin` bytes and ends
    /// with `end`. It is the end of the text if `end` does not follow.
    fn end_of(&self, start: usize, begin: usize, end: &str) -> usize {
        self.text[start + begin..]
            .find(end)
            .map_or(self.text.len(), |at| start + begin + at + end.len())
    }
}

impl Iterator for WordIterator<'_> {
    type Item = WordSpan;

    fn next(&mut self) -> Option<WordSpan> {
        loop {
            let rest = &self.text[self.at..];
            let start = self.at + (rest.len() - rest.trim_start().len());
            let rest = &self.text[start..];
            let first = rest.chars().next()?;
            let comment_end = match rest {
                _ if rest.starts_with("--") || rest.starts_with("//") => Some("\n"),
                _ if rest.starts_with("/*") => Some("*/"),
                _ => None,
            };
            if let Some(comment_end) = comment_end {
                self.at = self.end_of(start, 2, comment_end);
                continue;
            }
            let end = match first {
                // A doubled quote is read as two strings in a row, which has the same effect here.
                '"' => self.end_of(start, 1, "\""),
                '\'' => self.end_of(start, 1, "'"),
                '$' if rest.starts_with("$$") => self.end_of(start, 2, "$$"),
                first if is_name(first) => start + rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
                sign => start + sign.len_utf8(),
            };
            self.at = end;
            return Some(WordSpan { start, end });
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scyllas_tables_become_those_that_stand_in_for_them() {
        for (text, told) in [
            (
                "SELECT state_id FROM system.group0_history WHERE key = 'history'",
                "SELECT state_id FROM \"k\".group0_history WHERE key = 'history'",
            ),
            (
                "\n SELECT time\n FROM System_Distributed . cdc_generation_timestamps -- all\n;",
                "\n SELECT time\n FROM \"k\" . cdc_generation_timestamps -- all\n;",
            ),
            (
                "SELECT streams FROM \"system_distributed\".\"cdc_streams_descriptions_v2\"",
                "SELECT streams FROM \"k\".\"cdc_streams_descriptions_v2\"",
            ),
        ] {
            assert_eq!(select(text, "k").as_deref(), Some(told));
        }
    }

    #[test]
    fn a_hint_at_the_end_is_left_out() {
        for (text, told) in [
            ("SELECT * FROM t  BYPASS CACHE", "SELECT * FROM t  "),
            (
                "SELECT * FROM t bypass /* no */ cache ;",
                "SELECT * FROM t  ;",
            ),
            (
                "SELECT \"bypass cache\" FROM t WHERE a = 'BYPASS CACHE' BYPASS CACHE",
                "SELECT \"bypass cache\" FROM t WHERE a = 'BYPASS CACHE' ",
            ),
        ] {
            assert_eq!(select(text, "k").as_deref(), Some(told));
        }
    }

    #[test]
    fn others_stay_as_they_are() {
        for text in [
            "SELECT * FROM t",
            "SELECT bypass FROM t",
            "SELECT bypass, cache FROM t",
            "SELECT a FROM t WHERE b = 'system.group0_history BYPASS CACHE'",
            "SELECT a FROM t -- BYPASS CACHE",
            "SELECT a FROM shop.group0_history",
            "SELECT a FROM t WHERE b = $$ system.group0_history $$",
            "SELECT 'bypass cache",
            "SELECT /* bypass cache",
        ] {
            assert_eq!(select(text, "k"), None, "{text}");
        }
    }
}
