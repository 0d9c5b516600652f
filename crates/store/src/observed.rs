//! The part of a row that an index observes: the value of one column in the form in which the index
//! takes it, and the values of its filter columns as the database serialises them.
//!
//! Scans, re-reads and the state of rows ([`crate::items`]) hand these values on without a look at
//! them. Only the column, which decodes a value, and the index, which takes it in, know its form. A
//! structure of another class adds its form and its value here, next to those of vectors.

mod text;
mod vector;

use bytes::Bytes;
use index::SimilarityFunction;
use value::CqlType;
use xxhash_rust::xxh3::Xxh3;

use crate::identity::{IndexIdentity, StructureOptions};
pub(crate) use vector::first_not_finite;

/// About the bytes of a text, of which pages have fewer than of short values.
const TEXT_BYTES: usize = 2048;

/// About the bytes of a value that is filtered by.
const FILTER_BYTES: usize = 16;

/// A value that an index takes in.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexableValue {
    /// A vector, with as many finite elements as the index has dimensions.
    Vector(Vec<f32>),
    /// A text.
    Text(String),
}

/// The form of the values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexableType {
    /// Vectors of 32-bit floats.
    Vector {
        /// The number of elements in each vector.
        dimensions: usize,
        /// The metric, which bounds the lengths of vectors.
        metric: SimilarityFunction,
    },
    /// Texts: values of a column of type text, varchar or ascii.
    Text,
    /// Values to filter by.
    Filter(CqlType),
}

/// A cell as the database stores it.
#[derive(Clone, Copy, Debug)]
pub struct RawCell<'a> {
    /// The serialised value.
    pub value: &'a [u8],
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
    /// The time at which the cell expires, in seconds since the epoch; `None` for never.
    pub expires_s: Option<u32>,
}

/// A column that an index observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedColumn {
    /// The name of the column, case preserved.
    pub name: String,
    /// The form of its values.
    pub form: IndexableType,
    /// The position of the column among those of the primary key, whose values are in the key of
    /// each row; `None` for any other column.
    pub in_key: Option<usize>,
}

/// A value that an index observes, with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct TimestampedValue {
    /// The value.
    pub value: IndexableValue,
    /// The values of the index's filter columns, in their order; `None` for null.
    pub filters: Vec<Option<Bytes>>,
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
    /// The time at which the cell expires, in seconds since the epoch; `None` for never.
    pub expires_s: Option<u32>,
    /// The time at which a value of the filter columns expires before the cell does, or at which
    /// the row of an indexed key column may end, in seconds since the epoch; `None` if none does.
    pub filters_change_s: Option<u32>,
}

/// The content of one column of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnCell {
    /// No value.
    Null,
    /// A value that can be indexed, still without those of filter columns.
    Value(TimestampedValue),
    /// A value to filter by.
    Filter {
        /// The value as the database serialises it. Collections are serialised whole, as frozen
        /// ones are.
        value: Bytes,
        /// The time at which the value expires, in seconds since the epoch; `None` for never.
        expires_s: Option<u32>,
    },
    /// A value that can't be indexed.
    Unusable(UnindexableValue),
}

/// The content of all columns that an index observes, in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadCell {
    /// The row has no value to index.
    Null,
    /// A value that can be indexed.
    Value(TimestampedValue),
    /// A value that can't be indexed.
    Unusable(UnindexableValue),
}

/// The reason why a value can't be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnindexableValue {
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
    /// A text is not in UTF-8.
    #[error("the text is not in UTF-8 from byte {position} on")]
    NotText {
        /// The position of the first byte that is part of no character, from 0.
        position: usize,
    },
    /// The vector is too long for the metric of the index.
    #[error(
        "the vector is longer than {:e}, the longest that an index by euclidean or dot_product \
         holds",
        index::LENGTH_MAX
    )]
    TooLong,
    /// The row's key can't be written in an answer.
    #[error("column {column} of the key can't be shown: {error}")]
    Key {
        /// The position of the key column, from 0.
        column: usize,
        /// The reason why the column can't be written.
        error: value::KeyError,
    },
}

