//! Parquet files, by the rows that crate `parquet` puts together: of any nesting, uncompressed or
//! with Snappy or zstd. A page is in memory at a time for each column, and not a row group.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use parquet::record::reader::{ReaderIter, TreeBuilder};
use parquet::schema::types::{Type, TypePtr};
use value::CqlType;

use super::{FileColumn, FilePosition, FileRow, FileRows};
use crate::ToolError;
use crate::import::file_value::FileValue;

/// The rows whose values are decoded at once.
const ROWS_AT_ONCE: usize = 128;

/// Rows of a Parquet file.
pub struct ParquetRows {
    file: SerializedFileReader<File>,
    columns: Vec<FileColumn>,
    types: Vec<TypePtr>,
    /// The row group after the one that is read.
    next_group: usize,
    group: Option<ReaderIter>,
    position: FilePosition,
}

impl ParquetRows {
    /// Reads the file's directory.
    pub fn new(file: File) -> Result<ParquetRows, ToolError> {
        let file = guarded(|| SerializedFileReader::new(file))?;
        let metadata = file.metadata().file_metadata();
        let types = metadata.schema_descr().root_schema().get_fields().to_vec();
        let total = u64::try_from(metadata.num_rows()).unwrap_or(0);
        let columns = types.iter().map(|column| {
            let declared = declared(column);
            FileColumn::named(column.name(), declared)
        });
        let columns: Vec<_> = columns.collect();
        Ok(ParquetRows {
            file,
            columns,
            types,
            next_group: 0,
            group: None,
            position: FilePosition { done: 0, total },
        })
    }

    /// Opens the next row group. `false` after the last.
    fn open_group(&mut self) -> Result<bool, ToolError> {
        if self.next_group == self.file.num_row_groups() {
            return Ok(false);
        }
        let rows = guarded(|| {
            let schema = self.file.metadata().file_metadata().schema_descr_ptr();
            let group = self.file.get_row_group(self.next_group)?;
            let rows = TreeBuilder::new().with_batch_size(ROWS_AT_ONCE);
            rows.as_iter(schema, &*group)
        })?;
        self.group = Some(rows);
        self.next_group += 1;
        Ok(true)
    }

    /// The number of rows of the next group, if one follows.
    fn rows_of_next_group(&self) -> Option<u64> {
        let groups = self.file.metadata().row_groups();
        let rows = groups.get(self.next_group)?.num_rows();
        u64::try_from(rows).ok()
    }
}

/// Carries out a step of crate `parquet`, which panics on forms that it does not know and on some
/// damaged files.
fn guarded<T>(step: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ToolError> {
    let said = |why: &str| ToolError::File(format!("it can't be read as Parquet: {why}"));
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(said(&error.to_string())),
        Err(_) => Err(said("it is damaged, or of a form that is not known")),
    }
}

impl FileRows for ParquetRows {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<Option<FileRow>, ToolError> {
        loop {
            let group = self.group.as_mut();
            let row = guarded(|| group.and_then(ReaderIter::next).transpose())?;
            if let Some(row) = row {
                self.position.done += 1;
                let columns = row.into_columns().into_iter().zip(&self.types);
                let values = columns.map(|((_, field), column)| value(field, column));
                return Ok(Some(FileRow::Values(values.collect())));
            }
            if !self.open_group()? {
                return Ok(None);
            }
        }
    }

    fn position(&self) -> FilePosition {
        self.position
    }

    fn skip(&mut self, rows: u64) -> Result<u64, ToolError> {
        let mut skipped = 0;
        // Whole groups are not even opened.
        while self.group.is_none()
            && let Some(group) = self.rows_of_next_group()
            && skipped + group <= rows
        {
            skipped += group;
            self.next_group += 1;
        }
        self.position.done += skipped;
        while skipped < rows && self.next_row()?.is_some() {
            skipped += 1;
        }
        Ok(skipped)
    }
}

