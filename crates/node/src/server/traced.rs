//! Traces of requests, from the server's side: what a trace tells of its request, in the words of
//! Cassandra.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use client_memory::Account;
use cql::wire::{BoundValue, Consistency, Metadata, QueryParameters, Request};
use query::clock::timeuuid;
use storage::Storage;
use storage::clock::{Clock, SystemClock};
use traces::{Begun, Trace};
use value::Value;

use super::masked::masked;

/// The most bind markers whose values a trace tells.
const BOUND_MAX: usize = 64;
/// The most bytes of the text of a value.
const BOUND_BYTES_MAX: usize = 256;
/// The most bytes of a statement's text in a step of a trace.
const STEP_TEXT_BYTES: usize = 256;

/// Begins the trace of a request of the client at an address, which connected to `server`.
pub(super) fn begin(
    storage: &Storage,
    (client, server): (SocketAddr, SocketAddr),
    request: &Request,
    memory: &Account,
) -> Option<Trace> {
    let (name, parameters) = match request {
        Request::Query {
            statement,
            parameters,
        } => {
            let mut told = told(parameters);
            told.insert("query".to_owned(), masked(statement).into_owned());
            ("Execute CQL3 query", told)
        }
        Request::Prepare { statement, .. } => {
            let query = masked(statement).into_owned();
            let told = BTreeMap::from([("query".to_owned(), query)]);
            ("Preparing CQL3 query", told)
        }
        Request::Execute { parameters, .. } => ("Execute CQL3 prepared query", told(parameters)),
        Request::Batch(batch) => {
            let told = levels(batch.consistency, batch.serial_consistency);
            ("Execute batch of CQL3 queries", told)
        }
        Request::Startup(_)
        | Request::Options
        | Request::Register { .. }
        | Request::AuthResponse { .. } => return None,
    };
    let begun = Begun {
        id: timeuuid(storage.clock()),
        request: name,
        parameters,
        client: client.ip(),
        coordinator: server,
        started_at_micros: SystemClock.now_micros(),
    };
    Some(Trace::begin(begun, memory))
}

/// Notes that a statement's text is parsed from now on.
pub(super) fn note_parsing(text: &str) {
    traces::note(|| {
        let text = masked(text);
        let end = text.floor_char_boundary(STEP_TEXT_BYTES.min(text.len()));
        let more = if end < text.len() { "..." } else { "" };
        format!("Parsing {}{more}", &text[..end])
    });
}

/// Tells the text of a prepared statement, and the values of its bind markers, the `variables`.
pub(super) fn tell_prepared(text: &str, variables: &Metadata, values: &[BoundValue]) {
    traces::tell(|| {
        let mut told = vec![("query".to_owned(), masked(text).into_owned())];
        let bound = variables.columns.iter().zip(values).take(BOUND_MAX);
        told.extend(bound.enumerate().map(|(at, (column, value))| {
            let name = format!("bound_var_{at}_{}", column.name);
            let value = match value {
                BoundValue::Null => "null".to_owned(),
                BoundValue::Unset => "unset".to_owned(),
                BoundValue::Value(bytes) => Value::deserialize(&column.cql_type, bytes)
                    .map_or_else(|error| error.to_string(), |value| value.to_literal()),
            };
            (name, shortened(value))
        }));
        told
    });
}

fn shortened(mut text: String) -> String {
    if text.len() > BOUND_BYTES_MAX {
        text.truncate(text.floor_char_boundary(BOUND_BYTES_MAX));
        text.push_str("...");
    }
    text
}

fn told(parameters: &QueryParameters) -> BTreeMap<String, String> {
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
