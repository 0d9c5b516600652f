//! The values of `IN`, in an order in which one is found in few comparisons, however many they are.
//!
//! Two values may be equal and differ in their bytes, as decimals do. So they are searched in the
//! order of [`compare()`], and not by a hash of their bytes.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::{CqlType, compare, validate};

/// Values of one type, of which a column must have one.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOf {
    cql_type: CqlType,
    values: Vec<Bytes>,
    found_by: MemberPositions,
}

/// Tuples of values, of which several columns together must make up one.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOfTuples {
    types: Vec<CqlType>,
    tuples: Vec<Vec<Bytes>>,
    found_by: MemberPositions,
}

/// The positions of the members of a list.
#[derive(Clone, Debug, PartialEq)]
struct MemberPositions {
    /// Those of the members that are values, in the order of these.
    ordered: Vec<u32>,
    /// Those of the others, which have no order among the values.
    strays: Vec<u32>,
}

impl MemberPositions {
    fn new(
        count: usize,
        is_value: impl Fn(usize) -> bool,
        order: impl Fn(usize, usize) -> Ordering,
    ) -> MemberPositions {
        let positions = 0..count as u32;
        let (mut ordered, strays): (Vec<u32>, Vec<u32>) =
            positions.partition(|at| is_value(*at as usize));
        ordered.sort_unstable_by(|a, b| order(*a as usize, *b as usize));
        MemberPositions { ordered, strays }
    }

    /// Whether a member is equal to what is looked for. `order` gives the order of the member at a
    /// position relative to that.
    fn find(&self, order: impl Fn(usize) -> Ordering) -> bool {
        let of = |at: &u32| order(*at as usize);
        let is_equal = |at: &u32| of(at).is_eq();
        self.ordered.binary_search_by(of).is_ok() || self.strays.iter().any(is_equal)
    }
}

impl OneOf {
    /// Takes values, in any order and with repeats.
    pub fn new(cql_type: CqlType, values: Vec<Bytes>) -> OneOf {
        let found_by = MemberPositions::new(
            values.len(),
            |at| validate(&cql_type, &values[at]).is_ok(),
            |a, b| compare(&cql_type, &values[a], &values[b]),
        );
        OneOf {
            cql_type,
            values,
            found_by,
        }
    }

    /// The type of the values.
    pub fn cql_type(&self) -> &CqlType {
        &self.cql_type
    }

    /// The values as they were given.
    pub fn values(&self) -> &[Bytes] {
        &self.values
    }

    /// Whether one of the values is equal to this one.
    pub fn contains(&self, value: &[u8]) -> bool {
        let order = |at: usize| compare(&self.cql_type, &self.values[at], value);
        self.found_by.find(order)
    }
}

impl OneOfTuples {
    /// Takes tuples with a value of each of these types, in any order and with repeats.
    pub fn new(types: Vec<CqlType>, tuples: Vec<Vec<Bytes>>) -> OneOfTuples {
        let is_whole = |at: usize| {
            let tuple: &Vec<Bytes> = &tuples[at];
            let mut fields = types.iter().zip(tuple);
            tuple.len() == types.len()
                && fields.all(|(cql_type, value)| validate(cql_type, value).is_ok())
        };
        let order = |a: usize, b: usize| {
            let column = |at: usize| tuples[a].get(at).map(|value| &value[..]);
            tuple_order(&types, &column, &tuples[b]).unwrap_or(Ordering::Equal)
        };
        let found_by = MemberPositions::new(tuples.len(), is_whole, order);
        OneOfTuples {
            types,
            tuples,
            found_by,
        }
    }

    /// The types of the columns.
    pub fn types(&self) -> &[CqlType] {
        &self.types
    }

    /// The tuples as they were given.
    pub fn tuples(&self) -> &[Vec<Bytes>] {
        &self.tuples
    }

    /// Whether the columns make up one of the tuples, given the value of each column by its
    /// position; `None` for null.
    pub(super) fn contains<'v>(&self, column: impl Fn(usize) -> Option<&'v [u8]>) -> bool {
        // A null column is in no tuple. It comes before all values where the tuples are searched.
        let order = |at: usize| match tuple_order(&self.types, &column, &self.tuples[at]) {
            Some(order) => order.reverse(),
            None => Ordering::Greater,
        };
        self.found_by.find(order)
    }
}