/// The type of the elements of a list.
fn element(list: &Type) -> Option<&Type> {
    if list.is_primitive() {
        // A field that repeats by itself.
        return Some(list);
    }
    let repeated = list.get_fields().first()?;
    match !repeated.is_primitive() && repeated.get_fields().len() == 1 {
        true => repeated.get_fields().first().map(|element| &**element),
        false => Some(&**repeated),
    }
}

/// The key and the value of a map.
fn entry(map: &Type) -> Option<(&Type, &Type)> {
    let entry = map.get_fields().first()?;
    if entry.is_primitive() {
        return None;
    }
    match entry.get_fields() {
        [key, value] => Some((&**key, &**value)),
        _ => None,
    }
}

fn is_list(column: &Type) -> bool {
    !column.is_primitive() && column.get_basic_info().converted_type() == ConvertedType::LIST
}

fn is_map(column: &Type) -> bool {
    let converted = column.get_basic_info().converted_type();
    let is_map = matches!(converted, ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE);
    !column.is_primitive() && is_map
}

/// The type of a column of CQL that holds such values; text for structs, whose JSON it holds, and
/// `None` if the values decide.
fn declared(column: &Type) -> Option<CqlType> {
    if column.is_primitive() {
        return primitive(column);
    }
    if is_list(column) {
        let element = element(column).and_then(declared);
        return Some(match element {
            Some(element) => CqlType::List {
                element: Box::new(element.frozen()),
                frozen: false,
            },
            None => CqlType::Text,
        });
    }
    if is_map(column) {
        let (key, value) = entry(column)?;
        return Some(match (declared(key), declared(value)) {
            (Some(key), Some(value)) if key != CqlType::Duration => CqlType::Map {
                key: Box::new(key.frozen()),
                value: Box::new(value.frozen()),
                frozen: false,
            },
            _ => CqlType::Text,
        });
    }
    Some(CqlType::Text)
}

fn primitive(column: &Type) -> Option<CqlType> {
    let info = column.get_basic_info();
    match info.logical_type_ref() {
        Some(LogicalType::Uuid) => return Some(CqlType::Uuid),
        Some(LogicalType::Float16) => return Some(CqlType::Float),
        Some(LogicalType::Time(_)) => return Some(CqlType::Time),
        Some(LogicalType::Timestamp(_)) => return Some(CqlType::Timestamp),
        // A column of nulls.
        Some(LogicalType::Unknown) => return Some(CqlType::Text),
        _ => {}
    }
    let by_use = match info.converted_type() {
        ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Some(CqlType::Text),
        ConvertedType::DECIMAL => Some(CqlType::Decimal),
        ConvertedType::DATE => Some(CqlType::Date),
        ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS => Some(CqlType::Time),
        ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS => {
            Some(CqlType::Timestamp)
        }
        ConvertedType::INT_8 => Some(CqlType::Tinyint),
        ConvertedType::INT_16 | ConvertedType::UINT_8 => Some(CqlType::Smallint),
        ConvertedType::UINT_16 => Some(CqlType::Int),
        ConvertedType::UINT_32 => Some(CqlType::Bigint),
        ConvertedType::UINT_64 => Some(CqlType::Varint),
        _ => None,
    };
    if by_use.is_some() {
        return by_use;
    }
    Some(match column.get_physical_type() {
        PhysicalType::BOOLEAN => CqlType::Boolean,
        PhysicalType::INT32 => CqlType::Int,
        PhysicalType::INT64 => CqlType::Bigint,
        PhysicalType::INT96 => CqlType::Timestamp,
        PhysicalType::FLOAT => CqlType::Float,
        PhysicalType::DOUBLE => CqlType::Double,
        PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY => CqlType::Blob,
    })
}

