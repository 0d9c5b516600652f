//! INSERT, UPDATE, DELETE, BATCH and TRUNCATE, from text to what is read afterwards.

#[path = "../select/fixture.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of SELECT, which use more of it"
)]
mod fixture;

mod arbitrary_values;
mod batches;
mod collections;
mod conditional;
mod counters;
mod deletes;
mod inserts;
mod linear;
mod log;
mod markers;
mod protected;
mod refused;
mod timestamps;
mod updates;

/// Runs a future to its end.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Runtime::new()
        .expect("a runtime starts")
        .block_on(future)
}
