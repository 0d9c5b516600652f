//! Arrays of numpy (numpy.lib.format, versions 1 to 3): a vector a row. The keys of the rows are in
//! a file of their own, an array of whole numbers or a text with one a line, or there are none.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Read};
use std::path::Path;

use half::f16;
use value::{CqlType, MAX_VECTOR_DIMENSIONS};

use super::{
    BUFFER_BYTES, FileColumn, FileFormat, FilePosition, FileRow, FileRows, SourceOptions,
    unreadable,
};
use crate::ToolError;
use crate::import::file_value::FileValue;

/// The first bytes of each file.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Rows of an array of two dimensions.
pub struct NpyRows {
    array: ArrayReader<Box<dyn Read + Send>>,
    ids: Option<KeyReader>,
    columns: Vec<FileColumn>,
}

/// The keys of the rows.
enum KeyReader {
    Numbers(ArrayReader<BufReader<File>>),
    Lines(Lines<BufReader<File>>),
}

impl NpyRows {
    /// Reads the header, and opens the file of keys.
    pub fn new(
        input: impl Read + Send + 'static,
        options: &SourceOptions,
    ) -> Result<NpyRows, ToolError> {
        let input: Box<dyn Read + Send> = Box::new(input);
        let array = ArrayReader::new(input)?;
        let dimensions = u16::try_from(array.columns).ok();
        let dimensions = dimensions.filter(|wide| (1..=MAX_VECTOR_DIMENSIONS).contains(wide));
        let dimensions = dimensions.ok_or_else(|| {
            ToolError::File(format!(
                "its rows have {} numbers, but a vector has 1 to {MAX_VECTOR_DIMENSIONS}",
                array.columns
            ))
        })?;
        let ids = options.ids.as_deref().map(KeyReader::open).transpose()?;
        let mut columns = Vec::new();
        if let Some(ids) = &ids {
            columns.push(FileColumn {
                name: options.id_column.clone(),
                declared: ids.declared(),
                is_named: false,
            });
        }
        columns.push(FileColumn {
            name: options.vector_column.clone(),
            declared: Some(CqlType::Vector {
                element: Box::new(CqlType::Float),
                dimensions,
            }),
            is_named: false,
        });
        let rows = NpyRows {
            array,
            ids,
            columns,
        };
        match &rows.ids {
            Some(KeyReader::Numbers(ids)) if ids.rows != rows.array.rows => {
                Err(ToolError::File(format!(
                    "it has {} rows, and the file of ids {}",
                    rows.array.rows, ids.rows
                )))
            }
            _ => Ok(rows),
        }
    }
}

impl KeyReader {
    fn open(path: &Path) -> Result<KeyReader, ToolError> {
        let named = |why: String| ToolError::File(format!("{}: {why}", path.display()));
        let file = File::open(path).map_err(|error| named(error.to_string()))?;
        let input = BufReader::with_capacity(BUFFER_BYTES, file);
        if FileFormat::of_name(path) != Some(FileFormat::Npy) {
            return Ok(KeyReader::Lines(input.lines()));
        }
        let array = ArrayReader::new(input).map_err(|error| named(error.to_string()))?;
        match array.columns == 1 && array.is_whole() {
            true => Ok(KeyReader::Numbers(array)),
            false => Err(named(
                "it is no array of one dimension of whole numbers".to_owned(),
            )),
        }
    }

    fn declared(&self) -> Option<CqlType> {
        matches!(self, KeyReader::Numbers(_)).then_some(CqlType::Bigint)
    }

    /// The next key.
    fn next_key(&mut self) -> Result<FileValue, ToolError> {
        let ended = || ToolError::File("the file of ids has fewer rows".to_owned());
        match self {
            KeyReader::Numbers(array) => {
                let row = array.next_row()?.ok_or_else(ended)?;
                Ok(array.integer(row).unwrap_or(FileValue::Null))
            }
            KeyReader::Lines(lines) => {
                let line = lines.next().ok_or_else(ended)?.map_err(unreadable)?;
                Ok(FileValue::Cell(line.trim().to_owned()))
            }
        }
    }
}

impl FileRows for NpyRows {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<FileRow>, ToolError> {
        let Some(row) = self.array.next_row()? else {
            return Ok(None);
        };
        let vector = FileValue::Floats(self.array.floats(row));
        let mut values = Vec::with_capacity(2);
        if let Some(ids) = &mut self.ids {
            values.push(ids.next_key()?);
        }
        values.push(vector);
        Ok(Some(FileRow::Values(values)))
    }

    fn position(&self) -> FilePosition {
        FilePosition {
            done: self.array.read,
            total: self.array.rows,
        }
    }
}

/// The type of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ElementKind {
    Float,
    Signed,
    Unsigned,
}

/// The rows of an array, as bytes.
struct ArrayReader<R> {
    input: R,
    kind: ElementKind,
    element_bytes: usize,
    rows: u64,
    columns: usize,
    read: u64,
}

