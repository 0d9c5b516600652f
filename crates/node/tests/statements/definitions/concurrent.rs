//! Schema changes that run at the same time as each other and as writes.

use cql::error::ErrorKind;
use futures::future::join_all;
use node::statement::{ExecutionOutcome, ExecutionParameters};

use crate::fixture::Fixture;

#[test]
fn one_of_many_makes_the_table() {
    let f = Fixture::new();
    let plan = f.plan("CREATE TABLE t (k int PRIMARY KEY)").unwrap();
    let answers = crate::block_on(join_all(
        (0..20).map(|_| plan.execute(&f.database, ExecutionParameters::default())),
    ));
    let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1);
    for answer in refused {
        let kind = answer.unwrap_err().kind;
        assert!(matches!(kind, ErrorKind::AlreadyExists { .. }), "{kind:?}");
    }
}

#[test]
fn no_added_column_is_lost() {
    let f = Fixture::new().with(&["CREATE TABLE t (k int PRIMARY KEY)"]);
    let plans: Vec<_> = (0..20)
        .map(|at| f.plan(&format!("ALTER TABLE t ADD c{at} int")).unwrap())
        .collect();
    let answers = crate::block_on(join_all(
        plans
            .iter()
            .map(|plan| plan.execute(&f.database, ExecutionParameters::default())),
    ));
    assert!(answers.iter().all(Result::is_ok));
    let catalog = f.database.storage.catalog();
    let table = catalog.table("ks", "t").unwrap();
    assert_eq!(table.columns.len(), 21);
    let mut ids: Vec<_> = table.columns.iter().map(|column| column.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 21, "no id is given twice");
}

/// Runs writers beside two statements that change their table again and again, then counts the
/// rows. Every acknowledged write is there, and every other one failed as invalid.
#[test]
fn writes_go_on_while_the_table_changes() {
    const WRITERS: i32 = 4;
    const WRITES: i32 = 60;
    const CHANGES: i32 = 15;
    let f = Fixture::new()
        .with(&["CREATE TABLE t (k int, c int, v vector<float, 2>, PRIMARY KEY (k, c))"]);
    let run = async |cql: String| {
        // As in the server, a statement is resolved against the present schema, then executed.
        let plan = f.plan(&cql)?;
        plan.execute(&f.database, ExecutionParameters::default())
            .await
    };
    let writers = (0..WRITERS).map(|writer| {
        let run = &run;
        async move {
            let mut acknowledged = 0;
            for at in 0..WRITES {
                let insert =
                    format!("INSERT INTO t (k, c, v) VALUES ({writer}, {at}, [{at}, {writer}])");
                match run(insert).await {
                    Ok(_) => acknowledged += 1,
                    Err(error) => assert_eq!(error.kind, ErrorKind::Invalid, "{error}"),
                }
                tokio::task::yield_now().await;
            }
            acknowledged
        }
    });
    let changes = async {
        for at in 0..CHANGES {
            run(format!("ALTER TABLE t ADD x{at} int")).await.unwrap();
            run("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'".to_owned())
                .await
                .unwrap();
            run(format!("ALTER TABLE t DROP x{at}")).await.unwrap();
            run("DROP INDEX i".to_owned()).await.unwrap();
        }
    };
    let (acknowledged, ()) = crate::block_on(async { tokio::join!(join_all(writers), changes) });
    let acknowledged: i32 = acknowledged.into_iter().sum();
    assert_eq!(f.rows("SELECT count(*) FROM t"), [acknowledged.to_string()]);
    assert_eq!(acknowledged, WRITERS * WRITES);
}

#[test]
fn a_write_to_a_dropped_table_says_so() {
    let f = Fixture::new().with(&["CREATE TABLE t (k int PRIMARY KEY)"]);
    let insert = f.plan("INSERT INTO t (k) VALUES (1)").unwrap();
    let drop = f.plan("DROP TABLE t").unwrap();
    let (dropped, written) = crate::block_on(async {
        let dropped = drop
            .execute(&f.database, ExecutionParameters::default())
            .await;
        let written = insert
            .execute(&f.database, ExecutionParameters::default())
            .await;
        (dropped, written)
    });
    assert!(matches!(
        dropped.unwrap().outcome,
        ExecutionOutcome::SchemaChange(_)
    ));
    let error = written.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.message.contains("was dropped while"), "{error}");
}
