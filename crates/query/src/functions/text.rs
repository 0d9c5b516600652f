//! Terms as CQL text, for the names of result columns and for messages; and the function that makes
//! of a text the query for its words.

use bytes::Bytes;
use cql::ast::Term;
use cql::error::CqlError;
use cql::quote::Identifier;
use value::{Literal, Value};

use crate::statement_clock::StatementClock;

/// The function `bm25_words`: the query of BM25 for the words of a text as they are.
pub(super) fn words_as_they_are(
    arguments: &[&[u8]],
    _: &StatementClock,
) -> Result<Bytes, CqlError> {
    // The value was checked for its type.
    let text = String::from_utf8_lossy(arguments[0]);
    Ok(index::full_text::words_as_they_are(&text).into())
}

/// The text of a term in the form in which Cassandra prints it.
pub fn term_text(term: &Term) -> String {
    match term {
        // A named marker has no name here, as in Cassandra.
        Term::Marker(_) => "?".to_owned(),
        Term::Null => "NULL".to_owned(),
        Term::Literal(literal) => literal_text(literal),
        Term::List(terms) => format!("[{}]", joined(terms)),
        Term::Set(terms) => format!("{{{}}}", joined(terms)),
        Term::Map(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", term_text(key), term_text(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Term::UserType(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}: {}", Identifier(name), term_text(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Term::Tuple(terms) => format!("({})", joined(terms)),
        Term::Function(call) => {
            let keyspace = call.keyspace.as_deref().unwrap_or("system");
            let name = Identifier(&call.name);
            format!("{keyspace}.{name}({})", joined(&call.arguments))
        }
        Term::TypeHint { data_type, term } => format!("({data_type}){}", term_text(term)),
    }
}

/// The text of a term for messages, cut after 60 characters.
pub fn term_excerpt(term: &Term) -> String {
    const MAX_CHARS: usize = 60;
    let text = term_text(term);
    match text.char_indices().nth(MAX_CHARS) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

fn joined(terms: &[Term]) -> String {
    let texts: Vec<String> = terms.iter().map(term_text).collect();
    texts.join(", ")
}

fn literal_text(literal: &Literal) -> String {
    match literal {
        // Quotes within are not doubled, as in Cassandra.
        Literal::String(text) => format!("'{text}'"),
        Literal::Integer(text) | Literal::Float(text) => text.clone(),
        Literal::Boolean(truth) => truth.to_string(),
        Literal::Uuid(uuid) => uuid.to_string(),
        Literal::Blob(bytes) => Value::Blob(bytes.clone()).to_literal(),
        Literal::Duration {
            months,
            days,
            nanoseconds,
        } => Value::Duration {
            months: *months,
            days: *days,
            nanoseconds: *nanoseconds,
        }
        .to_literal(),
    }
}
