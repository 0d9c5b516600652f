//! Tests of terms as the parser gives them, against the types of their places.

use bytes::Bytes;
use cql::ast::{InsertValues, ParsedStatement, Statement, Term};
use cql::parser::{parse_statement, parse_type};
use cql::wire::BoundValue;
use value::{CqlType, Value};

use super::*;

/// The term of a text, and the number of its bind markers.
fn term(text: &str) -> (Term, usize) {
    let ParsedStatement { statement, markers } =
        parse_statement(&format!("INSERT INTO t (c) VALUES ({text})")).unwrap();
    let Statement::Insert(insert) = statement else {
        panic!("no INSERT");
    };
    let InsertValues::Columns { mut terms, .. } = insert.values else {
        panic!("no VALUES");
    };
    (terms.remove(0), markers.len())
}

fn prepare(text: &str, cql_type: &str) -> Result<(PreparedTerm, PrepareContext), String> {
    let (term, markers) = term(text);
    let cql_type = parse_type(cql_type).unwrap();
    let mut ctx = PrepareContext::new("ks", "t", markers);
    prepare_term(&term, &cql_type, "c", &mut ctx)
        .map(|prepared| (prepared, ctx))
        .map_err(|error| error.message)
}

fn evaluate(text: &str, cql_type: &str, values: Vec<BoundValue>) -> Result<TermValue, String> {
    let (prepared, _) = prepare(text, cql_type)?;
    prepared
        .evaluate(&values, &StatementClock::of_none())
        .map_err(|error| error.message)
}

/// The value as CQL text.
fn literal(text: &str, cql_type: &str, values: Vec<BoundValue>) -> Result<String, String> {
    match evaluate(text, cql_type, values)? {
        TermValue::Value(bytes) => {
            let value = Value::deserialize(&parse_type(cql_type).unwrap(), &bytes);
            Ok(value.map_err(|error| error.0)?.to_literal())
        }
        other => Ok(format!("{other:?}")),
    }
}

fn bind(value: Value) -> BoundValue {
    BoundValue::Value(value.serialize())
}

#[test]
fn texts_that_grow_with_each_call_are_bounded_together() {
    let nested = |calls: usize| format!("{}'\"'{}", "tojson(".repeat(calls), ")".repeat(calls));
    let deep = nested(21);
    let (prepared, _) = prepare(&deep, "text").unwrap();
    assert!(prepared.constant().is_none(), "a plan holds it");
    assert!(evaluate(&deep, "text", vec![]).is_ok());
    let many = format!("[{}]", vec![deep; 3].join(", "));
    let refused = evaluate(&many, "list<text>", vec![]).unwrap_err();
    assert!(refused.contains("the results of functions"), "{refused}");
    let short = format!("[{}]", vec![nested(2); 1_000].join(", "));
    assert!(evaluate(&short, "list<text>", vec![]).is_ok());
}

#[test]
fn constants_are_folded() {
    for (text, cql_type, expected) in [
        ("1", "bigint", "1"),
        ("'x'", "text", "'x'"),
        ("[2, 1, 2]", "list<int>", "[2, 1, 2]"),
        ("{2, 1, 2}", "set<int>", "{1, 2}"),
        (
            "{'b': 1, 'a': 2, 'b': 3}",
            "map<text, int>",
            "{'a': 2, 'b': 3}",
        ),
        ("{}", "map<text, int>", "{}"),
        ("{}", "set<int>", "{}"),
        ("[1, 2.5, -3]", "vector<float, 3>", "[1.0, 2.5, -3.0]"),
        ("['ab', '']", "vector<text, 2>", "['ab', '']"),
        ("(1, null)", "tuple<int, text>", "(1, null)"),
        (
            "{(2, 'b'), (1, 'a')}",
            "set<frozen<tuple<int, text>>>",
            "{(1, 'a'), (2, 'b')}",
        ),
        ("(int) 7", "int", "7"),
        ("(ascii) 'x'", "text", "'x'"),
        ("null", "int", "Null"),
    ] {
        let (prepared, _) = prepare(text, cql_type).unwrap();
        assert!(prepared.constant().is_some(), "{text}");
        assert_eq!(
            literal(text, cql_type, Vec::new()).unwrap(),
            expected,
            "{text}"
        );
    }
}

