//! The Cassandra Query Language and its wire format, as a pure library: no I/O, no runtime.
//!
//! There are two layers, each usable by itself; the values in both are those of crate [`value`]:
//! - Statements: [`parser`] turns a text into an [`ast`], and [`quote`] writes names and strings
//!   as CQL.
//! - Frames: [`wire`] reads and writes the messages of the native protocol.
//!
//! [`secret`] keeps passwords out of logs and debug output.
//!
//! Everything that comes from outside (frames and statements) is read with
//! bounds on nesting and allocation: the memory taken is a small multiple of the input.

#![warn(clippy::unwrap_used)]

pub mod ast;
pub mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod parser;
pub mod quote;
pub mod secret;
pub mod wire;
