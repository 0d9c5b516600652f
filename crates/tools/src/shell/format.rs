//! Cells and rows as text: for people, as JSON and as CSV.

use std::fmt::Write as _;

use value::{CqlType, Value, json_string, put_json};

use super::rows::{AnswerCell, AnswerPage, AnswerValue, ShellColumn};

/// The form of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    /// For people: a table, or a line for each cell if `is_expanded`.
    Table {
        /// Whether each cell has its line.
        is_expanded: bool,
    },
    /// An object a line.
    Json,
    /// With a line of names.
    Csv,
}

/// Numbers of a vector that a table shows of a longer one.
const VECTOR_SHOWN: usize = 3;

/// A vector of so many numbers is shown whole.
const VECTOR_WHOLE: usize = 6;

/// A cell as people read it. Characters that would move the cursor are written as escapes, so no
/// row can take a terminal over.
pub(super) fn cell_text(cell: &AnswerCell) -> String {
    match cell {
        None => "null".to_owned(),
        Some(AnswerValue::Known(Value::FloatVector(numbers))) if numbers.len() > VECTOR_WHOLE => {
            let mut text = "[".to_owned();
            for number in &numbers[..VECTOR_SHOWN] {
                // A string takes all.
                let _ = write!(text, "{number:?}, ");
            }
            let _ = write!(text, "\u{2026} {} numbers]", numbers.len());
            text
        }
        Some(value) => visible(&plain_text(value)),
    }
}

/// Whether a column's cells are aligned at the right: those of numbers.
pub(super) fn is_number(column: &ShellColumn) -> bool {
    matches!(
        column.cql_type,
        Ok(CqlType::Bigint
            | CqlType::Counter
            | CqlType::Decimal
            | CqlType::Double
            | CqlType::Float
            | CqlType::Int
            | CqlType::Smallint
            | CqlType::Tinyint
            | CqlType::Varint)
    )
}

/// A value without the quotes that it has in a statement.
fn plain_text(value: &AnswerValue) -> String {
    match value {
        AnswerValue::Known(Value::Ascii(text) | Value::Text(text)) => text.clone(),
        AnswerValue::Known(
            value @ (Value::Timestamp(_)
            | Value::Date(_)
            | Value::Time(_)
            | Value::Inet(_)
            | Value::Empty),
        ) => value.to_literal().trim_matches('\'').to_owned(),
        AnswerValue::Known(value) => value.to_literal(),
        AnswerValue::Unknown(bytes) => blob_text(bytes),
    }
}

fn blob_text(bytes: &[u8]) -> String {
    let mut text = "0x".to_owned();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A text with its control characters as escapes.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() || is_direction(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Whether a character changes the direction of those that follow.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Rows as JSON, an object a line.
pub(super) fn json_lines(page: &AnswerPage) -> String {
    let mut text = String::new();
    for row in &page.rows {
        text.push('{');
        for (position, (column, cell)) in page.columns.iter().zip(row).enumerate() {
            if position > 0 {
                text.push_str(", ");
            }
            text.push_str(&json_string(&column.name));
            text.push_str(": ");
            put_cell(&mut text, column, cell);
        }
        text.push_str("}\n");
    }
    text
}

fn put_cell(text: &mut String, column: &ShellColumn, cell: &AnswerCell) {
    match (cell, &column.cql_type) {
        (Some(AnswerValue::Known(value)), Ok(cql_type)) => {
            // A string takes all.
            let _ = put_json(text, cql_type, value);
        }
        (Some(value), _) => text.push_str(&json_string(&plain_text(value))),
        (None, _) => text.push_str("null"),
    }
}

/// The line of the names of columns.
pub(super) fn csv_header(columns: &[ShellColumn]) -> String {
    let names: Vec<String> = columns
        .iter()
        .map(|column| csv_field(&column.name))
        .collect();
    names.join(",") + "\n"
}

/// Rows as CSV (RFC 4180, with `\n`). A null is an empty field, an empty text is `""`.
pub(super) fn csv_lines(page: &AnswerPage) -> String {
    let mut text = String::new();
    for row in &page.rows {
        for (position, cell) in row.iter().enumerate() {
            if position > 0 {
                text.push(',');
            }
            if let Some(value) = cell {
                text.push_str(&csv_field(&plain_text(value)));
            }
        }
        // A line without anything would be no row.
        if row.len() == 1 && row[0].is_none() {
            text.push_str("\"\"");
        }
        text.push('\n');
    }
    text
}

fn csv_field(text: &str) -> String {
    let needs_quotes = text.is_empty()
        || text.contains([',', '"', '\n', '\r'])
        || text.starts_with(' ')
        || text.ends_with(' ');
    match needs_quotes {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: Vec<Vec<AnswerCell>>) -> AnswerPage {
        let column = |name: &str, cql_type| ShellColumn {
            name: name.to_owned(),
            cql_type: Ok(cql_type),
        };
        AnswerPage {
            columns: vec![column("id", CqlType::Int), column("Title", CqlType::Text)],
            rows,
        }
    }

    fn known(value: Value) -> AnswerCell {
        Some(AnswerValue::Known(value))
    }

    fn text(text: &str) -> AnswerCell {
        known(Value::Text(text.to_owned()))
    }

    #[test]
    fn rows_are_objects_a_line() {
        let page = page(vec![
            vec![known(Value::Int(1)), text("say \"hi\"\n")],
            vec![known(Value::Int(2)), None],
        ]);
        assert_eq!(
            json_lines(&page),
            "{\"id\": 1, \"Title\": \"say \\\"hi\\\"\\n\"}\n{\"id\": 2, \"Title\": null}\n"
        );
    }

    #[test]
    fn csv_tells_null_from_an_empty_text() {
        let page = page(vec![
            vec![known(Value::Int(1)), text("a,b \"c\"")],
            vec![known(Value::Int(2)), None],
            vec![known(Value::Int(3)), text("")],
        ]);
        assert_eq!(csv_header(&page.columns), "id,Title\n");
        assert_eq!(csv_lines(&page), "1,\"a,b \"\"c\"\"\"\n2,\n3,\"\"\n");
    }

    #[test]
    fn cells_are_short_and_harmless() {
        let numbers = (0..384u16).map(f32::from).collect();
        let vector = known(Value::FloatVector(numbers));
        assert_eq!(cell_text(&vector), "[0.0, 1.0, 2.0, \u{2026} 384 numbers]");
        let short = known(Value::FloatVector(vec![0.5, 1.0]));
        assert_eq!(cell_text(&short), "[0.5, 1.0]");
        assert_eq!(cell_text(&text("\u{1b}[2Ja\nb")), "\\u{1b}[2Ja\\nb");
        assert_eq!(cell_text(&None), "null");
        assert_eq!(
            cell_text(&known(Value::Timestamp(0))),
            "1970-01-01T00:00:00.000Z"
        );
        let unknown = Some(AnswerValue::Unknown(vec![1, 0xab]));
        assert_eq!(cell_text(&unknown), "0x01ab");
    }
}