/// A value of a column of this type.
fn value(field: Field, column: &Type) -> FileValue {
    match field {
        Field::Null => FileValue::Null,
        Field::Bool(truth) => FileValue::Boolean(truth),
        Field::Byte(number) => FileValue::Integer(number.into()),
        Field::Short(number) => FileValue::Integer(number.into()),
        Field::Int(number) => whole(number.into(), column),
        Field::Long(number) => whole(number, column),
        Field::UByte(number) => FileValue::Integer(number.into()),
        Field::UShort(number) => FileValue::Integer(number.into()),
        Field::UInt(number) => FileValue::Integer(number.into()),
        Field::ULong(number) => match i64::try_from(number) {
            Ok(number) => FileValue::Integer(number),
            Err(_) => FileValue::Number(number.to_string()),
        },
        Field::Float16(number) => FileValue::Float(number.to_f32()),
        Field::Float(number) => FileValue::Float(number),
        Field::Double(number) => FileValue::Double(number),
        Field::Decimal(number) => FileValue::of_decimal(number.data(), number.scale()),
        Field::Str(text) => FileValue::Text(text),
        Field::Bytes(bytes) => FileValue::Bytes(Bytes::copy_from_slice(bytes.data())),
        Field::Date(days) => FileValue::Date(days),
        Field::TimeMillis(millis) => FileValue::Time(i64::from(millis) * 1_000_000),
        Field::TimeMicros(micros) => FileValue::Time(micros.saturating_mul(1_000)),
        Field::TimestampMillis(millis) => FileValue::Timestamp(millis),
        Field::TimestampMicros(micros) => FileValue::Timestamp(micros.div_euclid(1_000)),
        Field::ListInternal(list) => {
            let element = element(column).unwrap_or(column);
            let fields = list.elements();
            match floats(fields) {
                Some(numbers) => FileValue::Floats(numbers),
                None => {
                    let values = fields.iter().map(|field| value(field.clone(), element));
                    FileValue::List(values.collect())
                }
            }
        }
        Field::MapInternal(map) => {
            let types = match is_map(column) {
                true => entry(column).unwrap_or((column, column)),
                false => (column, column),
            };
            let entries = map
                .entries()
                .iter()
                .map(|(name, held)| (value(name.clone(), types.0), value(held.clone(), types.1)));
            FileValue::Map(entries.collect())
        }
        Field::Group(row) => {
            let fields = row.into_columns().into_iter().enumerate();
            let children = match column.is_primitive() {
                true => &[][..],
                false => column.get_fields(),
            };
            let fields = fields.map(|(at, (name, field))| {
                let child = children.get(at).map_or(column, Arc::as_ref);
                (name, value(field, child))
            });
            FileValue::Struct(fields.collect())
        }
    }
}

/// The numbers of a list that has nothing but floats of four bytes, the usual form of a vector.
fn floats(fields: &[Field]) -> Option<Vec<f32>> {
    let number = |field: &Field| match field {
        Field::Float(number) => Some(*number),
        _ => None,
    };
    match fields.is_empty() {
        true => None,
        false => fields.iter().map(number).collect(),
    }
}

