//! Parquet: simple types and lists of them as Parquet has them; what has more structure as the text
//! of its JSON, which an import into a column of that type reads again.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{PrimitiveTypeBuilder, Type, TypePtr};
use value::{CqlType, Value, ValueError};

use super::{ExportColumn, RowSink};
use crate::ToolError;
use crate::cql_json::plain_text;

/// The bytes of values, and the rows, of a row group.
const GROUP_BYTES: usize = 32 << 20;
const GROUP_ROWS: usize = 100_000;

/// The values of a column that are not written yet, in Parquet's form.
enum LeafValues {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

/// A column of the file, with its rows since the last group.
struct ColumnBuffer {
    column: ExportColumn,
    /// The type of the elements of a list; `None` for a column of single values.
    element: Option<CqlType>,
    values: LeafValues,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

/// A Parquet file.
pub struct ParquetSink<W: Write + Send> {
    writer: Option<SerializedFileWriter<W>>,
    columns: Vec<ColumnBuffer>,
    rows: usize,
    bytes: usize,
}

fn unwritable(error: &ParquetError) -> ToolError {
    ToolError::File(format!("the file can't be written: {error}"))
}

impl<W: Write + Send> ParquetSink<W> {
    /// Begins the file.
    pub fn new(output: W, columns: Vec<ExportColumn>) -> Result<ParquetSink<W>, ToolError> {
        let wrong = |error: ParquetError| unwritable(&error);
        let columns: Vec<_> = columns.into_iter().map(ColumnBuffer::new).collect();
        let fields = columns.iter().map(ColumnBuffer::field);
        let fields = fields.collect::<Result<Vec<TypePtr>, _>>().map_err(wrong)?;
        let schema = Type::group_type_builder("schema").with_fields(fields);
        let schema = Arc::new(schema.build().map_err(wrong)?);
        // Vectors have no values that repeat.
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(false)
            .build();
        let writer = SerializedFileWriter::new(output, schema, Arc::new(properties));
        Ok(ParquetSink {
            writer: Some(writer.map_err(wrong)?),
            columns,
            rows: 0,
            bytes: 0,
        })
    }

