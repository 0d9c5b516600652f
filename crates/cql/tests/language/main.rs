//! The CQL language as seen through its parser.

mod hostile;
mod markers;
mod meaning;

mod memory;
mod statements;
