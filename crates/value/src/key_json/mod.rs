//! The JSON of key values in the index service's HTTP API (contract, section 1.8).
//!
//! The small number types are numbers there, and all other types are strings. It differs from the
//! JSON of CQL's own functions (see [`crate::json_text`]) in the text of times and in large
//! numbers.

mod read;
mod write;

pub use read::from_key_json;
pub use write::{KeyError, KeyJson, to_key_json};