/// Asserts that each of these terms is refused as a value of the type, with this message.
fn explains(cases: &[(&str, &str, &str)]) {
    for (text, cql_type, message) in cases {
        match prepare(text, cql_type) {
            Err(error) => assert_eq!(error, *message, "{text} as {cql_type}"),
            Ok(_) => panic!("{text} was taken as {cql_type}"),
        }
    }
}

#[test]
fn constants_of_another_type_are_explained() {
    explains(&[
        (
            "5",
            "text",
            "Invalid INTEGER constant (5) for \"c\" of type text",
        ),
        (
            "'x'",
            "int",
            "Invalid STRING constant (x) for \"c\" of type int",
        ),
        (
            "true",
            "blob",
            "Invalid BOOLEAN constant (true) for \"c\" of type blob",
        ),
        (
            "3000000000",
            "int",
            "Invalid value for c: 3000000000 is out of range of type int, -2147483648 to \
             2147483647",
        ),
    ]);
}

#[test]
fn a_long_constant_is_cut_in_its_message() {
    let message = format!(
        "Invalid INTEGER constant ({}...) for \"c\" of type text",
        "9".repeat(60)
    );
    explains(&[(&"9".repeat(200), "text", &message)]);
}

#[test]
fn collections_of_another_type_are_explained() {
    explains(&[
        (
            "[1]",
            "int",
            "Unexpected receiver type 'int'; only list and vector are expected",
        ),
        (
            "[1]",
            "set<int>",
            "Unexpected receiver type 'set<int>'; only list and vector are expected",
        ),
        (
            "{1}",
            "map<int, int>",
            "Invalid set literal for c of type map<int, int>",
        ),
        (
            "{1: 2}",
            "set<int>",
            "Invalid map literal for c of type set<int>",
        ),
        (
            "(1, 2)",
            "int",
            "Invalid tuple type literal for c of type int",
        ),
        (
            "[1, 'x']",
            "list<int>",
            "Invalid list literal for c: value 'x' is not of type int",
        ),
        (
            "{'x': 'y'}",
            "map<int, text>",
            "Invalid map literal for c: key 'x' is not of type int",
        ),
        (
            "[1, null]",
            "list<int>",
            "null is not supported inside collections (column c)",
        ),
        (
            "[1, 2]",
            "vector<float, 3>",
            "Invalid vector literal for c of type vector<float, 3>; expected 3 elements, but \
             given 2",
        ),
        (
            "[1, null, 2]",
            "vector<float, 3>",
            "null is not supported inside vectors (column c)",
        ),
        (
            "(1, 2, 3)",
            "tuple<int, int>",
            "Invalid tuple literal for c: too many elements. Type frozen<tuple<int, int>> \
             expects 2 but got 3",
        ),
    ]);
}

#[test]
fn casts_and_functions_of_another_type_are_explained() {
    explains(&[
        ("(int) 'x'", "int", "Cannot cast value 'x' to type int"),
        (
            "(bigint) 1",
            "int",
            "Cannot assign value (bigint)1 to c of type int",
        ),
        (
            "now()",
            "int",
            "Type error: cannot assign result of function system.now (type timeuuid) to c (type \
             int)",
        ),
    ]);
}

#[test]
fn markers_get_the_type_and_name_of_their_place() {
    for (text, cql_type, specs) in [
        ("?", "int", vec![("c", "int")]),
        (":n", "int", vec![("n", "int")]),
        (
            "[?, 1, ?]",
            "list<int>",
            vec![("value(c)", "int"), ("value(c)", "int")],
        ),
        (
            "{?: :v}",
            "map<text, int>",
            vec![("key(c)", "text"), ("v", "int")],
        ),
        ("(?, 1)", "tuple<text, int>", vec![("c[0]", "text")]),
        (
            "[?, ?]",
            "vector<float, 2>",
            vec![("value(c)", "float"), ("value(c)", "float")],
        ),
    ] {
        let (_, ctx) = prepare(text, cql_type).unwrap();
        let got: Vec<(String, CqlType)> = ctx
            .finish()
            .unwrap()
            .into_iter()
            .map(|spec| (spec.name.to_string(), spec.cql_type))
            .collect();
        let wanted: Vec<(String, CqlType)> = specs
            .into_iter()
            .map(|(name, cql_type)| (name.to_owned(), parse_type(cql_type).unwrap()))
            .collect();
        assert_eq!(got, wanted, "{text}");
    }
}

