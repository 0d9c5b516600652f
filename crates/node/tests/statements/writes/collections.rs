//! Collections that change element by element.

use node::statement::{BoundValue, ExecutionParameters};
use value::Value;

use crate::fixture::{Fixture, int, ints};

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int PRIMARY KEY, l list<int>, s set<int>, m map<text, int>)",
        "INSERT INTO t (k, l, s, m) VALUES (1, [1, 2], {1, 2}, {'a': 1})",
    ])
}

/// Runs the statements one after another, and checks the column after each.
fn steps(column: &str, assignments: &[(&str, &str)]) {
    let f = fixture();
    for (statement, expected) in assignments {
        let statement = match statement.strip_prefix("DELETE") {
            Some(target) => format!("DELETE{target} FROM t WHERE k = 1"),
            None => format!("UPDATE t SET {statement} WHERE k = 1"),
        };
        f.run(&statement);
        assert_eq!(
            f.rows(&format!("SELECT {column} FROM t")),
            [*expected],
            "{statement}"
        );
    }
}

#[test]
fn lists() {
    steps(
        "l",
        &[
            ("l = l + [3, 4]", "[1, 2, 3, 4]"),
            ("l = [8, 9] + l", "[8, 9, 1, 2, 3, 4]"),
            ("l = [7] + l", "[7, 8, 9, 1, 2, 3, 4]"),
            ("l += [5]", "[7, 8, 9, 1, 2, 3, 4, 5]"),
            ("l[0] = 70", "[70, 8, 9, 1, 2, 3, 4, 5]"),
            ("l = l - [8, 1, 99]", "[70, 9, 2, 3, 4, 5]"),
            ("l[1] = null", "[70, 2, 3, 4, 5]"),
            ("DELETE l[4]", "[70, 2, 3, 4]"),
            ("l = l + null", "[70, 2, 3, 4]"),
            ("l = [6]", "[6]"),
            ("l = []", "null"),
            ("l = l + [1]", "[1]"),
            ("DELETE l", "null"),
        ],
    );
}

#[test]
fn sets() {
    steps(
        "s",
        &[
            ("s = s + {5, 0}", "{0, 1, 2, 5}"),
            ("s += {5, 7}", "{0, 1, 2, 5, 7}"),
            ("s = s - {0, 99}", "{1, 2, 5, 7}"),
            ("DELETE s[7]", "{1, 2, 5}"),
            ("s = s - {}", "{1, 2, 5}"),
            ("s = {9}", "{9}"),
            ("s = null", "null"),
        ],
    );
}

#[test]
fn maps() {
    steps(
        "m",
        &[
            ("m = m + {'c': 3, 'b': 2}", "{'a': 1, 'b': 2, 'c': 3}"),
            (
                "m['a'] = 10, m['d'] = 4",
                "{'a': 10, 'b': 2, 'c': 3, 'd': 4}",
            ),
            ("m['d'] = null", "{'a': 10, 'b': 2, 'c': 3}"),
            ("m = m - {'b', 'x'}", "{'a': 10, 'c': 3}"),
            ("DELETE m['a']", "{'c': 3}"),
            ("m = {}", "null"),
            ("m['z'] = 26", "{'z': 26}"),
        ],
    );
}

/// Executes a statement with these values. Returns the message of its error.
fn execute(f: &Fixture, cql: &str, values: Vec<BoundValue>) -> Result<(), String> {
    let parameters = ExecutionParameters {
        values,
        ..ExecutionParameters::default()
    };
    let executed = f.execute(cql, parameters);
    executed.map(drop).map_err(|error| error.message)
}

#[test]
fn markers_have_the_types_of_their_elements() {
    let f = fixture();
    assert_eq!(
        f.variables("UPDATE t SET l[?] = ?, m[?] = ?, s = s - ?, l = l + ? WHERE k = ?"),
        [
            "idx(l) int",
            "value(l) int",
            "key(m) text",
            "value(m) int",
            "s set<int>",
            "l list<int>",
            "k int"
        ]
    );
    assert_eq!(
        f.variables("UPDATE t SET m = m - ? WHERE k = 1"),
        ["m set<text>"]
    );
}

#[test]
fn elements_may_be_bound() {
    let f = fixture();
    let key = BoundValue::Value(Value::Text("q".to_owned()).serialize());
    execute(
        &f,
        "UPDATE t SET m[?] = ? WHERE k = 1",
        vec![key.clone(), int(5)],
    )
    .unwrap();
    execute(
        &f,
        "UPDATE t SET l = ? + l WHERE k = 1",
        vec![ints(&[5, 6])],
    )
    .unwrap();
    execute(
        &f,
        "UPDATE t SET m[?] = ? WHERE k = 1",
        vec![key, BoundValue::Unset],
    )
    .unwrap();
    assert_eq!(
        f.rows("SELECT l, m FROM t"),
        ["[5, 6, 1, 2] | {'a': 1, 'q': 5}"]
    );
    // As in Cassandra, an unset value removes no element.
    for statement in [
        "DELETE l[?] FROM t WHERE k = 1",
        "DELETE s[?] FROM t WHERE k = 1",
    ] {
        execute(&f, statement, vec![BoundValue::Unset]).unwrap();
    }
}

#[test]
fn operations_on_a_list_see_those_before_them() {
    steps(
        "l",
        &[
            ("l = l + [7, 8], l[2] = 9", "[1, 2, 9, 8]"),
            ("DELETE l[0], l[0]", "[9, 8]"),
            ("l[0] = null, l[0] = 5", "[5]"),
            ("l = [3] + l, l = l - [5], l = l + [4]", "[3, 4]"),
            // Of two values for one element the greater one stands.
            ("l = [6] + l, l[0] = 5", "[6, 3, 4]"),
        ],
    );
}

#[test]
fn wrong_bound_elements_are_explained() {
    let f = fixture();
    for (statement, value, message) in [
        (
            "UPDATE t SET l[?] = 1 WHERE k = 1",
            BoundValue::Null,
            "Invalid null value for list index (column l)",
        ),
        (
            "UPDATE t SET l[?] = 1 WHERE k = 1",
            BoundValue::Unset,
            "Invalid unset value for list index (column l)",
        ),
        (
            "UPDATE t SET l[?] = 1 WHERE k = 1",
            int(-1),
            "List index -1 out of bound for column l",
        ),
        (
            "UPDATE t SET l[?] = 1 WHERE k = 1",
            int(4),
            "List index 4 out of bound, list has size 2",
        ),
        (
            "DELETE m[?] FROM t WHERE k = 1",
            BoundValue::Null,
            "Invalid null value for map key (column m)",
        ),
        (
            "DELETE m[?] FROM t WHERE k = 1",
            BoundValue::Unset,
            "Invalid unset value for map key (column m)",
        ),
    ] {
        assert_eq!(
            execute(&f, statement, vec![value]).unwrap_err(),
            message,
            "{statement}"
        );
    }
}
