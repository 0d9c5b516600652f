//! The part of a row that an index observes: the value of one column in the form in which the index
//! takes it, and the values of its filter columns as the database serialises them.
//!
//! Scans, re-reads and the state of rows ([`crate::items`]) hand these values on without a look at
//! them. Only the column, which decodes a value, and the index, which takes it in, know its form.

use bytes::Bytes;
use value::CqlType;

use crate::identity::IndexIdentity;

/// About the bytes of a value that is filtered by.
const SERIALISED_BYTES: usize = 16;

/// A value that an index takes in.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// A vector, with as many finite elements as the index has dimensions.
    Vector(Vec<f32>),
    /// The value of a filter column, as the database serialises it. Collections are serialised
    /// whole, as frozen ones are.
    Serialised(Bytes),
}

/// The form of the values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Vectors of 32-bit floats.
    Vector {
        /// The number of elements in each vector.
        dimensions: usize,
    },
    /// Values to filter by.
    Serialised(CqlType),
}

/// A column that an index observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedColumn {
    /// The name of the column, case preserved.
    pub name: String,
    /// The form of its values.
    pub form: Form,
}

/// A value that an index observes, with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The value.
    pub value: Observed,
    /// The values of the index's filter columns, in their order; `None` for null.
    pub filters: Vec<Option<Bytes>>,
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
    /// The time at which the cell expires, in seconds since the epoch; `None` for never.
    pub expires_s: Option<u32>,
    /// The time at which a value of the filter columns expires before the cell does, in seconds
    /// since the epoch; `None` if none does.
    pub filters_change_s: Option<u32>,
}

/// The content of a column that an index observes.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadCell {
    /// No value.
    Null,
    /// A value that can be indexed.
    Value(Cell),
    /// A value that can't be indexed.
    Unusable(Unusable),
}

/// The reason why a value can't be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The vector has another length than its column.
    #[error("the vector has {actual_bytes} bytes where {expected_bytes} were expected")]
    Length {
        /// The expected length: four bytes for each dimension.
        expected_bytes: usize,
        /// The length that was read.
        actual_bytes: usize,
    },
    /// An element is NaN or infinite.
    #[error("element {position} of the vector is not a finite number")]
    NotFinite {
        /// The position of the first such element, from 0.
        position: usize,
    },
    /// The row's key can't be written in an answer.
    #[error("column {column} of the key can't be shown: {error}")]
    Key {
        /// The position of the key column, from 0.
        column: usize,
        /// The reason why the column can't be written.
        error: value::KeyError,
    },
}

impl Form {
    /// The bytes of a value as the database serialises it, or about as many.
    pub fn value_bytes(&self) -> usize {
        match self {
            Form::Vector { dimensions } => dimensions * size_of::<f32>(),
            Form::Serialised(_) => SERIALISED_BYTES,
        }
    }

    /// Whether the values are collections of which each element has a write time and an expiry.
    pub fn is_multi_cell(&self) -> bool {
        match self {
            Form::Vector { .. } => false,
            Form::Serialised(cql_type) => cql_type.is_multi_cell(),
        }
    }

    /// Decodes a value that the database serialised.
    pub fn decode(&self, bytes: &[u8]) -> Result<Observed, Unusable> {
        match self {
            Form::Vector { .. } => decode_vector(self.value_bytes(), bytes).map(Observed::Vector),
            Form::Serialised(_) => Ok(Observed::Serialised(Bytes::copy_from_slice(bytes))),
        }
    }
}

impl ObservedColumn {
    /// The columns that an index observes: that of its vectors, and its filter columns.
    pub fn all_of(index: &IndexIdentity) -> Vec<ObservedColumn> {
        let vectors = ObservedColumn {
            name: index.column.clone(),
            form: Form::Vector {
                dimensions: index.options.dimensions,
            },
        };
        let filters = index.filter_columns.iter().map(|column| ObservedColumn {
            name: column.name.clone(),
            form: Form::Serialised(column.cql_type.clone()),
        });
        std::iter::once(vectors).chain(filters).collect()
    }
}

impl ReadCell {
    /// The content of an index's columns, of which the first has the vector, as one.
    pub fn joined(mut columns: impl Iterator<Item = ReadCell>) -> ReadCell {
        let vector = columns.next().unwrap_or(ReadCell::Null);
        let ReadCell::Value(mut cell) = vector else {
            return vector;
        };
        for filter in columns {
            let ReadCell::Value(Cell {
                value: Observed::Serialised(value),
                expires_s,
                ..
            }) = filter
            else {
                cell.filters.push(None);
                continue;
            };
            cell.filters.push(Some(value));
            let is_first = |at_s: &u32| cell.expires_s.is_none_or(|cell_s| *at_s < cell_s);
            let earlier = expires_s.filter(is_first);
            let changes_s = [cell.filters_change_s, earlier];
            cell.filters_change_s = changes_s.into_iter().flatten().min();
        }
        ReadCell::Value(cell)
    }
}

fn decode_vector(expected_bytes: usize, bytes: &[u8]) -> Result<Vec<f32>, Unusable> {
    if bytes.len() != expected_bytes {
        return Err(Unusable::Length {
            expected_bytes,
            actual_bytes: bytes.len(),
        });
    }
    let (elements, _) = bytes.as_chunks();
    let vector: Vec<f32> = elements
        .iter()
        .map(|element| f32::from_be_bytes(*element))
        .collect();
    match ann::first_not_finite(&vector) {
        Some(position) => Err(Unusable::NotFinite { position }),
        None => Ok(vector),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_checked() {
        let form = Form::Vector { dimensions: 2 };
        let bytes = |elements: &[f32]| -> Vec<u8> {
            elements.iter().flat_map(|e| e.to_be_bytes()).collect()
        };
        assert_eq!(
            form.decode(&bytes(&[1.0, -2.0])),
            Ok(Observed::Vector(vec![1.0, -2.0]))
        );
        assert_eq!(
            form.decode(&bytes(&[1.0])),
            Err(Unusable::Length {
                expected_bytes: 8,
                actual_bytes: 4
            })
        );
        assert_eq!(
            form.decode(&bytes(&[1.0, f32::NAN])),
            Err(Unusable::NotFinite { position: 1 })
        );
    }
}
