//! Tests of statements about roles with a database.

use client_memory::{Account, Budget};
use cql::ast::{RoleAttributes, RolePassword};
use cql::error::ErrorKind;
use cql::secret::Secret;
use schema::Role;
use storage::{Storage, StorageOptions};
use tokio::task::JoinSet;

use super::*;
use crate::access::{Access, Actor};
use crate::system::SystemTables;

/// A database with the superuser `chief` and `roles` others, of which one is `plain`.
async fn database(directory: &std::path::Path, roles: usize) -> Arc<Database> {
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
    Arc::new(Database {
        storage,
        system: SystemTables::new(),
        stores: store_api::Stores::disabled(),
        access: Access::by_login(),
    })
}

async fn run(
    database: &Database,
    actor: &str,
    memory: Account,
    statement: RoleStatement,
) -> Result<Answer, CqlError> {
    let plan = prepare(None, &statement)?;
    let parameters = Parameters {
        actor: Actor::Role(actor.into()),
        memory,
        ..Parameters::default()
    };
    execute(database, &plan, parameters).await
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
            run(&database, "plain", Account::default(), create).await
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
    let budget = Budget::new(16 << 20);
    let account = budget.client().unwrap();
    let answer = run(&database, "chief", account, list.clone()).await;
    let Ok(Answer {
        outcome: Outcome::Rows(rows),
        ..
    }) = answer
    else {
        panic!("there is room for it");
    };
    let charge = rows.charge.as_ref().map(client_memory::Charge::bytes);
    assert!(rows.body.len() > 1 << 20);
    assert_eq!(charge, Some(rows.body.len()));
    let budget = Budget::new(1 << 20);
    let account = budget.client().unwrap();
    let refused = run(&database, "chief", account, list).await;
    let kind = refused.err().map(|error| error.kind);
    assert_eq!(kind, Some(ErrorKind::Overloaded));
}
