//! Statements on a real storage, from text to rows, errors and the catalog.

mod definitions;
mod fixture;
mod select;
mod writes;

/// Runs a future to its end.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Runtime::new()
        .expect("a runtime starts")
        .block_on(future)
}
