//! The Cassandra Query Language and its wire format, as a pure library: no I/O, no runtime.
//!
//! Three layers, each usable alone:
//! - [`types`], [`value`], [`token`]: what a value is, how it is serialised, compared and hashed;
//! - [`ast`], [`parser`], [`quote`]: what a statement says, and how names and strings are written in one;
//!   [`vector_index`]: what the definition of a vector index may say;
//! - [`wire`]: what a frame of the native protocol holds.
//!
//! [`secret`] keeps passwords out of what is printed.
//!
//! Everything that comes from outside (frames, statements, serialised values) is read with
//! bounds on nesting and allocation: the memory taken is a small multiple of the input.

pub mod ast;
pub mod error;
pub mod parser;
pub mod quote;
pub mod secret;
pub mod token;
pub mod types;
pub mod value;
pub mod vector_index;
pub mod wire;
