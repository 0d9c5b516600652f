//! The array of numbers that every file format is read into, and the vectors or neighbours made
//! from it.

use anyhow::{bail, ensure};

/// A two-dimensional array, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberArray {
    /// Elements of each row.
    pub columns: usize,
    /// All rows, one after the other.
    pub values: NumberValues,
    /// The rows' own ids, where the file has them.
    pub ids: Option<Vec<i64>>,
    /// The element type in the file, such as `float16`.
    pub stored_as: &'static str,
}

/// The elements of an [`NumberArray`]; integers stay integers, since they may be ids.
#[derive(Clone, Debug, PartialEq)]
pub enum NumberValues {
    /// Any floating point type of a file.
    Floats(Vec<f32>),
    /// Any integer type of a file.
    Integers(Vec<i64>),
}

impl NumberValues {
    fn len(&self) -> usize {
        match self {
            NumberValues::Floats(values) => values.len(),
            NumberValues::Integers(values) => values.len(),
        }
    }
}

impl NumberArray {
    /// Makes an array with rows of `columns` elements, without ids. Fails if the rows are not
    /// whole.
    pub fn new(
        columns: usize,
        values: NumberValues,
        stored_as: &'static str,
    ) -> anyhow::Result<NumberArray> {
        ensure!(columns > 0, "its rows have no elements");
        ensure!(
            values.len().is_multiple_of(columns),
            "{} elements are not whole rows of {columns}",
            values.len()
        );
        Ok(NumberArray {
            columns,
            values,
            ids: None,
            stored_as,
        })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Turns the rows into vectors.
    pub fn into_vectors(self) -> VectorRows {
        VectorRows {
            dimensions: self.columns,
            values: match self.values {
                NumberValues::Floats(values) => values,
                NumberValues::Integers(values) => {
                    values.into_iter().map(|value| value as f32).collect()
                }
            },
            ids: self.ids,
        }
    }

    /// Turns the rows into neighbours of queries, nearest first. Fails unless they are integers.
    pub fn into_neighbours(self) -> anyhow::Result<TrueNeighbours> {
        match self.values {
            NumberValues::Integers(ids) => Ok(TrueNeighbours {
                per_query: self.columns,
                ids,
            }),
            NumberValues::Floats(_) => {
                bail!("neighbours are ids, but these are {}", self.stored_as)
            }
        }
    }
}

/// Vectors of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorRows {
    /// Elements of each vector.
    pub dimensions: usize,
    /// All vectors, one after the other.
    pub values: Vec<f32>,
    /// The ids of the vectors. Without them the id of a vector is its position.
    pub ids: Option<Vec<i64>>,
}

impl VectorRows {
    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.values.len() / self.dimensions
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The vector at a position.
    pub fn row(&self, position: usize) -> &[f32] {
        &self.values[position * self.dimensions..][..self.dimensions]
    }

    /// All vectors in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dimensions)
    }

    /// The id of the vector at a position.
    pub fn id(&self, position: usize) -> i64 {
        self.ids
            .as_ref()
            .map_or(position as i64, |ids| ids[position])
    }

    /// Keeps the first `count` vectors.
    pub fn truncate(&mut self, count: usize) {
        self.values.truncate(count * self.dimensions);
        if let Some(ids) = &mut self.ids {
            ids.truncate(count);
        }
    }

    /// Takes out the last `count` vectors and returns them.
    #[must_use]
    pub fn split_off(&mut self, count: usize) -> VectorRows {
        let keep = self.len() - count;
        VectorRows {
            dimensions: self.dimensions,
            values: self.values.split_off(keep * self.dimensions),
            ids: self.ids.as_mut().map(|ids| ids.split_off(keep)),
        }
    }
}

/// The true neighbours of queries.
#[derive(Clone, Debug, PartialEq)]
pub struct TrueNeighbours {
    /// The number of neighbours that are known for each query.
    pub per_query: usize,
    /// Ids, nearest first, query by query.
    pub ids: Vec<i64>,
}

impl TrueNeighbours {
    /// The number of queries.
    pub fn len(&self) -> usize {
        self.ids.len() / self.per_query
    }

    /// Whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The neighbours of a query, nearest first.
    pub fn of(&self, query: usize) -> &[i64] {
        &self.ids[query * self.per_query..][..self.per_query]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_the_last_rows_takes_their_ids_too() {
        let mut array =
            NumberArray::new(2, NumberValues::Integers((0..8).collect()), "int64").unwrap();
        array.ids = Some(vec![10, 11, 12, 13]);
        let mut base = array.into_vectors();
        let taken = base.split_off(1);
        assert_eq!((base.len(), taken.len()), (3, 1));
        assert_eq!((taken.id(0), taken.row(0)), (13, &[6.0, 7.0][..]));
        base.truncate(1);
        assert_eq!((base.len(), base.id(0)), (1, 10));
    }

    #[test]
    fn floats_are_no_neighbours() {
        let array = NumberArray::new(1, NumberValues::Floats(vec![1.0]), "float32").unwrap();
        assert!(array.into_neighbours().is_err());
    }
}
