//! The conditions of a search as restrictions, which are their form in JSON.
//!
//! A condition that has no such form, as its values have none, is left out. So the filter is true
//! of every row that is wanted, and perhaps of others: whoever reads the rows checks all conditions
//! again.

use bytes::Bytes;
use serde_json::Value;
use value::predicate::{ComparisonOperator, Predicate, SearchedCollection, TuplePredicate};
use value::{CqlType, from_key_json, to_key_json};

use crate::columns_predicate::ColumnsPredicate;
use crate::types::{AnnRequest, Filter, Restriction};
use crate::vector_search::VectorSearch;

/// A search as a request over HTTP.
pub fn request_of(search: VectorSearch) -> AnnRequest {
    let VectorSearch {
        vector,
        limit,
        predicates,
        return_columns,
        min_time_us,
        exact,
    } = search;
    let restrictions: Vec<Restriction> = predicates.iter().filter_map(restriction).collect();
    AnnRequest {
        limit,
        filter: (!restrictions.is_empty()).then_some(Filter {
            restrictions,
            allow_filtering: true,
        }),
        // An answer of keys only has the shorter form.
        return_columns: return_columns.filter(|names| !names.is_empty()),
        min_time_us,
        exact,
        ..AnnRequest::new(vector, 1)
    }
}

/// A condition as a restriction; `None` if there is no form for it.
pub fn restriction(predicate: &ColumnsPredicate) -> Option<Restriction> {
    match predicate {
        ColumnsPredicate::Column { column, predicate } => of_column(column, predicate),
        ColumnsPredicate::Tuple { columns, predicate } => of_tuple(columns, predicate),
        ColumnsPredicate::Token {
            columns,
            comparison,
            token,
        } => Some(of_token(columns, *comparison, *token)),
    }
}

/// A condition on one column as a restriction; `None` if there is no form for it.
fn of_column(column: &str, predicate: &Predicate) -> Option<Restriction> {
    let lhs = column.to_owned();
    Some(match predicate {
        Predicate::Compare {
            cql_type,
            comparison,
            value,
        } => {
            let rhs = json(cql_type, value)?;
            match comparison {
                ComparisonOperator::Eq => Restriction::Eq { lhs, rhs },
                ComparisonOperator::Lt => Restriction::Lt { lhs, rhs },
                ComparisonOperator::LtEq => Restriction::Le { lhs, rhs },
                ComparisonOperator::Gt => Restriction::Gt { lhs, rhs },
                ComparisonOperator::GtEq => Restriction::Ge { lhs, rhs },
            }
        }
        Predicate::In(list) => {
            let values = list.values().iter();
            let values = values.map(|value| json(list.cql_type(), value));
            let rhs = values.collect::<Option<_>>()?;
            Restriction::In { lhs, rhs }
        }
        Predicate::Contains { collection, value } => {
            let (SearchedCollection::List(cql_type)
            | SearchedCollection::Set(cql_type)
            | SearchedCollection::MapValues(cql_type)) = collection;
            let rhs = json(cql_type, value)?;
            Restriction::Contains { lhs, rhs }
        }
        Predicate::ContainsKey { key_type, key } => {
            let rhs = json(key_type, key)?;
            Restriction::ContainsKey { lhs, rhs }
        }
        Predicate::Entry {
            key_type,
            value_type,
            key,
            value,
        } => Restriction::Entry {
            lhs,
            key: json(key_type, key)?,
            rhs: json(value_type, value)?,
        },
        // The index service knows no such conditions.
        Predicate::NotEqual { .. } | Predicate::Like(_) => return None,
    })
}

/// A condition on several columns together as a restriction; `None` if there is no form for it.
fn of_tuple(columns: &[String], predicate: &TuplePredicate) -> Option<Restriction> {
    let lhs = columns.to_vec();
    Some(match predicate {
        TuplePredicate::Compare {
            types,
            comparison,
            values,
        } => {
            let rhs = tuple(types, values)?;
            match comparison {
                ComparisonOperator::Eq => Restriction::EqTuple { lhs, rhs },
                ComparisonOperator::Lt => Restriction::LtTuple { lhs, rhs },
                ComparisonOperator::LtEq => Restriction::LeTuple { lhs, rhs },
                ComparisonOperator::Gt => Restriction::GtTuple { lhs, rhs },
                ComparisonOperator::GtEq => Restriction::GeTuple { lhs, rhs },
            }
        }
        TuplePredicate::In(list) => {
            let tuples = list.tuples().iter();
            let tuples = tuples.map(|values| tuple(list.types(), values));
            let rhs = tuples.collect::<Option<_>>()?;
            Restriction::InTuple { lhs, rhs }
        }
    })
}

/// A condition on the partition's token as a restriction. `columns` are those of the partition key.
fn of_token(columns: &[String], comparison: ComparisonOperator, token: i64) -> Restriction {
    let (lhs, rhs) = (columns.to_vec(), token);
    match comparison {
        ComparisonOperator::Eq => Restriction::TokenEq { lhs, rhs },
        ComparisonOperator::Lt => Restriction::TokenLt { lhs, rhs },
        ComparisonOperator::LtEq => Restriction::TokenLe { lhs, rhs },
        ComparisonOperator::Gt => Restriction::TokenGt { lhs, rhs },
        ComparisonOperator::GtEq => Restriction::TokenGe { lhs, rhs },
    }
}

