//! Reads parquet files with a column of lists of numbers, one list a row, all of one length.
//! VectorDBBench and most embeddings are stored like this. A column `id` of integers has the rows'
//! ids.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use half::f16;
use parquet::basic::Type;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{
    DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::SchemaDescriptor;

use super::array::{NumberArray, NumberValues};
use super::numbered;

/// The name of the column of ids.
const IDS: &str = "id";

/// Reads the column `name` with the rows' ids, if there are any. If the file is the first of
/// several ([`numbered`]), the others are read after it. Reading stops after the row group that
/// completes `rows_max` rows.
pub fn read(path: &Path, name: &str, rows_max: usize) -> anyhow::Result<NumberArray> {
    let mut rows = RowAccumulator::default();
    for (at, file) in numbered::files(path).iter().enumerate() {
        if rows.count >= rows_max {
            break;
        }
        let appended = rows.append_file(file, name, rows_max);
        // The caller adds the name of the first file to an error in any case.
        match at {
            0 => appended?,
            _ => appended.with_context(|| file.display().to_string())?,
        }
    }
    rows.into_array()
}

/// The names of the columns that hold lists of numbers, in the order of the file.
pub fn names(path: &Path) -> anyhow::Result<Vec<String>> {
    let file = SerializedFileReader::new(File::open(path)?)?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let names = list_columns(&schema);
    ensure!(!names.is_empty(), "it has no column of lists of numbers");
    Ok(names)
}

fn list_columns(schema: &SchemaDescriptor) -> Vec<String> {
    (0..schema.num_columns())
        .filter(|&leaf| is_list_of_numbers(schema, leaf))
        .map(|leaf| schema.column(leaf).path().parts()[0].clone())
        .collect()
}

fn leaf(schema: &SchemaDescriptor, name: &str) -> Option<usize> {
    (0..schema.num_columns()).find(|&leaf| {
        is_list_of_numbers(schema, leaf) && schema.column(leaf).path().parts()[0] == name
    })
}

fn is_list_of_numbers(schema: &SchemaDescriptor, leaf: usize) -> bool {
    let column = schema.column(leaf);
    let number = match column.physical_type() {
        Type::FLOAT | Type::DOUBLE | Type::INT32 | Type::INT64 => true,
        Type::FIXED_LEN_BYTE_ARRAY => column.type_length() == 2,
        _ => false,
    };
    number && column.max_rep_level() == 1
}

fn leaf_is_plain(schema: &SchemaDescriptor, leaf: usize) -> bool {
    schema.column(leaf).max_rep_level() == 0
}

/// The rows read so far.
#[derive(Default)]
struct RowAccumulator {
    columns: Option<usize>,
    count: usize,
    floats: Vec<f32>,
    integers: Vec<i64>,
    ids: Vec<i64>,
    /// The element type in the file last read.
    stored_as: &'static str,
}

impl RowAccumulator {
    /// Appends the rows of a file, up to the row group that completes `rows_max`.
    fn append_file(&mut self, path: &Path, name: &str, rows_max: usize) -> anyhow::Result<()> {
        let file = SerializedFileReader::new(File::open(path)?)?;
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let leaf = leaf(&schema, name).with_context(|| {
            format!(
                "it has no column {name:?} of numbers; it has {}",
                list_columns(&schema).join(", ")
            )
        })?;
        let ids = (0..schema.num_columns()).find(|&leaf| {
            let column = schema.column(leaf);
            column.path().string() == IDS
                && matches!(column.physical_type(), Type::INT32 | Type::INT64)
                && leaf_is_plain(&schema, leaf)
        });
        for group in 0..file.num_row_groups() {
            if self.count >= rows_max {
                break;
            }
            let group = file.get_row_group(group)?;
            self.append(&*group, leaf)?;
            if let Some(ids) = ids {
                self.ids.extend(integers(&*group, ids)?.values);
            }
        }
        Ok(())
    }

    fn into_array(self) -> anyhow::Result<NumberArray> {
        let columns = self.columns.context("it has no rows")?;
        ensure!(
            self.ids.is_empty() || self.ids.len() == self.count,
            "some of its files have a column {IDS:?} and others have not"
        );
        ensure!(
            self.floats.is_empty() || self.integers.is_empty(),
            "some of its files hold floats and others integers"
        );
        let values = match self.floats.is_empty() {
            false => NumberValues::Floats(self.floats),
            true => NumberValues::Integers(self.integers),
        };
        let mut array = NumberArray::new(columns, values, self.stored_as)?;
        array.ids = Some(self.ids).filter(|ids| !ids.is_empty());
        Ok(array)
    }

    /// Appends the rows of a row group.
    fn append(&mut self, group: &dyn RowGroupReader, leaf: usize) -> anyhow::Result<()> {
        let column = group.metadata().column(leaf).column_descr_ptr();
        let (lengths, stored_as) = match column.physical_type() {
            Type::FLOAT => {
                let leaf = leaves::<FloatType>(group, leaf)?;
                self.floats.extend(leaf.values);
                (leaf.lengths, "float32")
            }
            Type::DOUBLE => {
                let leaf = leaves::<DoubleType>(group, leaf)?;
                let values = leaf.values.into_iter().map(|value| value as f32);
                self.floats.extend(values);
                (leaf.lengths, "float64")
            }
            Type::FIXED_LEN_BYTE_ARRAY => {
                let leaf = leaves::<FixedLenByteArrayType>(group, leaf)?;
                for value in &leaf.values {
                    let bytes = value.data().try_into().context("a float16")?;
                    self.floats.push(f16::from_le_bytes(bytes).to_f32());
                }
                (leaf.lengths, "float16")
            }
            _ => {
                let leaf = integers(group, leaf)?;
                self.integers.extend(leaf.values);
                (leaf.lengths, "integer")
            }
        };
        for length in lengths {
            let columns = *self.columns.get_or_insert(length);
            ensure!(
                length == columns,
                "row {} has {length} elements, the rows before it have {columns}",
                self.count
            );
            self.count += 1;
        }
        self.stored_as = stored_as;
        Ok(())
    }
}

/// The values of a leaf column in a row group, and the number of values of each row.
struct LeafValues<T> {
    values: Vec<T>,
    lengths: Vec<usize>,
}

fn integers(group: &dyn RowGroupReader, leaf: usize) -> anyhow::Result<LeafValues<i64>> {
    match group.metadata().column(leaf).column_type() {
        Type::INT32 => {
            let LeafValues { values, lengths } = leaves::<Int32Type>(group, leaf)?;
            let values = values.into_iter().map(i64::from).collect();
            Ok(LeafValues { values, lengths })
        }
        Type::INT64 => leaves::<Int64Type>(group, leaf),
        other => bail!("a column of {other} holds no integers"),
    }
}

fn leaves<T: DataType>(
    group: &dyn RowGroupReader,
    leaf: usize,
) -> anyhow::Result<LeafValues<T::T>> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(leaf)?);
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    let (_, _, levels) = reader.read_records(
        rows,
        Some(&mut definition),
        Some(&mut repetition),
        &mut values,
    )?;
    // A null or an empty list has a level but no value.
    ensure!(
        values.len() == levels,
        "{} of its lists or elements are null or empty",
        levels - values.len()
    );
    let mut lengths = Vec::with_capacity(rows);
    if repetition.is_empty() {
        lengths.resize(levels, 1);
    }
    for level in repetition {
        match lengths.last_mut() {
            Some(length) if level > 0 => *length += 1,
            _ => lengths.push(1),
        }
    }
    Ok(LeafValues { values, lengths })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// Writes the columns `id` and `emb` as VectorDBBench has them; an empty list is written as
    /// null.
    fn write(path: &Path, groups: &[(&[i64], &[&[f64]])]) {
        write_by(Compression::UNCOMPRESSED, path, groups);
    }

    fn write_by(compression: Compression, path: &Path, groups: &[(&[i64], &[&[f64]])]) {
        let schema = "message m { required int64 id; \
                      optional group emb (LIST) { repeated group list { optional double element; } } }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = WriterProperties::builder().set_compression(compression);
        let properties = Arc::new(properties.build());
        let file = File::create(path).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
        for (ids, rows) in groups {
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<Int64Type>()
                .write_batch(ids, None, None)
                .unwrap();
            column.close().unwrap();
            let (mut values, mut definition, mut repetition) = (vec![], vec![], vec![]);
            for row in *rows {
                definition.extend(row.iter().map(|_| 3));
                repetition.extend((0..row.len()).map(|at| i16::from(at > 0)));
                if row.is_empty() {
                    definition.push(0);
                    repetition.push(0);
                }
                values.extend(*row);
            }
            let mut column = group.next_column().unwrap().unwrap();
            column
                .typed::<DoubleType>()
                .write_batch(&values, Some(&definition), Some(&repetition))
                .unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        writer.close().unwrap();
    }

    #[test]
    fn lists_of_several_groups_with_their_ids() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("train.parquet");
        write(
            &path,
            &[
                (&[7, 3], &[&[1.0, 2.0], &[3.0, 4.0]]),
                (&[5], &[&[5.0, 6.0]]),
            ],
        );
        assert_eq!(names(&path).unwrap(), ["emb"]);
        let array = read(&path, "emb", usize::MAX).unwrap();
        assert_eq!((array.rows(), array.columns), (3, 2));
        assert_eq!(array.ids, Some(vec![7, 3, 5]));
        let floats = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(array.values, NumberValues::Floats(floats));
    }

    #[test]
    fn compressed_files_are_read_whatever_compressed_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("train.parquet");
        let rows: Vec<[f64; 2]> = (0..500).map(|row| [f64::from(row % 7), 1.0]).collect();
        let rows: Vec<&[f64]> = rows.iter().map(<[f64; 2]>::as_slice).collect();
        let ids: Vec<i64> = (0..500).collect();
        for compression in [Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())] {
            write_by(compression, &path, &[(&ids, &rows)]);
            let array = read(&path, "emb", usize::MAX).unwrap();
            assert_eq!((array.rows(), array.columns), (500, 2), "{compression}");
            let NumberValues::Floats(values) = array.values else {
                panic!("{compression}");
            };
            assert_eq!(values[996..], [1.0, 1.0, 2.0, 1.0], "{compression}");
        }
    }

    #[test]
    fn files_that_follow_each_other_are_read_as_far_as_needed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |number| {
            directory
                .path()
                .join(format!("train-{number}-of-3.parquet"))
        };
        let rows: [&[&[f64]]; 2] = [&[&[1.0], &[2.0]], &[&[3.0]]];
        write(&path(0), &[(&[7, 3], rows[0])]);
        write(&path(1), &[(&[5], rows[1])]);
        let array = read(&path(0), "emb", 3).unwrap();
        assert_eq!(array.ids, Some(vec![7, 3, 5]));
        assert_eq!(array.values, NumberValues::Floats(vec![1.0, 2.0, 3.0]));
        // The first file has enough rows, so the others are not opened.
        assert_eq!(read(&path(0), "emb", 2).unwrap().rows(), 2);
        let error = format!("{:#}", read(&path(0), "emb", 4).unwrap_err());
        assert!(error.contains("train-2-of-3"), "{error}");
        assert_eq!(read(&path(1), "emb", usize::MAX).unwrap().rows(), 1);
    }

    #[test]
    fn nulls_and_rows_of_other_lengths_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("train.parquet");
        write(&path, &[(&[1, 2], &[&[1.0], &[]])]);
        let error = read(&path, "emb", 9).unwrap_err();
        assert!(error.to_string().contains("null"), "{error}");
        write(&path, &[(&[1, 2], &[&[1.0], &[1.0, 2.0]])]);
        let error = read(&path, "emb", 9).unwrap_err();
        assert!(error.to_string().contains("row 1"), "{error}");
        let error = read(&path, "vector", 9).unwrap_err();
        assert!(error.to_string().contains("it has emb"), "{error}");
    }
}
