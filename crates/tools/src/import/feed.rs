//! The thread that reads files and converts their rows. It goes ahead of the server by a few
//! batches of bounded size, whatever the size of the files.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc::Sender;
use value::{CqlType, ValueError};

use super::convert::convert;
use super::file_value::FileValue;
use super::infer::ColumnProfile;
use super::plan::{ColumnOrigin, ImportColumn, column_name};
use super::rows::{ConvertedRow, FeedRow, FileLabel, FileRowPlace, RejectedRow};
use super::source::{self, FileColumn, FilePosition, FileRow, FileRows, SourceOptions};
use crate::ToolError;

/// The most rows of a batch, which is also the most texts of a request for embeddings.
pub const BATCH_ROWS: usize = 64;

/// The bytes of values from which on a batch is full.
const BATCH_BYTES: usize = 1 << 20;

/// The rows, and about how many bytes of them, that decide the types of columns.
const SAMPLE_ROWS: usize = 10_000;
const SAMPLE_BYTES: usize = 16 << 20;

/// The value of a column that a file lacks.
static NULL: FileValue = FileValue::Null;

/// Rows in the order of the files, or the error that ends them.
pub type FeedBatch = Result<Vec<FeedRow>, ToolError>;

/// A file whose first rows were looked at already.
pub struct SampledFile {
    rows: Box<dyn FileRows>,
    ahead: VecDeque<FileRow>,
}

impl SampledFile {
    /// Opens a file.
    pub fn open(path: &Path, options: &SourceOptions) -> Result<SampledFile, ToolError> {
        Ok(SampledFile {
            rows: source::open(path, options)?,
            ahead: VecDeque::new(),
        })
    }

    /// The columns.
    pub fn columns(&self) -> &[FileColumn] {
        self.rows.columns()
    }

    /// Reads the first rows, which come again as the rows are read, and counts their values by
    /// column.
    pub fn sample(&mut self) -> Result<Vec<ColumnProfile>, ToolError> {
        let columns = self.rows.columns().len();
        let mut profiles: Vec<ColumnProfile> = Vec::new();
        profiles.resize_with(columns, ColumnProfile::default);
        let mut bytes = 0;
        while self.ahead.len() < SAMPLE_ROWS && bytes < SAMPLE_BYTES {
            let Some(row) = self.rows.next_row()? else {
                break;
            };
            if let FileRow::Values(values) = &row {
                for (profile, value) in profiles.iter_mut().zip(values) {
                    profile.add(value);
                    bytes += held_bytes(value);
                }
            }
            self.ahead.push_back(row);
        }
        Ok(profiles)
    }

    /// The first text of a column among the rows that were looked at.
    pub fn first_text(&self, column: usize) -> Option<String> {
        self.ahead.iter().find_map(|row| match row {
            FileRow::Values(values) => text_of(&values[column]).filter(|text| !text.is_empty()),
            FileRow::Unreadable { .. } => None,
        })
    }

    fn next_row(&mut self) -> Result<Option<FileRow>, ToolError> {
        match self.ahead.pop_front() {
            Some(row) => Ok(Some(row)),
            None => self.rows.next_row(),
        }
    }

    fn skip(&mut self, rows: u64) -> Result<u64, ToolError> {
        let mut skipped = 0;
        while skipped < rows && self.ahead.pop_front().is_some() {
            skipped += 1;
        }
        Ok(skipped + self.rows.skip(rows - skipped)?)
    }
}

/// About the bytes that a value takes in memory.
fn held_bytes(value: &FileValue) -> usize {
    let inside = match value {
        FileValue::Number(text)
        | FileValue::Text(text)
        | FileValue::Cell(text)
        | FileValue::Json(text) => text.len(),
        FileValue::Bytes(bytes) => bytes.len(),
        FileValue::Floats(numbers) => numbers.len() * 4,
        FileValue::List(elements) => elements.iter().map(held_bytes).sum(),
        FileValue::Map(entries) => {
            let entries = entries.iter();
            entries
                .map(|(key, value)| held_bytes(key) + held_bytes(value))
                .sum()
        }
        FileValue::Struct(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| name.len() + held_bytes(value))
                .sum()
        }
        _ => 0,
    };
    inside + size_of::<FileValue>()
}

/// The text that a value is, whose embedding can be made.
fn text_of(value: &FileValue) -> Option<String> {
    match value {
        FileValue::Text(text) | FileValue::Cell(text) => Some(text.clone()),
        _ => None,
    }
}

/// How far the files are read, for the line of progress: bytes of all that are read, by share.
#[derive(Debug, Default)]
pub struct FeedMeter {
    done: AtomicU64,
    total: AtomicU64,
}

impl FeedMeter {
    /// The part that is read, and all of it; 0 if that is unknown.
    pub fn now(&self) -> FilePosition {
        FilePosition {
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
        }
    }
}

