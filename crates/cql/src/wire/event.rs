//! Events, which a server sends without a request, and schema changes, which also answer statements
//! that change the schema.

use std::net::SocketAddr;

use bytes::BytesMut;

use super::reader::{BodyReader, DecodeError};
use super::writer::BodyWriter;

/// A kind of event, which a client can register for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Nodes join, leave or move.
    TopologyChange,
    /// Nodes go up or down.
    StatusChange,
    /// Keyspaces, tables, types, functions or aggregates change.
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

    /// Finds a kind by its name on the wire.
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
pub enum ServerEvent {
    /// A node joined, left or moved.
    TopologyChange {
        /// The change of the ring.
        change: TopologyChange,
        /// The address of the node for clients.
        node: SocketAddr,
    },
    /// A node went up or down.
    StatusChange {
        /// The new state of the node.
        change: StatusChange,
        /// The address of the node for clients.
        node: SocketAddr,
    },
    /// The schema changed.
    SchemaChange(SchemaChange),
}

impl ServerEvent {
    /// The kind of the event.
    pub fn kind(&self) -> EventKind {
        match self {
            ServerEvent::TopologyChange { .. } => EventKind::TopologyChange,
            ServerEvent::StatusChange { .. } => EventKind::StatusChange,
            ServerEvent::SchemaChange(_) => EventKind::SchemaChange,
        }
    }
}

/// A change of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyChange {
    /// `NEW_NODE`.
    NewNode,
    /// `REMOVED_NODE`.
    RemovedNode,
    /// `MOVED_NODE`.
    MovedNode,
}

/// The new state of a node.
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
    /// The kind of the change.
    pub change: SchemaChangeKind,
    /// The keyspace that changed, or that contains the changed part.
    pub keyspace: String,
    /// The part that changed.
    pub target: SchemaTarget,
}

/// The kind of a schema change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaChangeKind {
    /// `CREATED`.
    Created,
    /// `UPDATED`.
    Updated,
    /// `DROPPED`.
    Dropped,
}

/// The part of the schema that changed. A change of an index is sent as an update of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaTarget {
    /// The keyspace itself.
    Keyspace,
    /// A table or view, by its name.
    Table(String),
    /// A user type, by its name.
    Type(String),
    /// A function.
    Function {
        /// The name.
        name: String,
        /// The types of the arguments, as CQL texts.
        arguments: Vec<String>,
    },
    /// An aggregate.
    Aggregate {
        /// The name.
        name: String,
        /// The types of the arguments, as CQL texts.
        arguments: Vec<String>,
    },
}

impl TopologyChange {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            TopologyChange::NewNode => "NEW_NODE",
            TopologyChange::RemovedNode => "REMOVED_NODE",
            TopologyChange::MovedNode => "MOVED_NODE",
        }
    }
}

impl StatusChange {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            StatusChange::Up => "UP",
            StatusChange::Down => "DOWN",
        }
    }
}

impl SchemaChangeKind {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            SchemaChangeKind::Created => "CREATED",
            SchemaChangeKind::Updated => "UPDATED",
            SchemaChangeKind::Dropped => "DROPPED",
        }
    }
}

/// Reads a name and gives the one of `choices` that has it.
fn read_choice<T: Copy, const N: usize>(
    reader: &mut BodyReader,
    choices: [T; N],
    name: impl Fn(T) -> &'static str,
) -> Result<T, DecodeError> {
    let read = reader.string("an event")?;
    choices
        .into_iter()
        .find(|&choice| name(choice) == read)
        .ok_or_else(|| DecodeError::Invalid(format!("unknown event '{read}'")))
}

impl ServerEvent {
    pub(super) fn put(&self, out: &mut BytesMut) {
        out.put_string(self.kind().name());
        match self {
            ServerEvent::TopologyChange { change, node } => {
                out.put_string(change.name());
                out.put_inet(*node);
            }
            ServerEvent::StatusChange { change, node } => {
                out.put_string(change.name());
                out.put_inet(*node);
            }
            ServerEvent::SchemaChange(change) => change.put(out),
        }
    }

    pub(super) fn read(reader: &mut BodyReader) -> Result<ServerEvent, DecodeError> {
        let name = reader.string("an event")?;
        match EventKind::from_name(&name) {
            Some(EventKind::TopologyChange) => {
                let choices = [
                    TopologyChange::NewNode,
                    TopologyChange::RemovedNode,
                    TopologyChange::MovedNode,
                ];
                Ok(ServerEvent::TopologyChange {
                    change: read_choice(reader, choices, TopologyChange::name)?,
                    node: reader.inet("an event")?,
                })
            }
            Some(EventKind::StatusChange) => {
                let choices = [StatusChange::Up, StatusChange::Down];
                Ok(ServerEvent::StatusChange {
                    change: read_choice(reader, choices, StatusChange::name)?,
                    node: reader.inet("an event")?,
                })
            }
            Some(EventKind::SchemaChange) => {
                SchemaChange::read(reader).map(ServerEvent::SchemaChange)
            }
            None => Err(DecodeError::Invalid(format!("unknown event type '{name}'"))),
        }
    }
}

impl SchemaChange {
    pub(super) fn put(&self, out: &mut BytesMut) {
        out.put_string(self.change.name());
        let (target, name, arguments) = match &self.target {
            SchemaTarget::Keyspace => ("KEYSPACE", None, None),
            SchemaTarget::Table(name) => ("TABLE", Some(name), None),
            SchemaTarget::Type(name) => ("TYPE", Some(name), None),
            SchemaTarget::Function { name, arguments } => ("FUNCTION", Some(name), Some(arguments)),
            SchemaTarget::Aggregate { name, arguments } => {
                ("AGGREGATE", Some(name), Some(arguments))
            }
        };
        out.put_string(target);
        out.put_string(&self.keyspace);
        if let Some(name) = name {
            out.put_string(name);
        }
        if let Some(arguments) = arguments {
            out.put_string_list(arguments);
        }
    }

    pub(super) fn read(reader: &mut BodyReader) -> Result<SchemaChange, DecodeError> {
        const WHAT: &str = "a schema change";
        let kinds = [
            SchemaChangeKind::Created,
            SchemaChangeKind::Updated,
            SchemaChangeKind::Dropped,
        ];
        let change = read_choice(reader, kinds, SchemaChangeKind::name)?;
        let target = reader.string(WHAT)?;
        let keyspace = reader.string(WHAT)?;
        let target = match target.as_str() {
            "KEYSPACE" => SchemaTarget::Keyspace,
            "TABLE" => SchemaTarget::Table(reader.string(WHAT)?),
            "TYPE" => SchemaTarget::Type(reader.string(WHAT)?),
            "FUNCTION" => SchemaTarget::Function {
                name: reader.string(WHAT)?,
                arguments: reader.string_list(WHAT)?,
            },
            "AGGREGATE" => SchemaTarget::Aggregate {
                name: reader.string(WHAT)?,
                arguments: reader.string_list(WHAT)?,
            },
            other => {
                return Err(DecodeError::Invalid(format!(
                    "unknown target '{other}' of a schema change"
                )));
            }
        };
        Ok(SchemaChange {
            change,
            keyspace,
            target,
        })
    }
}
