//! An array of numpy: the vectors of a column, and the keys of its rows in a file of their own.

use std::fs::File;
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use value::{CqlType, Value};

use super::{BUFFER_BYTES, ExportColumn, RowSink, is_stdout, unwritable};
use crate::ToolError;
use crate::cql_json::plain_text;

/// The bytes of the header with everything before the elements. The number of rows is known at the
/// end, and has room there.
const HEADER_BYTES: usize = 128;

/// A file with an array whose rows are still written.
struct ArrayWriter {
    path: PathBuf,
    output: BufWriter<File>,
    descr: &'static str,
    /// The numbers of a row; `None` for an array of one dimension.
    columns: Option<u16>,
    rows: u64,
}

impl ArrayWriter {
    fn create(
        path: &Path,
        descr: &'static str,
        columns: Option<u16>,
    ) -> Result<ArrayWriter, ToolError> {
        let file = File::create(path).map_err(|error| unwritable(path, &error))?;
        let mut array = ArrayWriter {
            path: path.to_path_buf(),
            output: BufWriter::with_capacity(BUFFER_BYTES, file),
            descr,
            columns,
            rows: 0,
        };
        array.put_header()?;
        Ok(array)
    }

    fn put_header(&mut self) -> Result<(), ToolError> {
        let rows = self.rows;
        let shape = match self.columns {
            Some(columns) => format!("({rows}, {columns})"),
            None => format!("({rows},)"),
        };
        let descr = self.descr;
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        // Magic, version and the length of the text take ten bytes; the text ends with a line's
        // end.
        let width = HEADER_BYTES - 11;
        let header = format!("{text:<width$}\n");
        let length = (HEADER_BYTES - 10) as u16;
        let begin = [&b"\x93NUMPY\x01\x00"[..], &length.to_le_bytes()].concat();
        self.write(&begin)?;
        self.write(header.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        let written = self.output.write_all(bytes);
        written.map_err(|error| unwritable(&self.path, &error))
    }

    fn row(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        self.rows += 1;
        self.write(bytes)
    }

    /// Writes the header again, with the number of rows.
    fn finish(&mut self) -> Result<(), ToolError> {
        let begin = self.output.seek(SeekFrom::Start(0));
        begin.map_err(|error| unwritable(&self.path, &error))?;
        self.put_header()?;
        let flushed = self.output.flush();
        flushed.map_err(|error| unwritable(&self.path, &error))
    }
}

/// The keys of the rows.
enum KeyWriter {
    None,
    Numbers(ArrayWriter),
    Lines {
        path: PathBuf,
        output: BufWriter<File>,
    },
}

/// Vectors and their keys.
pub struct NpySink {
    array: ArrayWriter,
    /// The positions of the vector and of the key among a row's values.
    vector: usize,
    key: Option<usize>,
    keys: KeyWriter,
    columns: Vec<ExportColumn>,
    left_out: u64,
}

impl NpySink {
    /// Creates the files.
    pub fn new(
        path: &Path,
        ids: Option<&Path>,
        columns: &[ExportColumn],
    ) -> Result<NpySink, ToolError> {
        if is_stdout(path) {
            let why = "npy has the number of rows at its beginning: name a file with --to";
            return Err(ToolError::Usage(why.to_owned()));
        }
        let is_vector = |column: &ExportColumn| column.cql_type.float_vector_dimensions().is_some();
        let vectors = columns.iter().filter(|column| is_vector(column)).count();
        let vector = columns.iter().position(is_vector);
        let (Some(vector), 1) = (vector, vectors) else {
            return Err(ToolError::Usage(format!(
                "npy holds one column of vectors of floats, here are {vectors}: choose with --columns"
            )));
        };
        let dimensions = columns[vector].cql_type.float_vector_dimensions();
        let mut keys = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.is_key);
        let key = keys.next().map(|(at, _)| at);
        let key = key.filter(|_| keys.next().is_none());
        let writer = match (ids, key) {
            (None, _) => KeyWriter::None,
            (Some(_), None) => {
                let why = "--ids needs the key in --columns, and one of a single column";
                return Err(ToolError::Usage(why.to_owned()));
            }
            (Some(path), Some(key)) => KeyWriter::create(path, &columns[key].cql_type)?,
        };
        Ok(NpySink {
            array: ArrayWriter::create(path, "<f4", dimensions)?,
            vector,
            key,
            keys: writer,
            columns: columns.to_vec(),
            left_out: 0,
        })
    }
}

