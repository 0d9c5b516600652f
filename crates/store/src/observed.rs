//! The part of a row that an index observes: the value of one column, in the form in which the
//! index takes it.
//!
//! Scans, re-reads and the state of rows ([`crate::items`]) hand these values on without a look at
//! them. Only the column, which decodes a value, and the index, which takes it in, know its form.

use crate::identity::IndexIdentity;

/// A value that an index takes in.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// A vector, with as many finite elements as the index has dimensions.
    Vector(Vec<f32>),
}

/// The form of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Vectors of 32-bit floats.
    Vector {
        /// The number of elements in each vector.
        dimensions: usize,
    },
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
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
    /// The time at which the cell expires, in seconds since the epoch; `None` for never.
    pub expires_s: Option<u32>,
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
    /// The bytes of a value as the database serialises it.
    pub fn value_bytes(self) -> usize {
        match self {
            Form::Vector { dimensions } => dimensions * size_of::<f32>(),
        }
    }

    /// Decodes a value that the database serialised.
    pub fn decode(self, bytes: &[u8]) -> Result<Observed, Unusable> {
        match self {
            Form::Vector { .. } => decode_vector(self.value_bytes(), bytes).map(Observed::Vector),
        }
    }
}

impl ObservedColumn {
    /// The column that an index observes.
    pub fn of(index: &IndexIdentity) -> ObservedColumn {
        ObservedColumn {
            name: index.column.clone(),
            form: Form::Vector {
                dimensions: index.options.dimensions,
            },
        }
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
