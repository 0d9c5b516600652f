//! What drivers are told of the cluster's nodes: the gateways before them.
//!
//! Tokens, data centres, racks and host ids stay the nodes', so drivers send a statement to the gateway
//! beside a replica of its row, as they would to the replica.

mod events;
mod map;
mod rows;

pub(crate) use events::translate_event;
pub use map::{Ring, RingError};
pub(crate) use rows::{RingTable, translate_rows};
