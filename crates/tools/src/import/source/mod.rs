//! Files as rows: Parquet, CSV, JSON lines and npy, each read forward once within bounded memory.

mod csv;
mod jsonl;
mod npy;
mod parquet;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use value::CqlType;

use super::file_value::FileValue;
use crate::ToolError;

/// The bytes that are read of a file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The most bytes of one row of text. Without a bound a quote that is not closed would take the
/// rest of the file for a row.
const ROW_BYTES_MAX: usize = 16 << 20;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// Apache Parquet, uncompressed or with Snappy or zstd
    Parquet,
    /// Comma-separated values, the names of the columns in the first line
    Csv,
    /// A JSON object a line
    Jsonl,
    /// An array of numpy: a vector a row
    Npy,
}

impl FileFormat {
    /// The format that the end of a file's name means.
    pub fn of_name(path: &Path) -> Option<FileFormat> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "parquet" | "pq" => FileFormat::Parquet,
            "csv" | "tsv" => FileFormat::Csv,
            "jsonl" | "ndjson" | "json" => FileFormat::Jsonl,
            "npy" => FileFormat::Npy,
            _ => return None,
        })
    }

    /// The format that the first bytes of a file mean.
    fn of_beginning(bytes: &[u8]) -> FileFormat {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match first {
            _ if bytes.starts_with(b"PAR1") => FileFormat::Parquet,
            _ if bytes.starts_with(npy::MAGIC) => FileFormat::Npy,
            Some(b'{' | b'[') => FileFormat::Jsonl,
            _ => FileFormat::Csv,
        }
    }
}

/// How a file is read, where it does not say that itself.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The format; `None` for that of the file's name, or else of its first bytes.
    pub format: Option<FileFormat>,
    /// The byte between the cells of CSV; `None` for a comma, or a tab in files `.tsv`.
    pub delimiter: Option<u8>,
    /// The file with the keys of an npy file's rows.
    pub ids: Option<PathBuf>,
    /// The name of an npy file's only column.
    pub vector_column: String,
    /// The name of the column of the file `ids`.
    pub id_column: String,
}

/// A column of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileColumn {
    /// Its name.
    pub name: String,
    /// Its type, if the file says it.
    pub declared: Option<CqlType>,
    /// Whether the name is the file's own, and not made up here.
    pub is_named: bool,
}

impl FileColumn {
    fn named(name: impl Into<String>, declared: Option<CqlType>) -> FileColumn {
        FileColumn {
            name: name.into(),
            declared,
            is_named: true,
        }
    }
}

/// A row of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FileRow {
    /// A value for each column.
    Values(Vec<FileValue>),
    /// A row that can't be read, while those after it can.
    Unreadable {
        /// Why it can't be read.
        reason: String,
        /// The row as it is in the file.
        text: String,
    },
}

/// How far a file is read, in bytes or in rows. A total of 0 is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilePosition {
    /// The part that is read.
    pub done: u64,
    /// All of it.
    pub total: u64,
}

/// The rows of a file, in their order.
pub trait FileRows: Send {
    /// The columns, as many as each row has values.
    fn columns(&self) -> &[FileColumn];

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// If the file can't be read any further.
    fn next_row(&mut self) -> Result<Option<FileRow>, ToolError>;

    /// How far the file is read.
    fn position(&self) -> FilePosition;

    /// Leaves rows out, and returns how many there were.
    ///
    /// # Errors
    /// As [`next_row`](FileRows::next_row).
    fn skip(&mut self, rows: u64) -> Result<u64, ToolError> {
        let mut skipped = 0;
        while skipped < rows && self.next_row()?.is_some() {
            skipped += 1;
        }
        Ok(skipped)
    }
}

/// Whether a path means the standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a file, or the standard input.
///
/// # Errors
/// If it can't be opened, or its beginning is not of its format.
pub fn open(path: &Path, options: &SourceOptions) -> Result<Box<dyn FileRows>, ToolError> {
    let named = |error: ToolError| match error {
        ToolError::File(why) => ToolError::File(format!("{}: {why}", path.display())),
        other => other,
    };
    open_unnamed(path, options).map_err(named)
}

