//! Tests that definitions of user types become the right tree, and types the right ones.

use std::sync::Arc;

use cql::ast::data_type::no_user_types;
use cql::ast::*;
use cql::parser::{parse_data_type, parse_statement};
use value::{CqlType, UserType};

fn parse(text: &str) -> Statement {
    parse_statement(text).unwrap().statement
}

fn named(keyspace: Option<&str>, name: &str) -> TableName {
    TableName {
        keyspace: keyspace.map(str::to_owned),
        name: name.to_owned(),
    }
}

fn field(name: &str, data_type: DataType) -> FieldDefinition {
    FieldDefinition {
        name: name.to_owned(),
        data_type,
    }
}

fn int() -> DataType {
    DataType::Simple(CqlType::Int)
}

#[test]
fn types_are_defined_altered_and_dropped() {
    let used = DataType::UserType(named(None, "V"));
    assert_eq!(
        parse("CREATE TYPE IF NOT EXISTS ks.u (a int, \"B\" frozen<\"V\">)"),
        Statement::CreateType(CreateType {
            name: named(Some("ks"), "u"),
            if_not_exists: true,
            fields: vec![
                field("a", int()),
                field("B", DataType::Frozen(Box::new(used)))
            ],
        })
    );
    let alter = |change| {
        Statement::AlterType(AlterType {
            name: named(None, "u"),
            if_exists: false,
            change,
        })
    };
    assert_eq!(
        parse("ALTER TYPE u ADD a int"),
        alter(AlterTypeChange::AddField {
            if_not_exists: false,
            field: field("a", int())
        })
    );
    assert_eq!(
        parse("ALTER TYPE u RENAME IF EXISTS a TO b AND c TO d"),
        alter(AlterTypeChange::RenameFields {
            if_exists: true,
            renames: vec![
                ("a".to_owned(), "b".to_owned()),
                ("c".to_owned(), "d".to_owned())
            ],
        })
    );
    assert_eq!(
        parse("DROP TYPE IF EXISTS u"),
        Statement::DropType {
            name: named(None, "u"),
            if_exists: true
        }
    );
}

#[test]
fn columns_and_their_fields_have_times() {
    let Statement::Select(select) = parse("SELECT ttl(u.\"F\"), ttl(u) FROM t") else {
        panic!("no SELECT");
    };
    let ProjectionList::Items(items) = select.projection else {
        panic!("no items");
    };
    let time = |part| Selector::Time {
        function: TimeFunction::Ttl,
        column: "u".to_owned(),
        part: Box::new(part),
    };
    assert_eq!(items[0].selector, time(ArgumentPart::Field("F".to_owned())));
    assert_eq!(items[1].selector, time(ArgumentPart::Whole));
}

#[test]
fn user_types_are_frozen_by_the_word_and_by_what_lies_around_them() {
    let definition = Arc::new(UserType {
        keyspace: "ks".to_owned(),
        name: "u".to_owned(),
        field_names: vec!["a".to_owned()],
        field_types: vec![CqlType::Int],
    });
    let resolved = |text: &str| {
        let data_type = parse_data_type(text).unwrap();
        data_type.resolve(&|name| {
            assert_eq!(name.name, "u");
            Ok(definition.clone())
        })
    };
    for (text, written) in [
        ("u", "u"),
        ("ks.u", "u"),
        ("\"u\"", "u"),
        ("frozen<u>", "frozen<u>"),
        ("tuple<u>", "frozen<tuple<frozen<u>>>"),
        ("frozen<list<u>>", "frozen<list<frozen<u>>>"),
        (
            "map<frozen<u>, frozen<list<u>>>",
            "map<frozen<u>, frozen<list<frozen<u>>>>",
        ),
        ("vector<frozen<u>, 2>", "vector<frozen<u>, 2>"),
    ] {
        assert_eq!(resolved(text).unwrap().to_string(), written, "{text}");
    }
    assert_eq!(
        resolved("set<u>").unwrap_err().message,
        "Non-frozen UDTs are not allowed inside collections: write frozen<u> inside the set"
    );
    let unknown = parse_data_type("list<frozen<ks.u>>").unwrap();
    assert_eq!(
        unknown.resolve(&no_user_types).unwrap_err().message,
        "Unknown type ks.u"
    );
}

#[test]
fn types_that_cannot_exist_are_refused() {
    for (text, message) in [
        (
            "vector<counter, 2>",
            "Counters are not allowed inside vectors",
        ),
        (
            "list<list<int>>",
            "Non-frozen collections are not allowed inside collections: write frozen<list<int>> inside the list",
        ),
        (
            "map<int, set<int>>",
            "Non-frozen collections are not allowed inside collections: write frozen<set<int>> inside the map",
        ),
        (
            "set<duration>",
            "Durations are not allowed inside sets: set<duration>",
        ),
        (
            "map<frozen<list<duration>>, int>",
            "Durations are not allowed as map keys: map<frozen<list<duration>>, int>",
        ),
        (
            "list<counter>",
            "Counters are not allowed inside collections",
        ),
        (
            "frozen<int>",
            "frozen<> is only allowed on collections, tuples, vectors and user types (got int)",
        ),
        ("address", "Unknown type address"),
        ("ks.address", "Unknown type ks.address"),
        ("\"Address\"", "Unknown type Address"),
    ] {
        let refused = cql::parser::parse_type(text).unwrap_err().message;
        assert_eq!(refused, message, "{text}");
    }
}
