use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use storage::{Storage, StorageOptions};

use super::super::prepared::ExecutableStatement;
use super::*;
use crate::database::CqlDatabase;
use crate::planner;
use crate::statement::ExecutionParameters;
use crate::system::SystemTables;

thread_local! {
    /// The bytes that this thread holds, and the most that it held.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(bytes: isize) {
    // Nothing is counted while a thread ends.
    let _ = HELD.try_with(|held| {
        let (before, most) = held.get();
        let now = before + bytes;
        held.set((now, most.max(now)));
    });
}

/// The system's allocator, with a count for each thread.
struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are the ones that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promises are the ones that the system's allocator requires.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

async fn run(database: &CqlDatabase, text: &str) {
    let parsed = cql::parser::parse_statement(text).unwrap();
    let plan = planner::prepare(database, None, &parsed).unwrap();
    plan.execute(database, ExecutionParameters::default())
        .await
        .unwrap();
}

/// Long statements of all shapes.
fn statements(names: &[String]) -> Vec<String> {
    let repeated = |unit: &str| vec![unit; 500].join(",");
    vec![
        "SELECT * FROM ks.wide".to_owned(),
        "SELECT JSON * FROM ks.wide".to_owned(),
        format!(
            "BEGIN BATCH {} APPLY BATCH",
            vec!["INSERT INTO ks.wide JSON ?;"; 100].join(" ")
        ),
        format!("SELECT {} FROM ks.wide", names.join(",")),
        format!("SELECT {} FROM ks.t", repeated("p")),
        format!("SELECT {} FROM ks.t", repeated("cast(p as text)")),
        format!("SELECT {} FROM ks.t", repeated("p + 1")),
        format!("SELECT {} FROM ks.t", repeated("p-c")),
        format!("SELECT {} FROM ks.t", repeated("-p")),
        format!("SELECT {} FROM ks.t", repeated("m[1..2]")),
        format!("SELECT {} FROM ks.t", repeated("m[?]")),
        format!(
            "INSERT INTO ks.wide ({}, k) VALUES ({}, ?)",
            names.join(","),
            vec!["?"; 300].join(",")
        ),
        format!("UPDATE ks.wide SET {} = ? WHERE k = ?", names.join("=?,")),
        format!("SELECT p FROM ks.t WHERE p IN ({})", repeated("?")),
        format!("SELECT p FROM ks.t WHERE p IN ({})", repeated("1")),
        format!(
            "SELECT p FROM ks.t WHERE p = 1 AND (c) IN ({})",
            repeated("(1)")
        ),
        format!(
            "UPDATE ks.t SET l = [{}] WHERE p = 1 AND c = 1",
            repeated("1")
        ),
        format!(
            "UPDATE ks.t SET l = [{}] WHERE p = 1 AND c = 1",
            repeated("?")
        ),
        format!(
            "UPDATE ks.t SET m = {{{}}} WHERE p = 1 AND c = 1",
            repeated("1:'a'")
        ),
        format!(
            "UPDATE ks.t SET v = [{}] WHERE p = 1 AND c = 1",
            repeated("0.12345")
        ),
        format!(
            "BEGIN BATCH {} APPLY BATCH",
            vec!["INSERT INTO ks.t (p, c) VALUES (?, ?);"; 100].join(" ")
        ),
        format!(
            "UPDATE ks.t SET m[1] = '{}' WHERE p = 1 AND c = 1",
            "x".repeat(20_000)
        ),
        format!(
            "UPDATE ks.t SET l = null WHERE p = 1 AND c = 1 IF {}",
            vec!["l[?] = ?"; 500].join(" AND ")
        ),
        format!(
            "UPDATE ks.t SET l = null WHERE p = 1 AND c = 1 IF m IN ({})",
            repeated("?")
        ),
        "SELECT p FROM ks.t WHERE p = ?".to_owned(),
    ]
}

/// Of long statements of all shapes the estimate is not below the bytes that they hold, nor many
/// times as high.
#[tokio::test]
async fn estimates_are_about_what_the_allocator_says() {
    let directory = tempfile::tempdir().unwrap();
    let database = CqlDatabase {
        storage: Storage::open(directory.path(), StorageOptions::default()).unwrap(),
        system: SystemTables::new(),
        stores: store_api::IndexServices::disabled(),
        access: Default::default(),
        timeouts: Default::default(),
    };
    run(&database, "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").await;
    let names: Vec<String> = (0..300).map(|n| format!("column_{n}")).collect();
    let columns: String = names.iter().map(|name| format!("{name} int, ")).collect();
    run(
        &database,
        &format!("CREATE TABLE ks.wide ({columns} k int PRIMARY KEY)"),
    )
    .await;
    run(
        &database,
        "CREATE TABLE ks.t (p int, c int, l list<int>, m map<int, text>, v vector<float, 500>, PRIMARY KEY (p, c))",
    )
    .await;
    let mut wrong = Vec::new();
    for text in statements(&names) {
        let (before, _) = HELD.get();
        HELD.set((before, before));
        let parsed = cql::parser::parse_statement(&text).unwrap();
        let (_, most) = HELD.get();
        let parsing = (most - before) as usize;
        let prepared = match ExecutableStatement::new(&database, None, &text, parsed) {
            Ok(prepared) => std::sync::Arc::new(prepared),
            Err(error) => panic!("{error}: {text:.80}"),
        };
        let held = (HELD.get().0 - before) as usize;
        let (estimate, while_parsed) = (prepared.bytes(), while_parsed(&text));
        let name = &text[..text.len().min(50)];
        eprintln!(
            "held {held} estimated {estimate}, parsing {parsing} estimated {while_parsed}: {name}"
        );
        if held > estimate || estimate > 6 * held.max(1 << 10) {
            wrong.push(format!("{name}: {held} held, {estimate} estimated"));
        }
        if parsing > while_parsed + (4 << 10) {
            wrong.push(format!(
                "{name}: {parsing} to parse, {while_parsed} estimated"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
