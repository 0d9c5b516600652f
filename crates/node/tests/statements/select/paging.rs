//! Pages: whatever their size, the pages of a query together are its whole result.

use bytes::Bytes;
use node::statement::{BoundValue, ExecutionParameters};
use proptest::prelude::*;

use crate::fixture::{Fixture, ints};

/// Rows of every kind: wide and narrow partitions, partitions with static columns only, and holes.
fn fixture() -> Fixture {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, a int, b int, s int static, r int, PRIMARY KEY (p, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)",
    ]);
    for p in 0..8 {
        if p % 3 == 0 {
            fixture.run(&format!("INSERT INTO t (p, s) VALUES ({p}, {p})"));
        }
        for row in 0..p * 2 {
            if p == 6 {
                continue;
            }
            fixture.run(&format!(
                "INSERT INTO t (p, a, b, r) VALUES ({p}, {}, {row}, {})",
                row / 3,
                row * 7 % 5
            ));
        }
    }
    fixture.run("DELETE FROM t WHERE p = 5 AND a = 1");
    fixture
}

const QUERIES: &[&str] = &[
    "SELECT * FROM t",
    "SELECT p, s FROM t LIMIT 17",
    "SELECT * FROM t PER PARTITION LIMIT 3",
    "SELECT * FROM t PER PARTITION LIMIT 2 LIMIT 7",
    "SELECT DISTINCT p, s FROM t",
    "SELECT DISTINCT p FROM t LIMIT 4",
    "SELECT * FROM t WHERE r = 2 ALLOW FILTERING",
    "SELECT * FROM t WHERE r = 99 ALLOW FILTERING",
    "SELECT * FROM t WHERE r >= 1 PER PARTITION LIMIT 2 ALLOW FILTERING",
    "SELECT * FROM t WHERE token(p) > -1000000000000000000",
    "SELECT * FROM t WHERE p = 7",
    "SELECT * FROM t WHERE p = 7 ORDER BY a ASC",
    "SELECT * FROM t WHERE p = 7 AND a IN (0, 2, 3)",
    "SELECT * FROM t WHERE p = 7 AND a IN (0, 2, 3) AND b > 1 ORDER BY a ASC",
    "SELECT * FROM t WHERE p = 7 AND (a, b) > (1, 4)",
    "SELECT * FROM t WHERE p = 7 AND (a, b) <= (2, 7) ORDER BY a ASC, b DESC",
    "SELECT * FROM t WHERE p IN (7, 0, 3, 9, 5, 6)",
    "SELECT * FROM t WHERE p IN (7, 0, 3, 9, 5, 6) LIMIT 11",
    "SELECT * FROM t WHERE p IN (7, 3, 5) PER PARTITION LIMIT 2",
    "SELECT * FROM t WHERE p IN (7, 3, 5) AND a = 1",
    "SELECT * FROM t WHERE p IN (7, 3, 5) AND r < 3 PER PARTITION LIMIT 3 ALLOW FILTERING",
    "SELECT p, a, b FROM t WHERE a = 1 ALLOW FILTERING",
    "SELECT * FROM system_schema.columns",
    "SELECT column_name FROM system_schema.columns WHERE keyspace_name IN ('ks', 'system') AND table_name IN ('t', 'local')",
    "SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'ks' AND table_name = 't' ORDER BY table_name DESC",
];

#[test]
fn pages_of_every_size_make_up_the_whole() {
    let fixture = fixture();
    for query in QUERIES {
        let whole = fixture.rows(query);
        let sizes = if whole.len() > 60 {
            vec![1, 7, 50, whole.len()]
        } else {
            (1..=whole.len() + 2).collect()
        };
        for size in sizes {
            assert_eq!(fixture.paged(query, &[], size), whole, "{query} by {size}");
        }
    }
}

/// Queries, their page sizes, and the rows of their pages, the last of which has no state.
const FULL_PAGES: [(&str, usize, &[usize]); 28] = [
    ("SELECT * FROM t WHERE p = 7", 14, &[14, 0]),
    ("SELECT * FROM t WHERE p = 7", 12, &[12, 2]),
    ("SELECT * FROM t WHERE p = 7", 15, &[14]),
    ("SELECT * FROM t WHERE p = 7 LIMIT 12", 12, &[12]),
    ("SELECT * FROM t WHERE p = 7 LIMIT 12", 6, &[6, 6]),
    ("SELECT * FROM t WHERE p = 7 LIMIT 20", 7, &[7, 7, 0]),
    ("SELECT * FROM few", 3, &[3, 0]),
    ("SELECT * FROM few WHERE p = 1", 1, &[1, 1, 0]),
    ("SELECT * FROM few WHERE p = 1 AND c = 2", 1, &[1, 0]),
    ("SELECT * FROM few WHERE p = 1 AND c = 3", 1, &[0]),
    ("SELECT * FROM few WHERE p = 1 AND c IN (1, 2)", 2, &[2, 0]),
    ("SELECT * FROM few WHERE p IN (1, 3)", 2, &[2, 0]),
    ("SELECT * FROM few WHERE p IN (1, 2)", 3, &[3]),
    ("SELECT * FROM few WHERE p = 2", 1, &[1]),
    ("SELECT * FROM few PER PARTITION LIMIT 1", 2, &[2, 0]),
    (
        "SELECT * FROM few WHERE p = 1 PER PARTITION LIMIT 1",
        1,
        &[1],
    ),
    (
        "SELECT * FROM few WHERE p = 1 PER PARTITION LIMIT 2",
        2,
        &[2],
    ),
    (
        "SELECT * FROM few WHERE p = 1 PER PARTITION LIMIT 3",
        2,
        &[2, 0],
    ),
    ("SELECT DISTINCT p FROM few", 2, &[2, 0]),
    ("SELECT DISTINCT p FROM few WHERE p = 1", 1, &[1]),
    ("SELECT * FROM few WHERE c > 0 ALLOW FILTERING", 2, &[2, 0]),
    ("SELECT * FROM single", 2, &[2, 0]),
    ("SELECT * FROM single WHERE k = 1", 1, &[1]),
    ("SELECT * FROM single WHERE k IN (1, 2)", 1, &[1, 1]),
    ("SELECT * FROM single WHERE k IN (1, 2, 3)", 2, &[2, 0]),
    ("SELECT p, count(*) FROM few GROUP BY p", 2, &[2, 0]),
    (
        "SELECT p, c, count(*) FROM few WHERE p = 1 GROUP BY p, c",
        1,
        &[1, 1, 0],
    ),
    ("SELECT count(*) FROM few", 1, &[1]),
];

