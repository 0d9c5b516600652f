//! Tests of literals of user types.

use std::collections::BTreeMap;
use std::sync::Arc;

use cql::ast::{Insert, InsertValues, Statement};
use cql::parser::parse_statement;
use cql::wire::BoundValue;
use schema::Keyspace;
use value::{CqlType, UserType, Value};

use super::{PrepareContext, StatementClock, TermValue, prepare_term};

fn defined(name: &str, fields: &[(&str, CqlType)]) -> Arc<UserType> {
    Arc::new(UserType {
        keyspace: "k".to_owned(),
        name: name.to_owned(),
        field_names: fields.iter().map(|(name, _)| (*name).to_owned()).collect(),
        field_types: fields.iter().map(|(_, kind)| kind.clone()).collect(),
    })
}

fn of(definition: &Arc<UserType>, frozen: bool) -> CqlType {
    CqlType::UserType {
        definition: definition.clone(),
        frozen,
    }
}

/// The value of a term of type `person`, as CQL text, and the names of its markers' places.
fn evaluated(text: &str, frozen: bool, values: &[BoundValue]) -> Result<String, String> {
    let home = defined("home", &[("street", CqlType::Text), ("No", CqlType::Int)]);
    let person = defined(
        "person",
        &[("name", CqlType::Text), ("home", of(&home, true))],
    );
    let keyspace = Keyspace {
        name: "k".to_owned(),
        replication: BTreeMap::new(),
        durable_writes: true,
        tablets: false,
        types: BTreeMap::from(
            [home, person.clone()].map(|definition| (definition.name.clone(), definition)),
        )
        .into(),
        tables: BTreeMap::new(),
    };
    let parsed = parse_statement(&format!("INSERT INTO t (a) VALUES ({text})")).unwrap();
    let Statement::Insert(Insert {
        values: InsertValues::Columns { terms, .. },
        ..
    }) = parsed.statement
    else {
        panic!("{text}");
    };
    let cql_type = of(&person, frozen);
    let mut ctx = PrepareContext::new("k", "t", parsed.markers.len())
        .with_types_of(Some(&Arc::new(keyspace)));
    let term = prepare_term(&terms[0], &cql_type, "p", &mut ctx).map_err(|error| error.message)?;
    let bound = term.evaluate(values, &StatementClock::of_none());
    let TermValue::Value(bytes) = bound.map_err(|error| error.message)? else {
        return Ok("null".to_owned());
    };
    let value = Value::deserialize(&cql_type, &bytes).unwrap().to_literal();
    let places = ctx.finish().unwrap();
    let places: Vec<&str> = places.iter().map(|spec| &*spec.name).collect();
    Ok([&[value.as_str()][..], &places].concat().join(" "))
}

#[test]
fn fields_that_are_left_out_are_null_and_the_last_of_one_name_stays() {
    let whole = "{name: 'n', home: {street: 's', \"No\": 1}}";
    assert_eq!(evaluated(whole, true, &[]).unwrap(), whole);
    let given = "{home: {\"No\": 1, \"No\": 2}}";
    assert_eq!(
        evaluated(given, false, &[]).unwrap(),
        "{name: null, home: {street: null, \"No\": 2}}"
    );
    let value = |value: Value| BoundValue::Value(value.serialize());
    let bound = [value(Value::Text("n".to_owned())), value(Value::Int(7))];
    assert_eq!(
        evaluated("{name: ?, home: {\"No\": ?}}", true, &bound).unwrap(),
        "{name: 'n', home: {street: null, \"No\": 7}} p.name p.home.No"
    );
}

#[test]
fn a_hint_names_a_type_and_whether_it_is_frozen() {
    let hinted = "(frozen<person>){name: 'n'}";
    assert_eq!(
        evaluated(hinted, true, &[]).unwrap(),
        "{name: 'n', home: null}"
    );
    for (hint, frozen) in [("frozen<person>", false), ("person", true), ("home", false)] {
        let refused = evaluated(&format!("({hint}){{name: 'n'}}"), frozen, &[]);
        assert!(refused.unwrap_err().starts_with("Cannot "), "{hint}");
    }
    assert_eq!(
        evaluated("(k.unknown){name: 'n'}", true, &[]).unwrap_err(),
        "Unknown type k.unknown"
    );
    assert!(evaluated("(x.person){name: 'n'}", true, &[]).is_err());
}

#[test]
fn other_literals_and_fields_are_refused() {
    for (text, message) in [
        (
            "{nam: 'n'}",
            "Unknown field 'nam' in value of user defined type person",
        ),
        (
            "{name: 1}",
            "Invalid user type literal for p: field name is not of type text",
        ),
        (
            "{home: {\"No\": 'x'}}",
            "Invalid user type literal for p.home: field No is not of type int",
        ),
        ("{}", "Invalid set literal for p of type frozen<person>"),
        (
            "('n')",
            "Invalid STRING constant (n) for \"p\" of type frozen<person>",
        ),
        (
            "('n', null)",
            "Invalid tuple type literal for p of type frozen<person>",
        ),
        (
            "{'name': 'n'}",
            "Invalid map literal for p of type frozen<person>",
        ),
        (
            "[null]",
            "Unexpected receiver type 'frozen<person>'; only list and vector are expected",
        ),
    ] {
        assert_eq!(evaluated(text, true, &[]).unwrap_err(), message, "{text}");
    }
    assert_eq!(
        evaluated("{name: ?}", true, &[BoundValue::Unset]).unwrap_err(),
        "Invalid unset value for field 'name' of p"
    );
}
