//! Comma-separated values, as RFC 4180 and pandas write them. A cell without quotes and without a
//! letter is null; one of two quotes is an empty text.

use std::io::BufRead;
use std::mem::take;

use super::{FileColumn, FilePosition, FileRow, FileRows, ROW_BYTES_MAX, TextInput, unreadable};
use crate::ToolError;
use crate::import::file_value::FileValue;

/// Rows of a CSV file.
pub struct CsvRows {
    input: TextInput,
    delimiter: u8,
    columns: Vec<FileColumn>,
    /// The number of the line that is read, from 1.
    line: u64,
}

/// A cell as it is in the file, without its quotes.
#[derive(Debug, Default, PartialEq)]
struct CsvCell {
    bytes: Vec<u8>,
    is_quoted: bool,
}

/// Where in a cell the next byte is.
#[derive(Clone, Copy, PartialEq)]
enum CellState {
    Start,
    Plain,
    Quoted,
    /// After a quote within quotes: the end of the cell, or the first of two.
    Quote,
}

impl CsvRows {
    /// Reads the names of the columns.
    pub fn new(input: TextInput, delimiter: u8) -> Result<CsvRows, ToolError> {
        let mut rows = CsvRows {
            input,
            delimiter,
            columns: Vec::new(),
            line: 1,
        };
        let header = rows.record()?;
        let header = header.ok_or_else(|| ToolError::File("it is empty".to_owned()))?;
        let mut names = Vec::new();
        for (position, cell) in header.into_iter().enumerate() {
            let name = String::from_utf8_lossy(&cell.bytes);
            let name = name.trim_start_matches('\u{feff}').trim();
            let is_named = !name.is_empty();
            // pandas writes its index without a name.
            let name = match is_named {
                true => name.to_owned(),
                false => format!("column_{position}"),
            };
            if names.contains(&name) {
                return Err(ToolError::File(format!(
                    "two columns are named {name:?}: give one another name in the first line"
                )));
            }
            names.push(name.clone());
            rows.columns.push(FileColumn::named(name, None));
        }
        Ok(rows)
    }

    /// The cells of the next line that is not blank.
    fn record(&mut self) -> Result<Option<Vec<CsvCell>>, ToolError> {
        loop {
            let Some(cells) = self.line_of_cells()? else {
                return Ok(None);
            };
            match &cells[..] {
                [only] if only.bytes.is_empty() && !only.is_quoted => {}
                _ => return Ok(Some(cells)),
            }
        }
    }

    fn line_of_cells(&mut self) -> Result<Option<Vec<CsvCell>>, ToolError> {
        let first_line = self.line;
        let (mut cells, mut cell) = (Vec::new(), CsvCell::default());
        let (mut state, mut bytes) = (CellState::Start, 0);
        loop {
            let buffer = self.input.input.fill_buf().map_err(unreadable)?;
            if buffer.is_empty() {
                return match state {
                    CellState::Quoted => Err(unclosed(first_line)),
                    CellState::Start if cells.is_empty() => Ok(None),
                    _ => {
                        cells.push(cell);
                        Ok(Some(cells))
                    }
                };
            }
            let mut used = 0;
            let mut has_ended = false;
            for &byte in buffer {
                used += 1;
                self.line += u64::from(byte == b'\n');
                state = match (state, byte) {
                    (CellState::Quoted, b'"') => CellState::Quote,
                    (CellState::Quoted, _) => {
                        cell.bytes.push(byte);
                        CellState::Quoted
                    }
                    (CellState::Quote, b'"') => {
                        cell.bytes.push(byte);
                        CellState::Quoted
                    }
                    (_, b'\n') => {
                        if !cell.is_quoted && cell.bytes.ends_with(b"\r") {
                            cell.bytes.pop();
                        }
                        cells.push(take(&mut cell));
                        has_ended = true;
                        break;
                    }
                    (CellState::Quote, b'\r') => CellState::Quote,
                    (_, byte) if byte == self.delimiter => {
                        cells.push(take(&mut cell));
                        CellState::Start
                    }
                    (CellState::Start, b'"') => {
                        cell.is_quoted = true;
                        CellState::Quoted
                    }
                    (_, byte) => {
                        cell.bytes.push(byte);
                        CellState::Plain
                    }
                };
            }
            self.input.input.consume(used);
            bytes += used;
            if has_ended {
                return Ok(Some(cells));
            }
            if bytes > ROW_BYTES_MAX {
                return Err(unclosed(first_line));
            }
        }
    }
}

