//! The values and settings that come with an execution of a statement.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use client_memory::MemoryAccount;
use cql::wire::{BoundValue, Consistency};

use super::{Actor, AddedCondition, ClientPresence};

/// The values and settings of one execution.
#[derive(Clone, Debug, Default)]
pub struct ExecutionParameters {
    /// One value for each bind marker, in the markers' order. The server has put named values in
    /// their places and checked the number of values.
    pub values: Vec<BoundValue>,
    /// The number of rows in a page; `None` for all rows in one page.
    pub page_size: Option<usize>,
    /// The state with which the previous page ended ([`super::ResultRows::paging_state`]).
    pub paging_state: Option<Bytes>,
    /// The write timestamp of the request, in microseconds since the epoch, if the client gave one.
    pub timestamp_micros: Option<i64>,
    /// The present by which values expire, in seconds since the epoch, if the client sent one.
    pub client_now_s: Option<i64>,
    /// The consistency level of the statement.
    pub consistency: Consistency,
    /// The serial consistency level of a condition, if the client gave one.
    pub serial_consistency: Option<Consistency>,
    /// The address of this node to which the client connected. `system.local` names it, since this
    /// client can reach it.
    pub server_address: Option<SocketAddr>,
    /// The account that is charged for the answer while it grows.
    pub memory: MemoryAccount,
    /// The role that runs the statement.
    pub actor: Actor,
    /// Whether the client is still connected.
    pub presence: ClientPresence,
    /// A condition in addition to WHERE. Statements but SELECTs by searches refuse it.
    pub condition: Option<Arc<AddedCondition>>,
}
