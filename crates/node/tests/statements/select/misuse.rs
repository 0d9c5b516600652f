//! Statements that are refused, and the texts of their errors.

mod timeouts;

use cql::error::ErrorKind;
use node::statement::{BoundValue, ExecutionParameters};
use value::Value;

use crate::fixture::{Fixture, int};

const FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may have \
     unpredictable performance. If you want to execute this query despite the performance unpredictability, use \
     ALLOW FILTERING";

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (p int, q int, a int, b int, c int, s int static, r int, l list<int>, f frozen<set<int>>, \
         m map<text, int>, fm frozen<map<int, int>>, d duration, t tuple<int, duration>, fd frozen<list<duration>>, \
         PRIMARY KEY ((p, q), a, b, c))",
        "CREATE TABLE one (p text PRIMARY KEY, v int)",
    ])
}

#[test]
fn restrictions_that_need_filtering_say_so() {
    let fixture = fixture();
    for condition in [
        "r = 1",
        "s = 1",
        "p = 1",
        "q = 1",
        "p > 1 AND q = 1",
        "a = 1",
        "p = 1 AND q = 1 AND r = 1",
        "l CONTAINS 1",
        "m CONTAINS KEY 'x'",
        "m['x'] = 1",
        "token(p, q) > 1 AND a = 1",
        "p = 1 AND token(p, q) > 1",
    ] {
        assert_eq!(
            fixture.refused(&format!("SELECT * FROM t WHERE {condition}"), &[]),
            FILTERING,
            "{condition}"
        );
        fixture.rows(&format!(
            "SELECT * FROM t WHERE {condition} ALLOW FILTERING"
        ));
    }
}

/// Asserts that these restrictions are refused with these messages.
fn refuses_restrictions(cases: &[(&str, &str)]) {
    let fixture = fixture();
    for (condition, message) in cases {
        assert_eq!(
            fixture.refused(&format!("SELECT * FROM t WHERE {condition}"), &[]),
            *message,
            "{condition}"
        );
    }
}

/// Asserts that these statements are refused with these messages.
fn refuses(cases: &[(&str, &str)]) {
    let fixture = fixture();
    for (statement, message) in cases {
        assert_eq!(fixture.refused(statement, &[]), *message, "{statement}");
    }
}

#[test]
fn a_clustering_column_needs_those_before_it() {
    refuses_restrictions(&[
        (
            "p = 1 AND q = 1 AND b = 1",
            "PRIMARY KEY column \"b\" cannot be restricted as preceding column \"a\" is not restricted",
        ),
        (
            "p = 1 AND q = 1 AND a = 1 AND c = 1",
            "PRIMARY KEY column \"c\" cannot be restricted as preceding column \"b\" is not restricted",
        ),
        (
            "p = 1 AND q = 1 AND a > 1 AND b = 1",
            "Clustering column \"b\" cannot be restricted (preceding column \"a\" is restricted by a non-EQ relation)",
        ),
        (
            "a = 1 AND c = 1",
            "PRIMARY KEY column \"c\" cannot be restricted as preceding column \"b\" is not restricted",
        ),
    ]);
}

#[test]
fn relations_on_one_column_have_to_agree() {
    refuses_restrictions(&[
        (
            "p = 1 AND q = 1 AND a = 1 AND a = 2",
            "a cannot be restricted by more than one relation if it includes an Equal",
        ),
        (
            "p = 1 AND q = 1 AND a = 1 AND a > 2",
            "a cannot be restricted by more than one relation if it includes an Equal",
        ),
        (
            "p = 1 AND q = 1 AND a IN (1, 2) AND a > 2",
            "a cannot be restricted by more than one relation if it includes a IN",
        ),
        (
            "p = 1 AND q = 1 AND a > 1 AND a >= 2",
            "More than one restriction was found for the start bound on a",
        ),
        (
            "p = 1 AND q = 1 AND a < 1 AND a <= 2",
            "More than one restriction was found for the end bound on a",
        ),
    ]);
}