impl IndexableValue {
    /// About the bytes that an index takes for the value, whose structure may keep it in memory.
    pub fn index_bytes(&self) -> u64 {
        match self {
            IndexableValue::Vector(vector) => 2 * size_of_val(vector.as_slice()) as u64,
            // The words once as they wait, and once in a segment.
            IndexableValue::Text(text) => 2 * text.len() as u64,
        }
    }

    /// Adds the value to a hash.
    pub fn add_to_hash(&self, state: &mut Xxh3) {
        match self {
            IndexableValue::Vector(vector) => vector::add_to_hash(vector, state),
            IndexableValue::Text(text) => state.update(text.as_bytes()),
        }
    }
}

impl IndexableType {
    /// The form of the values that an index of these options takes in.
    fn of(options: &StructureOptions) -> IndexableType {
        match options {
            StructureOptions::Vector(options) => IndexableType::Vector {
                dimensions: options.dimensions,
                metric: options.similarity,
            },
            StructureOptions::FullText(_) => IndexableType::Text,
        }
    }

    /// The bytes of a value as the database serialises it, or about as many.
    pub fn value_bytes(&self) -> usize {
        match self {
            IndexableType::Vector { dimensions, .. } => dimensions * size_of::<f32>(),
            IndexableType::Text => TEXT_BYTES,
            IndexableType::Filter(_) => FILTER_BYTES,
        }
    }

    /// Whether the values are collections of which each element has a write time and an expiry.
    pub fn is_multi_cell(&self) -> bool {
        match self {
            IndexableType::Vector { .. } | IndexableType::Text => false,
            IndexableType::Filter(cql_type) => cql_type.is_multi_cell(),
        }
    }

    /// Decodes a cell as the database serialised it.
    pub fn decode(&self, cell: RawCell<'_>) -> ColumnCell {
        let RawCell {
            value,
            written_us,
            expires_s,
        } = cell;
        let observed = match self {
            IndexableType::Vector { metric, .. } => {
                let vector = vector::decode(*metric, self.value_bytes(), value);
                vector.map(IndexableValue::Vector)
            }
            IndexableType::Text => text::decode(value).map(IndexableValue::Text),
            IndexableType::Filter(_) => {
                return ColumnCell::Filter {
                    value: Bytes::copy_from_slice(value),
                    expires_s,
                };
            }
        };
        match observed {
            Ok(value) => ColumnCell::Value(TimestampedValue {
                value,
                filters: Vec::new(),
                written_us,
                expires_s,
                filters_change_s: None,
            }),
            Err(unusable) => ColumnCell::Unusable(unusable),
        }
    }
}

impl ObservedColumn {
    /// The columns that an index observes: the one that it is on, and its filter columns.
    pub fn all_of(index: &IndexIdentity) -> Vec<ObservedColumn> {
        let indexed = ObservedColumn {
            name: index.column.clone(),
            form: IndexableType::of(&index.options),
            in_key: index.column_in_key(),
        };
        let filters = index.filter_columns.iter().map(|column| ObservedColumn {
            name: column.name.clone(),
            form: IndexableType::Filter(column.cql_type.clone()),
            in_key: None,
        });
        std::iter::once(indexed).chain(filters).collect()
    }
}

