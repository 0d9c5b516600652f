//! Tests that each form of the grammar becomes the right tree.

mod definitions;
mod writes;

use cql::ast::data_type::no_user_types;
use cql::ast::*;
use cql::parser::parse_statement;
use value::CqlType;
use value::Literal;

fn parse(text: &str) -> Statement {
    match parse_statement(text) {
        Ok(parsed) => parsed.statement,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// The type that is meant where there are no user types.
fn resolved(data_type: &DataType) -> CqlType {
    data_type.resolve(&no_user_types).unwrap()
}

fn select(text: &str) -> Select {
    match parse(text) {
        Statement::Select(select) => select,
        other => panic!("{other:?}"),
    }
}

/// The one relation of a `WHERE` clause.
fn relation(text: &str) -> Relation {
    let mut relations = select(&format!("SELECT * FROM t WHERE {text}")).relations;
    assert_eq!(relations.len(), 1, "{text}");
    relations.remove(0)
}

/// The one selector of a `SELECT`.
fn selector(text: &str) -> Selector {
    match select(&format!("SELECT {text} FROM t")).projection {
        ProjectionList::Items(mut items) if items.len() == 1 => items.remove(0).selector,
        other => panic!("{other:?}"),
    }
}

/// The one value of an `INSERT`.
fn term(text: &str) -> Term {
    match parse(&format!("INSERT INTO t (a) VALUES ({text})")) {
        Statement::Insert(Insert {
            values: InsertValues::Columns { mut terms, .. },
            ..
        }) if terms.len() == 1 => terms.remove(0),
        other => panic!("{other:?}"),
    }
}

/// The assignments of an `UPDATE`.
fn assignments(text: &str) -> Vec<Assignment> {
    match parse(&format!("UPDATE t SET {text} WHERE k = 1")) {
        Statement::Update(update) => update.assignments,
        other => panic!("{other:?}"),
    }
}

fn integer(digits: &str) -> Term {
    Term::Literal(Literal::Integer(digits.to_owned()))
}

fn string(text: &str) -> Term {
    Term::Literal(Literal::String(text.to_owned()))
}

fn marker(index: u16) -> Term {
    Term::Marker(BindMarker { index, name: None })
}

fn column(name: &str) -> Selector {
    Selector::Column(name.to_owned())
}

fn table(name: &str) -> TableName {
    TableName {
        keyspace: None,
        name: name.to_owned(),
    }
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn names_fold_unless_they_are_quoted() {
    let select = select("SELECT Ab, \"Ab\", \"a\"\"b\" FROM Ks.\"T\"");
    assert_eq!(
        select.table,
        TableName {
            keyspace: Some("ks".to_owned()),
            name: "T".to_owned()
        }
    );
    let ProjectionList::Items(items) = select.projection else {
        panic!("no items");
    };
    let selectors: Vec<Selector> = items.into_iter().map(|item| item.selector).collect();
    assert_eq!(selectors, [column("ab"), column("Ab"), column("a\"b")]);
}

#[test]
fn constants_keep_what_was_written() {
    assert_eq!(term("-007"), integer("-007"));
    assert_eq!(
        term("-1.50E3"),
        Term::Literal(Literal::Float("-1.50E3".to_owned()))
    );
    assert_eq!(
        term("-infinity"),
        Term::Literal(Literal::Float("-Infinity".to_owned()))
    );
    assert_eq!(
        term("-nan"),
        Term::Literal(Literal::Float("NaN".to_owned()))
    );
    assert_eq!(term("'it''s'"), string("it's"));
    assert_eq!(term("$$it's$$"), string("it's"));
    assert_eq!(term("TRUE"), Term::Literal(Literal::Boolean(true)));
    assert_eq!(
        term("0xCAfe"),
        Term::Literal(Literal::Blob(vec![0xca, 0xfe].into()))
    );
    assert_eq!(
        term("-1mo2d3ns"),
        Term::Literal(Literal::Duration {
            months: -1,
            days: -2,
            nanoseconds: -3
        })
    );
    assert_eq!(
        term("P1DT1S"),
        Term::Literal(Literal::Duration {
            months: 0,
            days: 1,
            nanoseconds: 1_000_000_000
        })
    );
    assert_eq!(
        term("550E8400-e29b-41d4-a716-446655440000"),
        Term::Literal(Literal::Uuid(
            "550e8400-e29b-41d4-a716-446655440000".parse().unwrap()
        ))
    );
    assert_eq!(term("null"), Term::Null);
}

#[test]
fn brackets_tell_collections_apart() {
    assert_eq!(term("[1, ?]"), Term::List(vec![integer("1"), marker(0)]));
    assert_eq!(term("{1}"), Term::Set(vec![integer("1")]));
    assert_eq!(term("{}"), Term::Set(vec![]));
    assert_eq!(
        term("{1: 2}"),
        Term::Map(vec![(integer("1"), integer("2"))])
    );
    assert_eq!(
        term("(1, null)"),
        Term::Tuple(vec![integer("1"), Term::Null])
    );
    assert_eq!(term("(1)"), Term::Tuple(vec![integer("1")]));
    assert_eq!(term("((1))").without_parentheses(), &integer("1"));
    assert_eq!(term("(1, 2)").without_parentheses(), &term("(1, 2)"));
    // The second colon begins a named marker.
    assert_eq!(
        term("{1::x}"),
        Term::Map(vec![(
            integer("1"),
            Term::Marker(BindMarker {
                index: 0,
                name: Some("x".to_owned())
            })
        )])
    );
}

#[test]
fn functions_and_type_hints_are_told_from_tuples() {
    assert_eq!(
        term("Ks.F(1, g())"),
        Term::Function(FunctionCall {
            keyspace: Some("ks".to_owned()),
            name: "f".to_owned(),
            arguments: vec![
                integer("1"),
                Term::Function(FunctionCall {
                    keyspace: None,
                    name: "g".to_owned(),
                    arguments: vec![]
                })
            ],
        })
    );
    assert_eq!(
        term("(set<int>) ?"),
        Term::TypeHint {
            data_type: DataType::Set(Box::new(DataType::Simple(CqlType::Int))),
            term: Box::new(marker(0)),
        }
    );
    // `int(` is a function call, though `int` is a type.
    assert!(matches!(term("(int(1), 2)"), Term::Tuple(elements) if elements.len() == 2));
}

#[test]
fn fields_of_user_types_are_selected() {
    let field = |selector, field: &str| Selector::Field {
        selector: Box::new(selector),
        field: field.to_owned(),
    };
    assert_eq!(selector("u.f"), field(column("u"), "f"));
    assert_eq!(selector("u.f.\"G\""), field(field(column("u"), "f"), "G"));
    assert_eq!(
        selector("m['k'].f"),
        field(
            Selector::Element {
                selector: Box::new(column("m")),
                key: string("k")
            },
            "f"
        )
    );
    let deep = format!("SELECT u{} FROM t", ".f".repeat(100_000));
    assert!(cql::parser::parse_statement(&deep).is_err());
    // Parts count over all parentheses, as the tree of both is as deep.
    let many = |levels: usize| {
        let parts = "['a']".repeat(30);
        let text = format!(
            "SELECT {}m{} FROM t",
            "(".repeat(levels),
            format!("{parts})").repeat(levels)
        );
        cql::parser::parse_statement(&text)
    };
    assert!(many(4).is_ok());
    assert!(many(5).is_err());
}

#[test]
fn products_come_before_sums() {
    let text = |text: &str| selector(text);
    assert_eq!(text("a + b * c"), text("a + (b * c)"));
    assert_eq!(text("a - b - c"), text("(a - b) - c"));
    assert_ne!(text("a - b - c"), text("a - (b - c)"));
    assert_eq!(text("-a * b"), text("(-a) * b"));
    assert_eq!(text("a-1"), text("a - 1"));
    let chain = |operators: usize| {
        let text = format!("INSERT INTO t (a) VALUES (1{})", " + 1".repeat(operators));
        cql::parser::parse_statement(&text)
    };
    assert!(chain(cql::parser::MAX_OPERATORS).is_ok());
    assert!(chain(cql::parser::MAX_OPERATORS + 1).is_err());
    let signs = format!("INSERT INTO t (a) VALUES ({}a)", "- ".repeat(100_000));
    assert!(cql::parser::parse_statement(&signs).is_err());
}

#[test]
fn slices_have_one_bound_or_two() {
    let one = || Term::Literal(Literal::Integer("1".to_owned()));
    let slice = |from: Option<Term>, to: Option<Term>| Selector::Slice {
        selector: Box::new(column("s")),
        from: from.map(Box::new),
        to: to.map(Box::new),
    };
    assert_eq!(selector("s[1..1]"), slice(Some(one()), Some(one())));
    assert_eq!(selector("s[1 .. ]"), slice(Some(one()), None));
    assert_eq!(selector("s[..1]"), slice(None, Some(one())));
    assert_eq!(
        selector("ttl(s[1..])"),
        Selector::Time {
            function: TimeFunction::Ttl,
            column: "s".to_owned(),
            part: Box::new(ArgumentPart::Slice {
                from: Some(one()),
                to: None
            })
        }
    );
    assert!(cql::parser::parse_statement("SELECT s[..] FROM t").is_err());
}

#[test]
fn selectors_have_forms_of_their_own() {
    assert_eq!(selector("count(*)"), Selector::CountAll);
    assert_eq!(selector("COUNT(1)"), Selector::CountAll);
    assert_eq!(
        selector("count(a)"),
        Selector::Function(FunctionCall {
            keyspace: None,
            name: "count".to_owned(),
            arguments: vec![column("a")]
        })
    );
    assert_eq!(
        selector("WriteTime(\"A\")"),
        Selector::Time {
            function: TimeFunction::WriteTime,
            column: "A".to_owned(),
            part: Box::new(ArgumentPart::Whole)
        }
    );
    assert_eq!(
        selector("maxwritetime(a['k'])"),
        Selector::Time {
            function: TimeFunction::MaxWriteTime,
            column: "a".to_owned(),
            part: Box::new(ArgumentPart::Element(string("k")))
        }
    );
    assert_eq!(selector("ttl"), column("ttl"));
    assert_eq!(
        selector("cast(f(a) AS text)"),
        Selector::Cast {
            selector: Box::new(Selector::Function(FunctionCall {
                keyspace: None,
                name: "f".to_owned(),
                arguments: vec![column("a")]
            })),
            cql_type: CqlType::Text,
        }
    );
    assert_eq!(
        selector("m['k']"),
        Selector::Element {
            selector: Box::new(column("m")),
            key: string("k")
        }
    );
    assert_eq!(
        selector("similarity_cosine(v, [1, ?])"),
        Selector::Function(FunctionCall {
            keyspace: None,
            name: "similarity_cosine".to_owned(),
            arguments: vec![
                column("v"),
                Selector::Term(Term::List(vec![integer("1"), marker(0)]))
            ],
        })
    );
    assert_eq!(
        selector("token(a, b)"),
        Selector::Function(FunctionCall {
            keyspace: None,
            name: "token".to_owned(),
            arguments: vec![column("a"), column("b")]
        })
    );
}

#[test]
fn json_and_distinct_are_columns_unless_something_is_selected_after_them() {
    let flags = |text: &str| {
        let select = select(text);
        (select.json, select.distinct)
    };
    assert_eq!(flags("SELECT JSON a FROM t"), (true, false));
    assert_eq!(flags("SELECT JSON * FROM t"), (true, false));
    assert_eq!(flags("SELECT JSON DISTINCT a FROM t"), (true, true));
    assert_eq!(flags("SELECT DISTINCT a FROM t"), (false, true));
    assert_eq!(flags("SELECT json FROM t"), (false, false));
    assert_eq!(flags("SELECT json, a FROM t"), (false, false));
    assert_eq!(flags("SELECT distinct AS d FROM t"), (false, false));
}

#[test]
fn relations_know_their_subjects() {
    let simple = |subject, operator, comparand| Relation {
        subject,
        operator,
        comparand,
    };
    let name = |name: &str| ComparisonSubject::Column(name.to_owned());
    let one = || Comparand::Term(integer("1"));
    assert_eq!(relation("a >= 1"), simple(name("a"), Operator::GtEq, one()));
    assert_eq!(
        relation("((a != 1))"),
        simple(name("a"), Operator::NotEq, one())
    );
    assert_eq!(
        relation("(a, b) < (1, ?)"),
        simple(
            ComparisonSubject::Tuple(strings(&["a", "b"])),
            Operator::Lt,
            Comparand::Term(Term::Tuple(vec![integer("1"), marker(0)]))
        )
    );
    assert_eq!(
        relation("(a) = (1)"),
        simple(
            ComparisonSubject::Tuple(strings(&["a"])),
            Operator::Eq,
            Comparand::Term(Term::Tuple(vec![integer("1")]))
        )
    );
    assert_eq!(
        relation("TOKEN(a, \"B\") > 1"),
        simple(
            ComparisonSubject::Token(strings(&["a", "B"])),
            Operator::Gt,
            one()
        )
    );
    assert_eq!(
        relation("m[?] = 1"),
        simple(
            ComparisonSubject::Element {
                column: "m".to_owned(),
                key: marker(0)
            },
            Operator::Eq,
            one()
        )
    );
    assert_eq!(
        relation("bm25(c, 'x') > 1"),
        simple(
            ComparisonSubject::Function(FunctionCall {
                keyspace: None,
                name: "bm25".to_owned(),
                arguments: vec![column("c"), Selector::Term(string("x"))]
            }),
            Operator::Gt,
            one()
        )
    );
    assert_eq!(
        relation("a CONTAINS KEY 1"),
        simple(name("a"), Operator::ContainsKey, one())
    );
    assert_eq!(
        relation("a IS NOT NULL"),
        simple(name("a"), Operator::IsNotNull, Comparand::None)
    );
}

#[test]
fn a_marker_after_in_stands_for_the_whole_list() {
    let comparand = |text| relation(text).comparand;
    assert_eq!(comparand("a IN ?"), Comparand::Term(marker(0)));
    assert_eq!(comparand("a IN (?)"), Comparand::List(vec![marker(0)]));
    assert_eq!(comparand("a IN ()"), Comparand::List(vec![]));
    assert_eq!(
        comparand("(a, b) IN ((1, 2), ?)"),
        Comparand::List(vec![
            Term::Tuple(vec![integer("1"), integer("2")]),
            marker(0)
        ])
    );
    assert_eq!(relation("a NOT IN (1)").operator, Operator::NotIn);
}

#[test]
fn both_spellings_of_ann_are_orderings() {
    assert_eq!(
        select("SELECT * FROM t ORDER BY v ANN OF ? DESC LIMIT 3").order_by,
        [OrderByItem::Ann {
            column: "v".to_owned(),
            vector: marker(0),
            descending: true
        }]
    );
    assert_eq!(
        select("SELECT * FROM t ORDER BY ANN(v, ?), a DESC, ann ASC").order_by,
        [
            OrderByItem::Function {
                function: FunctionCall {
                    keyspace: None,
                    name: "ann".to_owned(),
                    arguments: vec![column("v"), Selector::Term(marker(0))]
                },
                descending: false
            },
            OrderByItem::Column {
                column: "a".to_owned(),
                descending: true
            },
            OrderByItem::Column {
                column: "ann".to_owned(),
                descending: false
            },
        ]
    );
}

#[test]
fn an_ordering_may_be_an_expression() {
    let ordered = select("SELECT * FROM t ORDER BY RRF(ANN(v, ?), b), -f(v) DESC LIMIT 3").order_by;
    let [
        OrderByItem::Function {
            function,
            descending: false,
        },
        OrderByItem::Expression {
            expression: Selector::Function(negation),
            descending: true,
        },
    ] = &ordered[..]
    else {
        panic!("{ordered:?}");
    };
    assert_eq!(
        (function.name.as_str(), function.arguments.len()),
        ("rrf", 2)
    );
    assert_eq!(negation.name, "_negate");
    let weights = select(
        "SELECT * FROM t ORDER BY RRF(b) LIMIT 3 WITH hybrid_options = {'weights': [1, 0.5], 'candidates': 9}",
    );
    let entries = [("weights", "[1, 0.5]"), ("candidates", "9")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(
        weights.options,
        [(
            "hybrid_options".to_owned(),
            OptionValue::Map(entries.into())
        )]
    );
}

#[test]
fn options_of_a_search_are_texts_by_their_names() {
    let of = |with: &str| {
        select(&format!(
            "SELECT * FROM t ORDER BY v ANN OF ? LIMIT 3 {with}"
        ))
    };
    let map = |entries: &[(&str, &str)]| {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let map = OptionValue::Map(entries.iter().map(owned).collect());
        vec![("ann_options".to_owned(), map)]
    };
    assert_eq!(of("").options, []);
    for (with, entries) in [
        ("{'exact': true}", &[("exact", "true")][..]),
        ("{'exact': 'True'}", &[("exact", "True")]),
        (
            "{'rerank_k': -1, 'x': 1.5}",
            &[("rerank_k", "-1"), ("x", "1.5")],
        ),
        ("{}", &[]),
    ] {
        let select = of(&format!("ALLOW FILTERING WITH ANN_OPTIONS = {with}"));
        assert_eq!(select.options, map(entries), "{with}");
        assert!(select.allow_filtering && select.limit.is_some());
    }
    let scalar = of("WITH a = 1 AND ann_options = {}").options;
    assert_eq!(scalar[0].1, OptionValue::Scalar("1".to_owned()));
    assert_eq!(scalar[1..], map(&[]));
}
