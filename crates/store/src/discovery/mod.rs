//! What indexes there are, as the database's schema tells.

mod describe;
mod look;
mod options;
mod statements;
mod target;

pub use look::{Discovered, Discovery, DiscoveryError, Round};