#[test]
fn wrong_relations_of_several_columns_are_explained() {
    refuses_restrictions(&[
        (
            "p = 1 AND q = 1 AND (a, b) > (1, 1) AND a > 5",
            "More than one restriction was found for the start bound on a",
        ),
        (
            "p = 1 AND q = 1 AND (a, b) > (1, 1) AND b < 5",
            "Column \"b\" cannot be restricted by two inequalities not starting with the same column",
        ),
        (
            "p = 1 AND q = 1 AND (a, b) > (1, 1) AND (b, c) < (5, 5)",
            "Column \"b\" cannot be restricted by two inequalities not starting with the same column",
        ),
        (
            "p = 1 AND q = 1 AND (p, a) > (1, 1)",
            "Multi-column relations can only be applied to clustering columns but was applied to: p",
        ),
        (
            "p = 1 AND q = 1 AND (a, c) > (1, 1)",
            "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: (a, c) > (1, 1)",
        ),
        (
            "p = 1 AND q = 1 AND (a, a) > (1, 1)",
            "Column \"a\" appeared twice in a relation: (a, a) > (1, 1)",
        ),
        (
            "p = 1 AND q = 1 AND (a, b) > (1, 2, 3)",
            "Expected 2 elements in value tuple, but got 3: (1, 2, 3)",
        ),
    ]);
}

#[test]
fn wrong_relations_of_tokens_are_explained() {
    refuses_restrictions(&[
        (
            "token(p) > 1",
            "The token() function must be applied to all partition key components or none of them",
        ),
        (
            "token(q, p) > 1",
            "The token function arguments must be in the partition key order: p, q",
        ),
        (
            "token(p, q) > token(1)",
            "Invalid number of arguments in call to function system.token: 2 required but 1 provided",
        ),
    ]);
}

#[test]
fn wrong_relations_of_collections_are_explained() {
    refuses_restrictions(&[
        (
            "l = [1] ALLOW FILTERING",
            "Collection column 'l' (list<int>) cannot be restricted by a '=' relation",
        ),
        (
            "r CONTAINS 1 ALLOW FILTERING",
            "Cannot use CONTAINS on non-collection column r",
        ),
        (
            "l CONTAINS KEY 1 ALLOW FILTERING",
            "Cannot use CONTAINS KEY on non-map column l",
        ),
        (
            "l[0] = 1 ALLOW FILTERING",
            "Indexes on list entries (l[index] = value) are not currently supported.",
        ),
        (
            "r['x'] = 1 ALLOW FILTERING",
            "Column r cannot be used as a map",
        ),
        (
            "m['x'] > 1 ALLOW FILTERING",
            "Only EQ relations are supported on map entries",
        ),
        (
            "f CONTAINS 1 AND f = {1} ALLOW FILTERING",
            "Collection column f can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality",
        ),
        (
            "fm[1] = 1 ALLOW FILTERING",
            "Map-entry equality predicates on frozen map column fm are not supported",
        ),
    ]);
}

#[test]
fn durations_have_no_order() {
    refuses_restrictions(&[
        (
            "d > 1d ALLOW FILTERING",
            "Slice restrictions are not supported on duration columns",
        ),
        (
            "t > (1, 89h) ALLOW FILTERING",
            "Slice restrictions are not supported on tuples containing durations",
        ),
        (
            "t <= ? ALLOW FILTERING",
            "Slice restrictions are not supported on tuples containing durations",
        ),
        (
            "fd > [1h] ALLOW FILTERING",
            "Slice restrictions are not supported on collections containing durations",
        ),
    ]);
}

#[test]
fn relations_that_no_column_has_are_explained() {
    refuses_restrictions(&[
        ("r != 1", "Unsupported \"!=\" relation: r != 1"),
        ("nope = 1", "Undefined column name nope in table ks.t"),
    ]);
}

#[test]
fn wrong_names_are_explained() {
    refuses(&[
        (
            "SELECT nope FROM t",
            "Undefined column name nope in table ks.t",
        ),
        ("SELECT * FROM nope", "table nope does not exist"),
        ("SELECT * FROM nope.t", "keyspace nope does not exist"),
    ]);
}

