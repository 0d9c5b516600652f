//! The rows of `SELECT JSON`, each of which is the text of one object.
//!
//! A row can name a large value many times, so its text is charged before it grows.

use std::fmt::{self, Write};

use bytes::BufMut;
use cql::error::CqlError;
use value::{Value, put_json};

use super::ResultPage;
use crate::select::expression::{EvaluationContext, JsonField};
use crate::statement::answer_memory_error;

impl ResultPage {
    /// Appends the length of an object's text in 4 bytes, big-endian, then the text.
    ///
    /// # Errors
    /// A value that fails, and a text that the page has no room for.
    pub(super) fn put_object(
        &mut self,
        fields: &[JsonField],
        scope: EvaluationContext<'_>,
    ) -> Result<(), CqlError> {
        let begin = self.body.len();
        self.body.put_i32(0);
        let mut text = TextAppender {
            page: self,
            refusal: None,
        };
        let mut bracket = "{";
        for field in fields {
            let value = field.value.evaluate(scope)?;
            let value = value
                .map(|bytes| Value::deserialize(&field.cql_type, &bytes))
                .transpose()
                .map_err(|error| CqlError::invalid(format!("In {}: {error}", field.name)))?;
            let written = write!(text, "{bracket}{}: ", field.name).and_then(|()| match &value {
                Some(value) => put_json(&mut text, &field.cql_type, value),
                None => text.write_str("null"),
            });
            written.map_err(|_| text.refused())?;
            bracket = ", ";
        }
        text.write_str("}").map_err(|_| text.refused())?;
        let length = (self.body.len() - begin - 4) as i32;
        self.body[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

/// The end of a page, which takes a text.
struct TextAppender<'p> {
    page: &'p mut ResultPage,
    /// The error by which a piece was refused.
    refusal: Option<CqlError>,
}

impl TextAppender<'_> {
    /// The error by which a piece was refused.
    fn refused(&mut self) -> CqlError {
        self.refusal
            .take()
            .unwrap_or_else(|| answer_memory_error(self.page.body.len()))
    }
}

impl Write for TextAppender<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        match self.page.charge(piece.len()) {
            Ok(()) => {
                self.page.body.put_slice(piece.as_bytes());
                Ok(())
            }
            Err(error) => {
                self.refusal = Some(error);
                Err(fmt::Error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;
    use client_memory::MemoryBudget;
    use query::statement_clock::StatementClock;
    use value::CqlType;

    use super::*;
    use crate::select::expression::{COMPOSED_BYTES_MAX, Expression, OutputColumns};

    /// Appends a row that names a text of `length` quotes so many times. Returns the outcome, the
    /// rows and the most memory that they were charged for.
    fn row_of(length: usize, times: usize, budget: usize) -> (Result<(), CqlError>, Bytes, usize) {
        let budget = MemoryBudget::new(budget);
        let mut page = ResultPage::new(None, &budget.client().unwrap());
        let field = JsonField {
            name: "\"x\"".to_owned(),
            cql_type: CqlType::Text,
            value: Expression::Term(0),
        };
        let scope = EvaluationContext {
            row: None,
            terms: &[Some(Bytes::from(vec![b'"'; length]))],
            aggregates: &[],
            hits: &[],
            clock: &StatementClock::of_none(),
            composed_bytes: &Cell::new(COMPOSED_BYTES_MAX),
        };
        let outcome = page.push(&OutputColumns::Json(vec![field; times]), scope);
        (outcome, page.body.freeze(), budget.take_peak())
    }

    #[test]
    fn a_row_is_one_object() {
        let (outcome, body, _) = row_of(1, 2, 1 << 20);
        outcome.unwrap();
        let text = r#"{"x": "\"", "x": "\""}"#;
        assert_eq!(&body[..4], (text.len() as i32).to_be_bytes());
        assert_eq!(&body[4..], text.as_bytes());
    }

    #[test]
    fn a_row_is_refused_before_there_is_memory_for_it() {
        let (outcome, body, peak) = row_of(1 << 16, 1000, 4 << 20);
        let error = outcome.unwrap_err();
        assert_eq!(error.kind, cql::error::ErrorKind::Overloaded);
        assert!(
            body.len() <= peak && peak <= 4 << 20,
            "{} of {peak}",
            body.len()
        );
    }

    #[test]
    fn a_row_is_no_larger_than_a_frame() {
        let (outcome, body, _) = row_of(8 << 20, 100, usize::MAX >> 1);
        assert!(outcome.unwrap_err().message.contains("larger than 256 MiB"));
        assert!(body.len() <= 256 << 20, "{}", body.len());
    }
}