fn unclosed(line: u64) -> ToolError {
    ToolError::File(format!(
        "the row that begins at line {line} has no end within {} MiB: is a quote not closed?",
        ROW_BYTES_MAX >> 20
    ))
}

/// The value of a cell whose bytes are text.
fn value(cell: CsvCell) -> FileValue {
    match (cell.bytes.is_empty(), cell.is_quoted) {
        (true, true) => FileValue::Text(String::new()),
        (true, false) => FileValue::Null,
        _ => FileValue::Cell(String::from_utf8_lossy(&cell.bytes).into_owned()),
    }
}

impl FileRows for CsvRows {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<FileRow>, ToolError> {
        let Some(cells) = self.record()? else {
            return Ok(None);
        };
        let text = |cells: &[CsvCell]| {
            let cells = cells
                .iter()
                .map(|cell| String::from_utf8_lossy(&cell.bytes));
            cells
                .collect::<Vec<_>>()
                .join(&char::from(self.delimiter).to_string())
        };
        if cells.len() != self.columns.len() {
            return Ok(Some(FileRow::Unreadable {
                reason: format!(
                    "it has {} cells, the first line {}",
                    cells.len(),
                    self.columns.len()
                ),
                text: text(&cells),
            }));
        }
        let is_text = |cell: &CsvCell| std::str::from_utf8(&cell.bytes).is_ok();
        if !cells.iter().all(is_text) {
            return Ok(Some(FileRow::Unreadable {
                reason: "it is not UTF-8".to_owned(),
                text: text(&cells),
            }));
        }
        Ok(Some(FileRow::Values(
            cells.into_iter().map(value).collect(),
        )))
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
        let mut rows = CsvRows::new(TextInput::of(text), b',')?;
        let names = rows.columns.iter().map(|column| column.name.clone());
        Ok((names.collect(), all_rows(&mut rows)?))
    }

    fn cells(texts: &[&str]) -> FileRow {
        let value = |text: &&str| match *text {
            "" => FileValue::Null,
            text => FileValue::Cell(text.to_owned()),
        };
        FileRow::Values(texts.iter().map(value).collect())
    }

    #[test]
    fn cells_with_quotes_lines_and_nulls() {
        let text = b"\xef\xbb\xbfid, title ,vector\r\n1,\"a \"\"b\"\", c\",\"[1 2\n 3]\"\r\n\r\n\
                     2,,x\n3,\"\",y";
        let (names, rows) = read(text).unwrap();
        assert_eq!(names, ["id", "title", "vector"]);
        assert_eq!(rows[0], cells(&["1", "a \"b\", c", "[1 2\n 3]"]));
        assert_eq!(rows[1], cells(&["2", "", "x"]));
        let empty = FileValue::Text(String::new());
        let FileRow::Values(values) = &rows[2] else {
            panic!("{rows:?}");
        };
        assert_eq!((rows.len(), &values[1]), (3, &empty));
    }

    #[test]
    fn rows_that_are_too_short_or_no_text_are_named_and_others_are_read() {
        let (_, rows) = read(b"a,b\n1\n2,3\n\xff,4\n5,6\n").unwrap();
        let reason = |row: &FileRow| match row {
            FileRow::Unreadable { reason, .. } => reason.clone(),
            FileRow::Values(_) => String::new(),
        };
        let reasons: Vec<_> = rows.iter().map(reason).collect();
        let expected = [
            "it has 1 cells, the first line 2",
            "",
            "it is not UTF-8",
            "",
        ];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn files_without_an_end_of_quotes_or_of_two_columns_of_one_name() {
        let error = read(b"a,b\n1,2\n3,\"4\n5,6\n").unwrap_err().to_string();
        assert!(
            error.contains("line 3") && error.contains("quote"),
            "{error}"
        );
        let error = read(b"a,a\n").unwrap_err().to_string();
        assert!(error.contains("two columns"), "{error}");
        assert!(read(b"").is_err());
        let (names, rows) = read(b",a\n0,1\n").unwrap();
        assert_eq!(
            (&names[..], rows.len()),
            (&["column_0", "a"].map(str::to_owned)[..], 1)
        );
    }
}
