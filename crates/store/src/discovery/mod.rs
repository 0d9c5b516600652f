//! What indexes there are, as the database's schema tells.

mod describe;
mod log;
mod look;
mod options;
mod statements;
mod target;

pub use log::LogFacts;
pub use look::{Discovered, Discovery, DiscoveryError, Round};
