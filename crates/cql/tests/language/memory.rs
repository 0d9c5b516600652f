//! Tests that a statement takes no more memory than a bounded multiple of its text.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use cql::parser::{MAX_TOKENS, parse_statement};

thread_local! {
    /// The bytes that this thread holds, and the most that it held since the last reset.
    static HELD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator with a count for each thread.
struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract;
// the counter is a thread-local without a destructor or lazy initialisation, so it allocates
// nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (held, most) = HELD.get();
        let held = held + layout.size();
        HELD.set((held, most.max(held)));
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let (held, most) = HELD.get();
        // The memory may come from another thread, so the count could fall below zero.
        HELD.set((held.saturating_sub(layout.size()), most));
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that parsing a text holds at once, its result included.
fn peak(text: &str) -> usize {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    let parsed = parse_statement(text);
    let (_, most) = HELD.get();
    drop(parsed);
    most - before
}

/// The most bytes of memory for one byte of text. An element of one letter takes two bytes of text,
/// its comma included, and is a term of 80 bytes. It lies in a vector that grows by doubling, which
/// takes three times its content while it is copied.
const BYTES_PER_BYTE: usize = 3 * 80 / 2 + 16;

#[test]
fn dense_statements_stay_within_the_bound() {
    let repeat = |unit: &str| unit.repeat(100_000 / unit.len());
    let texts = [
        format!("SELECT * FROM t WHERE a IN ({}1)", repeat("1,")),
        format!("SELECT * FROM t WHERE a = [{}1]", repeat("1,")),
        format!("SELECT * FROM t WHERE a = {{{}1}}", repeat("1,")),
        format!("SELECT * FROM t WHERE a = {{{}1:1}}", repeat("1:1,")),
        format!("SELECT * FROM t WHERE a = [{}1]", repeat("[],")),
        format!("SELECT * FROM t WHERE a = [{}1]", repeat("f(),")),
        format!("SELECT {}a FROM t", repeat("a,")),
        format!("SELECT * FROM t WHERE {}a=1", repeat("a=1 AND ")),
        format!("SELECT * FROM t WHERE {}a=1", repeat("a IN() AND ")),
        format!("SELECT * FROM t GROUP BY {}a", repeat("a,")),
        format!("SELECT * FROM t ORDER BY {}a", repeat("a,")),
        format!("INSERT INTO t ({}a) VALUES (1)", repeat("a,")),
        format!("UPDATE t SET {}a=1 WHERE a=1", repeat("a=1,")),
        format!("DELETE {}a FROM t WHERE a=1", repeat("a,")),
        format!("BEGIN BATCH {}APPLY BATCH", repeat("INSERT INTO t JSON? ")),
        format!(
            "BEGIN BATCH {}APPLY BATCH",
            repeat("DELETE FROM t WHERE a=1 ")
        ),
        format!("CREATE TABLE t ({}a int)", repeat("a int,")),
        format!("CREATE TABLE t (a tuple<{}int>)", repeat("int,")),
        format!("CREATE TABLE t (a int) WITH a={{{}1:1}}", repeat("1:1,")),
        format!("CREATE INDEX ON t ({}a)", repeat("a,")),
        repeat("("),
        repeat("'"),
        repeat("a"),
        repeat("/**/"),
    ];
    for text in texts {
        let peak = peak(&text);
        assert!(
            peak <= BYTES_PER_BYTE * text.len() + 4_096,
            "{peak} bytes for {} of {}",
            text.len(),
            &text[..60]
        );
    }
}

#[test]
fn the_largest_statement_stays_within_the_bound_on_tokens() {
    /// The most bytes of memory for one token, while the vector that holds it grows.
    const BYTES_PER_TOKEN: usize = 2 * BYTES_PER_BYTE;
    let text = format!(
        "SELECT * FROM t WHERE a IN ({}1)",
        "1,".repeat(4 * MAX_TOKENS)
    );
    let peak = peak(&text);
    assert!(peak <= MAX_TOKENS * BYTES_PER_TOKEN, "{peak}");
}
