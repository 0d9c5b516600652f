//! The values of filter columns by row id, and the ids whose values satisfy conditions.
//!
//! A search for neighbours with a WHERE needs to know which ids it may answer with, before it walks
//! the graph: how many there are decides the way to search. So [`FilterColumns`] stores, in
//! addition to the vectors, the columns that can be filtered by, each with an inverted index of its
//! values.
//!
//! # How a column is stored
//!
//! Each value has a code, and each row the code of its value. A `dictionary` knows for each code
//! its bytes and the ids that have it (a `posting`: one id, a list, or a set), and has the codes in
//! CQL's `order`. Values that are equal in that order but differ in bytes (`1.0` and `1.00`) have
//! codes of their own side by side, so that a value is read back as it was set. Ids are reused: a
//! row that is replaced or removed leaves its postings at once.
//!
//! A collection is stored as the codes of its elements. An entry of a map is a term of the code of
//! its key and of its value, and terms are in the order of values, so that the same dictionary
//! answers `m[k] = v` and CONTAINS. Keys have a dictionary of their own.
//!
//! # How conditions are answered
//!
//! Values that conditions name are looked up once ([`FilterColumns::resolve`]). Equality, IN,
//! CONTAINS and entries of maps become a few codes, and a range a run of the order, or what is
//! outside of it if that is less. [`Conjunction::select`] takes the postings of the rarest
//! condition and keeps the ids that satisfy the others: their sets are intersected where they are
//! ready or cheap to make, else each id is checked by the code of its row. Tuples, and collections
//! compared as a whole, narrow the ids by one of their parts, and then look at the values.
//!
//! # Cost
//!
//! Bytes a row of 100,000 rows, with all that is needed for conditions (`tests/size_and_time.rs`):
//!
//! | column | bytes a row |
//! | --- | ---: |
//! | one of 20 texts | 8 |
//! | a unique text of 16 bytes | 74 |
//! | a text of 16 bytes that two rows have | 44 |
//! | a map of 10 entries (224 bytes), of 500 that rows share | 89 |
//! | a map of 10 entries (294 bytes), values unique | 803 |
//!
//! Times on 100,000 rows, of one core of a small machine. Setting a row takes 0.5 µs a value or
//! element.
//!
//! | conditions | rows | select | estimate |
//! | --- | ---: | ---: | ---: |
//! | equality | 1 % or 20 % | 0.3 µs | 0.2 µs |
//! | equality and equality | 1 % and 20 % | 1.2 µs | 0.4 µs |
//! | range of unique values | 10 % or 90 % | 35 µs | 0.9 µs |
//! | range of unique values | 50 % | 160 µs | 0.9 µs |
//! | entry of a map | 2 % | 0.4 µs | 0.3 µs |
//! | IN of 100,000 | 33 % | 32 ms | 32 ms |
//!
//! One check of an id takes 5 ns by codes, 20 ns by values. So where the estimate is large, a
//! search may rather call [`Conjunction::matches`] than wait for the set.

#![warn(clippy::unwrap_used)]

mod candidates;
mod column;
mod condition;
mod conjunct;
mod conjunction;
mod dictionary;
mod filter_columns;
mod members;
mod order;
mod posting;
mod strings;

pub use ann::IdSet;
pub use condition::FilterCondition;
pub use conjunction::Conjunction;
pub use filter_columns::FilterColumns;

#[cfg(test)]
mod tests {
    use value::CqlType;
    use value::predicate::{ComparisonOperator, Predicate};

    use super::*;

    #[test]
    fn values_are_found_and_forgotten() {
        let mut columns = FilterColumns::new(vec![CqlType::Int]);
        columns.set(3, &[Some(&7i32.to_be_bytes())]);
        columns.set(4, &[None]);
        let conditions = [FilterCondition::Column {
            column: 0,
            predicate: Predicate::Compare {
                cql_type: CqlType::Int,
                comparison: ComparisonOperator::Eq,
                value: bytes::Bytes::copy_from_slice(&7i32.to_be_bytes()),
            },
        }];
        let found = |columns: &FilterColumns| {
            columns
                .resolve(&conditions)
                .select()
                .iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&columns), vec![3]);
        columns.remove(3);
        assert!(found(&columns).is_empty());
    }
}
