//! What indexes there are, as the database's schema tells.

mod describe;
mod options;
mod statements;
mod target;

pub use describe::{Discovered, Discovery, DiscoveryError, Round};