/// All that the thread needs.
pub struct FeedJob {
    /// The first file, open.
    pub first: Option<SampledFile>,
    /// All files, the first of them included.
    pub files: Vec<PathBuf>,
    /// How they are read.
    pub options: SourceOptions,
    /// The columns that get values. Positions of columns are those of the first file.
    pub columns: Vec<ImportColumn>,
    /// The rows of all files that were imported before.
    pub skip: u64,
    /// Where the progress is shown.
    pub meter: Arc<FeedMeter>,
}

/// The batch that is filled.
#[derive(Default)]
struct OpenBatch {
    rows: Vec<FeedRow>,
    bytes: usize,
}

/// The receiver wants no more rows.
struct HungUp;

impl FeedJob {
    /// Reads all files. An error is the last that is sent.
    pub fn run(mut self, sender: &Sender<FeedBatch>) {
        let sizes: Vec<u64> = self.files.iter().map(|path| size(path)).collect();
        let is_known = sizes.iter().all(|size| *size > 0);
        let total = if is_known { sizes.iter().sum() } else { 0 };
        self.meter.total.store(total, Ordering::Relaxed);
        let mut names: Option<Vec<String>> = None;
        let (mut number, mut before) = (0, 0);
        for (path, size) in self.files.clone().iter().zip(sizes) {
            let read = self.file(path, &mut names, &mut number, (before, size), sender);
            match read {
                Ok(Ok(())) => before += size,
                Ok(Err(HungUp)) => return,
                Err(error) => {
                    // A receiver that has hung up has an error of its own.
                    let _ = sender.blocking_send(Err(error));
                    return;
                }
            }
        }
    }

    /// Reads one file. `names` are those of the first file's columns, `number` counts the rows of
    /// all files, and `share` are the bytes before the file and its own.
    fn file(
        &mut self,
        path: &Path,
        names: &mut Option<Vec<String>>,
        number: &mut u64,
        share: (u64, u64),
        sender: &Sender<FeedBatch>,
    ) -> Result<Result<(), HungUp>, ToolError> {
        let mut file = match self.first.take() {
            Some(first) => first,
            None => SampledFile::open(path, &self.options)?,
        };
        let own: Vec<_> = file
            .columns()
            .iter()
            .map(|column| column.name.clone())
            .collect();
        let first = names.get_or_insert_with(|| own.clone());
        let positions = positions(first, &own, path)?;
        let label = Arc::new(FileLabel {
            path: path.display().to_string(),
            columns: own,
        });
        let mut row = file.skip(self.skip - (*number).min(self.skip))?;
        *number += row;
        let mut batch = OpenBatch::default();
        while let Some(read) = file.next_row()? {
            row += 1;
            let place = FileRowPlace {
                file: label.clone(),
                row,
                number: *number,
            };
            *number += 1;
            batch.push(self.converted(place, read, &positions));
            if batch.is_full() {
                self.measure(&file, share);
                if !batch.send(sender) {
                    return Ok(Err(HungUp));
                }
            }
        }
        self.measure(&file, share);
        match batch.send(sender) {
            true => Ok(Ok(())),
            false => Ok(Err(HungUp)),
        }
    }

    fn measure(&self, file: &SampledFile, (before, size): (u64, u64)) {
        let FilePosition { done, total } = file.rows.position();
        let share = match total {
            0 => 0,
            _ => (u128::from(size) * u128::from(done) / u128::from(total)) as u64,
        };
        self.meter.done.store(before + share, Ordering::Relaxed);
    }

    fn converted(&self, place: FileRowPlace, row: FileRow, positions: &[Option<usize>]) -> FeedRow {
        let original = match row {
            FileRow::Values(values) => values,
            FileRow::Unreadable { reason, text } => {
                return FeedRow::Rejected(RejectedRow::of_text(&place, &reason, &text));
            }
        };
        let mut text = None;
        let mut values = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let at = |first: usize| positions[first].map_or(&NULL, |own| &original[own]);
            let value = match column.origin {
                ColumnOrigin::File(position) => converted(column, at(position)),
                ColumnOrigin::RowNumber => of_number(&column.cql_type, place.number),
                ColumnOrigin::Embedding(position) => {
                    text = text_of(at(position)).filter(|text| !text.trim().is_empty());
                    Ok(None)
                }
            };
            match value {
                Ok(value) => values.push(value),
                Err(error) => {
                    let reason = format!("column {}: {error}", column.name);
                    let rejected = RejectedRow::of_values(&place, &reason, &original);
                    return FeedRow::Rejected(rejected);
                }
            }
        }
        FeedRow::Converted(ConvertedRow {
            place,
            values,
            text,
            original,
        })
    }
}

/// The serialised value of a column, which has one if it is of the key.
fn converted(column: &ImportColumn, value: &FileValue) -> Result<Option<Bytes>, ValueError> {
    let converted = convert(&column.cql_type, value)?;
    match column.is_key && converted.is_none() {
        true => Err(ValueError("null, but it is of the key".to_owned())),
        false => Ok(converted),
    }
}

