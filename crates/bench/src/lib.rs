//! `annulus bench`: measures vector search on any server of the Vector Store HTTP API or of CQL.
//!
//! - [`data`]: data sets in the field's formats, and the true neighbours of queries.
//! - [`load`]: the load generator.
//! - [`target`]: the servers that requests go to, by HTTP or CQL, and an index in this process.
//! - [`report`]: prints results, and writes them as JSON lines, an HTML page and charts.
//! - `commands`: the commands, a file for each.

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