impl ReadCell {
    /// Joins the content of an index's columns, of which the first is the indexed one. Each of the
    /// next `required` ones must have a value, or there is nothing to index.
    pub fn joined(mut columns: impl Iterator<Item = ColumnCell>, required: usize) -> ReadCell {
        let mut cell = match columns.next() {
            Some(ColumnCell::Value(cell)) => cell,
            Some(ColumnCell::Unusable(unusable)) => return ReadCell::Unusable(unusable),
            Some(ColumnCell::Null | ColumnCell::Filter { .. }) | None => return ReadCell::Null,
        };
        for (at, column) in columns.enumerate() {
            let ColumnCell::Filter { value, expires_s } = column else {
                if at < required {
                    return ReadCell::Null;
                }
                cell.filters.push(None);
                continue;
            };
            cell.filters.push(Some(value));
            let is_first = |at_s: &u32| cell.expires_s.is_none_or(|cell_s| *at_s < cell_s);
            let changes_s = [cell.filters_change_s, expires_s.filter(is_first)];
            cell.filters_change_s = changes_s.into_iter().flatten().min();
        }
        ReadCell::Value(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_checked() {
        let decoded = |value: &[u8]| {
            IndexableType::Text.decode(RawCell {
                value,
                written_us: 7,
                expires_s: None,
            })
        };
        let ColumnCell::Value(cell) = decoded("gr\u{fc}n".as_bytes()) else {
            panic!("a text");
        };
        assert_eq!(cell.value, IndexableValue::Text("gr\u{fc}n".to_owned()));
        let faulty = UnindexableValue::NotText { position: 2 };
        assert_eq!(decoded(b"ab\xff"), ColumnCell::Unusable(faulty));
    }

    #[test]
    fn vectors_are_checked() {
        let form = IndexableType::Vector {
            dimensions: 2,
            metric: SimilarityFunction::Cosine,
        };
        let longest = IndexableType::Vector {
            dimensions: 2,
            metric: SimilarityFunction::Euclidean,
        };
        let decoded_by = |form: &IndexableType, elements: &[f32]| {
            let value: Vec<u8> = elements.iter().flat_map(|e| e.to_be_bytes()).collect();
            form.decode(RawCell {
                value: &value,
                written_us: 7,
                expires_s: None,
            })
        };
        let decoded = |elements: &[f32]| decoded_by(&form, elements);
        let long = [1e19, 0.0];
        assert!(matches!(decoded(&long), ColumnCell::Value(_)));
        let too_long = ColumnCell::Unusable(UnindexableValue::TooLong);
        assert_eq!(decoded_by(&longest, &long), too_long);
        let ColumnCell::Value(cell) = decoded(&[1.0, -2.0]) else {
            panic!("a vector");
        };
        assert_eq!(
            (cell.value, cell.written_us),
            (IndexableValue::Vector(vec![1.0, -2.0]), 7)
        );
        assert_eq!(
            decoded(&[1.0]),
            ColumnCell::Unusable(UnindexableValue::Length {
                expected_bytes: 8,
                actual_bytes: 4
            })
        );
        assert_eq!(
            decoded(&[1.0, f32::NAN]),
            ColumnCell::Unusable(UnindexableValue::NotFinite { position: 1 })
        );
    }

    #[test]
    fn the_first_value_that_expires_is_known() {
        let joined = |expires_s, filters: &[Option<u32>]| {
            let vector = ColumnCell::Value(TimestampedValue {
                value: IndexableValue::Vector(vec![1.0]),
                filters: Vec::new(),
                written_us: 7,
                expires_s,
                filters_change_s: None,
            });
            let filters = filters.iter().map(|expires_s| ColumnCell::Filter {
                value: Bytes::from_static(b"x"),
                expires_s: *expires_s,
            });
            let columns = std::iter::once(vector).chain(filters);
            match ReadCell::joined(columns.chain([ColumnCell::Null]), 0) {
                ReadCell::Value(cell) => (cell.filters.len(), cell.filters_change_s),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(joined(None, &[]), (1, None));
        assert_eq!(joined(None, &[Some(9), Some(5), None]), (4, Some(5)));
        assert_eq!(joined(Some(7), &[Some(9)]), (2, None));
        assert_eq!(joined(Some(7), &[Some(9), Some(5)]), (3, Some(5)));
    }

    #[test]
    fn a_row_without_a_value_of_the_local_key_is_not_indexed() {
        let vector = ColumnCell::Value(TimestampedValue {
            value: IndexableValue::Vector(vec![1.0]),
            filters: Vec::new(),
            written_us: 7,
            expires_s: None,
            filters_change_s: None,
        });
        let value = ColumnCell::Filter {
            value: Bytes::from_static(b"x"),
            expires_s: None,
        };
        let columns = [vector, value, ColumnCell::Null];
        let joined = |required| ReadCell::joined(columns.iter().cloned(), required);
        assert!(matches!(joined(0), ReadCell::Value(_)));
        assert!(matches!(joined(1), ReadCell::Value(_)));
        assert_eq!(joined(2), ReadCell::Null);
    }
}
