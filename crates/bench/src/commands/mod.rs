//! What can be asked for: a file for each command.

pub mod cql_compare;
pub mod data;
pub mod visible_after;