/// The bytes of one row.
struct RowBytes(Vec<u8>);

impl<R: Read> ArrayReader<R> {
    /// Reads the header.
    fn new(mut input: R) -> Result<ArrayReader<R>, ToolError> {
        let header = header_text(&mut input)?;
        let header = parse(&header)?;
        let (kind, element_bytes) = match header.descr.as_str() {
            "f2" => (ElementKind::Float, 2),
            "f4" => (ElementKind::Float, 4),
            "f8" => (ElementKind::Float, 8),
            "i1" => (ElementKind::Signed, 1),
            "i2" => (ElementKind::Signed, 2),
            "i4" => (ElementKind::Signed, 4),
            "i8" => (ElementKind::Signed, 8),
            "u1" => (ElementKind::Unsigned, 1),
            "u2" => (ElementKind::Unsigned, 2),
            "u4" => (ElementKind::Unsigned, 4),
            other => {
                return Err(ToolError::File(format!(
                    "its elements are {other:?}: save them as float32, float16 or int64"
                )));
            }
        };
        Ok(ArrayReader {
            input,
            kind,
            element_bytes,
            rows: header.rows,
            columns: header.columns,
            read: 0,
        })
    }

    fn is_whole(&self) -> bool {
        self.kind != ElementKind::Float
    }

    fn next_row(&mut self) -> Result<Option<RowBytes>, ToolError> {
        if self.read == self.rows {
            return Ok(None);
        }
        let mut bytes = vec![0; self.columns * self.element_bytes];
        self.input.read_exact(&mut bytes).map_err(|error| {
            ToolError::File(format!(
                "its header says {} rows, but row {} can't be read: {error}",
                self.rows, self.read
            ))
        })?;
        self.read += 1;
        Ok(Some(RowBytes(bytes)))
    }

    fn floats(&self, row: RowBytes) -> Vec<f32> {
        let bytes = row.0;
        let (twos, fours, eights) = (
            bytes.as_chunks::<2>().0.iter().copied(),
            bytes.as_chunks::<4>().0.iter().copied(),
            bytes.as_chunks::<8>().0.iter().copied(),
        );
        match (self.kind, self.element_bytes) {
            (ElementKind::Float, 2) => twos.map(|x| f16::from_le_bytes(x).to_f32()).collect(),
            (ElementKind::Float, 4) => fours.map(f32::from_le_bytes).collect(),
            (ElementKind::Float, _) => eights.map(|x| f64::from_le_bytes(x) as f32).collect(),
            (_, width) => bytes
                .chunks_exact(width)
                .map(|element| whole(self.kind, element) as f32)
                .collect(),
        }
    }

    /// The first number of a row, if the array has whole numbers.
    fn integer(&self, row: RowBytes) -> Option<FileValue> {
        let first = row.0.get(..self.element_bytes)?;
        Some(FileValue::Integer(whole(self.kind, first)))
    }
}

