//! The types of columns, by the values of a file's first rows.
//!
//! A column has the type of most of its values, so that a few wrong ones don't decide. Numbers
//! count together: whole ones and others make `double`. Lists of numbers that mostly have one
//! length are vectors, if any number has a fraction or the file says that they are floats.

use std::collections::HashMap;

use uuid::Uuid;
use value::{CqlType, MAX_VECTOR_DIMENSIONS, from_json, json_string};

use super::file_value::{FileValue, floats_in};

/// A kind of values that one type of columns holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ValueKind {
    Boolean,
    Number,
    Uuid,
    /// Dates and timestamps.
    Moment,
    Time,
    Numbers,
    Texts,
    Blob,
    Text,
}

/// The values of a column, counted by their kinds.
#[derive(Debug, Default)]
pub struct ColumnProfile {
    counts: HashMap<ValueKind, u64>,
    has_fraction: bool,
    is_beyond_bigint: bool,
    has_time_of_day: bool,
    /// Whether a list has a number with a fraction.
    has_fractions_in_lists: bool,
    /// The lists of numbers by their lengths.
    lengths: HashMap<usize, u64>,
}

impl ColumnProfile {
    /// Counts a value.
    pub fn add(&mut self, value: &FileValue) {
        let kind = match value {
            FileValue::Null => return,
            FileValue::Boolean(_) => ValueKind::Boolean,
            FileValue::Integer(_) => ValueKind::Number,
            FileValue::Float(_) | FileValue::Double(_) => {
                self.has_fraction = true;
                ValueKind::Number
            }
            FileValue::Number(text) => self.number(text),
            FileValue::Text(text) => self.text(text, false),
            FileValue::Cell(text) => self.text(text, true),
            FileValue::Bytes(_) => ValueKind::Blob,
            FileValue::Date(_) => ValueKind::Moment,
            FileValue::Timestamp(_) => {
                self.has_time_of_day = true;
                ValueKind::Moment
            }
            FileValue::Time(_) => ValueKind::Time,
            FileValue::Floats(numbers) => {
                self.has_fractions_in_lists = true;
                self.list(numbers.len())
            }
            FileValue::Json(text) => self.json(text),
            FileValue::List(elements) => {
                let is_number = |element: &FileValue| {
                    let is_double = matches!(element, FileValue::Float(_) | FileValue::Double(_));
                    is_double || matches!(element, FileValue::Integer(_))
                };
                let has_double = elements
                    .iter()
                    .any(|element| matches!(element, FileValue::Float(_) | FileValue::Double(_)));
                self.has_fractions_in_lists |= has_double;
                match !elements.is_empty() && elements.iter().all(is_number) {
                    true => self.list(elements.len()),
                    false => ValueKind::Text,
                }
            }
            FileValue::Map(_) | FileValue::Struct(_) => ValueKind::Text,
        };
        *self.counts.entry(kind).or_default() += 1;
    }

    /// Counts a number as it is written.
    fn number(&mut self, text: &str) -> ValueKind {
        match text.contains(['.', 'e', 'E']) {
            true => self.has_fraction = true,
            false => self.is_beyond_bigint |= text.parse::<i64>().is_err(),
        }
        ValueKind::Number
    }

    fn list(&mut self, length: usize) -> ValueKind {
        *self.lengths.entry(length).or_default() += 1;
        ValueKind::Numbers
    }

    /// A text that may be the form of something else; `is_cell` if even of a number.
    fn text(&mut self, text: &str, is_cell: bool) -> ValueKind {
        let trimmed = text.trim();
        let is_of = |cql_type: CqlType| {
            trimmed.len() <= 40 && from_json(&cql_type, &json_string(trimmed)).is_ok()
        };
        let starts_with_digit = trimmed.starts_with(|letter: char| letter.is_ascii_digit());
        if (trimmed.starts_with('[') || trimmed.starts_with("array("))
            && let Some(numbers) = floats_in(trimmed)
        {
            self.has_fractions_in_lists |= trimmed.contains('.');
            return self.list(numbers.len());
        }
        if is_cell {
            match trimmed {
                "true" | "false" | "True" | "False" | "TRUE" | "FALSE" => {
                    return ValueKind::Boolean;
                }
                "NaN" | "nan" => {
                    self.has_fraction = true;
                    return ValueKind::Number;
                }
                _ if is_number(trimmed) => return self.number(trimmed),
                _ => {}
            }
        }
        if trimmed.len() == 36 && Uuid::try_parse(trimmed).is_ok() {
            return ValueKind::Uuid;
        }
        // Digits by themselves are moments to CQL, too, and here they are a text.
        if starts_with_digit && trimmed.contains('-') {
            if is_of(CqlType::Date) {
                return ValueKind::Moment;
            }
            if is_of(CqlType::Timestamp) {
                self.has_time_of_day = true;
                return ValueKind::Moment;
            }
        }
        if starts_with_digit && trimmed.contains(':') && is_of(CqlType::Time) {
            return ValueKind::Time;
        }
        ValueKind::Text
    }

    fn json(&mut self, text: &str) -> ValueKind {
        if let Some(numbers) = floats_in(text) {
            if numbers.is_empty() {
                return ValueKind::Texts;
            }
            self.has_fractions_in_lists |= text.contains(['.', 'e', 'E']);
            return self.list(numbers.len());
        }
        match serde_json::from_str::<Vec<String>>(text) {
            Ok(_) => ValueKind::Texts,
            Err(_) => ValueKind::Text,
        }
    }

