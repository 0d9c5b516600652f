//! Traces of requests, from the server's side: what a trace records of its request, in the words of
//! Cassandra.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use client_memory::MemoryAccount;
use cql::ast::Statement;
use cql::wire::{BoundValue, ColumnsMetadata, Consistency, QueryParameters, Request};
use query::statement_clock::timeuuid;
use storage::Storage;
use storage::clock::{Clock, SystemClock};
use traces::{RequestDescription, RequestId, Trace};
use value::{CqlType, Value};

use super::redaction::redacted;

/// The most bind markers whose values a trace records.
const BOUND_MAX: usize = 64;
/// The most bytes of the text of a value.
const BOUND_BYTES_MAX: usize = 256;
/// The most bytes of a value that a trace records. Of a longer one it records the length, as it
/// would take long to read a value of many megabytes for the beginning of its text.
const VALUE_BYTES_MAX: usize = 4 << 10;
/// The most bytes of a statement's text.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// The most bytes of a statement's text in a step of a trace.
const STEP_TEXT_BYTES: usize = 256;

/// Begins the trace of a request of the client at an address, which connected to `server`. The text
/// of its statement is recorded once it is parsed ([`record_statement`]).
pub(super) fn begin(
    storage: &Storage,
    (client, server): (SocketAddr, SocketAddr),
    request: &Request,
    memory: &MemoryAccount,
) -> Option<Trace> {
    let (name, mut parameters) = match request {
        Request::Query { parameters, .. } => ("Execute CQL3 query", parameter_map(parameters)),
        Request::Prepare { .. } => ("Preparing CQL3 query", BTreeMap::new()),
        Request::Execute { parameters, .. } => {
            ("Execute CQL3 prepared query", parameter_map(parameters))
        }
        Request::Batch(batch) => {
            let told = levels(batch.consistency, batch.serial_consistency);
            ("Execute batch of CQL3 queries", told)
        }
        Request::Startup(_)
        | Request::Options
        | Request::Register { .. }
        | Request::AuthResponse { .. } => return None,
    };
    if let Some(id) = RequestId::current() {
        parameters.insert("request_id".to_owned(), id.to_string());
    }
    let begun = RequestDescription {
        id: timeuuid(storage.clock()),
        request: name,
        parameters,
        client: client.ip(),
        coordinator: server,
        started_at_micros: SystemClock.now_micros(),
    };
    Some(Trace::begin(begun, memory))
}

/// Notes that a text was parsed as this statement; `None` if it is none.
pub(super) fn note_parsing(text: &str, statement: Option<&Statement>) {
    traces::note(|| format!("Parsing {}", shown(text, STEP_TEXT_BYTES, statement)));
}

/// Records the text of the request's only statement, as [`note_parsing`].
pub(super) fn record_statement(text: &str, statement: Option<&Statement>) {
    traces::tell(|| vec![("query".to_owned(), shown(text, TEXT_BYTES_MAX, statement))]);
}

/// Records the text of a prepared statement, and the values of its bind markers, the `variables`.
pub(super) fn record_prepared(
    (text, statement): (&str, &Statement),
    variables: &ColumnsMetadata,
    values: &[BoundValue],
) {
    traces::tell(|| {
        let text = shown(text, TEXT_BYTES_MAX, Some(statement));
        let mut told = vec![("query".to_owned(), text)];
        let bound = variables.columns.iter().zip(values).take(BOUND_MAX);
        told.extend(bound.enumerate().map(|(at, (column, value))| {
            let name = format!("bound_var_{at}_{}", column.name);
            (name, text_of(&column.cql_type, value))
        }));
        told
    });
}

/// The text of a bind marker's value, or its beginning.
fn text_of(cql_type: &CqlType, value: &BoundValue) -> String {
    shortened(match value {
        BoundValue::Null => "null".to_owned(),
        BoundValue::Unset => "unset".to_owned(),
        BoundValue::Value(bytes) if bytes.len() > VALUE_BYTES_MAX => {
            format!("({} bytes)", bytes.len())
        }
        BoundValue::Value(bytes) => Value::deserialize(cql_type, bytes)
            .map_or_else(|error| error.to_string(), |value| value.to_literal()),
    })
}

/// The beginning of a statement's text, without its secrets. Only the beginning is copied.
fn shown(text: &str, bytes_max: usize, statement: Option<&Statement>) -> String {
    let mut shown = redacted(text, bytes_max, statement).into_owned();
    if text.len() > bytes_max {
        shown.push_str("...");
    }
    shown
}

fn shortened(mut text: String) -> String {
    if text.len() > BOUND_BYTES_MAX {
        text.truncate(text.floor_char_boundary(BOUND_BYTES_MAX));
        text.push_str("...");
    }
    text
}

fn parameter_map(parameters: &QueryParameters) -> BTreeMap<String, String> {
    let mut told = levels(parameters.consistency, parameters.serial_consistency);
    if let Some(rows) = parameters.page_size {
        told.insert("page_size".to_owned(), rows.to_string());
    }
    told
}

fn levels(consistency: Consistency, serial: Option<Consistency>) -> BTreeMap<String, String> {
    let serial = serial.unwrap_or(Consistency::Serial);
    [
        ("consistency_level", consistency),
        ("serial_consistency_level", serial),
    ]
    .into_iter()
    .map(|(name, level)| (name.to_owned(), level.to_string()))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_its_secret_stays_hidden() {
        assert_eq!(shown("SELECT 1", 8, None), "SELECT 1");
        assert_eq!(shown("SELECT é", 8, None), "SELECT ...");
        let parsed = |text: &str| cql::parser::parse_statement(text).unwrap().statement;
        let long = format!("SELECT a FROM t WHERE a = '{}'", "x".repeat(1 << 20));
        let cut = shown(&long, TEXT_BYTES_MAX, Some(&parsed(&long)));
        assert_eq!(cut.len(), TEXT_BYTES_MAX + 3);
        assert!(cut.capacity() <= 2 * TEXT_BYTES_MAX, "the rest is copied");
        let role = "CREATE ROLE r WITH PASSWORD = 'secret'";
        let statement = parsed(role);
        for bytes_max in 0..=role.len() {
            let cut = shown(role, bytes_max, Some(&statement));
            assert!(!cut.contains('\''), "{cut}");
        }
        let comment = format!("/* PASSWORD = 'old' {} */ {role}", "x".repeat(100));
        let cut = shown(&comment, 50, Some(&parsed(&comment)));
        assert_eq!(cut, format!("{}...", &comment[..50]));
    }

    #[test]
    fn long_values_are_told_by_their_lengths() {
        let cql_type = CqlType::Blob;
        let short = vec![7; VALUE_BYTES_MAX];
        assert!(text_of(&cql_type, &BoundValue::Value(short.into())).starts_with("0x0707"));
        let long = vec![7; VALUE_BYTES_MAX + 1];
        let told = text_of(&cql_type, &BoundValue::Value(long.into()));
        assert_eq!(told, "(4097 bytes)");
        assert_eq!(text_of(&cql_type, &BoundValue::Null), "null");
    }
}
