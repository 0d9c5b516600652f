//! The commands of `annulus bench`, a file for each. [`arguments`], [`searching`] and [`waiting`]
//! have what several commands need.

pub mod arguments;
pub mod ceiling;
pub mod compare;
pub mod cql_compare;
pub mod data;
pub mod in_memory;
pub mod ingest;
pub mod isolation;
pub mod mixed;
pub mod read_rows;
pub mod report;
pub mod restart;
pub mod schema_commands;
pub mod search;
mod search_setup;
pub mod serving_cost;
pub mod shares;
pub mod visible_after;
mod waiting;