impl KeyWriter {
    fn create(path: &Path, cql_type: &CqlType) -> Result<KeyWriter, ToolError> {
        let is_npy = path.extension().is_some_and(|extension| extension == "npy");
        let is_number = matches!(
            cql_type,
            CqlType::Tinyint | CqlType::Smallint | CqlType::Int | CqlType::Bigint
        );
        match (is_npy, is_number) {
            (true, true) => ArrayWriter::create(path, "<i8", None).map(KeyWriter::Numbers),
            (true, false) => Err(ToolError::Usage(format!(
                "--ids {}: keys of type {cql_type} go to a text, such as ids.txt",
                path.display()
            ))),
            (false, _) => {
                let file = File::create(path).map_err(|error| unwritable(path, &error))?;
                Ok(KeyWriter::Lines {
                    path: path.to_path_buf(),
                    output: BufWriter::with_capacity(BUFFER_BYTES, file),
                })
            }
        }
    }

    fn key(&mut self, cql_type: &CqlType, value: &[u8]) -> Result<(), ToolError> {
        let wrong = |error: value::ValueError| ToolError::Statement(error.0);
        match self {
            KeyWriter::None => Ok(()),
            KeyWriter::Numbers(array) => {
                let number = match Value::deserialize(cql_type, value).map_err(wrong)? {
                    Value::Tinyint(number) => number.into(),
                    Value::Smallint(number) => number.into(),
                    Value::Int(number) => number.into(),
                    Value::Bigint(number) => number,
                    _ => 0,
                };
                array.row(&number.to_le_bytes())
            }
            KeyWriter::Lines { path, output } => {
                let text = plain_text(cql_type, value).map_err(wrong)?;
                if text.contains(['\n', '\r']) {
                    return Err(ToolError::File(format!(
                        "the key {text:?} has more than one line: export to Parquet"
                    )));
                }
                let written = writeln!(output, "{text}");
                written.map_err(|error| unwritable(path, &error))
            }
        }
    }
}

impl RowSink for NpySink {
    fn row(&mut self, values: &[Option<&[u8]>]) -> Result<(), ToolError> {
        let Some(Some(vector)) = values.get(self.vector) else {
            self.left_out += 1;
            return Ok(());
        };
        let numbers = vector.as_chunks::<4>().0.iter();
        let bytes: Vec<u8> = numbers
            .flat_map(|number| f32::from_be_bytes(*number).to_le_bytes())
            .collect();
        self.array.row(&bytes)?;
        match self.key {
            Some(key) => {
                let value = values[key].unwrap_or_default();
                self.keys.key(&self.columns[key].cql_type, value)
            }
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), ToolError> {
        match &mut self.keys {
            KeyWriter::None => {}
            KeyWriter::Numbers(array) => array.finish()?,
            KeyWriter::Lines { path, output } => {
                output.flush().map_err(|error| unwritable(path, &error))?;
            }
        }
        self.array.finish()
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<ExportColumn> {
        let column = |name: &str, cql_type, is_key| ExportColumn {
            name: name.to_owned(),
            cql_type,
            is_key,
        };
        let vector = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: 2,
        };
        vec![column("id", CqlType::Int, true), column("v", vector, false)]
    }

    #[test]
    fn arrays_have_their_number_of_rows() {
        let directory = tempfile::tempdir().unwrap();
        let (path, ids) = (
            directory.path().join("v.npy"),
            directory.path().join("i.npy"),
        );
        let mut sink = NpySink::new(&path, Some(&ids), &columns()).unwrap();
        let vector = Value::FloatVector(vec![0.5, -1.0]).serialize();
        let id = Value::Int(7).serialize();
        sink.row(&[Some(&id), Some(&vector)]).unwrap();
        sink.row(&[Some(&id), None]).unwrap();
        sink.finish().unwrap();
        assert_eq!(sink.left_out(), 1);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), HEADER_BYTES + 8);
        let header = String::from_utf8_lossy(&bytes[10..HEADER_BYTES]).into_owned();
        assert!(
            header.contains("'shape': (1, 2)") && header.ends_with('\n'),
            "{header}"
        );
        assert_eq!(bytes[HEADER_BYTES..HEADER_BYTES + 4], 0.5_f32.to_le_bytes());
        let bytes = std::fs::read(&ids).unwrap();
        assert_eq!(bytes[HEADER_BYTES..], 7_i64.to_le_bytes());
    }

    #[test]
    fn tables_without_one_vector_are_refused() {
        let refused = |path: &str, ids: Option<&str>, columns: &[ExportColumn]| {
            let sink = NpySink::new(Path::new(path), ids.map(Path::new), columns);
            sink.err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        let columns = columns();
        assert!(refused("/nowhere/a.npy", None, &columns[..1]).contains("--columns"));
        assert!(refused("-", None, &columns).contains("--to"));
        assert!(refused("/nowhere/a.npy", Some("b.npy"), &columns[1..]).contains("--ids"));
    }
}