#[test]
fn wrong_selections_are_explained() {
    refuses(&[
        (
            "SELECT writetime(a) FROM t",
            "Cannot use selection function writetime on PRIMARY KEY part a",
        ),
        (
            "SELECT l[0..1] FROM t",
            "Slice selection is only allowed on sets and maps, but l is a list",
        ),
        ("SELECT nope(r) FROM t", "Unknown function nope called"),
        (
            "SELECT random_float_vector(3, -1, 1) FROM t",
            "The function random_float_vector of Astra is not supported by Annulus: make the vector in the \
             application, and send it",
        ),
        (
            "SELECT cast(l as int) FROM t",
            "list<int> cannot be cast to int",
        ),
        (
            "SELECT l[0] FROM t",
            "Element selection is only allowed on sets and maps, but l is a list",
        ),
        (
            "SELECT r[0] FROM t",
            "Invalid element selection: r is of type int is not a collection",
        ),
        (
            "SELECT ? FROM t",
            "Cannot infer type for term ? in selection clause (try using a cast to force a type)",
        ),
        (
            "SELECT max(count(r)) FROM t",
            "aggregate functions cannot be used as arguments of aggregate functions",
        ),
        (
            "SELECT sum(p, q) FROM t",
            "Invalid number of arguments in call to function system.sum: 1 required but 2 provided",
        ),
    ]);
}

#[test]
fn wrong_uses_of_distinct_are_explained() {
    refuses(&[
        (
            "SELECT DISTINCT p FROM t",
            "SELECT DISTINCT queries must request all the partition key columns (missing q)",
        ),
        (
            "SELECT DISTINCT p, q, r FROM t",
            "SELECT DISTINCT queries must only request partition key columns and/or static columns (not r)",
        ),
        (
            "SELECT DISTINCT p, q FROM t WHERE p = 1 AND q = 1 AND a = 1",
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.",
        ),
        (
            "SELECT DISTINCT p, q FROM t PER PARTITION LIMIT 1",
            "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries",
        ),
    ]);
}

#[test]
fn wrong_limits_are_explained() {
    refuses(&[
        (
            "SELECT count(*) FROM t PER PARTITION LIMIT 1",
            "PER PARTITION LIMIT is not allowed with aggregate queries",
        ),
        ("SELECT * FROM t LIMIT 0", "LIMIT must be strictly positive"),
        (
            "SELECT * FROM t LIMIT -1",
            "LIMIT must be strictly positive",
        ),
        (
            "SELECT * FROM t PER PARTITION LIMIT 0",
            "LIMIT must be strictly positive",
        ),
    ]);
}

#[test]
fn static_columns_are_not_restricted_by_clustering() {
    refuses(&[(
        "SELECT p, s FROM t WHERE p = 1 AND q = 1 AND a = 1",
        "Cannot restrict clustering columns when selecting only static columns",
    )]);
}

#[test]
fn groups_keep_to_the_order_of_the_primary_key() {
    refuses(&[(
        "SELECT p, count(*) FROM t GROUP BY p",
        "Group by is not supported on only a part of the partition key",
    )]);
}

#[test]
fn wrong_orders_are_explained() {
    refuses(&[
        (
            "SELECT * FROM t ORDER BY a",
            "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 ORDER BY r",
            "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got r",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 ORDER BY b",
            "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 ORDER BY a ASC, b DESC",
            "Unsupported order by relation",
        ),
    ]);
}