/// A whole number of up to eight bytes, the lowest first.
fn whole(kind: ElementKind, bytes: &[u8]) -> i64 {
    let is_negative =
        kind == ElementKind::Signed && bytes.last().is_some_and(|top| top & 0x80 != 0);
    let mut wide = [if is_negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

fn header_text(input: &mut impl Read) -> Result<String, ToolError> {
    let cut = |_| ToolError::File("it ends within its header, or is no npy file".to_owned());
    let mut begin = [0; 8];
    input.read_exact(&mut begin).map_err(cut)?;
    let (magic, version) = begin.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(ToolError::File(
            "it does not begin like an npy file".to_owned(),
        ));
    }
    let length = match version[0] {
        1 => {
            let mut length = [0; 2];
            input.read_exact(&mut length).map_err(cut)?;
            usize::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            input.read_exact(&mut length).map_err(cut)?;
            u32::from_le_bytes(length) as usize
        }
        other => {
            return Err(ToolError::File(format!(
                "its format version is {other}, known are 1 to 3"
            )));
        }
    };
    if length > HEADER_BYTES_MAX {
        return Err(ToolError::File(format!("its header has {length} bytes")));
    }
    let mut text = vec![0; length];
    input.read_exact(&mut text).map_err(cut)?;
    String::from_utf8(text).map_err(|_| ToolError::File("its header is not UTF-8".to_owned()))
}

/// The header of an array.
#[derive(Debug, PartialEq)]
struct ArrayHeader {
    /// Kind and bytes of an element, such as `f4`.
    descr: String,
    rows: u64,
    columns: usize,
}

fn parse(header: &str) -> Result<ArrayHeader, ToolError> {
    let unclear = || ToolError::File(format!("its header is not understood: {header}"));
    let after = |key: &str| {
        let (_, rest) = header.split_once(key)?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let descr = after("'descr'")
        .and_then(|rest| rest.strip_prefix('\''))
        .and_then(|rest| rest.split_once('\''))
        .ok_or_else(unclear)?
        .0;
    if descr.starts_with('>') {
        let why = "its elements are big-endian: save them little-endian";
        return Err(ToolError::File(why.to_owned()));
    }
    let fortran = after("'fortran_order'").ok_or_else(unclear)?;
    let shape = after("'shape'")
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| rest.split_once(')'))
        .ok_or_else(unclear)?
        .0;
    let sizes = shape
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty());
    let sizes: Vec<u64> = sizes
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| unclear())?;
    let (rows, columns) = match sizes[..] {
        [rows] => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => {
            return Err(ToolError::File(format!(
                "its shape is ({shape}), but it must have rows of vectors"
            )));
        }
    };
    if !fortran.starts_with("False") && columns != 1 {
        let why = "it is stored column by column: save numpy.ascontiguousarray(it)";
        return Err(ToolError::File(why.to_owned()));
    }
    let columns = usize::try_from(columns).ok();
    let columns = columns.filter(|columns| *columns <= 1 << 20);
    Ok(ArrayHeader {
        descr: descr.trim_start_matches(['<', '|', '=']).to_owned(),
        rows,
        columns: columns.ok_or_else(unclear)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::import::source::all_rows;

    fn array(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}   \n");
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), elements].concat()
    }

    fn options(ids: Option<&Path>) -> SourceOptions {
        SourceOptions {
            format: None,
            delimiter: None,
            ids: ids.map(Path::to_path_buf),
            vector_column: "vector".to_owned(),
            id_column: "id".to_owned(),
        }
    }

    fn read(file: Vec<u8>, ids: Option<&Path>) -> Result<Vec<FileRow>, ToolError> {
        let mut rows = NpyRows::new(std::io::Cursor::new(file), &options(ids))?;
        all_rows(&mut rows)
    }

    fn values(row: Vec<FileValue>) -> FileRow {
        FileRow::Values(row)
    }

    #[test]
    fn vectors_of_every_width_are_read() {
        let fours = [1.0_f32, 2.0, -0.5, 4.0].map(f32::to_le_bytes).concat();
        let rows = read(array("<f4", "(2, 2)", &fours), None).unwrap();
        let expected = [vec![1.0, 2.0], vec![-0.5, 4.0]];
        assert_eq!(
            rows,
            expected.map(|row| values(vec![FileValue::Floats(row)]))
        );
        let twos = [0.5, -2.0].map(|x| f16::from_f32(x).to_le_bytes()).concat();
        let rows = read(array("<f2", "(1, 2)", &twos), None).unwrap();
        assert_eq!(rows, [values(vec![FileValue::Floats(vec![0.5, -2.0])])]);
        let rows = read(array("|i1", "(1, 2)", &[1, 0xff]), None).unwrap();
        assert_eq!(rows, [values(vec![FileValue::Floats(vec![1.0, -1.0])])]);
    }

    #[test]
    fn keys_come_from_an_array_or_from_lines() {
        let directory = tempfile::tempdir().unwrap();
        let (numbers, lines) = (
            directory.path().join("i.npy"),
            directory.path().join("i.txt"),
        );
        let ids = [7_i64, -1].map(i64::to_le_bytes).concat();
        std::fs::write(&numbers, array("<i8", "(2,)", &ids)).unwrap();
        let mut file = File::create(&lines).unwrap();
        file.write_all(b"a\nb\n").unwrap();
        let vectors = array("<f4", "(2, 1)", &[0; 8]);
        let zero = || FileValue::Floats(vec![0.0]);
        let rows = read(vectors.clone(), Some(&numbers)).unwrap();
        let expected = [7, -1].map(|id| values(vec![FileValue::Integer(id), zero()]));
        assert_eq!(rows, expected);
        let rows = read(vectors, Some(&lines)).unwrap();
        let expected = ["a", "b"].map(|id| values(vec![FileValue::Cell(id.to_owned()), zero()]));
        assert_eq!(rows, expected);
        let error = read(array("<f4", "(3, 1)", &[0; 12]), Some(&numbers)).unwrap_err();
        assert!(error.to_string().contains("3 rows"), "{error}");
    }

    #[test]
    fn unreadable_files_are_refused_with_the_reason() {
        let says = |descr: &str, shape: &str| {
            read(array(descr, shape, &[0; 4]), None)
                .unwrap_err()
                .to_string()
        };
        assert!(says("<c8", "(1, 1)").contains("float32"));
        assert!(says(">f4", "(1, 1)").contains("big-endian"));
        assert!(says("<f4", "(1, 1, 1)").contains("shape"));
        assert!(says("<f4", "(2, 1)").contains("row 1"));
        assert!(says("<f4", "(1, 99999999999)").contains("not understood"));
        assert!(says("<f4", "(1, 20000)").contains("20000 numbers"));
        assert!(read(b"PK".to_vec(), None).is_err());
        assert!(read(MAGIC.to_vec(), None).is_err());
    }
}
