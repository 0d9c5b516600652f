//! ALTER TABLE.

use super::all_invalid;
use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, c int, v int, e vector<float, 2>, PRIMARY KEY (k, c))",
        "CREATE TABLE one (k int PRIMARY KEY, v int)",
        "CREATE CUSTOM INDEX ann ON t (e) USING 'vector_index'",
        "INSERT INTO t (k, c, v) VALUES (1, 1, 10)",
    ])
}

#[test]
fn columns_come_and_go() {
    let f = fixture().with(&[
        "ALTER TABLE t ADD w text",
        "ALTER TABLE t ADD (s int static, x int)",
        "ALTER TABLE t ADD IF NOT EXISTS x text",
        "INSERT INTO t (k, c, w, s, x) VALUES (1, 1, 'a', 2, 3)",
    ]);
    assert_eq!(f.rows("SELECT v, w, s, x FROM t"), ["10 | 'a' | 2 | 3"]);
    f.run("ALTER TABLE t DROP (w, x)");
    f.run("ALTER TABLE t DROP IF EXISTS w");
    assert_eq!(
        f.columns("SELECT * FROM t"),
        ["k int", "c int", "s int", "e vector<float, 2>", "v int"]
    );
    assert_eq!(
        f.refused("SELECT w FROM t", &[]),
        "Undefined column name w in table ks.t"
    );
}

#[test]
fn values_of_a_dropped_column_do_not_come_back() {
    let f = fixture().with(&["ALTER TABLE t DROP v", "ALTER TABLE t ADD v int"]);
    assert_eq!(f.rows("SELECT k, c, v FROM t"), ["1 | 1 | null"]);
}

#[test]
fn cells_newer_than_the_drop_come_back_with_the_column() {
    let f = fixture().with(&[
        "ALTER TABLE t ADD (s int static, l list<int>)",
        "INSERT INTO t (k, c, v, s) VALUES (2, 1, 1, 1) USING TIMESTAMP 10000",
        "INSERT INTO t (k, c, v, s) VALUES (2, 2, 2, 2) USING TIMESTAMP 20000",
        "INSERT INTO t (k, c, v, s) VALUES (2, 3, 3, 3) USING TIMESTAMP 30000",
        "INSERT INTO t (k, c, v, s) VALUES (4, 1, 4, 4) USING TIMESTAMP 20000",
        "UPDATE t USING TIMESTAMP 20000 SET l = l + [7] WHERE k = 2 AND c = 3",
        "UPDATE t USING TIMESTAMP 20001 SET l = l + [8] WHERE k = 2 AND c = 3",
        "ALTER TABLE t DROP (v, s, l) USING TIMESTAMP 20000",
        "ALTER TABLE t ADD (v int, s int static, l list<int>)",
    ]);
    let all = "SELECT k, c, v, s, l FROM t WHERE k IN (2, 4)";
    let left = [
        "2 | 1 | null | 3 | null",
        "2 | 2 | null | 3 | null",
        "2 | 3 | 3 | 3 | [8]",
        "4 | 1 | null | null | null",
    ];
    assert_eq!(f.rows(all), left);
    // A late write is hidden like the other cells of the dropped column, and a drop with an earlier
    // time shows no cells again.
    let f = f.with(&[
        "UPDATE t USING TIMESTAMP 20000 SET v = 5 WHERE k = 2 AND c = 1",
        "ALTER TABLE t DROP v USING TIMESTAMP 100",
        "ALTER TABLE t ADD v int",
    ]);
    assert_eq!(f.rows(all), left);
    let f = f.with(&["UPDATE t USING TIMESTAMP 20001 SET v = 6 WHERE k = 2 AND c = 1"]);
    assert_eq!(f.rows("SELECT v FROM t WHERE k = 2 AND c = 1"), ["6"]);
}

#[test]
fn a_column_may_come_back_with_a_type_that_reads_the_old_one() {
    let f = fixture().with(&[
        "ALTER TABLE t ADD x varint",
        "ALTER TABLE t DROP x",
        "ALTER TABLE t ADD x blob",
    ]);
    assert_eq!(f.columns("SELECT x FROM t"), ["x blob"]);
}

#[test]
fn key_columns_may_be_renamed() {
    let f = fixture().with(&[
        "ALTER TABLE t RENAME k TO key AND c TO place",
        "INSERT INTO t (key, place, v) VALUES (1, 2, 20)",
    ]);
    assert_eq!(
        f.rows("SELECT key, place, v FROM t"),
        ["1 | 1 | 10", "1 | 2 | 20"]
    );
}

#[test]
fn options_change_one_by_one() {
    let f = fixture().with(&[
        "ALTER TABLE t WITH comment = 'a' AND default_time_to_live = 50",
        "ALTER TABLE t WITH gc_grace_seconds = 7",
        "ALTER TABLE IF EXISTS nothing WITH comment = 'x'",
    ]);
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", "t").unwrap();
    assert_eq!(table.options["comment"], "'a'");
    assert_eq!((table.default_ttl_s, table.gc_grace_s), (50, 7));
    assert!(table.indexes.contains_key("ann"));
}

#[test]
fn mistakes_are_explained() {
    let f = fixture().with(&["ALTER TABLE t ADD gone int", "ALTER TABLE t DROP gone"]);
    all_invalid(
        &f,
        &[
            (
                "ALTER TABLE nothing ADD x int",
                "Table 'ks.nothing' doesn't exist",
            ),
            (
                "ALTER TABLE t ADD v int",
                "Column with name 'v' already exists",
            ),
            (
                "ALTER TABLE t ADD gone text",
                "Cannot add a column 'gone' of type text, incompatible with previously dropped \
                 column 'gone' of type int",
            ),
            (
                "ALTER TABLE t ADD gone int static",
                "Cannot re-add previously dropped column 'gone' of kind STATIC, incompatible with \
                 previous kind REGULAR",
            ),
            (
                "ALTER TABLE one ADD s int static",
                "Static columns are only useful (and thus allowed) if the table has at least one \
                 clustering column",
            ),
            (
                "ALTER TABLE t ADD \"cdc$x\" int",
                "Column names that begin with cdc$ are reserved for CDC logs (got \"cdc$x\")",
            ),
            (
                "ALTER TABLE t DROP x",
                "Column x was not found in table 'ks.t'",
            ),
            ("ALTER TABLE t DROP c", "Cannot drop PRIMARY KEY column c"),
            (
                "ALTER TABLE t DROP e",
                "Cannot drop column e because it has dependent secondary indexes (ann)",
            ),
            (
                "ALTER TABLE t RENAME v TO w",
                "Cannot rename non PRIMARY KEY column v",
            ),
            (
                "ALTER TABLE t RENAME x TO w",
                "Column x was not found in table 'ks.t'",
            ),
            (
                "ALTER TABLE t RENAME k TO c",
                "Cannot rename column k to c in table 'ks.t'; another column with that name \
                 already exists",
            ),
            (
                "ALTER TABLE t ALTER v TYPE text",
                "Altering column types is no longer supported (column v)",
            ),
        ],
    );
    // A statement that is refused halfway changes nothing.
    let before = f.database.storage.catalog().version;
    f.refused("ALTER TABLE t ADD (fine int, v int)", &[]);
    let catalog = f.database.storage.catalog();
    assert_eq!(catalog.version, before);
    assert!(catalog.table("ks", "t").unwrap().column("fine").is_none());
}
