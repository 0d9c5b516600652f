//! What is behind `annulus bench`: measuring vector search on any server of the same HTTP API, or of CQL.
//!
//! - [`data`]: data sets in the field's formats, and the true neighbours of queries.
//! - [`load`]: the load generator.
//! - [`target`]: whom the requests go to, by HTTP or CQL, or an index in this process.
//! - [`report`]: what becomes of results.
//! - `commands`: what can be asked for, a file for each.

mod cli;
mod commands;
pub mod data;
mod front;
pub mod load;
mod proc;
pub mod report;
mod spread;
pub mod target;

pub use cli::{BenchArguments, run};