fn tuple(types: &[CqlType], values: &[Bytes]) -> Option<Vec<Value>> {
    let values = types.iter().zip(values);
    values
        .map(|(cql_type, value)| json(cql_type, value))
        .collect()
}

/// A value as JSON; `None` if it has no such form, or one that is read as other bytes, as that of a
/// decimal may.
fn json(cql_type: &CqlType, value: &Bytes) -> Option<Value> {
    let json = match to_key_json(cql_type, value) {
        Ok(json) => serde_json::to_value(json).ok()?,
        Err(_) => Value::from(not_finite(cql_type, value)?),
    };
    (from_key_json(cql_type, &json)? == value).then_some(json)
}

/// The text of a float that is no number in JSON.
fn not_finite(cql_type: &CqlType, value: &Bytes) -> Option<&'static str> {
    let float = match cql_type {
        CqlType::Float => f64::from(f32::from_be_bytes(value.as_ref().try_into().ok()?)),
        CqlType::Double => f64::from_be_bytes(value.as_ref().try_into().ok()?),
        _ => return None,
    };
    Some(match float {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use value::predicate::OneOf;

    use super::*;

    fn wire(restriction: Option<Restriction>) -> Value {
        serde_json::to_value(restriction).unwrap()
    }

    #[test]
    fn every_comparison_has_its_word() {
        let seven = Bytes::from_static(&[0, 0, 0, 7]);
        for (comparison, word) in [
            (ComparisonOperator::Eq, "=="),
            (ComparisonOperator::Lt, "<"),
            (ComparisonOperator::LtEq, "<="),
            (ComparisonOperator::Gt, ">"),
            (ComparisonOperator::GtEq, ">="),
        ] {
            let one = Predicate::Compare {
                cql_type: CqlType::Int,
                comparison,
                value: seven.clone(),
            };
            let expected = json!({"type": word, "lhs": "n", "rhs": 7});
            assert_eq!(wire(of_column("n", &one)), expected);
            let both = TuplePredicate::Compare {
                types: vec![CqlType::Int, CqlType::Text],
                comparison,
                values: vec![seven.clone(), Bytes::from_static(b"x")],
            };
            let names = ["n".to_owned(), "t".to_owned()];
            let expected =
                json!({"type": format!("(){word}()"), "lhs": ["n", "t"], "rhs": [7, "x"]});
            assert_eq!(wire(of_tuple(&names, &both)), expected);
            let token = of_token(&names, comparison, i64::MIN);
            let expected =
                json!({"type": format!("TOKEN{word}"), "lhs": ["n", "t"], "rhs": i64::MIN});
            assert_eq!(wire(Some(token)), expected);
        }
    }

    #[test]
    fn collections_are_asked_for_what_they_contain() {
        let text = |text: &'static str| Bytes::from_static(text.as_bytes());
        let contains = Predicate::Contains {
            collection: SearchedCollection::Set(CqlType::Text),
            value: text("a"),
        };
        let key = Predicate::ContainsKey {
            key_type: CqlType::Text,
            key: text("k"),
        };
        let entry = Predicate::Entry {
            key_type: CqlType::Text,
            value_type: CqlType::Text,
            key: text("k"),
            value: text("a"),
        };
        for (predicate, expected) in [
            (
                contains,
                json!({"type": "CONTAINS", "lhs": "m", "rhs": "a"}),
            ),
            (key, json!({"type": "CONTAINS KEY", "lhs": "m", "rhs": "k"})),
            (
                entry,
                json!({"type": "[]==", "lhs": "m", "key": "k", "rhs": "a"}),
            ),
        ] {
            assert_eq!(wire(of_column("m", &predicate)), expected);
        }
    }

    #[test]
    fn floats_that_are_no_numbers_in_json_are_texts() {
        let infinite = [
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ];
        for (value, expected) in infinite {
            let double = Bytes::copy_from_slice(&value.to_be_bytes());
            let float = Bytes::copy_from_slice(&(value as f32).to_be_bytes());
            assert_eq!(json(&CqlType::Double, &double), Some(expected.into()));
            assert_eq!(json(&CqlType::Float, &float), Some(expected.into()));
        }
    }

    #[test]
    fn values_without_a_form_in_json_make_no_restriction() {
        let list = CqlType::List {
            element: Box::new(CqlType::Int),
            frozen: true,
        };
        for (cql_type, value) in [
            // A NaN is one of many, and the text is another's.
            (CqlType::Float, Bytes::from_static(&[0xff; 4])),
            (list, Bytes::from_static(&[0; 4])),
            (CqlType::Duration, Bytes::from_static(&[0; 3])),
        ] {
            let one = Predicate::Compare {
                cql_type: cql_type.clone(),
                comparison: ComparisonOperator::Eq,
                value: value.clone(),
            };
            assert_eq!(of_column("c", &one), None);
            let is_in = Predicate::In(OneOf::new(cql_type, vec![value]));
            assert_eq!(of_column("c", &is_in), None);
        }
    }
}
