//! The way from a statement's text to what it says: charged, off the reactor where it is long, and
//! noted in the request's trace.

use client_memory::{MemoryAccount, MemoryCharge};
use cql::ast::{ParsedStatement, Statement};
use cql::error::{CqlError, ErrorKind};

use super::traced;
use super::weight;

/// Texts with more bytes than this are parsed on a thread for blocking work, where they do not hold
/// up connections.
const LARGE_TEXT_BYTES: usize = 128 << 10;

/// Texts up to this many bytes are parsed without a charge. What a request is charged anyway covers
/// them, about.
const UNCHARGED_TEXT_BYTES: usize = 1 << 10;

/// A text, and the statement that it is.
pub(super) struct ParsedText {
    pub text: String,
    pub parsed: Result<ParsedStatement, CqlError>,
}

impl ParsedText {
    /// The statement; `None` if the text can't be read.
    pub fn statement(&self) -> Option<&Statement> {
        let parsed = self.parsed.as_ref().ok();
        parsed.map(|parsed| &parsed.statement)
    }
}

/// Charges the memory that a text takes while it is parsed and planned. The caller keeps the charge
/// for that time.
pub(super) fn charge_text(text: &str, memory: &MemoryAccount) -> Result<MemoryCharge, CqlError> {
    let mut charge = memory.charge();
    if text.len() > UNCHARGED_TEXT_BYTES && charge.resize(weight::while_parsed(text)).is_err() {
        return Err(CqlError::new(
            ErrorKind::Overloaded,
            "Overloaded: there is no memory to parse this statement; send its values apart from its text, or split it",
        ));
    }
    Ok(charge)
}

/// Reads a statement. The trace gets the text only afterwards, as only the parsed statement shows
/// which part of it is a secret.
pub(super) async fn parse(text: String) -> ParsedText {
    let read = read(text).await;
    traced::note_parsing(&read.text, read.statement());
    read
}

async fn read(text: String) -> ParsedText {
    let read = |text: String| ParsedText {
        parsed: cql::parser::parse_statement(&text),
        text,
    };
    if text.len() <= LARGE_TEXT_BYTES {
        return read(text);
    }
    let reading = tokio::task::spawn_blocking(move || read(text));
    reading.await.unwrap_or_else(|error| ParsedText {
        text: String::new(),
        parsed: Err(CqlError::server(format!("the parser failed: {error}"))),
    })
}
