//! Rows as JSON, in the form of `SELECT JSON`. The text is charged to the client while it grows.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use client_memory::MemoryCharge;
use cql::error::CqlError;
use cql::wire::ColumnSpec;
use value::{Value, json_string, put_json};

use super::call::TableCall;
use super::failure::HttpFailure;
use crate::select::json_name;
use crate::statement::answer_memory_error;

/// A JSON text that grows within the memory of its client.
pub(super) struct JsonWriter {
    text: String,
    charge: MemoryCharge,
}

impl JsonWriter {
    /// An empty text of a request.
    pub fn new(call: &TableCall) -> JsonWriter {
        JsonWriter {
            text: String::new(),
            charge: call.session.memory().charge(),
        }
    }

    /// Appends a text that is JSON, or a part of it.
    pub fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a text that is JSON, if there is memory for it.
    ///
    /// # Errors
    /// If there is none.
    pub fn put_charged(&mut self, text: &str) -> Result<(), HttpFailure> {
        let bytes = self.text.len() + text.len();
        let charged = self.charge.resize(bytes);
        charged.map_err(|_| HttpFailure::from(answer_memory_error(bytes)))?;
        self.text.push_str(text);
        Ok(())
    }

    /// Appends a text as a JSON string.
    pub fn put_string(&mut self, text: &str) {
        self.text.push_str(&json_string(text));
    }

    /// Appends a value of a column; `None` is null.
    ///
    /// # Errors
    /// If the bytes are no value of the type, or there is no memory for its text.
    pub fn put_value(
        &mut self,
        column: &ColumnSpec,
        value: Option<&Bytes>,
    ) -> Result<(), HttpFailure> {
        match value {
            None => self.text.push_str("null"),
            Some(bytes) => {
                let value = Value::deserialize(&column.cql_type, bytes);
                let value = value.map_err(|error| HttpFailure::of_value(&column.name, &error))?;
                // A text takes any piece.
                let _ = put_json(&mut self.text, &column.cql_type, &value);
            }
        }
        let bytes = self.text.len();
        let charged = self.charge.resize(bytes);
        charged.map_err(|_| HttpFailure::from(answer_memory_error(bytes)))
    }

    /// Appends a row as an object of the columns at these positions.
    ///
    /// # Errors
    /// As [`JsonWriter::put_value`].
    pub fn put_row(
        &mut self,
        columns: &[ColumnSpec],
        row: &[Option<Bytes>],
        positions: impl Iterator<Item = usize>,
    ) -> Result<(), HttpFailure> {
        let mut separator = "{";
        for at in positions {
            let (Some(column), Some(value)) = (columns.get(at), row.get(at)) else {
                return Err(CqlError::server("bug: a row has too few columns").into());
            };
            self.text.push_str(separator);
            self.text.push_str(&json_name(&column.name));
            self.text.push(':');
            self.put_value(column, value.as_ref())?;
            separator = ",";
        }
        self.text
            .push_str(if separator == "{" { "{}" } else { "}" });
        Ok(())
    }

    /// Appends all columns of rows as an array of objects.
    ///
    /// # Errors
    /// As [`JsonWriter::put_value`].
    pub fn put_rows(
        &mut self,
        columns: &[ColumnSpec],
        rows: &[Vec<Option<Bytes>>],
    ) -> Result<(), HttpFailure> {
        self.text.push('[');
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            self.put_row(columns, row, 0..columns.len())?;
        }
        self.text.push(']');
        Ok(())
    }

    /// Appends a number; one that is not finite is null.
    pub fn put_number(&mut self, number: f64) {
        // A String takes any piece.
        let _ = match number.is_finite() {
            true => write!(self.text, "{number}"),
            false => write!(self.text, "null"),
        };
    }

    /// Appends the fields that any answer may have, with a comma before each: the state with which
    /// a page ended, and warnings.
    pub fn put_rest(&mut self, paging_state: Option<&Bytes>, warnings: &[String]) {
        if let Some(state) = paging_state {
            self.text.push_str(",\"page_state\":");
            self.put_string(&page_text(state));
        }
        if !warnings.is_empty() {
            self.text.push_str(",\"warnings\":[");
            for (at, warning) in warnings.iter().enumerate() {
                if at > 0 {
                    self.text.push(',');
                }
                self.put_string(warning);
            }
            self.text.push(']');
        }
    }

    /// The text.
    pub fn finish(self) -> String {
        self.text
    }
}

/// The text of a paging state.
pub(super) fn page_text(state: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(state)
}

/// The paging state that a text is.
///
/// # Errors
/// If it is none.
pub(super) fn page_state(text: &str) -> Result<Bytes, HttpFailure> {
    let state = URL_SAFE_NO_PAD.decode(text).map(Bytes::from);
    state.map_err(|_| {
        HttpFailure::bad_request(
            "page_state is not one of an answer",
            "send the page_state of the page before as it came, with the same request",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paging_state_survives_its_text() {
        let state: Vec<u8> = (0..=255).collect();
        let text = page_text(&state);
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
        assert_eq!(page_state(&text), Ok(Bytes::from(state)));
        assert!(page_state("no state!").is_err());
    }
}
