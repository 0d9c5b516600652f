//! The name of a table as a user types it: `ks.table`, with double quotes where CQL needs them.

use std::fmt;
use std::str::FromStr;

use value::identifier::Identifier;

/// A table and its keyspace, as the server has their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QualifiedTable {
    /// The name of the keyspace.
    pub keyspace: String,
    /// The name of the table.
    pub table: String,
}

impl fmt::Display for QualifiedTable {
    /// Writes the name as CQL text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keyspace, table) = (Identifier(&self.keyspace), Identifier(&self.table));
        write!(f, "{keyspace}.{table}")
    }
}

impl FromStr for QualifiedTable {
    type Err = String;

    fn from_str(text: &str) -> Result<QualifiedTable, String> {
        let wrong = || format!("{text:?} names no table: write keyspace.table");
        let names = names(text, '.').ok_or_else(wrong)?;
        match <[String; 2]>::try_from(names) {
            Ok([keyspace, table]) => Ok(QualifiedTable { keyspace, table }),
            Err(_) => Err(wrong()),
        }
    }
}

/// The names in a list such as `a, "B"`: in lower case unless they are quoted, as in CQL. `None` if
/// a quote is not closed or a name is empty.
pub fn names(text: &str, separator: char) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    loop {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_name(quoted)?,
            None => {
                let end = rest.find(separator).unwrap_or(rest.len());
                (rest[..end].trim().to_lowercase(), &rest[end..])
            }
        };
        if name.is_empty() {
            return None;
        }
        names.push(name);
        let after = after.trim_start();
        if after.is_empty() {
            return Some(names);
        }
        rest = after.strip_prefix(separator)?.trim_start();
    }
}

/// The name up to its closing quote, and what follows. Two quotes mean one.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != '"' {
            name.push(letter);
        } else if letters.next_if(|(_, next)| *next == '"').is_some() {
            name.push('"');
        } else {
            return Some((name, &text[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_cql_reads_them() {
        let read = |text: &str| text.parse::<QualifiedTable>().map(|name| name.to_string());
        assert_eq!(read("Shop.Docs"), Ok("shop.docs".to_owned()));
        assert_eq!(
            read("\"Shop\".\"a.\"\"b\""),
            Ok("\"Shop\".\"a.\"\"b\"".to_owned())
        );
        for text in [
            "",
            "docs",
            "shop.",
            ".docs",
            "a.b.c",
            "\"shop.docs",
            "\"shop\"x.docs",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let listed = names("id, \"Part No\",b", ',');
        let expected = ["id", "Part No", "b"].map(str::to_owned);
        assert_eq!(listed, Some(expected.to_vec()));
    }
}
