//! The indexing service.

pub mod items;
pub mod keys;
