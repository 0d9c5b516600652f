//! Events: what a server tells of its own accord, and the schema change that a DDL statement answers.

use std::net::SocketAddr;

/// What a client registers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Nodes come and go.
    TopologyChange,
    /// Nodes go up and down.
    StatusChange,
    /// Keyspaces, tables, types, functions change.
    SchemaChange,
}

impl EventKind {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::TopologyChange => "TOPOLOGY_CHANGE",
            EventKind::StatusChange => "STATUS_CHANGE",
            EventKind::SchemaChange => "SCHEMA_CHANGE",
        }
    }

    /// The kind of a name on the wire.
    pub fn from_name(name: &str) -> Option<EventKind> {
        [
            EventKind::TopologyChange,
            EventKind::StatusChange,
            EventKind::SchemaChange,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A node joined, left or moved.
    TopologyChange {
        /// What happened.
        change: TopologyChange,
        /// The node's address for clients.
        node: SocketAddr,
    },
    /// A node went up or down.
    StatusChange {
        /// What happened.
        change: StatusChange,
        /// The node's address for clients.
        node: SocketAddr,
    },
    /// The schema changed.
    SchemaChange(SchemaChange),
}

impl Event {
    /// Which registration asks for this event.
    pub fn kind(&self) -> EventKind {
        match self {
            Event::TopologyChange { .. } => EventKind::TopologyChange,
            Event::StatusChange { .. } => EventKind::StatusChange,
            Event::SchemaChange(_) => EventKind::SchemaChange,
        }
    }
}

/// How the ring changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyChange {
    /// `NEW_NODE`.
    NewNode,
    /// `REMOVED_NODE`.
    RemovedNode,
    /// `MOVED_NODE`.
    MovedNode,
}

/// How a node's state changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusChange {
    /// `UP`.
    Up,
    /// `DOWN`.
    Down,
}

/// A change of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// What happened.
    pub change: SchemaChangeKind,
    /// The keyspace, changed itself or around what changed.
    pub keyspace: String,
    /// What changed.
    pub target: SchemaTarget,
}

/// What happened to a part of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaChangeKind {
    /// `CREATED`.
    Created,
    /// `UPDATED`.
    Updated,
    /// `DROPPED`.
    Dropped,
}

/// The part of the schema that changed. An index is told as an update of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaTarget {
    /// The keyspace itself.
    Keyspace,
    /// A table or view.
    Table(String),
    /// A user type.
    Type(String),
    /// A function.
    Function {
        /// The name.
        name: String,
        /// The types of the arguments, as CQL.
        arguments: Vec<String>,
    },
    /// An aggregate.
    Aggregate {
        /// The name.
        name: String,
        /// The types of the arguments, as CQL.
        arguments: Vec<String>,
    },
}