#[test]
fn bad_values_are_explained() {
    let fixture = fixture();
    let value = |bytes: &'static [u8]| BoundValue::Value(bytes.into());
    let cases: Vec<(&str, Vec<BoundValue>, &str)> = vec![
        (
            "p = ? AND q = 1",
            vec![BoundValue::Null],
            "Invalid null value in condition for column p",
        ),
        (
            "p = ? AND q = 1",
            vec![BoundValue::Unset],
            "Invalid unset value for column p",
        ),
        (
            "p = 1 AND q = 1 AND a > ?",
            vec![BoundValue::Null],
            "Invalid null value in condition for column a",
        ),
        (
            "p = 1 AND q = 1 AND (a, b) = (1, ?)",
            vec![BoundValue::Null],
            "Invalid null value in condition for column b",
        ),
        (
            "r = ? ALLOW FILTERING",
            vec![BoundValue::Null],
            "Unsupported null value for column r",
        ),
        (
            "r = ? ALLOW FILTERING",
            vec![BoundValue::Unset],
            "Unsupported unset value for column r",
        ),
        (
            "r = 1 LIMIT ? ALLOW FILTERING",
            vec![BoundValue::Null],
            "Invalid null value of limit",
        ),
        (
            "r = 1 LIMIT ? ALLOW FILTERING",
            vec![int(0)],
            "LIMIT must be strictly positive",
        ),
        (
            "token(p, q) > ?",
            vec![BoundValue::Null],
            "Invalid null value in condition for column token of the partition key",
        ),
    ];
    for (condition, values, message) in cases {
        assert_eq!(
            fixture.refused(&format!("SELECT * FROM t WHERE {condition}"), &values),
            message,
            "{condition}"
        );
    }
    let short = fixture.refused("SELECT * FROM t WHERE p = ? AND q = 1", &[value(b"\x01")]);
    assert!(short.contains('p') && short.contains("int"), "{short}");
    assert_eq!(
        fixture.refused("SELECT * FROM one WHERE p = ''", &[]),
        "Key may not be empty"
    );
    let long = "x".repeat(70_000);
    assert_eq!(
        fixture.refused(&format!("SELECT * FROM one WHERE p = '{long}'"), &[]),
        "Key length of 70000 is longer than maximum of 65535"
    );
}

#[test]
fn too_many_combinations_are_refused() {
    let fixture = fixture();
    let list = |length: usize| {
        let numbers: Vec<String> = (0..length).map(|n| n.to_string()).collect();
        numbers.join(", ")
    };
    let partitions = fixture.refused(
        &format!("SELECT * FROM t WHERE p IN ({0}) AND q IN ({0})", list(101)),
        &[],
    );
    assert!(
        partitions.starts_with("The IN restrictions name 10201 partitions"),
        "{partitions}"
    );
    let slices = fixture.refused(
        &format!(
            "SELECT * FROM t WHERE p = 1 AND q = 1 AND a IN ({0}) AND b IN ({0})",
            list(101)
        ),
        &[],
    );
    assert!(
        slices.starts_with("The IN restrictions name 10201 slices"),
        "{slices}"
    );
    assert!(
        fixture
            .rows(&format!(
                "SELECT * FROM t WHERE p IN ({}) AND q = 1",
                list(1_000)
            ))
            .is_empty()
    );
}

#[test]
fn foreign_paging_states_are_refused() {
    let fixture = fixture();
    for state in [&b""[..], b"x", &[1; 40], &[0; 60]] {
        let parameters = ExecutionParameters {
            page_size: Some(10),
            paging_state: Some(bytes::Bytes::copy_from_slice(state)),
            ..ExecutionParameters::default()
        };
        let error = fixture.execute("SELECT * FROM t", parameters).unwrap_err();
        assert_eq!(error.message, "Invalid value for the paging state");
    }
}

#[test]
fn functions_of_astra_are_refused_with_the_way_round() {
    let fixture = Fixture::new().with(&["CREATE TABLE t (k int PRIMARY KEY, v vector<float, 2>)"]);
    for query in [
        "SELECT * FROM t WHERE GEO_DISTANCE(v, [52.5, 13.4]) < 5000",
        "SELECT k FROM t WHERE k = 1 AND geo_distance(v, [52.5, 13.4]) <= 1 ALLOW FILTERING",
        "SELECT geo_distance(v, [52.5, 13.4]) FROM t",
        "SELECT * FROM t ORDER BY geo_distance(v, [52.5, 13.4]) LIMIT 3",
    ] {
        let message = fixture.refused(query, &[]);
        let start = "The function geo_distance of Astra is not supported by Annulus: keep latitude";
        assert!(message.starts_with(start), "{query}: {message}");
        assert!(message.contains("ANN OF"), "{query}: {message}");
    }
}
