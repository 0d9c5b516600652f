//! Rows as JSON, up to the bounds of an answer.

use serde_json::Value;

use super::failure::CallFailure;

/// How much an answer may have: a model reads all of it.
#[derive(Clone, Copy, Debug)]
pub struct AnswerBounds {
    /// The most rows.
    pub rows: usize,
    /// The most bytes.
    pub bytes: usize,
}

/// Room for the words around the rows.
const FRAME: usize = 400;

/// An answer that grows row by row: `{"rows": [...]}`, with `"more": true` if it is not all.
///
/// Rows are text from the start, so that their columns have the order of the statement, and their
/// bytes are counted where they are made.
#[derive(Debug)]
pub struct BoundedAnswer {
    field: &'static str,
    bounds: AnswerBounds,
    rows: usize,
    text: String,
}

impl BoundedAnswer {
    /// An empty answer, whose rows are in the field of that name.
    pub fn new(field: &'static str, bounds: AnswerBounds) -> BoundedAnswer {
        BoundedAnswer {
            field,
            bounds,
            rows: 0,
            text: String::new(),
        }
    }

    /// Adds a row, if there is room for it.
    ///
    /// # Errors
    /// If not even one row has room.
    pub fn add(&mut self, row: &str) -> Result<bool, CallFailure> {
        let bytes = self.text.len() + row.len() + FRAME;
        if bytes > self.bounds.bytes && self.rows == 0 {
            return Err(CallFailure::new(
                format!(
                    "one row takes {} bytes, more than the {} of an answer",
                    row.len(),
                    self.bounds.bytes
                ),
                "name the columns that you need, without vectors and long texts (`annulus mcp --max-bytes` raises the \
                 bound)",
            ));
        }
        if bytes > self.bounds.bytes || self.rows == self.bounds.rows {
            return Ok(false);
        }
        if self.rows > 0 {
            self.text.push(',');
        }
        self.text.push_str(row);
        self.rows += 1;
        Ok(true)
    }

    /// The whole answer. `is_complete` says that no row was left out.
    pub fn text(self, is_complete: bool) -> String {
        let Self { field, text, .. } = self;
        let more = match is_complete {
            true => String::new(),
            false => format!(
                ",\"more\":true,\"hint\":\"the first {} are here, as an answer has up to {} of them and {} bytes: \
                 restrict the rows, or name fewer columns\"",
                self.rows, self.bounds.rows, self.bounds.bytes
            ),
        };
        format!("{{\"{field}\":[{text}]{more}}}")
    }
}

/// A row as a JSON object with its columns in their order. The values are JSON already.
pub fn object<'a>(columns: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let columns = columns.into_iter();
    let fields = columns.map(|(name, value)| format!("{}:{value}", Value::from(name)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SMALL: AnswerBounds = AnswerBounds {
        rows: 2,
        bytes: FRAME + 20,
    };

    #[test]
    fn columns_stay_in_the_order_of_the_statement() {
        let row = object([("b", "1".to_owned()), ("a\"", "[1.5, null]".to_owned())]);
        assert_eq!(row, r#"{"b":1,"a\"":[1.5, null]}"#);
    }

    #[test]
    fn an_answer_ends_at_its_rows_and_says_so() {
        let mut answer = BoundedAnswer::new("rows", SMALL);
        let added = ["{}", "{}", "{}"].map(|row| answer.add(row).unwrap());
        assert_eq!(added, [true, true, false]);
        let answer: Value = serde_json::from_str(&answer.text(false)).unwrap();
        assert_eq!(answer["rows"], json!([{}, {}]));
        assert_eq!(answer["more"], true);
    }

    #[test]
    fn an_answer_ends_at_its_bytes_and_a_huge_first_row_is_refused() {
        let mut answer = BoundedAnswer::new("rows", SMALL);
        assert!(answer.add(r#"{"a":"0123456"}"#).unwrap());
        assert!(!answer.add(r#"{"a":"0123456"}"#).unwrap());
        assert!(answer.text(false).len() <= SMALL.bytes);
        let mut answer = BoundedAnswer::new("rows", SMALL);
        let failure = answer.add(&"x".repeat(21)).unwrap_err();
        assert!(failure.hint.contains("columns"), "{failure:?}");
    }

    #[test]
    fn an_answer_with_all_rows_has_nothing_else() {
        let mut answer = BoundedAnswer::new("tables", SMALL);
        answer.add("{}").unwrap();
        assert_eq!(answer.text(true), r#"{"tables":[{}]}"#);
    }
}
