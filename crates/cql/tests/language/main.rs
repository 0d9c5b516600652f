//! Tests of the CQL language through its parser.

mod hostile;
mod keywords;
mod markers;
mod meaning;

mod memory;
mod statements;
mod user_types;