#[test]
fn a_page_that_is_full_has_a_state_unless_nothing_can_follow() {
    let fixture = fixture().with(&[
        "CREATE TABLE single (k int PRIMARY KEY, v int)",
        "INSERT INTO single (k, v) VALUES (1, 1)",
        "INSERT INTO single (k, v) VALUES (2, 1)",
        "CREATE TABLE few (p int, c int, s int static, PRIMARY KEY (p, c))",
        "INSERT INTO few (p, c) VALUES (1, 1)",
        "INSERT INTO few (p, c) VALUES (1, 2)",
        "INSERT INTO few (p, s) VALUES (2, 1)",
    ]);
    for (query, size, expected) in FULL_PAGES {
        let mut paging_state = None;
        let mut pages = Vec::new();
        loop {
            let parameters = ExecutionParameters {
                page_size: Some(size),
                paging_state,
                ..ExecutionParameters::default()
            };
            let page = fixture.page(query, parameters).unwrap();
            pages.push(page.rows.len());
            match page.paging_state {
                Some(state) => paging_state = Some(state),
                None => break,
            }
        }
        assert_eq!(pages, expected, "{query} by {size}");
    }
}

#[test]
fn values_are_bound_again_for_every_page() {
    let fixture = fixture();
    let values = [ints(&[7, 3, 5])];
    let query = "SELECT p, a, b FROM t WHERE p IN ?";
    let whole = fixture.bound(query, &values);
    assert_eq!(fixture.paged(query, &values, 4), whole);
}

#[test]
fn rows_written_behind_a_page_are_found_and_rows_deleted_are_not() {
    let fixture = fixture();
    let query = "SELECT b FROM t WHERE p = 7 AND a = 0";
    let first = fixture
        .page(
            query,
            ExecutionParameters {
                page_size: Some(1),
                ..ExecutionParameters::default()
            },
        )
        .unwrap();
    assert_eq!(first.rows, ["0"]);
    fixture.run("DELETE FROM t WHERE p = 7 AND a = 0 AND b IN (0, 1)");
    fixture.run("INSERT INTO t (p, a, b) VALUES (7, 0, 9)");
    let rest = fixture
        .page(
            query,
            ExecutionParameters {
                page_size: Some(10),
                paging_state: first.paging_state,
                ..ExecutionParameters::default()
            },
        )
        .unwrap();
    assert_eq!(rest.rows, ["2", "9"]);
}

#[test]
fn a_page_ends_early_when_its_rows_are_large() {
    let fixture =
        Fixture::new().with(&["CREATE TABLE t (p int, c int, v blob, PRIMARY KEY (p, c))"]);
    let large = BoundValue::Value(Bytes::from(vec![7; 6 << 20]));
    for c in 0..5 {
        fixture
            .execute(
                &format!("INSERT INTO t (p, c, v) VALUES (1, {c}, ?)"),
                ExecutionParameters {
                    values: vec![large.clone()],
                    ..ExecutionParameters::default()
                },
            )
            .unwrap();
    }
    let mut paging_state = None;
    let mut counts = Vec::new();
    loop {
        let parameters = ExecutionParameters {
            page_size: Some(5_000),
            paging_state,
            ..ExecutionParameters::default()
        };
        let page = fixture.page("SELECT c, v FROM t", parameters).unwrap();
        counts.push(page.rows.len());
        match page.paging_state {
            Some(state) => paging_state = Some(state),
            None => break,
        }
    }
    assert_eq!(counts, [3, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A real paging state with bytes changed at random gives an error or rows, never a panic.
    #[test]
    fn changed_states_do_no_harm(
        query in 0..QUERIES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        thread_local! {
            static FIXTURE: Fixture = fixture();
        }
        FIXTURE.with(|fixture| {
            let parameters = ExecutionParameters {
                page_size: Some(2),
                ..ExecutionParameters::default()
            };
            let page = fixture.page(QUERIES[query], parameters.clone()).unwrap();
            let Some(state) = page.paging_state else { return };
            let mut state = state.to_vec();
            for (at, byte) in &changes {
                let at = at.index(state.len());
                state[at] = *byte;
            }
            if is_cut {
                state.truncate(cut.index(state.len()));
            }
            let _ = fixture.page(
                QUERIES[query],
                ExecutionParameters {
                    paging_state: Some(state.into()),
                    ..parameters
                },
            );
        });
    }
}
