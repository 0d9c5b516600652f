//! Functions of collections: the keys and values of a map, and aggregates of elements.

use bigdecimal::BigDecimal;
use bytes::Bytes;
use cql::ast::ArithmeticOperation;
use cql::error::CqlError;
use num_bigint::{BigInt, Sign};
use value::{
    CqlType, Value, ValueError, compare, join_elements, split_entries, split_nullable_elements,
};

use super::numbers;

/// A function of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CollectionFunction {
    MapKeys,
    MapValues,
    Count,
    Min,
    Max,
    Sum,
    Avg,
}

use CollectionFunction::{Avg, Count, MapKeys, MapValues, Max, Min, Sum};

/// All such functions, by their names.
const FUNCTIONS: [(&str, CollectionFunction); 7] = [
    ("map_keys", MapKeys),
    ("map_values", MapValues),
    ("collection_count", Count),
    ("collection_min", Min),
    ("collection_max", Max),
    ("collection_sum", Sum),
    ("collection_avg", Avg),
];

impl CollectionFunction {
    /// The function and its name.
    pub(super) fn by_name(name: &str) -> Option<(&'static str, CollectionFunction)> {
        FUNCTIONS.into_iter().find(|(known, _)| *known == name)
    }

    /// The collections that the function takes, in the words of Cassandra's messages.
    pub(super) fn parameter(self) -> &'static str {
        match self {
            MapKeys | MapValues => "map",
            Count => "collection",
            Min | Max => "set or list",
            Sum | Avg => "numeric set/list",
        }
    }

    /// The type of the result; `None` if the function takes no such argument.
    pub(super) fn result_type(self, argument: &CqlType) -> Option<CqlType> {
        let element = match argument {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => Some(&**element),
            _ => None,
        };
        match (self, argument) {
            (MapKeys, CqlType::Map { key, .. }) => Some(CqlType::Set {
                element: key.clone(),
                frozen: false,
            }),
            (MapValues, CqlType::Map { value, .. }) => Some(CqlType::List {
                element: value.clone(),
                frozen: false,
            }),
            (Count, _) if argument.is_collection() => Some(CqlType::Int),
            (Min | Max, _) => element.cloned(),
            (Sum | Avg, _) => element.filter(|element| is_number(element)).cloned(),
            _ => None,
        }
    }

    /// Computes the function of a serialised collection; `None` for null. Null elements count, and
    /// are passed over otherwise, as in Cassandra.
    ///
    /// # Errors
    /// Bytes that are no such collection, and sums that are too long for a value.
    pub(super) fn evaluate(
        self,
        argument_type: &CqlType,
        collection: &[u8],
    ) -> Result<Option<Bytes>, CqlError> {
        let invalid = |error: ValueError| CqlError::invalid(error.0);
        if let CqlType::Map { .. } = argument_type {
            let entries = split_entries(collection).map_err(invalid)?;
            return Ok(Some(match self {
                MapKeys => join_elements(entries.iter().map(|(key, _)| &key[..])),
                MapValues => join_elements(entries.iter().map(|(_, value)| &value[..])),
                _ => int(entries.len()),
            }));
        }
        let elements = split_nullable_elements(collection).map_err(invalid)?;
        let count = elements.len();
        let elements = elements.into_iter().flatten();
        let (CqlType::List { element, .. } | CqlType::Set { element, .. }) = argument_type else {
            return Ok(None);
        };
        let element_type = &**element;
        let order = |a: &Bytes, b: &Bytes| compare(element_type, a, b);
        match self {
            Min => Ok(elements.min_by(order)),
            Max => Ok(elements.max_by(order)),
            Sum | Avg => {
                let numbers = elements
                    .map(|bytes| Value::deserialize(element_type, &bytes).map_err(|error| error.0))
                    .filter(|number| *number != Ok(Value::Empty));
                let result = match self {
                    Sum => sum(element_type, numbers).map(|(sum, _)| sum),
                    _ => average(element_type, numbers),
                };
                let result = result.map_err(CqlError::invalid)?;
                Ok(Some(result.serialize()))
            }
            _ => Ok(Some(int(count))),
        }
    }
}

fn int(count: usize) -> Bytes {
    Bytes::copy_from_slice(&(count as i32).to_be_bytes())
}

fn is_number(cql_type: &CqlType) -> bool {
    numbers::zero(cql_type).is_some()
}

/// The sum of the numbers, and how many there are.
fn sum(
    cql_type: &CqlType,
    mut addends: impl Iterator<Item = Result<Value, String>>,
) -> Result<(Value, i64), String> {
    let zero = numbers::zero(cql_type).ok_or("no numbers")?;
    addends.try_fold((zero, 0), |(sum, count), number| {
        let sum = numbers::compute(ArithmeticOperation::Add, cql_type, &sum, &number?)?;
        Ok((sum, count + 1))
    })
}

/// The average, cut to a whole number if the type has only such; zero of nothing.
fn average(
    cql_type: &CqlType,
    mut addends: impl Iterator<Item = Result<Value, String>>,
) -> Result<Value, String> {
    let nothing = || numbers::zero(cql_type).ok_or_else(|| "no numbers".to_owned());
    match cql_type {
        CqlType::Float | CqlType::Double => {
            let (sum, count) = addends.try_fold((0.0, 0_i64), |(sum, count), number| {
                Ok::<_, String>((sum + numbers::double(&number?), count + 1))
            })?;
            let average = sum / count as f64;
            match cql_type {
                _ if count == 0 => nothing(),
                CqlType::Float => Ok(Value::Float(average as f32)),
                _ => Ok(Value::Double(average)),
            }
        }
        CqlType::Decimal => match sum(cql_type, addends)? {
            (_, 0) => nothing(),
            (Value::Decimal(sum), count) => Ok(Value::Decimal(divided(&sum, count))),
            (other, _) => Ok(other),
        },
        _ => {
            let (sum, count) = addends
                .try_fold((BigInt::ZERO, 0_i64), |(sum, count), number| {
                    Ok::<_, String>((sum + numbers::big(&number?), count + 1))
                })?;
            match count {
                0 => nothing(),
                _ => numbers::narrowed(&Value::Varint(sum / count), cql_type)
                    .ok_or_else(|| "no number".to_owned()),
            }
        }
    }
}

/// The decimal divided by a count, with as many digits after the point, rounded half to even.
fn divided(sum: &BigDecimal, count: i64) -> BigDecimal {
    let (unscaled, scale) = sum.as_bigint_and_exponent();
    let count = BigInt::from(count);
    let mut quotient = &unscaled / &count;
    let rest: BigInt = (&unscaled % &count) * 2;
    let is_half = rest.magnitude() == count.magnitude();
    let is_odd = &quotient % 2 != BigInt::ZERO;
    if rest.magnitude() > count.magnitude() || is_half && is_odd {
        match unscaled.sign() {
            Sign::Minus => quotient -= 1,
            _ => quotient += 1,
        }
    }
    BigDecimal::new(quotient, scale)
}
