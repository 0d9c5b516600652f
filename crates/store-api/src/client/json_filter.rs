//! The conditions of a search as restrictions, which are their form in JSON.
//!
//! A condition that has no such form, as its values have none, is left out. So the filter is true
//! of every row that is wanted, and perhaps of others: the reader of the rows checks all conditions
//! again. Words always have a form.

use bytes::Bytes;
use serde_json::Value;
use value::predicate::{ComparisonOperator, Predicate, SearchedCollection, TuplePredicate};
use value::{CqlType, from_key_json, to_key_json};

use crate::columns_predicate::ColumnsPredicate;
use crate::types::{AnnRequest, Filter, FilterNode, Restriction};
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
    AnnRequest {
        limit,
        filter: filter_of(&predicates),
        // An answer of keys only has the shorter form.
        return_columns: return_columns.filter(|names| !names.is_empty()),
        min_time_us,
        exact,
        ..AnnRequest::new(vector, 1)
    }
}

/// The filter of conditions that must all hold; `None` if there are none. Those without a form are
/// left out.
pub fn filter_of(predicates: &[ColumnsPredicate]) -> Option<Filter> {
    let all = predicates.iter().flat_map(ColumnsPredicate::conjuncts);
    let nodes: Vec<FilterNode> = all.filter_map(node).collect();
    if nodes.is_empty() {
        return None;
    }
    let restrictions = nodes.iter().map(|node| match node {
        // A service that knows no conditions made of others knows no words either.
        FilterNode::Leaf(Restriction::Bm25 { .. } | Restriction::Ne { .. }) => None,
        FilterNode::Leaf(restriction) => Some(restriction.clone()),
        FilterNode::And(_) | FilterNode::Or(_) | FilterNode::Not(_) => None,
    });
    let filter = match restrictions.collect::<Option<Vec<Restriction>>>() {
        Some(restrictions) => Filter {
            restrictions,
            ..Filter::default()
        },
        None => Filter {
            condition: Some(FilterNode::And(nodes)),
            ..Filter::default()
        },
    };
    Some(Filter {
        allow_filtering: true,
        ..filter
    })
}

/// Whether a condition has a form in JSON, as a whole.
pub fn can_restrict_by(predicate: &ColumnsPredicate) -> bool {
    node(predicate).is_some()
}

/// A condition in the form of a filter; `None` if it, or a part of it, has no form. A part that is
/// left out would make another condition of an alternative or a negation.
fn node(predicate: &ColumnsPredicate) -> Option<FilterNode> {
    let all = |parts: &[ColumnsPredicate]| -> Option<Vec<FilterNode>> {
        parts.iter().map(node).collect()
    };
    match predicate {
        ColumnsPredicate::All(parts) => Some(FilterNode::And(all(parts)?)),
        ColumnsPredicate::Any(parts) => Some(FilterNode::Or(all(parts)?)),
        ColumnsPredicate::Not(inner) => Some(FilterNode::Not(Box::new(node(inner)?))),
        leaf => restriction(leaf).map(FilterNode::Leaf),
    }
}

/// A condition as a restriction; `None` if there is no form for it.
fn restriction(predicate: &ColumnsPredicate) -> Option<Restriction> {
    match predicate {
        ColumnsPredicate::Column { column, predicate } => of_column(column, predicate),
        ColumnsPredicate::Tuple { columns, predicate } => of_tuple(columns, predicate),
        ColumnsPredicate::Token {
            columns,
            comparison,
            token,
        } => Some(of_token(columns, *comparison, *token)),
        // The service finds the index by its column.
        ColumnsPredicate::Words { column, query, .. } => Some(Restriction::Bm25 {
            lhs: column.clone(),
            rhs: query.clone(),
        }),
        ColumnsPredicate::All(_) | ColumnsPredicate::Any(_) | ColumnsPredicate::Not(_) => None,
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
        Predicate::NotEqual { cql_type, value } => {
            let rhs = json(cql_type, value)?;
            Restriction::Ne { lhs, rhs }
        }
        // The index service knows no such conditions.
        Predicate::Like(_) => return None,
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

    fn equal(column: &str, value: &'static [u8], cql_type: CqlType) -> ColumnsPredicate {
        ColumnsPredicate::Column {
            column: column.to_owned(),
            predicate: Predicate::Compare {
                cql_type,
                comparison: ComparisonOperator::Eq,
                value: Bytes::from_static(value),
            },
        }
    }

    #[test]
    fn conditions_made_of_others_stand_in_place_of_restrictions() {
        let one = equal("n", &[0, 0, 0, 1], CqlType::Int);
        let words = ColumnsPredicate::Words {
            column: "t".to_owned(),
            index: "i".to_owned(),
            query: "fox".to_owned(),
        };
        let filter =
            |predicates: &[ColumnsPredicate]| serde_json::to_value(filter_of(predicates)).unwrap();
        let eq = json!({"type": "==", "lhs": "n", "rhs": 1});
        let bm25 = json!({"type": "BM25", "lhs": "t", "rhs": "fox"});
        assert_eq!(filter(&[]), Value::Null);
        let all = ColumnsPredicate::All(vec![one.clone()]);
        assert_eq!(
            filter(&[all]),
            json!({"restrictions": [eq.clone()], "allow_filtering": true})
        );
        let none_of = ColumnsPredicate::Not(Box::new(ColumnsPredicate::Any(vec![
            one.clone(),
            words.clone(),
        ])));
        assert_eq!(
            filter(&[one.clone(), none_of]),
            json!({"and": [eq, {"not": {"or": [eq, bm25]}}], "allow_filtering": true})
        );
        // An alternative without one of its parts would leave out rows.
        let nan = equal("f", &[0xff; 4], CqlType::Float);
        let either = ColumnsPredicate::Any(vec![one, nan]);
        assert!(!can_restrict_by(&either));
        assert_eq!(
            filter(&[either, words]),
            json!({"and": [bm25], "allow_filtering": true})
        );
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
