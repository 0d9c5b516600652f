//! Writes with conditions are linearisable, also over `kill -9`: their histories, and those of
//! reads beside them, could have been made by one client after the other.
//!
//! Each partition is a register of two rows, which a conditional batch changes together from one
//! value to a new one. All values differ, so the applied changes form one chain, and each value
//! that is read has its place in it. An order of operations in real time that contradicts the chain
//! is a fault (Herlihy and Wing, "Linearizability", 1990). A change in progress at a kill may have
//! happened or not; it has if its value was ever seen.
//!
//! `ANNULUS_CRASH_ROUNDS` sets the number of kills (`make crash-test`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scylla::client::session::Session;
use scylla::statement::Consistency;
use scylla::statement::batch::Batch;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::Row;

use crate::server::Server;

const CLIENTS: u64 = 8;
const REGISTERS: i32 = 3;
const DEFAULT_ROUNDS: u32 = 3;
/// The value of each register at the start.
const FIRST: i64 = 0;

/// An operation on a register.
#[derive(Debug)]
struct Operation {
    began: Instant,
    /// `None` for one that was in progress at a kill.
    ended: Option<Instant>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A read of this value, or a change that was refused because it found this value.
    Saw(i64),
    /// A change from one value to another that was applied, or may have been if it did not end.
    Changed { from: i64, to: i64 },
}

type Histories = BTreeMap<i32, Vec<Operation>>;

struct Statements {
    read: PreparedStatement,
    change: PreparedStatement,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditional_writes_are_linearisable() {
    let rounds = std::env::var("ANNULUS_CRASH_ROUNDS")
        .ok()
        .map_or(DEFAULT_ROUNDS, |text| text.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path().join("data");
    let mut numbers = StdRng::seed_from_u64(1);
    let next_value = Arc::new(AtomicI64::new(FIRST + 1));
    let mut histories = Histories::new();

    let mut server = Server::start(&data_dir);
    create_registers(&server.connect().await).await;
    for round in 1..=rounds {
        let session = Arc::new(server.connect().await);
        let statements = Arc::new(prepare(&session).await);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (session, statements) = (Arc::clone(&session), Arc::clone(&statements));
                let (values, seed) = (Arc::clone(&next_value), numbers.random());
                tokio::spawn(
                    async move { until_killed(&session, &statements, &values, seed).await },
                )
            })
            .collect();
        // The kill comes at a random moment of the operations.
        server.kill_after(Duration::from_millis(numbers.random_range(50..1_000)));
        for client in clients {
            for (register, operation) in client.await.expect("the client ends") {
                histories.entry(register).or_default().push(operation);
            }
        }
        drop(session);
        server = Server::start(&data_dir);
        let session = server.connect().await;
        let statements = prepare(&session).await;
        for register in 0..REGISTERS {
            let began = Instant::now();
            let value = read(&session, &statements, register)
                .await
                .expect("it is up");
            histories.entry(register).or_default().push(Operation {
                began,
                ended: Some(Instant::now()),
                kind: Kind::Saw(value),
            });
        }
        let counts = histories.values().map(|history| check(history));
        let counts = counts
            .collect::<Result<Vec<_>, _>>()
            .expect("an order exists");
        let changes: usize = counts.iter().sum();
        eprintln!("round {round}/{rounds}: {changes} changes, one after the other");
        assert!(changes > 0, "the clients never changed anything");
    }
}

async fn create_registers(session: &Session) {
    for statement in [
        "CREATE KEYSPACE linear WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE linear.t (p int, c int, v bigint, PRIMARY KEY (p, c))",
    ] {
        session.query_unpaged(statement, ()).await.expect(statement);
    }
    for (register, c) in (0..REGISTERS).flat_map(|register| [(register, 0), (register, 1)]) {
        let insert = "INSERT INTO linear.t (p, c, v) VALUES (?, ?, ?)";
        let values = (register, c, FIRST);
        session.query_unpaged(insert, values).await.expect(insert);
    }
}

async fn prepare(session: &Session) -> Statements {
    let prepare = async |text: &str| session.prepare(text).await.expect(text);
    let mut read = prepare("SELECT v FROM linear.t WHERE p = ?").await;
    read.set_consistency(Consistency::Serial);
    let change = "UPDATE linear.t SET v = ? WHERE p = ? AND c = ? IF v = ?";
    Statements {
        read,
        change: prepare(change).await,
    }
}

/// Makes one operation after the other until one fails because of the kill.
async fn until_killed(
    session: &Session,
    statements: &Statements,
    next_value: &AtomicI64,
    seed: u64,
) -> Vec<(i32, Operation)> {
    let mut numbers = StdRng::seed_from_u64(seed);
    let mut operations = Vec::new();
    let mut last_seen: BTreeMap<i32, i64> = BTreeMap::new();
    loop {
        let register = numbers.random_range(0..REGISTERS);
        let began = Instant::now();
        let from = last_seen.get(&register).copied();
        let kind = match from {
            Some(from) if numbers.random_bool(0.7) => {
                let to = next_value.fetch_add(1, Ordering::Relaxed);
                match change(session, statements, register, from, to).await {
                    Some(None) => Some(Kind::Changed { from, to }),
                    Some(Some(found)) => {
                        assert_ne!(found, from, "refused although the condition held");
                        Some(Kind::Saw(found))
                    }
                    None => {
                        let operation = Operation {
                            began,
                            ended: None,
                            kind: Kind::Changed { from, to },
                        };
                        operations.push((register, operation));
                        None
                    }
                }
            }
            _ => read(session, statements, register).await.map(Kind::Saw),
        };
        let Some(kind) = kind else { return operations };
        last_seen.insert(
            register,
            match kind {
                Kind::Saw(value) | Kind::Changed { to: value, .. } => value,
            },
        );
        let ended = Some(Instant::now());
        operations.push((register, Operation { began, ended, kind }));
    }
}

