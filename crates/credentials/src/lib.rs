//! Proofs of identity in files that options name: certificates, passwords and tokens.
//!
//! A secret is in a file, never on a command line, which every user of the machine can read.
//! [`files`] reads the files; [`authorization`] makes headers of HTTP of what is in them.

#![warn(clippy::unwrap_used)]

pub mod authorization;
mod error;
pub mod files;

pub use error::FileError;
