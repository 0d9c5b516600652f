//! Reads columns of the Parquet files that come with the benchmark.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, anyhow};
use half::f16;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, DataType, FixedLenByteArrayType, FloatType, Int32Type};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

/// The number of rows decoded at a time. It is small, as the decoder needs many bytes for each half
/// float.
const ROWS_AT_A_TIME: usize = 1_000;

/// An open Parquet file.
pub struct ParquetFile {
    name: String,
    reader: SerializedFileReader<File>,
}

impl ParquetFile {
    /// Opens a file by its path from the benchmark's folder `data`.
    pub fn open(name: &str) -> anyhow::Result<ParquetFile> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("data")
            .join(name);
        let file = File::open(&path).with_context(|| path.display().to_string())?;
        Ok(ParquetFile {
            reader: SerializedFileReader::new(file).with_context(|| name.to_owned())?,
            name: name.into(),
        })
    }

    /// Reads a column of `f32` or lists of them into one flat list.
    pub fn floats(&self, column: &str) -> anyhow::Result<Vec<f32>> {
        self.values::<FloatType, f32>(column, |&x| x)
    }

    /// Reads a column of half floats or lists of them into one flat list.
    pub fn halves(&self, column: &str) -> anyhow::Result<Vec<f32>> {
        self.values::<FixedLenByteArrayType, f32>(column, |bytes| {
            let bytes = bytes.data();
            f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
        })
    }

    /// Reads a column of integers or lists of them into one flat list.
    pub fn integers(&self, column: &str) -> anyhow::Result<Vec<i32>> {
        self.values::<Int32Type, i32>(column, |&x| x)
    }

    /// Reads a column of text.
    pub fn texts(&self, column: &str) -> anyhow::Result<Vec<String>> {
        self.values::<ByteArrayType, String>(column, |text| {
            String::from_utf8_lossy(text.data()).into_owned()
        })
    }

    /// Reads all values of a column that has no nulls.
    fn values<T: DataType, V>(
        &self,
        column: &str,
        value: impl Fn(&T::T) -> V,
    ) -> anyhow::Result<Vec<V>> {
        let mut values = Vec::new();
        for group in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(group)?;
            let columns = group.metadata().columns();
            let position = columns
                .iter()
                .position(|chunk| chunk.column_path().parts()[0] == column)
                .ok_or_else(|| anyhow!("{} has no column {column}", self.name))?;
            let mut reader = get_typed_column_reader::<T>(group.get_column_reader(position)?);
            loop {
                let (mut definition, mut repetition) = (Vec::new(), Vec::new());
                let mut some = Vec::new();
                let (rows, ..) = reader.read_records(
                    ROWS_AT_A_TIME,
                    Some(&mut definition),
                    Some(&mut repetition),
                    &mut some,
                )?;
                if rows == 0 {
                    break;
                }
                values.extend(some.iter().map(&value));
            }
        }
        Ok(values)
    }
}
