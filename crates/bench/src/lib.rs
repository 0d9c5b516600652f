//! The parts of `annulus bench` that `benchmarks/ann`, the benchmark of the vector index engine,
//! uses too: data sets with their metrics and true neighbours, and the reading of measured
//! settings.
//!
//! Without the feature `program` the crate has only these, and depends on no client of a server.

pub mod data;
pub mod front;
pub mod spread;