/// A whole number, or the moment that it is. Rows give times as plain numbers where they are of
/// nanoseconds, or of clocks without a zone.
fn whole(number: i64, column: &Type) -> FileValue {
    let per_second = |unit: &TimeUnit| match *unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    };
    match column.get_basic_info().logical_type_ref() {
        Some(LogicalType::Time(time)) => {
            FileValue::Time(number.saturating_mul(1_000_000_000 / per_second(&time.unit)))
        }
        Some(LogicalType::Timestamp(time)) => {
            FileValue::Timestamp(number.div_euclid(per_second(&time.unit) / 1_000))
        }
        _ => FileValue::Integer(number),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom};

    use parquet::basic::{Compression, ZstdLevel};
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, FloatType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::import::source::all_rows;

    const SCHEMA: &str = "message m { required int64 id; \
        optional binary title (STRING); \
        optional group v (LIST) { repeated group list { optional float element; } } \
        optional int64 at (TIMESTAMP(NANOS,false)); \
        optional group s { optional double x; } }";

    /// Two groups of a row each; the second row has nothing but its id.
    fn file(compression: Compression) -> File {
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let properties = WriterProperties::builder().set_compression(compression);
        let mut file = tempfile::tempfile().unwrap();
        let copy = file.try_clone().unwrap();
        let properties = Arc::new(properties.build());
        let mut writer = SerializedFileWriter::new(copy, schema, properties).unwrap();
        for (row, is_full) in [(7_i64, true), (8, false)] {
            let mut group = writer.next_row_group().unwrap();
            let level = |full: i16| vec![if is_full { full } else { 0 }];
            let mut column = group.next_column().unwrap().unwrap();
            let ids = column.typed::<Int64Type>();
            ids.write_batch(&[row], None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let titles = [ByteArray::from("a")];
            let titles = &titles[..usize::from(is_full)];
            let writer = column.typed::<ByteArrayType>();
            writer.write_batch(titles, Some(&level(1)), None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let writer = column.typed::<FloatType>();
            let (numbers, levels, repeated): (&[f32], Vec<i16>, Vec<i16>) = match is_full {
                true => (&[0.5, -1.0], vec![3, 3], vec![0, 1]),
                false => (&[], vec![0], vec![0]),
            };
            writer
                .write_batch(numbers, Some(&levels), Some(&repeated))
                .unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let moments = [1_500_000_i64];
            let writer = column.typed::<Int64Type>();
            let moments = &moments[..usize::from(is_full)];
            writer.write_batch(moments, Some(&level(1)), None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let doubles = [2.5];
            let writer = column.typed::<DoubleType>();
            let doubles = &doubles[..usize::from(is_full)];
            writer.write_batch(doubles, Some(&level(2)), None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        writer.close().unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    fn expected() -> [FileRow; 2] {
        let nested = FileValue::Struct(vec![("x".to_owned(), FileValue::Double(2.5))]);
        let full = vec![
            FileValue::Integer(7),
            FileValue::Text("a".to_owned()),
            FileValue::Floats(vec![0.5, -1.0]),
            FileValue::Timestamp(1),
            nested,
        ];
        let mut bare = vec![FileValue::Null; 5];
        bare[0] = FileValue::Integer(8);
        [FileRow::Values(full), FileRow::Values(bare)]
    }

    #[test]
    fn rows_are_read_whatever_compressed_them() {
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::ZSTD(ZstdLevel::default()),
        ] {
            let mut rows = ParquetRows::new(file(compression)).unwrap();
            let types: Vec<_> = rows
                .columns
                .iter()
                .map(|column| column.declared.clone())
                .collect();
            let types: Vec<_> = types
                .into_iter()
                .map(|declared| declared.unwrap())
                .collect();
            let types: Vec<_> = types.iter().map(CqlType::to_string).collect();
            let expected_types = ["bigint", "text", "list<float>", "timestamp", "text"];
            assert_eq!(types, expected_types);
            assert_eq!(all_rows(&mut rows).unwrap(), expected());
            assert_eq!(rows.position(), FilePosition { done: 2, total: 2 });
        }
    }

    #[test]
    fn groups_are_skipped() {
        let mut rows = ParquetRows::new(file(Compression::SNAPPY)).unwrap();
        assert_eq!(rows.skip(1).unwrap(), 1);
        assert_eq!(all_rows(&mut rows).unwrap(), expected()[1..]);
        let mut rows = ParquetRows::new(file(Compression::SNAPPY)).unwrap();
        assert_eq!(rows.skip(9).unwrap(), 2);
    }

    #[test]
    fn a_file_that_is_cut_is_refused() {
        let cut = file(Compression::SNAPPY);
        cut.set_len(100).unwrap();
        let error = ParquetRows::new(cut).err().unwrap().to_string();
        assert!(error.contains("Parquet"), "{error}");
    }
}
