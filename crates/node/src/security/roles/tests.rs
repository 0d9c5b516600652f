//! Tests of statements about roles with a database.

use std::sync::Arc;

use client_memory::{MemoryAccount, MemoryBudget};
use cql::ast::{RoleAttributes, RolePassword};
use cql::error::ErrorKind;
use cql::secret::Secret;
use schema::Role;
use storage::{Storage, StorageOptions};
use tokio::task::JoinSet;

use super::*;
use crate::database::CqlDatabase;
use crate::planner;
use crate::statement::Actor;

/// A database with the superuser `chief` and `roles` others, of which one is `plain`.
async fn database(directory: &std::path::Path, roles: usize) -> Arc<CqlDatabase> {
    let storage = Storage::open(directory, StorageOptions::default()).unwrap();
    let changed = storage.change_catalog(move |catalog: &mut Catalog| {
        let others = (1..roles).map(|number| format!("{number:0200}"));
        let names = ["chief", "plain"].map(str::to_owned).into_iter();
        for name in names.chain(others) {
            let role = Role {
                can_login: true,
                is_superuser: name == "chief",
                ..Role::default()
            };
            catalog.roles.insert(name, Arc::new(role));
        }
        Ok::<(), CqlError>(())
    });
    assert!(changed.await.is_ok());
    Arc::new(CqlDatabase {
        storage,
        system: SystemTables::new(),
        stores: store_api::IndexServices::disabled(),
        access: Arc::new(AuthService::by_login()),
        timeouts: Default::default(),
    })
}

async fn run(
    database: &CqlDatabase,
    actor: &str,
    memory: MemoryAccount,
    statement: RoleStatement,
) -> Result<ExecutionResult, CqlError> {
    let plan = prepare(None, &statement)?;
    let parameters = ExecutionParameters {
        actor: Actor::Role(actor.into()),
        memory,
        ..ExecutionParameters::default()
    };
    let CqlDatabase {
        storage,
        access,
        system,
        ..
    } = database;
    execute(storage, access, system, &plan, parameters).await
}

#[tokio::test]
async fn passwords_of_statements_that_are_refused_are_not_hashed() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path(), 1).await;
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let database = database.clone();
        tasks.spawn(async move {
            let create = RoleStatement::Create {
                role: "another".to_owned(),
                if_not_exists: false,
                attributes: RoleAttributes {
                    password: Some(RolePassword::Plain(Secret::new("x".to_owned()))),
                    ..RoleAttributes::default()
                },
            };
            run(&database, "plain", MemoryAccount::default(), create).await
        });
    }
    while let Some(refused) = tasks.join_next().await {
        // Of those that were hashed some would find no place.
        let kind = refused.unwrap().err().map(|error| error.kind);
        assert_eq!(kind, Some(ErrorKind::Unauthorized));
    }
}

#[tokio::test]
async fn lists_are_charged_as_they_grow() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path(), 5_000).await;
    let list = RoleStatement::ListRoles {
        of: None,
        recursive: true,
    };
    let budget = MemoryBudget::new(16 << 20);
    let account = budget.client().unwrap();
    let answer = run(&database, "chief", account, list.clone()).await;
    let Ok(ExecutionResult {
        outcome: ExecutionOutcome::Rows(rows),
        ..
    }) = answer
    else {
        panic!("there is room for it");
    };
    let charge = rows.charge.as_ref().map(client_memory::MemoryCharge::bytes);
    assert!(rows.body.len() > 1 << 20);
    assert_eq!(charge, Some(rows.body.len()));
    let budget = MemoryBudget::new(1 << 20);
    let account = budget.client().unwrap();
    let refused = run(&database, "chief", account, list).await;
    let kind = refused.err().map(|error| error.kind);
    assert_eq!(kind, Some(ErrorKind::Overloaded));
}

/// Executes a statement as a role.
async fn executed(
    database: &CqlDatabase,
    actor: &str,
    text: &str,
) -> Result<ExecutionResult, CqlError> {
    let parsed = cql::parser::parse_statement(text)?;
    let plan = planner::prepare(database, None, &parsed)?;
    let parameters = ExecutionParameters {
        actor: Actor::Role(actor.into()),
        ..ExecutionParameters::default()
    };
    plan.execute(database, parameters).await
}

