//! The text of terms, for messages.

use std::fmt::Write;

use cql::ast::Term;
use cql::quote::Identifier;
use value::{Literal, Value};

/// The most characters of a text. Longer texts are cut, so that a message stays readable.
const MAX_CHARS: usize = 60;

/// The text of a term, about as the user wrote it, cut if it is long.
pub fn term_text(term: &Term) -> String {
    let mut out = String::new();
    put(&mut out, term);
    excerpt(&out)
}

/// The text of a literal, about as the user wrote it, cut if it is long. A string has no quotes, as
/// in Cassandra's errors.
pub(super) fn literal_text(literal: &Literal) -> String {
    let mut out = String::new();
    match literal {
        Literal::String(text) => out.push_str(text),
        other => put_literal(&mut out, other),
    }
    excerpt(&out)
}

/// The kind of a literal, by Cassandra's name.
pub(super) fn literal_kind(literal: &Literal) -> &'static str {
    match literal {
        Literal::String(_) => "STRING",
        Literal::Integer(_) => "INTEGER",
        Literal::Float(_) => "FLOAT",
        Literal::Boolean(_) => "BOOLEAN",
        Literal::Uuid(_) => "UUID",
        Literal::Blob(_) => "HEX",
        Literal::Duration { .. } => "DURATION",
    }
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

fn put(out: &mut String, term: &Term) {
    // Further text is cut off anyway.
    if out.len() > MAX_CHARS * 4 {
        return;
    }
    match term {
        Term::Marker(marker) => match &marker.name {
            Some(name) => {
                out.push(':');
                out.push_str(name);
            }
            None => out.push('?'),
        },
        Term::Null => out.push_str("null"),
        Term::Literal(literal) => put_literal(out, literal),
        Term::List(elements) => put_all(out, '[', elements, ']'),
        Term::Set(elements) => put_all(out, '{', elements, '}'),
        Term::Tuple(elements) => put_all(out, '(', elements, ')'),
        Term::Map(entries) => {
            out.push('{');
            for (position, (key, value)) in entries.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                put(out, key);
                out.push_str(": ");
                put(out, value);
            }
            out.push('}');
        }
        Term::UserType(fields) => {
            out.push('{');
            for (position, (name, value)) in fields.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                let _ = write!(out, "{}: ", Identifier(name));
                put(out, value);
            }
            out.push('}');
        }
        Term::Function(call) => {
            out.push_str(&call.name);
            put_all(out, '(', &call.arguments, ')');
        }
        Term::TypeHint { data_type, term } => {
            let _ = write!(out, "({data_type})");
            put(out, term);
        }
    }
}

fn put_all(out: &mut String, open: char, terms: &[Term], close: char) {
    out.push(open);
    for (position, term) in terms.iter().enumerate() {
        if position > 0 {
            out.push_str(", ");
        }
        put(out, term);
    }
    out.push(close);
}

fn put_literal(out: &mut String, literal: &Literal) {
    match literal {
        Literal::String(text) => {
            out.push('\'');
            out.push_str(text);
            out.push('\'');
        }
        Literal::Integer(text) | Literal::Float(text) => out.push_str(text),
        Literal::Boolean(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Literal::Uuid(uuid) => {
            let _ = write!(out, "{uuid}");
        }
        Literal::Blob(bytes) => {
            let shown = bytes.slice(..bytes.len().min(MAX_CHARS));
            out.push_str(&Value::Blob(shown).to_literal());
        }
        Literal::Duration {
            months,
            days,
            nanoseconds,
        } => out.push_str(
            &Value::Duration {
                months: *months,
                days: *days,
                nanoseconds: *nanoseconds,
            }
            .to_literal(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_terms_are_cut() {
        let long = Term::List(vec![
            Term::Literal(Literal::Integer("7".repeat(1000)));
            1000
        ]);
        assert!(term_text(&long).len() <= MAX_CHARS + 3);
        let short = Term::Map(vec![(
            Term::Literal(Literal::String("a".to_owned())),
            Term::Null,
        )]);
        assert_eq!(term_text(&short), "{'a': null}");
    }
}
