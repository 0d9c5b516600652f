//! The table option `cdc`, and its connection with vector indexes.

use schema::{DeltaMode, ImageMode};

use super::all_invalid;
use crate::fixture::Fixture;

fn with_option(option: &str) -> Fixture {
    Fixture::new().with(&[&format!(
        "CREATE TABLE t (k int PRIMARY KEY, v vector<float, 3>) WITH cdc = {option}"
    )])
}

const CREATE_INDEX: &str = "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'";

#[test]
fn the_log_comes_with_the_option_and_goes_with_the_table() {
    let f = with_option(
        "{'enabled': 'true', 'preimage': 'full', 'postimage': true, 'delta': 'keys', 'ttl': 7200}",
    );
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", "t").unwrap();
    let options = table.cdc.as_ref().unwrap();
    assert!(options.enabled && options.postimage);
    assert_eq!(options.preimage, ImageMode::Full);
    assert_eq!(options.delta, DeltaMode::Keys);
    assert_eq!(options.ttl_s, 7200);
    assert!(catalog.table("ks", "t_scylla_cdc_log").is_some());
    f.run("ALTER TABLE t WITH cdc = false");
    let catalog = f.database.storage.catalog();
    assert!(
        catalog.table("ks", "t_scylla_cdc_log").is_some(),
        "rows may be unread"
    );
    f.run("ALTER TABLE t WITH cdc = true");
    let catalog = f.database.storage.catalog();
    assert!(catalog.table("ks", "t_scylla_cdc_log").is_some());
    f.run("DROP TABLE t");
    assert!(
        f.database
            .storage
            .catalog()
            .table("ks", "t_scylla_cdc_log")
            .is_none()
    );
}

#[test]
fn the_log_follows_the_columns() {
    let f = with_option("{'enabled': true}").with(&[
        "ALTER TABLE t ADD x int",
        "ALTER TABLE t DROP v",
        "ALTER TABLE t RENAME k TO key",
    ]);
    let catalog = f.database.storage.catalog();
    let log = catalog.table("ks", "t_scylla_cdc_log").unwrap();
    for column in ["key", "x", "cdc$deleted_x", "cdc$time"] {
        assert!(log.column(column).is_some(), "{column}");
    }
    for column in ["k", "v", "cdc$deleted_v"] {
        assert!(log.column(column).is_none(), "{column}");
    }
}

#[test]
fn an_index_needs_a_log_that_serves_it() {
    for (option, message) in [
        (
            "{'enabled': false}",
            "Cannot create the vector index when CDC is explicitly disabled: set cdc = \
             {'enabled': true} on the table first",
        ),
        (
            "{'enabled': true, 'ttl': 86399}",
            "CDC log must meet the minimal requirements of Vector Search: its TTL must be 0 or at \
             least 86400 seconds (24 hours), but is 86399",
        ),
        (
            "{'enabled': true, 'delta': 'keys'}",
            "CDC log must meet the minimal requirements of Vector Search: 'delta' must be 'full' \
             or 'postimage' true",
        ),
    ] {
        let f = with_option(option);
        all_invalid(&f, &[(CREATE_INDEX, message)]);
    }
    for option in [
        "{'enabled': true}",
        "{'enabled': true, 'ttl': 0}",
        "{'enabled': true, 'delta': 'keys', 'postimage': true}",
    ] {
        with_option(option).run(CREATE_INDEX);
    }
}

#[test]
fn an_index_holds_the_option_where_it_needs_it() {
    let f = with_option("{'enabled': true}").with(&[CREATE_INDEX]);
    all_invalid(
        &f,
        &[
            (
                "ALTER TABLE t WITH cdc = {'enabled': false}",
                "Cannot disable CDC when Vector Search is enabled on the table. Drop the vector \
                 index first, then disable CDC",
            ),
            (
                "ALTER TABLE t WITH cdc = {'enabled': true, 'ttl': 60}",
                "CDC log must meet the minimal requirements of Vector Search: its TTL must be 0 \
                 or at least 86400 seconds (24 hours), but is 60",
            ),
            (
                "ALTER TABLE t WITH cdc = {'enabled': true, 'delta': 'keys'}",
                "CDC log must meet the minimal requirements of Vector Search: 'delta' must be \
                 'full' or 'postimage' true",
            ),
        ],
    );
    f.run("ALTER TABLE t WITH cdc = {'enabled': true, 'ttl': 172800}");
    f.run("DROP INDEX i");
    let catalog = f.database.storage.catalog();
    assert!(
        catalog.table("ks", "t_scylla_cdc_log").is_some(),
        "the user asked for the log"
    );
    f.run("ALTER TABLE t WITH cdc = {'enabled': false}");
}
