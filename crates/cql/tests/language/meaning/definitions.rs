//! Trees of definitions, and of statements that show them.

use super::*;

#[test]
fn a_table_keeps_keys_order_and_options() {
    let Statement::CreateTable(create) = parse(
        "CREATE TABLE IF NOT EXISTS ks.t (a int, b text, c date, s int STATIC, v vector<float, 3>, \
         PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'it''s' \
         AND cdc = {'enabled': TRUE, 'ttl': -1} AND x = 0.5 AND ID = '550e8400-e29b-41d4-a716-446655440000'",
    ) else {
        panic!("no table");
    };
    assert!(create.if_not_exists);
    assert_eq!(create.partition_key, ["a", "b"]);
    assert_eq!(create.clustering_key, ["c"]);
    assert_eq!(
        create.clustering_order,
        [("c".to_owned(), SortDirection::Descending)]
    );
    let columns: Vec<(&str, String, bool)> = create
        .columns
        .iter()
        .map(|column| {
            (
                column.name.as_str(),
                resolved(&column.data_type).to_string(),
                column.is_static,
            )
        })
        .collect();
    assert_eq!(
        columns,
        [
            ("a", "int".to_owned(), false),
            ("b", "text".to_owned(), false),
            ("c", "date".to_owned(), false),
            ("s", "int".to_owned(), true),
            ("v", "vector<float, 3>".to_owned(), false),
        ]
    );
    let scalar = |text: &str| OptionValue::Scalar(text.to_owned());
    assert_eq!(
        create.options,
        [
            ("comment".to_owned(), scalar("it's")),
            (
                "cdc".to_owned(),
                OptionValue::Map(vec![
                    ("enabled".to_owned(), "true".to_owned()),
                    ("ttl".to_owned(), "-1".to_owned())
                ])
            ),
            ("x".to_owned(), scalar("0.5")),
        ]
    );
    assert_eq!(
        create.id,
        "550e8400-e29b-41d4-a716-446655440000".parse().ok()
    );
}

#[test]
fn a_table_may_name_no_primary_key() {
    let Statement::CreateTable(create) = parse("CREATE TABLE t (a int)") else {
        panic!("no table");
    };
    assert!(create.partition_key.is_empty());
    let Statement::CreateTable(create) = parse("CREATE TABLE t (a int, b int PRIMARY KEY)") else {
        panic!("no table");
    };
    assert_eq!(create.partition_key, ["b"]);
}

#[test]
fn a_table_is_altered_in_one_way_at_a_time() {
    let change = |text: &str| match parse(&format!("ALTER TABLE t {text}")) {
        Statement::AlterTable(alter) => alter.change,
        other => panic!("{other:?}"),
    };
    let added = |name: &str| ColumnDefinition {
        name: name.to_owned(),
        data_type: DataType::Simple(CqlType::Int),
        is_static: false,
        is_row_ttl: false,
    };
    let add = |names: &[&str]| AlterTableChange::AddColumns {
        if_not_exists: false,
        columns: names.iter().map(|name| added(name)).collect(),
    };
    assert_eq!(change("ADD a int"), add(&["a"]));
    let row_ttl = |name: Option<&str>| AlterTableChange::RowTtl(name.map(str::to_owned));
    assert_eq!(change("TTL a"), row_ttl(Some("a")));
    assert_eq!(change("TTL \"NULL\""), row_ttl(Some("NULL")));
    assert_eq!(change("TTL NULL"), row_ttl(None));
    assert_eq!(change("ADD (a int, b int)"), add(&["a", "b"]));
    assert_eq!(
        change("DROP (a, b) USING TIMESTAMP -5"),
        AlterTableChange::DropColumns {
            if_exists: false,
            columns: strings(&["a", "b"]),
            timestamp: Some(-5)
        }
    );
    assert_eq!(
        change("RENAME a TO b"),
        AlterTableChange::RenameColumns(vec![("a".to_owned(), "b".to_owned())])
    );
    assert_eq!(
        change("ALTER a TYPE text"),
        AlterTableChange::ChangeType {
            column: "a".to_owned()
        }
    );
    assert!(matches!(change("WITH cdc = {}"), AlterTableChange::Options(o) if o.len() == 1));
}

