//! JSON lines: an object a line. The columns are the fields of the first rows; a field that comes
//! up later makes its row one that does not fit.

use std::collections::VecDeque;
use std::io::{BufRead, Read as _};

use super::{FileColumn, FilePosition, FileRow, FileRows, ROW_BYTES_MAX, TextInput, unreadable};
use crate::ToolError;
use crate::import::file_value::FileValue;

/// The rows, and their bytes, that are read before the columns are known.
const ROWS_AHEAD: usize = 10_000;
const BYTES_AHEAD: u64 = 8 << 20;

/// A line as it is read: its fields, or why it has none.
type LineFields = Result<Vec<(String, FileValue)>, FileRow>;

/// Rows of a file of JSON lines.
pub struct JsonRows {
    input: TextInput,
    columns: Vec<FileColumn>,
    ahead: VecDeque<LineFields>,
    is_first: bool,
}

impl JsonRows {
    /// Reads the first rows, and with them the columns.
    pub fn new(input: TextInput) -> Result<JsonRows, ToolError> {
        let mut rows = JsonRows {
            input,
            columns: Vec::new(),
            ahead: VecDeque::new(),
            is_first: true,
        };
        while rows.ahead.len() < ROWS_AHEAD && rows.input.position().done < BYTES_AHEAD {
            let Some(line) = rows.line()? else {
                break;
            };
            for (name, _) in line.as_deref().unwrap_or_default() {
                if !rows.columns.iter().any(|column| column.name == *name) {
                    rows.columns.push(FileColumn::named(name.clone(), None));
                }
            }
            rows.ahead.push_back(line);
        }
        match rows.ahead.is_empty() {
            true => Err(ToolError::File("it is empty".to_owned())),
            false => Ok(rows),
        }
    }

    /// The next line that is not blank.
    fn line(&mut self) -> Result<Option<LineFields>, ToolError> {
        loop {
            let mut bytes = Vec::new();
            let mut bounded = (&mut self.input.input).take(ROW_BYTES_MAX as u64);
            let read = bounded.read_until(b'\n', &mut bytes).map_err(unreadable)?;
            if read == 0 {
                return Ok(None);
            }
            if read == ROW_BYTES_MAX && !bytes.ends_with(b"\n") {
                skip_line(&mut self.input.input)?;
                return Ok(Some(Err(unreadable_row(
                    format!("it is longer than {} MiB", ROW_BYTES_MAX >> 20),
                    &bytes[..80],
                ))));
            }
            let line = bytes.trim_ascii();
            if std::mem::take(&mut self.is_first) && line.starts_with(b"[") {
                return Err(ToolError::File(
                    "it begins with a list, but must have an object a line: jq -c '.[]' makes lines of a list"
                        .to_owned(),
                ));
            }
            if !line.is_empty() {
                return Ok(Some(fields(line)));
            }
        }
    }

    fn row(&self, fields: Vec<(String, FileValue)>) -> FileRow {
        let is_column = |name: &str| self.columns.iter().any(|column| column.name == name);
        if let Some((name, _)) = fields.iter().find(|(name, _)| !is_column(name)) {
            let reason = format!("no row before it has a field {name:?}");
            let text = FileValue::Struct(fields).to_json();
            return FileRow::Unreadable { reason, text };
        }
        let mut values = vec![FileValue::Null; self.columns.len()];
        for (at, (name, value)) in fields.into_iter().enumerate() {
            // Most rows have their fields in the order of the columns.
            let is_here = self
                .columns
                .get(at)
                .is_some_and(|column| column.name == name);
            let position = match is_here {
                true => Some(at),
                false => self.columns.iter().position(|column| column.name == name),
            };
            if let Some(position) = position {
                values[position] = value;
            }
        }
        FileRow::Values(values)
    }
}

fn unreadable_row(reason: String, bytes: &[u8]) -> FileRow {
    let text = String::from_utf8_lossy(bytes).into_owned();
    FileRow::Unreadable { reason, text }
}

fn fields(line: &[u8]) -> LineFields {
    let wrong = |reason: String| unreadable_row(reason, line);
    let text = std::str::from_utf8(line).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    FileValue::fields_of_json(text).map_err(|error| wrong(error.0))
}

/// Reads on to the end of the line, and stores nothing of it.
fn skip_line(input: &mut impl BufRead) -> Result<(), ToolError> {
    loop {
        let buffer = input.fill_buf().map_err(unreadable)?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

impl FileRows for JsonRows {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<FileRow>, ToolError> {
        let line = match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.line()?,
        };
        Ok(line.map(|line| match line {
            Ok(fields) => self.row(fields),
            Err(unreadable) => unreadable,
        }))
    }

    fn position(&self) -> FilePosition {
        self.input.position()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::source::all_rows;

    fn read(text: &'static [u8]) -> Result<(Vec<String>, Vec<FileRow>), ToolError> {
        let mut rows = JsonRows::new(TextInput::of(text))?;
        let names = rows.columns.iter().map(|column| column.name.clone());
        Ok((names.collect(), all_rows(&mut rows)?))
    }

    #[test]
    fn fields_in_any_order_make_columns() {
        let text = b"{\"id\": 1, \"t\": \"a\"}\n\n{\"v\": [1, 2], \"id\": 2}\r\n";
        let (names, rows) = read(text).unwrap();
        assert_eq!(names, ["id", "t", "v"]);
        let expected = [
            vec![
                FileValue::Integer(1),
                FileValue::Text("a".to_owned()),
                FileValue::Null,
            ],
            vec![
                FileValue::Integer(2),
                FileValue::Null,
                FileValue::Json("[1, 2]".to_owned()),
            ],
        ];
        assert_eq!(rows, expected.map(FileRow::Values));
    }

    #[test]
    fn lines_that_are_no_objects_are_named_and_others_are_read() {
        let (_, rows) = read(b"{\"id\": 1}\nnot json\n{\"id\": 2\n{\"id\": 3}\n\xff\n").unwrap();
        let is_read: Vec<_> = rows
            .iter()
            .map(|row| matches!(row, FileRow::Values(_)))
            .collect();
        assert_eq!(is_read, [true, false, false, true, false]);
        let error = read(b"[{\"id\": 1}]").unwrap_err().to_string();
        assert!(error.contains("jq"), "{error}");
        assert!(read(b"\n\n").is_err());
    }

    #[test]
    fn a_field_that_comes_late_does_not_fit() {
        let mut rows = JsonRows::new(TextInput::of(b"{\"id\": 1}\n")).unwrap();
        let late = rows.row(FileValue::fields_of_json("{\"id\": 2, \"x\": 3}").unwrap());
        let FileRow::Unreadable { reason, text } = late else {
            panic!("{late:?}");
        };
        assert!(reason.contains("\"x\""), "{reason}");
        assert_eq!(text, r#"{"id": 2, "x": 3}"#);
        assert_eq!(rows.skip(7).unwrap(), 1);
    }
}