fn of_number(cql_type: &CqlType, number: u64) -> Result<Option<Bytes>, ValueError> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    convert(cql_type, &FileValue::Integer(number))
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The position in a file of each column of the first file; `None` for one that it lacks, whose
/// values are null.
fn positions(
    first: &[String],
    own: &[String],
    path: &Path,
) -> Result<Vec<Option<usize>>, ToolError> {
    let is_same = |a: &str, b: &str| column_name(a) == column_name(b);
    if let Some(more) = own
        .iter()
        .find(|name| !first.iter().any(|of| is_same(of, name)))
    {
        return Err(ToolError::File(format!(
            "{}: it has a column {more:?}, which the first file has not: import it by itself",
            path.display()
        )));
    }
    let position = |name: &String| own.iter().position(|of| is_same(of, name));
    Ok(first.iter().map(position).collect())
}

impl OpenBatch {
    fn push(&mut self, row: FeedRow) {
        self.bytes += match &row {
            FeedRow::Converted(row) => row.bytes(),
            FeedRow::Rejected(row) => row.line.len(),
        };
        self.rows.push(row);
    }

    fn is_full(&self) -> bool {
        self.rows.len() == BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Sends the rows, and begins a new batch. `false` if no one wants them.
    fn send(&mut self, sender: &Sender<FeedBatch>) -> bool {
        let batch = std::mem::take(self);
        batch.rows.is_empty() || sender.blocking_send(Ok(batch.rows)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> SourceOptions {
        SourceOptions {
            format: None,
            delimiter: None,
            ids: None,
            vector_column: "vector".to_owned(),
            id_column: "id".to_owned(),
        }
    }

    fn target(name: &str, cql_type: CqlType, origin: ColumnOrigin) -> ImportColumn {
        ImportColumn {
            name: name.to_owned(),
            cql_type,
            is_key: name == "id",
            origin,
        }
    }

    /// A row as its number and values, or the reason why it is rejected.
    type FedRow = Result<(u64, Vec<Option<Bytes>>), String>;

    /// All rows of some files, from one on.
    fn fed(files: &[(&str, &str)], skip: u64) -> Vec<FedRow> {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for (name, text) in files {
            std::fs::write(path(name), text).unwrap();
        }
        let columns = vec![
            target("id", CqlType::Int, ColumnOrigin::File(0)),
            target("t", CqlType::Text, ColumnOrigin::File(1)),
            target("n", CqlType::Bigint, ColumnOrigin::RowNumber),
        ];
        let job = FeedJob {
            first: None,
            files: files.iter().map(|(name, _)| path(name)).collect(),
            options: options(),
            columns,
            skip,
            meter: Arc::default(),
        };
        let (sender, mut receiver) = tokio::sync::mpsc::channel(100);
        job.run(&sender);
        drop(sender);
        let batches = std::iter::from_fn(|| receiver.blocking_recv());
        let rows = batches.flat_map(|batch| match batch {
            Ok(rows) => rows.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error.to_string())],
        });
        let rows = rows.map(|row| match row? {
            FeedRow::Converted(row) => Ok((row.place.number, row.values)),
            FeedRow::Rejected(row) => Err(row.line),
        });
        rows.collect()
    }

    fn row(number: u64, id: i32, text: &str) -> Result<(u64, Vec<Option<Bytes>>), String> {
        let text = Bytes::copy_from_slice(text.as_bytes());
        let values = [
            Bytes::copy_from_slice(&id.to_be_bytes()),
            text,
            Bytes::copy_from_slice(&number.to_be_bytes()),
        ];
        Ok((number, values.map(Some).into()))
    }

    #[test]
    fn files_follow_each_other_and_bad_rows_are_left_out() {
        let files = [("a.csv", "id,t\n1,a\nx,b\n,c\n"), ("b.csv", "T,ID\nd,4\n")];
        let rows = fed(&files, 0);
        assert_eq!(rows[0], row(0, 1, "a"));
        let reason = rows[1].clone().unwrap_err();
        assert!(
            reason.contains("\"row\": 2") && reason.contains("column id"),
            "{reason}"
        );
        assert!(
            rows[2].clone().unwrap_err().contains("of the key"),
            "{rows:?}"
        );
        assert_eq!(rows[3], row(3, 4, "d"));
        assert_eq!(fed(&files, 3), [row(3, 4, "d")]);
        assert!(fed(&files, 9).is_empty());
    }

    #[test]
    fn a_file_with_more_columns_is_refused() {
        let rows = fed(&[("a.csv", "id,t\n1,a\n"), ("b.csv", "id,t,x\n2,b,c\n")], 0);
        assert!(rows[1].clone().unwrap_err().contains("\"x\""), "{rows:?}");
    }

    #[test]
    fn rows_that_were_looked_at_come_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        std::fs::write(&path, "id,t\n1,\n2,b\n").unwrap();
        let mut file = SampledFile::open(&path, &options()).unwrap();
        let profiles = file.sample().unwrap();
        assert_eq!(profiles[0].cql_type(None), CqlType::Bigint);
        assert_eq!(file.first_text(1).as_deref(), Some("b"));
        assert_eq!(file.skip(1).unwrap(), 1);
        assert!(file.next_row().unwrap().is_some());
        assert_eq!(file.skip(5).unwrap(), 0);
    }
}
