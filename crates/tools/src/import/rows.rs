//! Rows on their way from a file to the server.

use std::sync::Arc;

use bytes::Bytes;
use value::json_string;

use super::file_value::FileValue;

/// A file, as messages name it, and the names of its columns.
#[derive(Debug)]
pub struct FileLabel {
    /// The path.
    pub path: String,
    /// The names of the columns.
    pub columns: Vec<String>,
}

/// The place of a row.
#[derive(Clone, Debug)]
pub struct FileRowPlace {
    /// The file.
    pub file: Arc<FileLabel>,
    /// The row's number in its file, from 1.
    pub row: u64,
    /// The row's number over all files, from 0.
    pub number: u64,
}

/// A row whose values fit its columns.
#[derive(Debug)]
pub struct ConvertedRow {
    /// Its place.
    pub place: FileRowPlace,
    /// The values for the statement's markers.
    pub values: Vec<Option<Bytes>>,
    /// The text whose embedding is still to be made.
    pub text: Option<String>,
    /// The values as the file has them, in case the server refuses them.
    pub original: Vec<FileValue>,
}

impl ConvertedRow {
    /// The bytes of its values.
    pub fn bytes(&self) -> usize {
        let values = self.values.iter().flatten();
        values.map(Bytes::len).sum::<usize>() + 1
    }

    /// The row as one that is refused.
    pub fn refused(&self, reason: &str) -> RejectedRow {
        RejectedRow::of_values(&self.place, reason, &self.original)
    }
}

/// A row that is not written.
#[derive(Debug, PartialEq, Eq)]
pub struct RejectedRow {
    /// The row's number over all files.
    pub number: u64,
    /// The reason, for messages.
    pub reason: String,
    /// The line in the file of rejected rows, without its end.
    pub line: String,
}

impl RejectedRow {
    /// A row of these values, which do not fit.
    pub fn of_values(place: &FileRowPlace, reason: &str, values: &[FileValue]) -> RejectedRow {
        let fields = place.file.columns.iter().zip(values);
        let fields: Vec<_> = fields
            .map(|(name, value)| format!("{}: {}", json_string(name), value.to_json()))
            .collect();
        let values = format!("\"values\": {{{}}}", fields.join(", "));
        RejectedRow::new(place, reason, &values)
    }

    /// A row that can't be read.
    pub fn of_text(place: &FileRowPlace, reason: &str, text: &str) -> RejectedRow {
        RejectedRow::new(place, reason, &format!("\"text\": {}", json_string(text)))
    }

    fn new(place: &FileRowPlace, reason: &str, content: &str) -> RejectedRow {
        let line = format!(
            "{{\"file\": {}, \"row\": {}, \"reason\": {}, {content}}}",
            json_string(&place.file.path),
            place.row,
            json_string(reason)
        );
        RejectedRow {
            number: place.number,
            reason: format!("{}, row {}: {reason}", place.file.path, place.row),
            line,
        }
    }
}

/// A row of a batch.
#[derive(Debug)]
pub enum FeedRow {
    /// A row to be written.
    Converted(ConvertedRow),
    /// A row that does not fit.
    Rejected(RejectedRow),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_rows_have_the_reason_and_the_values_as_json() {
        let place = FileRowPlace {
            file: Arc::new(FileLabel {
                path: "a\"b.csv".to_owned(),
                columns: vec!["id".to_owned(), "t".to_owned()],
            }),
            row: 2,
            number: 1,
        };
        let values = [FileValue::Integer(1), FileValue::Null];
        let rejected = RejectedRow::of_values(&place, "no", &values);
        let expected =
            r#"{"file": "a\"b.csv", "row": 2, "reason": "no", "values": {"id": 1, "t": null}}"#;
        assert_eq!(rejected.line, expected);
        assert_eq!(rejected.reason, "a\"b.csv, row 2: no");
        let rejected = RejectedRow::of_text(&place, "no", "x\n");
        assert!(
            rejected.line.ends_with(r#""text": "x\n"}"#),
            "{}",
            rejected.line
        );
    }
}