/// The order of columns relative to values, compared one after the other; `None` if a compared
/// column is null.
pub(super) fn tuple_order<'v>(
    types: &[CqlType],
    column: &impl Fn(usize) -> Option<&'v [u8]>,
    values: &[Bytes],
) -> Option<Ordering> {
    for (position, (cql_type, value)) in types.iter().zip(values).enumerate() {
        let order = compare(cql_type, column(position)?, value);
        if order.is_ne() {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::Value;

    /// Types of which equal values differ in bytes, or whose order is not that of the bytes.
    fn types() -> Vec<CqlType> {
        let list = |element: CqlType| CqlType::List {
            element: Box::new(element),
            frozen: true,
        };
        vec![
            CqlType::Int,
            CqlType::Text,
            CqlType::Boolean,
            CqlType::Double,
            CqlType::Varint,
            CqlType::Decimal,
            CqlType::Timeuuid,
            CqlType::Uuid,
            CqlType::Duration,
            CqlType::Blob,
            list(CqlType::Decimal),
            CqlType::Tuple(vec![CqlType::Varint, CqlType::Text]),
        ]
    }

    /// Bytes that are often values of a type, and often equal to others.
    fn bytes() -> impl Strategy<Value = Bytes> {
        let few = prop_oneof![Just(0_u8), Just(1), Just(0x7f), Just(0x80), Just(0xff)];
        let lengths = prop_oneof![0..3_usize, Just(4), Just(5), Just(8), Just(16)];
        let short = lengths.prop_flat_map(move |length| vec(few.clone(), length));
        let decimal = (0..3_u8, 0..20_u8).prop_map(|(scale, digits)| {
            let power = 10_u8.checked_pow(u32::from(scale)).unwrap_or(1);
            vec![0, 0, 0, scale, digits.saturating_mul(power)]
        });
        prop_oneof![3 => short, 1 => decimal].prop_map(Bytes::from)
    }

    proptest! {
        #[test]
        fn a_list_contains_what_equals_one_of_its_values(
            of in 0..12_usize,
            values in vec(bytes(), 0..24),
            looked_for in vec(bytes(), 1..8),
        ) {
            let cql_type = types().swap_remove(of);
            let list = OneOf::new(cql_type.clone(), values.clone());
            prop_assert_eq!(list.values(), &values[..]);
            for got in looked_for.iter().chain(&values) {
                if validate(&cql_type, got).is_err() {
                    continue;
                }
                let mut one_by_one = values.iter();
                let expected = one_by_one.any(|value| compare(&cql_type, got, value).is_eq());
                prop_assert_eq!(list.contains(got), expected, "{} {:?}", cql_type, got);
            }
        }

        #[test]
        fn tuples_contain_what_equals_one_of_them(
            of in (0..12_usize, 0..12_usize),
            tuples in vec(vec(bytes(), 1..3), 0..16),
            looked_for in vec(vec(proptest::option::of(bytes()), 2), 1..8),
        ) {
            let types = vec![types().swap_remove(of.0), types().swap_remove(of.1)];
            let list = OneOfTuples::new(types.clone(), tuples.clone());
            for got in &looked_for {
                let mut fields = types.iter().zip(got);
                let is_value = |(cql_type, value): (&CqlType, &Option<Bytes>)| {
                    value.as_ref().is_none_or(|value| validate(cql_type, value).is_ok())
                };
                if !fields.all(is_value) {
                    continue;
                }
                let column = |at: usize| got[at].as_deref();
                let mut one_by_one = tuples.iter();
                let expected = one_by_one
                    .any(|tuple| tuple_order(&types, &column, tuple) == Some(Ordering::Equal));
                prop_assert_eq!(list.contains(column), expected, "{:?}", got);
            }
        }
    }

    #[test]
    fn one_of_many_values_is_found_in_few_comparisons() {
        let values: Vec<Bytes> = (0..100_000)
            .map(|number| Value::Int(number * 2).serialize())
            .collect();
        let list = OneOf::new(CqlType::Int, values);
        for (number, is_there) in [(0, true), (77_777, false), (199_998, true), (-1, false)] {
            let wanted = Value::Int(number).serialize();
            let comparisons = Cell::new(0);
            let found = list.found_by.find(|at| {
                comparisons.set(comparisons.get() + 1);
                compare(&CqlType::Int, &list.values[at], &wanted)
            });
            assert_eq!(found, is_there, "{number}");
            assert!(comparisons.get() <= 20, "{} comparisons", comparisons.get());
        }
    }
}
