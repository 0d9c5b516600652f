//! CSV and JSON lines.

use std::io::Write;

use value::{CqlType, ValueError, json_string};

use super::{ExportColumn, RowSink};
use crate::ToolError;
use crate::cql_json::{plain_text, to_json};

fn unwritable(error: &std::io::Error) -> ToolError {
    ToolError::File(format!("the file can't be written: {error}"))
}

fn unreadable(column: &ExportColumn, error: &ValueError) -> ToolError {
    ToolError::Statement(format!("column {}: {error}", column.name))
}

/// Comma-separated values. A null is an empty cell, and an empty text is one of two quotes.
pub struct CsvSink<W> {
    output: W,
    columns: Vec<ExportColumn>,
}

impl<W: Write> CsvSink<W> {
    /// Writes the names of the columns.
    pub fn new(mut output: W, columns: Vec<ExportColumn>) -> Result<CsvSink<W>, ToolError> {
        let names: Vec<_> = columns.iter().map(|column| cell(&column.name)).collect();
        let line = format!("{}\n", names.join(","));
        let written = output.write_all(line.as_bytes());
        written.map_err(|error| unwritable(&error))?;
        Ok(CsvSink { output, columns })
    }
}

/// A text as a cell, in quotes where it must have them.
fn cell(text: &str) -> String {
    let is_plain = !text.is_empty()
        && !text.contains(['"', ',', '\n', '\r'])
        && text.trim().len() == text.len();
    match is_plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('"', "\"\"")),
    }
}

fn csv_value(cql_type: &CqlType, value: &[u8]) -> Result<String, ValueError> {
    plain_text(cql_type, value).map(|text| cell(&text))
}

impl<W: Write> RowSink for CsvSink<W> {
    fn row(&mut self, values: &[Option<&[u8]>]) -> Result<(), ToolError> {
        let mut line = String::new();
        for (at, (column, value)) in self.columns.iter().zip(values).enumerate() {
            if at > 0 {
                line.push(',');
            }
            if let Some(value) = value {
                let cell = csv_value(&column.cql_type, value);
                line += &cell.map_err(|error| unreadable(column, &error))?;
            }
        }
        line.push('\n');
        let written = self.output.write_all(line.as_bytes());
        written.map_err(|error| unwritable(&error))
    }

    fn finish(&mut self) -> Result<(), ToolError> {
        self.output.flush().map_err(|error| unwritable(&error))
    }
}

/// A JSON object a line, with the values as `SELECT JSON` spells them.
pub struct JsonSink<W> {
    output: W,
    columns: Vec<ExportColumn>,
    /// The names of the columns as JSON.
    names: Vec<String>,
}

impl<W: Write> JsonSink<W> {
    /// A sink that has written nothing.
    pub fn new(output: W, columns: Vec<ExportColumn>) -> JsonSink<W> {
        let names = columns
            .iter()
            .map(|column| json_string(&column.name))
            .collect();
        JsonSink {
            output,
            columns,
            names,
        }
    }
}

impl<W: Write> RowSink for JsonSink<W> {
    fn row(&mut self, values: &[Option<&[u8]>]) -> Result<(), ToolError> {
        let mut line = String::from("{");
        let columns = self.columns.iter().zip(&self.names);
        for (at, ((column, name), value)) in columns.zip(values).enumerate() {
            if at > 0 {
                line += ", ";
            }
            let json = to_json(&column.cql_type, *value);
            let json = json.map_err(|error| unreadable(column, &error))?;
            line += name;
            line += ": ";
            line += &json;
        }
        line += "}\n";
        let written = self.output.write_all(line.as_bytes());
        written.map_err(|error| unwritable(&error))
    }

    fn finish(&mut self) -> Result<(), ToolError> {
        self.output.flush().map_err(|error| unwritable(&error))
    }
}

#[cfg(test)]
mod tests {
    use value::Value;

    use super::*;

    fn columns() -> Vec<ExportColumn> {
        let column = |name: &str, cql_type| ExportColumn {
            name: name.to_owned(),
            cql_type,
            is_key: false,
        };
        let vector = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: 2,
        };
        vec![
            column("a \"b\"", CqlType::Text),
            column("n", CqlType::Int),
            column("v", vector),
        ]
    }

    fn written(sink: &mut dyn RowSink) {
        let number = Value::Int(7).serialize();
        let vector = Value::FloatVector(vec![0.5, -1.0]).serialize();
        let full = [Some(&b"x,\"y\""[..]), Some(&number[..]), Some(&vector[..])];
        sink.row(&full).unwrap();
        sink.row(&[Some(&b""[..]), None, None]).unwrap();
        sink.finish().unwrap();
    }

    #[test]
    fn csv_tells_null_from_an_empty_text() {
        let mut bytes = Vec::new();
        written(&mut CsvSink::new(&mut bytes, columns()).unwrap());
        let expected = "\"a \"\"b\"\"\",n,v\n\"x,\"\"y\"\"\",7,\"[0.5, -1.0]\"\n\"\",,\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn lines_of_json_are_those_of_select_json() {
        let mut bytes = Vec::new();
        written(&mut JsonSink::new(&mut bytes, columns()));
        let expected = "{\"a \\\"b\\\"\": \"x,\\\"y\\\"\", \"n\": 7, \"v\": [0.5, -1.0]}\n\
                        {\"a \\\"b\\\"\": \"\", \"n\": null, \"v\": null}\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
