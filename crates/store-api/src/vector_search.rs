//! A search as a node or a gateway requests it, whose values are as CQL serialises them. JSON is
//! made of it only for a service elsewhere ([`crate::StoreClient`]).

use std::num::NonZeroUsize;

use crate::columns_predicate::ColumnsPredicate;

/// A search for the rows nearest to a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSearch {
    /// The query vector: as many elements as the index has dimensions, all finite.
    pub vector: Vec<f32>,
    /// The most rows that are answered.
    pub limit: NonZeroUsize,
    /// The conditions on the rows, all of which must hold.
    pub predicates: Vec<ColumnsPredicate>,
    /// The columns outside of the key whose values are answered; `None` if rows are read for them.
    pub return_columns: Option<Vec<String>>,
    /// The write time, in microseconds since the epoch, up to which the answer must know all
    /// writes of the table.
    pub min_time_us: Option<i64>,
    /// Whether the answer must be the true nearest rows.
    pub exact: bool,
}

impl VectorSearch {
    /// A search without conditions for the `limit` nearest rows of a vector. A limit of 0 counts as
    /// 1, as an answer has room for a row.
    pub fn new(vector: Vec<f32>, limit: usize) -> VectorSearch {
        VectorSearch {
            vector,
            limit: NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN),
            predicates: Vec::new(),
            return_columns: None,
            min_time_us: None,
            exact: false,
        }
    }
}