    /// Writes a row group.
    fn flush(&mut self) -> Result<(), ToolError> {
        let Some(writer) = self.writer.as_mut().filter(|_| self.rows > 0) else {
            return Ok(());
        };
        let wrong = |error: ParquetError| unwritable(&error);
        let mut group = writer.next_row_group().map_err(wrong)?;
        for column in &mut self.columns {
            column.write(&mut group).map_err(wrong)?;
        }
        group.close().map_err(wrong)?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

impl<W: Write + Send> RowSink for ParquetSink<W> {
    fn row(&mut self, values: &[Option<&[u8]>]) -> Result<(), ToolError> {
        for (column, value) in self.columns.iter_mut().zip(values) {
            let pushed = column.push(*value);
            pushed.map_err(|error| {
                ToolError::Statement(format!("column {}: {error}", column.column.name))
            })?;
            self.bytes += value.map_or(0, <[u8]>::len) + 4;
        }
        self.rows += 1;
        match self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), ToolError> {
        self.flush()?;
        if let Some(writer) = self.writer.take() {
            let mut output = writer.into_inner().map_err(|error| unwritable(&error))?;
            let flushed = output.flush();
            flushed.map_err(|error| ToolError::File(error.to_string()))?;
        }
        Ok(())
    }
}

/// The types that are single values of Parquet.
fn leaf_values(cql_type: &CqlType) -> LeafValues {
    match cql_type {
        CqlType::Boolean => LeafValues::Boolean(Vec::new()),
        CqlType::Tinyint | CqlType::Smallint | CqlType::Int | CqlType::Date => {
            LeafValues::Int32(Vec::new())
        }
        CqlType::Bigint | CqlType::Counter | CqlType::Time | CqlType::Timestamp => {
            LeafValues::Int64(Vec::new())
        }
        CqlType::Float => LeafValues::Float(Vec::new()),
        CqlType::Double => LeafValues::Double(Vec::new()),
        CqlType::Uuid | CqlType::Timeuuid => LeafValues::Fixed(Vec::new()),
        _ => LeafValues::Bytes(Vec::new()),
    }
}

/// The type of the elements, if the type is a list of what Parquet has as single values.
fn element_of(cql_type: &CqlType) -> Option<&CqlType> {
    let (CqlType::List { element, .. }
    | CqlType::Set { element, .. }
    | CqlType::Vector { element, .. }) = cql_type
    else {
        return None;
    };
    let has_parts = element.is_collection()
        || matches!(
            **element,
            CqlType::Tuple(_) | CqlType::Vector { .. } | CqlType::UserType { .. }
        );
    (!has_parts).then_some(&**element)
}

/// The type of a single value.
fn primitive(name: &str, cql_type: &CqlType) -> Result<Type, ParquetError> {
    let (physical, logical) = match cql_type {
        CqlType::Boolean => (PhysicalType::BOOLEAN, None),
        CqlType::Tinyint => (PhysicalType::INT32, Some(LogicalType::integer(8, true))),
        CqlType::Smallint => (PhysicalType::INT32, Some(LogicalType::integer(16, true))),
        CqlType::Int => (PhysicalType::INT32, None),
        CqlType::Date => (PhysicalType::INT32, Some(LogicalType::Date)),
        CqlType::Bigint | CqlType::Counter => (PhysicalType::INT64, None),
        CqlType::Time => {
            let time = LogicalType::time(false, TimeUnit::NANOS);
            (PhysicalType::INT64, Some(time))
        }
        CqlType::Timestamp => {
            let timestamp = LogicalType::timestamp(true, TimeUnit::MILLIS);
            (PhysicalType::INT64, Some(timestamp))
        }
        CqlType::Float => (PhysicalType::FLOAT, None),
        CqlType::Double => (PhysicalType::DOUBLE, None),
        CqlType::Uuid | CqlType::Timeuuid => {
            let physical = PhysicalType::FIXED_LEN_BYTE_ARRAY;
            let uuid = PrimitiveTypeBuilder::new(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_length(16)
                .with_logical_type(Some(LogicalType::Uuid));
            return uuid.build();
        }
        CqlType::Blob => (PhysicalType::BYTE_ARRAY, None),
        _ => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

impl ColumnBuffer {
    fn new(column: ExportColumn) -> ColumnBuffer {
        let element = element_of(&column.cql_type).cloned();
        let values = leaf_values(element.as_ref().unwrap_or(&column.cql_type));
        ColumnBuffer {
            column,
            element,
            values,
            definition: Vec::new(),
            repetition: Vec::new(),
        }
    }

    /// The column's type in the schema of the file.
    fn field(&self) -> Result<TypePtr, ParquetError> {
        let name = &self.column.name;
        let Some(element) = &self.element else {
            return primitive(name, &self.column.cql_type).map(Arc::new);
        };
        let element = Arc::new(primitive("element", element)?);
        let repeated = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![element])
            .build()?;
        let list = Type::group_type_builder(name)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(repeated)])
            .build()?;
        Ok(Arc::new(list))
    }

    /// Adds the value of a row.
    fn push(&mut self, value: Option<&[u8]>) -> Result<(), ValueError> {
        let decoded = match value {
            Some(value) => Some(Value::deserialize(&self.column.cql_type, value)?),
            None => None,
        };
        let Some(decoded) = decoded.filter(|decoded| *decoded != Value::Empty) else {
            self.level(0, 0);
            return Ok(());
        };
        if self.element.is_none() {
            self.level(1, 0);
            let bytes = value.unwrap_or_default();
            return self.values.push(&self.column.cql_type, &decoded, bytes);
        }
        let elements = match decoded {
            Value::FloatVector(numbers) => numbers.into_iter().map(Value::Float).collect(),
            Value::List(elements) | Value::Set(elements) | Value::Vector(elements) => elements,
            _ => Vec::new(),
        };
        if elements.is_empty() {
            self.level(1, 0);
        }
        for (at, element) in elements.iter().enumerate() {
            let is_empty = *element == Value::Empty;
            self.level(if is_empty { 2 } else { 3 }, i16::from(at > 0));
            if !is_empty && let Some(cql_type) = &self.element {
                self.values.push(cql_type, element, &element.serialize())?;
            }
        }
        Ok(())
    }

    fn level(&mut self, definition: i16, repetition: i16) {
        self.definition.push(definition);
        self.repetition.push(repetition);
    }

    /// Writes the rows since the last group, and forgets them.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let definition = std::mem::take(&mut self.definition);
        let repetition = std::mem::take(&mut self.repetition);
        let repetition = self.element.is_some().then_some(&repetition[..]);
        let levels = LeafLevels {
            definition: &definition,
            repetition,
        };
        match &mut self.values {
            LeafValues::Boolean(values) => levels.write::<BoolType, W>(values, group),
            LeafValues::Int32(values) => levels.write::<Int32Type, W>(values, group),
            LeafValues::Int64(values) => levels.write::<Int64Type, W>(values, group),
            LeafValues::Float(values) => levels.write::<FloatType, W>(values, group),
            LeafValues::Double(values) => levels.write::<DoubleType, W>(values, group),
            LeafValues::Bytes(values) => levels.write::<ByteArrayType, W>(values, group),
            LeafValues::Fixed(values) => levels.write::<FixedLenByteArrayType, W>(values, group),
        }
    }
}

/// The levels of a column's values.
struct LeafLevels<'a> {
    definition: &'a [i16],
    repetition: Option<&'a [i16]>,
}

impl LeafLevels<'_> {
    fn write<T: DataType, W: Write + Send>(
        &self,
        values: &mut Vec<T::T>,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let missing = || ParquetError::General("a column is missing".to_owned());
        let mut column = group.next_column()?.ok_or_else(missing)?;
        let writer = column.typed::<T>();
        writer.write_batch(&values[..], Some(self.definition), self.repetition)?;
        column.close()?;
        values.clear();
        Ok(())
    }
}

impl LeafValues {
    /// Adds a value of a type, which is given decoded and as bytes.
    fn push(
        &mut self,
        cql_type: &CqlType,
        decoded: &Value,
        bytes: &[u8],
    ) -> Result<(), ValueError> {
        match (self, decoded) {
            (LeafValues::Boolean(values), Value::Boolean(truth)) => values.push(*truth),
            (LeafValues::Int32(values), Value::Tinyint(number)) => values.push((*number).into()),
            (LeafValues::Int32(values), Value::Smallint(number)) => values.push((*number).into()),
            (LeafValues::Int32(values), Value::Int(number)) => values.push(*number),
            (LeafValues::Int32(values), Value::Date(day)) => {
                values.push(day.wrapping_sub(1 << 31).cast_signed());
            }
            (
                LeafValues::Int64(values),
                Value::Bigint(number)
                | Value::Counter(number)
                | Value::Time(number)
                | Value::Timestamp(number),
            ) => values.push(*number),
            (LeafValues::Float(values), Value::Float(number)) => values.push(*number),
            (LeafValues::Double(values), Value::Double(number)) => values.push(*number),
            (LeafValues::Fixed(values), Value::Uuid(uuid) | Value::Timeuuid(uuid)) => {
                values.push(ByteArray::from(uuid.as_bytes().to_vec()).into());
            }
            (LeafValues::Bytes(values), Value::Blob(blob)) => {
                values.push(Bytes::clone(blob).into());
            }
            (LeafValues::Bytes(values), Value::Text(text) | Value::Ascii(text)) => {
                values.push(text.clone().into_bytes().into());
            }
            (LeafValues::Bytes(values), _) => {
                let text = plain_text(cql_type, bytes)?;
                values.push(text.into_bytes().into());
            }
            (_, other) => {
                let other = other.to_literal();
                return Err(ValueError(format!(
                    "{other} is no value of type {cql_type}"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    fn written(cql_type: CqlType, values: &[Option<Value>]) -> Vec<String> {
        let column = ExportColumn {
            name: "c 1".to_owned(),
            cql_type,
            is_key: false,
        };
        let file = tempfile::tempfile().unwrap();
        let output = file.try_clone().unwrap();
        let mut sink = ParquetSink::new(output, vec![column]).unwrap();
        for value in values {
            let bytes = value.as_ref().map(Value::serialize);
            sink.row(&[bytes.as_deref()]).unwrap();
        }
        sink.finish().unwrap();
        let file = SerializedFileReader::new(file).unwrap();
        let rows = file.get_row_iter(None).unwrap();
        let texts = rows.map(|row| {
            let columns: HashMap<_, _> = row.unwrap().into_columns().into_iter().collect();
            columns["c 1"].to_string()
        });
        texts.collect()
    }

    #[test]
    fn values_are_those_that_parquet_has() {
        let vector = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: 2,
        };
        let list = CqlType::List {
            element: Box::new(CqlType::Text),
            frozen: false,
        };
        let map = CqlType::Map {
            key: Box::new(CqlType::Text),
            value: Box::new(CqlType::Int),
            frozen: false,
        };
        let text = |text: &str| Value::Text(text.to_owned());
        let entries = Value::Map(vec![(text("k"), Value::Int(1))]);
        for (cql_type, value, expected) in [
            (CqlType::Int, Value::Int(-3), "-3"),
            (CqlType::Tinyint, Value::Tinyint(-3), "-3"),
            (CqlType::Date, Value::Date((1 << 31) - 1), "1969-12-31"),
            (CqlType::Boolean, Value::Boolean(true), "true"),
            (CqlType::Double, Value::Double(0.5), "0.5"),
            (CqlType::Text, text("x"), "\"x\""),
            (vector, Value::FloatVector(vec![0.5, 2.0]), "[0.5, 2.0]"),
            (list, Value::List(vec![text("a")]), "[\"a\"]"),
            (map, entries, r#""{"k": 1}""#),
        ] {
            let name = cql_type.to_string();
            let rows = written(cql_type, &[Some(value), None]);
            assert_eq!(rows, [expected, "null"], "{name}");
        }
    }

    #[test]
    fn empty_lists_are_not_null() {
        let list = CqlType::List {
            element: Box::new(CqlType::Int),
            frozen: true,
        };
        let rows = written(list, &[Some(Value::List(vec![])), None]);
        assert_eq!(rows, ["[]", "null"]);
    }
}