#[test]
fn index_targets_have_every_form() {
    let Statement::CreateIndex(index) = parse(
        "CREATE CUSTOM INDEX IF NOT EXISTS \"I\" ON ks.t ((p, q), v, keys, KEYS(m)) \
         USING 'vector_index' WITH options = {'similarity_function': 'COSINE', 'oversampling': 1.5}",
    ) else {
        panic!("no index");
    };
    assert!(index.custom && index.if_not_exists);
    assert_eq!(index.name.as_deref(), Some("I"));
    assert_eq!(
        index.targets,
        [
            IndexTarget::LocalKey(strings(&["p", "q"])),
            IndexTarget::Column("v".to_owned()),
            IndexTarget::Column("keys".to_owned()),
            IndexTarget::Collection {
                part: "keys".to_owned(),
                column: "m".to_owned()
            },
        ]
    );
    assert_eq!(index.using.as_deref(), Some("vector_index"));
    assert_eq!(index.options["similarity_function"], "COSINE");
    assert_eq!(index.options["oversampling"], "1.5");
}

#[test]
fn describe_names_its_target() {
    let target = |text: &str| match parse(text) {
        Statement::Describe(describe) => describe.target,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        target("DESC FULL SCHEMA"),
        DescribeTarget::Schema { full: true }
    );
    assert_eq!(
        target("DESC ONLY KEYSPACE"),
        DescribeTarget::Keyspace {
            name: None,
            only: true
        }
    );
    assert_eq!(target("DESC tables"), DescribeTarget::Tables);
    assert_eq!(target("DESC films"), DescribeTarget::Any(table("films")));
    assert_eq!(
        target("DESC tables.t"),
        DescribeTarget::Any(TableName {
            keyspace: Some("tables".to_owned()),
            name: "t".to_owned()
        })
    );
    assert_eq!(
        target("DESC MATERIALIZED VIEW v"),
        DescribeTarget::Empty {
            kind: "materialized view".to_owned(),
            name: Some(table("v"))
        }
    );
    assert_eq!(
        parse("DESCRIBE TABLE t WITH INTERNALS"),
        Statement::Describe(Describe {
            target: DescribeTarget::Table(table("t")),
            internals: true
        })
    );
}

#[test]
fn statements_that_are_not_carried_out_keep_their_first_words() {
    let words = |text: &str| match parse(text) {
        Statement::Unsupported(words) => words,
        other => panic!("{other:?}"),
    };
    assert_eq!(words("create  trigger r;"), "CREATE TRIGGER");
    assert_eq!(
        words("CREATE MATERIALIZED VIEW v AS SELECT 1"),
        "CREATE MATERIALIZED VIEW"
    );
    assert_eq!(
        words("create or replace function f (a int)"),
        "CREATE OR REPLACE FUNCTION"
    );
    for (text, first) in [
        ("list service level s", "LIST SERVICE LEVEL"),
        ("LIST ALL SERVICE LEVELS", "LIST ALL SERVICE LEVELS"),
        ("LIST SERVICE_LEVEL s", "LIST SERVICE_LEVEL"),
        (
            "LIST ATTACHED SERVICE LEVEL OF r",
            "LIST ATTACHED SERVICE LEVEL",
        ),
        (
            "LIST ALL ATTACHED SERVICE LEVELS",
            "LIST ALL ATTACHED SERVICE LEVELS",
        ),
        (
            "LIST EFFECTIVE SERVICE LEVEL OF r",
            "LIST EFFECTIVE SERVICE LEVEL",
        ),
        ("DETACH SERVICE_LEVEL FROM r", "DETACH SERVICE_LEVEL"),
        ("CREATE SERVICE LEVEL s", "CREATE SERVICE LEVEL"),
        (
            "alter table if exists ks.t drop compact storage;",
            "ALTER TABLE ... DROP COMPACT STORAGE",
        ),
    ] {
        assert_eq!(words(text), first, "{text}");
    }
    // A column may have the name.
    assert!(matches!(
        parse("ALTER TABLE t DROP compact"),
        Statement::AlterTable(_)
    ));
}