    /// The type that holds most of the values, whatever the file says of it.
    fn of_values(&self) -> CqlType {
        let most = self.counts.iter().max_by_key(|(kind, count)| {
            // Of equally many, text takes them all.
            (**count, **kind == ValueKind::Text)
        });
        match most.map(|(kind, _)| *kind) {
            Some(ValueKind::Boolean) => CqlType::Boolean,
            Some(ValueKind::Number) => match (self.has_fraction, self.is_beyond_bigint) {
                (true, _) => CqlType::Double,
                (false, true) => CqlType::Varint,
                (false, false) => CqlType::Bigint,
            },
            Some(ValueKind::Uuid) => CqlType::Uuid,
            Some(ValueKind::Moment) => match self.has_time_of_day {
                true => CqlType::Timestamp,
                false => CqlType::Date,
            },
            Some(ValueKind::Time) => CqlType::Time,
            Some(ValueKind::Numbers) => self.vector().unwrap_or_else(|| {
                list_of(match self.has_fractions_in_lists {
                    true => CqlType::Double,
                    false => CqlType::Bigint,
                })
            }),
            Some(ValueKind::Texts) => list_of(CqlType::Text),
            Some(ValueKind::Blob) => CqlType::Blob,
            Some(ValueKind::Text) | None => CqlType::Text,
        }
    }

    /// The type of a vector, if most lists have one length.
    fn vector(&self) -> Option<CqlType> {
        let all: u64 = self.lengths.values().sum();
        let (length, count) = self.lengths.iter().max_by_key(|(_, count)| **count)?;
        let dimensions = u16::try_from(*length).ok()?;
        let is_vector = self.has_fractions_in_lists
            && count * 2 > all
            && (2..=MAX_VECTOR_DIMENSIONS).contains(&dimensions);
        is_vector.then(|| CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions,
        })
    }

    /// The type of the column, of which the file may say one.
    pub fn cql_type(&self, declared: Option<&CqlType>) -> CqlType {
        match declared {
            // Parquet has no vectors, only lists.
            Some(CqlType::List { element, .. })
                if matches!(**element, CqlType::Float | CqlType::Double) =>
            {
                let vector = self.vector();
                vector.unwrap_or_else(|| list_of((**element).clone()))
            }
            // Old writers have texts as bytes without a name for what they are.
            Some(declared) => declared.clone(),
            None => self.of_values(),
        }
    }
}

fn list_of(element: CqlType) -> CqlType {
    CqlType::List {
        element: Box::new(element),
        frozen: false,
    }
}

/// Whether a cell is a number as JSON has it. One that begins with a needless zero is a text, such
/// as a postcode, whose zero would be lost.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let begins = digits.starts_with(|letter: char| letter.is_ascii_digit());
    let has_needless_zero =
        digits.len() > 1 && digits.starts_with('0') && !digits[1..].starts_with(['.', 'e', 'E']);
    begins && !has_needless_zero && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[FileValue]) -> String {
        let mut profile = ColumnProfile::default();
        for value in values {
            profile.add(value);
        }
        profile.cql_type(None).to_string()
    }

    fn of_cells(cells: &[&str]) -> String {
        let cells = cells.iter().map(|text| FileValue::Cell((*text).to_owned()));
        of(&cells.collect::<Vec<_>>())
    }

    fn of_json(texts: &[&str]) -> String {
        let values = texts.iter().map(|text| FileValue::of_json(text).unwrap());
        of(&values.collect::<Vec<_>>())
    }

    #[test]
    fn a_column_has_the_type_of_most_of_its_values() {
        for (cells, expected) in [
            (&["1", "2", "x"][..], "bigint"),
            (&["1", "2.5", "x"], "double"),
            (&["1", "99999999999999999999"], "varint"),
            (&["00123", "04567"], "text"),
            (&["true", "False", "1"], "boolean"),
            (&["2024-01-01", "2024-01-02", "soon"], "date"),
            (&["2024-01-01", "2024-01-02 10:00:00+00:00"], "timestamp"),
            (&["10:00:00", "11:30:00.5"], "time"),
            (&["123e4567-e89b-42d3-a456-426614174000"], "uuid"),
            (&["[0.1 0.2]", "[0.3 0.4]", "[1.]"], "vector<float, 2>"),
            (&["[0.1, 0.2]", "x"], "text"),
            (&["a-b", "1-2"], "text"),
            (&[], "text"),
        ] {
            assert_eq!(of_cells(cells), expected, "{cells:?}");
        }
    }

    #[test]
    fn lists_of_json_are_vectors_or_lists() {
        for (texts, expected) in [
            (&["[0.1, 1]", "[1, 0]"][..], "vector<float, 2>"),
            (&["[1, 2]", "[3, 4]"], "list<bigint>"),
            (&["[0.5]", "[0.5, 1]", "[0.5, 1, 2]"], "list<double>"),
            (&["[\"a\"]", "[]"], "list<text>"),
            (&["{\"a\": 1}"], "text"),
            (&["\"12\"", "\"13\""], "text"),
            (&["12", "null"], "bigint"),
        ] {
            assert_eq!(of_json(texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn lists_of_floats_of_parquet_are_vectors_if_most_have_one_length() {
        let declared = list_of(CqlType::Float);
        let mut profile = ColumnProfile::default();
        assert_eq!(profile.cql_type(Some(&declared)), declared);
        for length in [3, 3, 2, 3] {
            profile.add(&FileValue::Floats(vec![0.0; length]));
        }
        let vector = profile.cql_type(Some(&declared)).to_string();
        assert_eq!(vector, "vector<float, 3>");
        assert_eq!(profile.cql_type(Some(&CqlType::Int)), CqlType::Int);
    }
}
