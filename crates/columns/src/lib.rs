//! The values of filter columns by row id, and the ids whose values satisfy conditions.

#![warn(clippy::unwrap_used)]

mod candidates;
mod column;
mod columns;
mod condition;
mod conjunct;
mod conjunction;
mod dictionary;
mod members;
mod order;
mod posting;
mod strings;

pub use columns::Columns;
pub use condition::Condition;
pub use conjunction::Conjunction;

#[cfg(test)]
mod tests {
    use value::CqlType;
    use value::predicate::{Comparison, Predicate};

    use super::*;

    #[test]
    fn values_are_found_and_forgotten() {
        let mut columns = Columns::new(vec![CqlType::Int]);
        columns.set(3, &[Some(&7i32.to_be_bytes())]);
        columns.set(4, &[None]);
        let conditions = [Condition::Column {
            column: 0,
            predicate: Predicate::Compare {
                cql_type: CqlType::Int,
                comparison: Comparison::Eq,
                value: bytes::Bytes::copy_from_slice(&7i32.to_be_bytes()),
            },
        }];
        let found =
            |columns: &Columns| Vec::from_iter(columns.resolve(&conditions).select().iter());
        assert_eq!(found(&columns), vec![3]);
        columns.remove(3);
        assert!(found(&columns).is_empty());
    }
}
