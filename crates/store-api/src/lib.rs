//! The HTTP API of the index service: its types and its client.
//!
//! The index service keeps vectors and primary keys, never rows. A CQL node asks it for the keys
//! of the nearest rows and reads the rows itself. Both sides share the types of this crate:
//! [`types`] are the bodies of requests and answers, [`Client`] is what a node asks with.

mod client;
mod error;
pub mod types;

pub use client::{Client, ClientOptions, Neighbours, Zones};
pub use error::{ClientError, InvalidUri};
