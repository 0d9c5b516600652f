//! Reads of large rows: how much of them is in memory at once, and which reads take turns. This is
//! a program of its own, as it counts all bytes that the process allocates, and it has one test.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cpu_scheduler::{CpuScheduler, WorkClass};
use futures::future::join_all;
use node::database::CqlDatabase;
use node::planner;
use node::statement::{ExecutionOutcome, ExecutionParameters};
use node::system::SystemTables;
use storage::{Durability, Storage, StorageOptions};
use store_api::IndexServices;

const TURNS: usize = 2;
const ROWS: u32 = 5;
const ROW_BYTES: usize = 1 << 20;
const READS: usize = 200;
/// A read holds the row that it has read, and some that it has read ahead. Beside those with turns,
/// there are point reads that the two threads of the runtime begin.
const HELD_BYTES_MAX: usize = 8 * (TURNS + 2) * ROW_BYTES;

/// The bytes that are allocated and not freed, and the most of them.
static LIVE: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);

struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size() as i64;
        let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
        MOST.fetch_max(live, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn open(directory: &Path) -> Arc<CqlDatabase> {
    let options = StorageOptions {
        cache_bytes: 64 << 10,
        durability: Durability::Buffered {
            sync_interval: std::time::Duration::from_secs(3600),
        },
        cpu_scheduler: CpuScheduler::of_threads(TURNS),
        ..StorageOptions::default()
    };
    Arc::new(CqlDatabase {
        storage: Storage::open(directory, options).unwrap(),
        system: SystemTables::new(),
        stores: IndexServices::disabled(),
        access: Default::default(),
        timeouts: Default::default(),
    })
}

/// Runs a statement, and returns the number of its rows.
async fn run(database: &CqlDatabase, cql: &str) -> u32 {
    let parsed = cql::parser::parse_statement(cql).unwrap();
    let plan = planner::prepare(database, Some("ks"), &parsed).unwrap();
    let answer = plan
        .execute(database, ExecutionParameters::default())
        .await
        .unwrap();
    match answer.outcome {
        ExecutionOutcome::Rows(rows) => rows.count,
        _ => 0,
    }
}

/// The most bytes that so many reads at once have held, beyond those before.
async fn most_of_many(database: &Arc<CqlDatabase>, cql: &'static str, rows: u32) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let reads = (0..READS).map(|_| {
        let database = Arc::clone(database);
        tokio::spawn(async move { run(&database, cql).await })
    });
    for read in join_all(reads).await {
        assert_eq!(read.unwrap(), rows, "{cql}");
    }
    usize::try_from(MOST.load(Ordering::Relaxed) - before).unwrap()
}

async fn fill(database: &CqlDatabase) {
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (p int, c int, n int, b blob, PRIMARY KEY (p, c))",
        "CREATE TABLE ks.small (p int PRIMARY KEY, n int)",
        "INSERT INTO ks.small (p, n) VALUES (1, 1)",
    ] {
        run(database, statement).await;
    }
    for c in 0..ROWS {
        let blob = "0f".repeat(ROW_BYTES);
        let insert = format!("INSERT INTO ks.t (p, c, n, b) VALUES (1, {c}, {c}, 0x{blob})");
        run(database, &insert).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_hold_as_many_large_rows_as_there_are_turns() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let database = open(&data);
    fill(&database).await;
    // The rows are in files then, which are read in blocks.
    database.storage.close().await.unwrap();
    drop(database);
    let database = open(&data);

    let given = || {
        database
            .storage
            .cpu_scheduler()
            .counts(WorkClass::Read)
            .given
    };
    assert_eq!(run(&database, "SELECT n FROM small WHERE p = 1").await, 1);
    assert_eq!(given(), 0, "a small row is read without a turn");
    run(&database, "SELECT n FROM t WHERE p = 1 AND c = 1").await;
    let of_a_row = given();
    assert!(of_a_row > 0, "a large row is read in a turn");

    for (cql, rows) in [
        ("SELECT n FROM t", ROWS),
        ("SELECT n FROM t WHERE p = 1", ROWS),
        ("SELECT n FROM t WHERE p = 1 ORDER BY c DESC", ROWS),
        ("SELECT count(*) FROM t", 1),
        ("SELECT min(n), max(n), p FROM t", 1),
        ("SELECT p, count(*) FROM t GROUP BY p", 1),
        ("SELECT n FROM t WHERE n = 3 ALLOW FILTERING", 1),
        ("SELECT n FROM t WHERE n < 0 ALLOW FILTERING", 0),
    ] {
        let most = most_of_many(&database, cql, rows).await;
        assert!(most < HELD_BYTES_MAX, "{cql}: {most} bytes");
    }
    let merged = "SELECT n FROM t WHERE p IN (1, 2) ORDER BY c";
    assert_eq!(run(&database, merged).await, ROWS);
    let counts = database.storage.cpu_scheduler().counts(WorkClass::Read);
    assert_eq!((counts.running, counts.waiting), (0, 0));
    assert!(counts.given > of_a_row);
}