fn open_unnamed(path: &Path, options: &SourceOptions) -> Result<Box<dyn FileRows>, ToolError> {
    let format = options.format.or_else(|| FileFormat::of_name(path));
    if !is_stdin(path) && format == Some(FileFormat::Parquet) {
        let file = File::open(path).map_err(unreadable)?;
        return Ok(Box::new(parquet::ParquetRows::new(file)?));
    }
    let (input, total): (Box<dyn Read + Send>, u64) = match is_stdin(path) {
        true => (Box::new(io::stdin()), 0),
        false => {
            let file = File::open(path).map_err(unreadable)?;
            let bytes = file.metadata().map_err(unreadable)?.len();
            (Box::new(file), bytes)
        }
    };
    let mut input = BufReader::with_capacity(BUFFER_BYTES, CountedInput { input, read: 0 });
    let format = match format {
        Some(format) => format,
        None => FileFormat::of_beginning(input.fill_buf().map_err(unreadable)?),
    };
    let text = TextInput { input, total };
    Ok(match format {
        FileFormat::Csv => {
            let is_tsv = path.extension().is_some_and(|end| end == "tsv");
            let usual = if is_tsv { b'\t' } else { b',' };
            let delimiter = options.delimiter.unwrap_or(usual);
            Box::new(csv::CsvRows::new(text, delimiter)?)
        }
        FileFormat::Jsonl => Box::new(jsonl::JsonRows::new(text)?),
        FileFormat::Npy => Box::new(npy::NpyRows::new(text.input, options)?),
        FileFormat::Parquet => {
            // Its directory is at its end, so a pipe is written to a file first.
            let mut file = tempfile::tempfile().map_err(unreadable)?;
            let mut input = text.input;
            io::copy(&mut input, &mut file).map_err(unreadable)?;
            Box::new(parquet::ParquetRows::new(file)?)
        }
    })
}

fn unreadable(error: io::Error) -> ToolError {
    ToolError::File(error.to_string())
}

/// An input that counts what is read of it.
struct CountedInput {
    input: Box<dyn Read + Send>,
    read: u64,
}

impl Read for CountedInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.read += bytes as u64;
        Ok(bytes)
    }
}

/// A file of text, and its bytes if they are known.
struct TextInput {
    input: BufReader<CountedInput>,
    total: u64,
}

impl TextInput {
    fn position(&self) -> FilePosition {
        let ahead = self.input.buffer().len() as u64;
        FilePosition {
            done: self.input.get_ref().read - ahead,
            total: self.total,
        }
    }

    /// A text of a test.
    #[cfg(test)]
    fn of(bytes: &'static [u8]) -> TextInput {
        let input = CountedInput {
            input: Box::new(bytes),
            read: 0,
        };
        TextInput {
            // Small, so that rows go over its end.
            input: BufReader::with_capacity(7, input),
            total: bytes.len() as u64,
        }
    }
}

/// All rows of a source, for tests.
#[cfg(test)]
fn all_rows(rows: &mut dyn FileRows) -> Result<Vec<FileRow>, ToolError> {
    std::iter::from_fn(|| rows.next_row().transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_name_and_by_the_first_bytes() {
        for (name, format) in [
            ("a.parquet", Some(FileFormat::Parquet)),
            ("a.TSV", Some(FileFormat::Csv)),
            ("a.ndjson", Some(FileFormat::Jsonl)),
            ("a.npy", Some(FileFormat::Npy)),
            ("a", None),
            ("-", None),
        ] {
            assert_eq!(FileFormat::of_name(Path::new(name)), format, "{name}");
        }
        for (bytes, format) in [
            (&b"PAR1\x15"[..], FileFormat::Parquet),
            (b"\x93NUMPY\x01", FileFormat::Npy),
            (b"\n {\"a\": 1}", FileFormat::Jsonl),
            (b"id,title\n", FileFormat::Csv),
            (b"", FileFormat::Csv),
        ] {
            assert_eq!(FileFormat::of_beginning(bytes), format, "{bytes:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let options = SourceOptions {
            format: None,
            delimiter: None,
            ids: None,
            vector_column: "vector".to_owned(),
            id_column: "id".to_owned(),
        };
        for name in ["/nowhere/a.csv", "/nowhere/a.parquet"] {
            let error = open(Path::new(name), &options).err().unwrap().to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
