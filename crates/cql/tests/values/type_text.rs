//! Tests that the text of a type reads back as the type.

use std::sync::Arc;

use cql::ast::data_type::unknown_type;
use cql::parser::{parse_data_type, parse_type};
use proptest::prelude::*;
use value::{CqlType, UserType};

use crate::strategies::column_type;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_type_survives_its_text(cql_type in column_type()) {
        let text = cql_type.to_string();
        let mut known = Vec::new();
        user_types_in(&cql_type, &mut known);
        let read = parse_data_type(&text).and_then(|data_type| {
            data_type.resolve(&|name| {
                let mut known = known.iter();
                let found = known.find(|known| known.name == name.name);
                found.cloned().ok_or_else(|| unknown_type(name))
            })
        });
        prop_assert_eq!(read.map_err(|error| error.message), Ok(cql_type));
    }
}

#[test]
fn the_text_is_the_one_that_clients_parse() {
    let text = |written: &str| parse_type(written).unwrap().to_string();
    assert_eq!(text("VECTOR < FLOAT,384 >"), "vector<float, 384>");
    assert_eq!(text("varchar"), "text");
    assert_eq!(
        text("map<text,frozen<set<int>>>"),
        "map<text, frozen<set<int>>>"
    );
    assert_eq!(text("tuple<int,text>"), "frozen<tuple<int, text>>");
    assert_eq!(text("frozen<vector<int, 2>>"), "vector<int, 2>");
    assert_eq!(
        text("frozen<list<list<int>>>"),
        "frozen<list<frozen<list<int>>>>"
    );
}

#[test]
fn nothing_may_follow_a_type() {
    assert_eq!(
        parse_type("int int").unwrap_err().message,
        "line 1:5 expected the end of the statement, found 'int'"
    );
    assert!(parse_type("").is_err());
}

#[test]
fn vectors_of_one_to_16000_dimensions_are_types() {
    for (dimensions, accepted) in [(0, false), (1, true), (16_000, true), (16_001, false)] {
        let parsed = parse_type(&format!("vector<float, {dimensions}>"));
        assert_eq!(parsed.is_ok(), accepted, "{dimensions}");
    }
    assert_eq!(
        parse_type("vector<float, 3>").unwrap(),
        CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: 3
        }
    );
}

/// Adds the user types in a type, at every depth.
fn user_types_in(cql_type: &CqlType, found: &mut Vec<Arc<UserType>>) {
    match cql_type {
        CqlType::List { element, .. }
        | CqlType::Set { element, .. }
        | CqlType::Vector { element, .. } => user_types_in(element, found),
        CqlType::Map { key, value, .. } => {
            user_types_in(key, found);
            user_types_in(value, found);
        }
        CqlType::Tuple(types) => types.iter().for_each(|part| user_types_in(part, found)),
        CqlType::UserType { definition, .. } => {
            found.push(definition.clone());
            let types = definition.field_types.iter();
            types.for_each(|part| user_types_in(part, found));
        }
        _ => {}
    }
}