#[test]
fn bound_values_take_their_places() {
    let three = || bind(Value::Int(3));
    assert_eq!(literal("?", "int", vec![three()]).unwrap(), "3");
    assert_eq!(
        literal("{?, 1}", "set<int>", vec![three()]).unwrap(),
        "{1, 3}"
    );
    assert_eq!(
        literal("{?: 'x'}", "map<int, text>", vec![three()]).unwrap(),
        "{3: 'x'}"
    );
    assert_eq!(
        literal("(?, 'x')", "tuple<int, text>", vec![three()]).unwrap(),
        "(3, 'x')"
    );
    assert_eq!(
        literal("[?, 1]", "vector<float, 2>", vec![bind(Value::Float(0.5))]).unwrap(),
        "[0.5, 1.0]"
    );
    // Clients may send a set in any order, with repeats.
    let unordered = bind(Value::List(vec![
        Value::Int(2),
        Value::Int(1),
        Value::Int(2),
    ]));
    assert_eq!(literal("?", "set<int>", vec![unordered]).unwrap(), "{1, 2}");
    assert_eq!(
        evaluate("?", "int", vec![BoundValue::Null]),
        Ok(TermValue::Null)
    );
    assert_eq!(
        evaluate("?", "int", vec![BoundValue::Unset]),
        Ok(TermValue::Unset)
    );
    assert_eq!(
        literal("(?, 1)", "tuple<int, int>", vec![BoundValue::Null]).unwrap(),
        "(null, 1)"
    );
}

#[test]
fn wrong_bound_values_are_explained() {
    let bytes = |bytes: &'static [u8]| BoundValue::Value(Bytes::from_static(bytes));
    for (text, cql_type, value, message) in [
        (
            "?",
            "int",
            bytes(&[0; 8]),
            "Invalid value for c: a value of type int takes 4 bytes, got 8",
        ),
        (
            "?",
            "vector<float, 2>",
            bytes(&[0; 12]),
            "Invalid value for c: a vector<float, 2> takes exactly 2 elements of 4 bytes, got 3 \
             elements",
        ),
        (
            "[?]",
            "list<int>",
            BoundValue::Null,
            "null is not supported inside collections (column c)",
        ),
        (
            "[?]",
            "list<int>",
            BoundValue::Unset,
            "unset value is not supported inside collections (column c)",
        ),
        (
            "(?, 1)",
            "tuple<int, int>",
            BoundValue::Unset,
            "Invalid unset value for tuple field number 0 of c",
        ),
        (
            "?",
            "int",
            bytes(b"xxx"),
            "Invalid value for c: a value of type int takes 4 bytes, got 3",
        ),
    ] {
        assert_eq!(
            evaluate(text, cql_type, vec![value]).unwrap_err(),
            message,
            "{text}"
        );
    }
}

#[test]
fn a_function_is_called_at_every_execution() {
    let first = evaluate("now()", "timeuuid", Vec::new()).unwrap();
    let second = evaluate("now()", "timeuuid", Vec::new()).unwrap();
    assert_ne!(first, second);
    assert!(matches!(
        evaluate("now()", "uuid", Vec::new()),
        Ok(TermValue::Value(_))
    ));
}

#[test]
fn in_takes_one_marker_for_all() {
    let mut ctx = PrepareContext::new("ks", "t", 1);
    let (whole, _) = term("?");
    let list = prepare_in_list(
        &cql::ast::Comparand::Term(whole),
        &CqlType::Int,
        "k",
        &mut ctx,
    )
    .unwrap();
    assert_eq!(list.marker(), Some(0));
    let spec = ctx.finish().unwrap().remove(0);
    assert_eq!(&*spec.name, "in(k)");
    assert_eq!(spec.cql_type, parse_type("list<int>").unwrap());
    let evaluate = |value: BoundValue| {
        list.evaluate(&[value], &StatementClock::of_none())
            .map_err(|error| error.message)
    };
    let two = bind(Value::List(vec![Value::Int(2), Value::Int(2)]));
    assert_eq!(evaluate(two).unwrap().len(), 2);
    assert_eq!(
        evaluate(BoundValue::Unset).unwrap_err(),
        "Invalid unset value for in(k)"
    );
}
