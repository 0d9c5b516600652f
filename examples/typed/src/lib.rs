//! A library of books and their reviews, mapped to CQL with types (docs/typed-mapping.md).
//!
//! Read in this order: `tables` declares them, `database` bundles them, `library` shows an
//! application what it needs, and `mapping` is how it is done.

pub mod database;
pub mod library;
pub mod mapping;
pub mod tables;

/// The driver has an error type for each step: an application of this size needs one.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