/// The kind of the error of a statement; `None` if it is carried out.
async fn refused(database: &CqlDatabase, actor: &str, text: &str) -> Option<ErrorKind> {
    let answer = executed(database, actor, text).await;
    answer.err().map(|error| error.kind)
}

#[tokio::test]
async fn the_creator_of_a_table_reads_its_change_log_and_grants_it() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path(), 2).await;
    let other = format!("{:0200}", 1);
    for text in [
        "CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "GRANT CREATE ON KEYSPACE s TO plain",
        "CREATE TABLE s.others (k int PRIMARY KEY)",
        "GRANT ALTER ON s.others TO plain",
        "GRANT SELECT ON s.others TO plain",
    ] {
        assert!(executed(&database, "chief", text).await.is_ok(), "{text}");
    }
    for text in [
        "CREATE TABLE s.first (k int PRIMARY KEY) WITH cdc = {'enabled': true}",
        "CREATE TABLE s.later (k int PRIMARY KEY, v vector<float, 2>)",
        "CREATE TABLE s.indexed (k int PRIMARY KEY, v vector<float, 2>)",
        "ALTER TABLE s.later WITH cdc = {'enabled': true}",
        "CREATE CUSTOM INDEX i ON s.indexed (v) USING 'vector_index'",
    ] {
        assert!(executed(&database, "plain", text).await.is_ok(), "{text}");
    }
    for table in ["first", "later", "indexed"] {
        let select = format!("SELECT * FROM s.{table}_scylla_cdc_log");
        let grant = format!("GRANT SELECT ON s.{table}_scylla_cdc_log TO \"{other}\"");
        let unauthorized = Some(ErrorKind::Unauthorized);
        assert_eq!(refused(&database, &other, &select).await, unauthorized);
        for (actor, text) in [("plain", &select), ("plain", &grant), (&other, &select)] {
            assert_eq!(refused(&database, actor, text).await, None, "{text}");
        }
    }
    // Who may change another's table has not made it.
    let alter = "ALTER TABLE s.others WITH cdc = {'enabled': true}";
    assert_eq!(refused(&database, "plain", alter).await, None);
    let select = "SELECT * FROM s.others_scylla_cdc_log";
    let unauthorized = Some(ErrorKind::Unauthorized);
    assert_eq!(refused(&database, "plain", select).await, unauthorized);
    // No grants are left on a log that was dropped.
    let log = Resource::Table("s".to_owned(), "indexed_scylla_cdc_log".to_owned());
    let holders = || {
        let catalog = database.storage.catalog();
        let roles = catalog.roles.values();
        roles.filter(|role| role.grants.contains_key(&log)).count()
    };
    assert_eq!(holders(), 2);
    let drop = "DROP INDEX s.i";
    assert_eq!(refused(&database, "plain", drop).await, None);
    assert_eq!(holders(), 0);
}

#[tokio::test]
async fn dropping_an_unsupported_object_if_it_exists_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let database = database(directory.path(), 1).await;
    for text in [
        "DROP FUNCTION IF EXISTS s.f (int)",
        "DROP AGGREGATE IF EXISTS s.a",
        "DROP MATERIALIZED VIEW IF EXISTS s.v",
        "DROP TRIGGER IF EXISTS x ON s.t",
    ] {
        let answer = executed(&database, "plain", text).await;
        let outcome = answer.map(|answer| answer.outcome);
        assert!(matches!(outcome, Ok(ExecutionOutcome::Void)), "{text}");
        let without = text.replace("IF EXISTS ", "");
        let error = executed(&database, "chief", &without).await.err().unwrap();
        assert!(
            error.message.contains("is not supported by Annulus"),
            "{without}"
        );
        let nowhere = text.replace("s.", "");
        let error = executed(&database, "chief", &nowhere).await.err().unwrap();
        assert!(error.message.starts_with("No keyspace"), "{nowhere}");
    }
}
