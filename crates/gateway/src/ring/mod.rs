//! The cluster's nodes as they are reported to drivers: with the addresses of their gateways.
//!
//! Tokens, data centres, racks and host ids stay those of the nodes. So drivers send a statement to
//! the gateway next to a replica of its row, as they would to the replica. Every gateway is given
//! the same map from nodes to gateways ([`Ring`]). A node without one is not reported to drivers.

mod events;
mod map;
mod rows;

pub(crate) use events::translate_event;
pub use map::{Ring, RingError};
pub(crate) use rows::{RingTable, translate_rows};