/// Reads a register, whose rows must be equal; `None` if the server is gone.
async fn read(session: &Session, statements: &Statements, register: i32) -> Option<i64> {
    let answer = session.execute_unpaged(&statements.read, (register,)).await;
    let rows = answer.ok()?.into_rows_result().expect("rows");
    let rows = rows.rows::<(i64,)>().expect("typed rows");
    let values: Vec<i64> = rows.map(|row| row.expect("a row").0).collect();
    assert_eq!(values, [values[0]; 2], "half of a batch was seen");
    Some(values[0])
}

/// Changes a register if it has the value `from`. Returns the value that was found instead if there
/// was another one; `None` outside if the server is gone.
async fn change(
    session: &Session,
    statements: &Statements,
    register: i32,
    from: i64,
    to: i64,
) -> Option<Option<i64>> {
    let mut batch = Batch::default();
    batch.append_statement(statements.change.clone());
    batch.append_statement(statements.change.clone());
    let values = ((to, register, 0, from), (to, register, 1, from));
    let answer = session.batch(&batch, values).await.ok()?;
    let rows = answer.into_rows_result().expect("rows");
    let row: Row = rows
        .rows()
        .expect("rows")
        .next()
        .expect("a row")
        .expect("a row");
    let column = |at: usize| row.columns[at].as_ref().expect("a value");
    if column(0).as_boolean().expect("[applied]") {
        return Some(None);
    }
    // [applied], p, c, v
    Some(Some(column(3).as_bigint().expect("a value")))
}

/// Checks the history of one register, and returns the number of changes in it.
///
/// # Errors
/// The contradiction, if no order of the operations explains the history.
fn check(history: &[Operation]) -> Result<usize, String> {
    let seen = |value: i64| {
        history.iter().any(|operation| match operation.kind {
            Kind::Saw(found) => found == value,
            Kind::Changed { from, .. } => operation.ended.is_some() && from == value,
        })
    };
    let mut successors = BTreeMap::new();
    for operation in history {
        if let Kind::Changed { from, to } = operation.kind
            && (operation.ended.is_some() || seen(to))
            && let Some(other) = successors.insert(from, to)
        {
            return Err(format!("{from} was changed to {other} and to {to}"));
        }
    }
    let mut places = BTreeMap::from([(FIRST, 0)]);
    let mut value = FIRST;
    while let Some(next) = successors.get(&value) {
        places.insert(*next, places.len());
        value = *next;
    }
    if places.len() != successors.len() + 1 {
        return Err("values were changed that never were".to_owned());
    }
    // A change takes an even place, and those that see its value take the odd one behind.
    let place = |operation: &Operation| -> Result<usize, String> {
        match operation.kind {
            Kind::Saw(value) => {
                let place = places.get(&value).ok_or(format!("{value} never was"))?;
                Ok(2 * place + 1)
            }
            // One that was never seen may come at any time.
            Kind::Changed { to, .. } => Ok(places.get(&to).map_or(usize::MAX, |place| 2 * place)),
        }
    };
    let mut begins: Vec<&Operation> = history.iter().collect();
    begins.sort_by_key(|operation| operation.began);
    let mut ends: Vec<&Operation> = history.iter().filter(|op| op.ended.is_some()).collect();
    ends.sort_by_key(|operation| operation.ended);
    let mut ends = ends.into_iter().peekable();
    let mut latest = 0;
    for operation in begins {
        while let Some(before) = ends.next_if(|before| before.ended < Some(operation.began)) {
            latest = latest.max(place(before)?);
        }
        if place(operation)? < latest {
            return Err(format!("{operation:?} contradicts what had ended before"));
        }
    }
    Ok(successors.len())
}

#[test]
fn contradictions_are_found() {
    let start = Instant::now();
    let at = |began: u64, ended: u64, kind: Kind| Operation {
        began: start + Duration::from_millis(began),
        ended: Some(start + Duration::from_millis(ended)),
        kind,
    };
    let change = |began, ended, from, to| at(began, ended, Kind::Changed { from, to });
    let read = |began, ended, value| at(began, ended, Kind::Saw(value));
    let good = [
        change(0, 5, 0, 1),
        read(2, 3, 0),
        read(3, 4, 1),
        read(6, 7, 1),
    ];
    assert_eq!(check(&good), Ok(1));
    let fails = |history: Vec<Operation>| check(&history).is_err();
    assert!(
        fails(vec![change(0, 5, 0, 1), read(6, 7, 0)]),
        "a stale read"
    );
    assert!(
        fails(vec![change(0, 5, 0, 1), change(0, 5, 0, 2)]),
        "a lost change"
    );
    assert!(
        fails(vec![read(0, 1, 1), change(2, 3, 0, 1)]),
        "a read of the future"
    );
    assert!(fails(vec![change(0, 5, 7, 8)]), "a change of nothing");
    let (late, early) = (read(3, 4, 0), read(1, 2, 1));
    assert!(
        fails(vec![change(0, 9, 0, 1), early, late]),
        "a value that went back"
    );
}
