//! A CQL server before a node of Apache Cassandra. Statements that need no help pass through, frame
//! by frame.
//!
//! Drivers connect only to gateways, and go on knowing the cluster's nodes and tokens: one gateway
//! runs next to each node, and reports the addresses of the other gateways to drivers where
//! Cassandra would report those of the nodes.
//!
//! # One connection to the node for each client connection
//!
//! Each client connection has its own connection to the node, and stream ids stay as they are. A
//! protocol connection *is* the session: the login, the keyspace of USE, the agreed compression,
//! the registered events and the 32,768 streams belong to it. If clients shared connections, the
//! gateway would have to keep all of that itself and set it again for each request. With a
//! connection of its own for each client the node keeps it, and nothing can be mixed up. The cost
//! is a second socket and two buffers a client. Drivers open one to a few connections a node, so a
//! node has as many connections as it would have without a gateway.
//!
//! # The way of a frame
//!
//! Each direction has one bounded buffer. A frame is read from one socket and written to the other
//! from the same memory, so the kernel's two copies are the only ones.
//!
//! - **Requests** are taken whole, since their content decides where they go: the text of QUERY and
//!   PREPARE is looked at, and the id of EXECUTE is looked up. Then they are passed on as they
//!   came.
//! - **Responses** are passed on as they come, byte for byte, without waiting for their end. Only
//!   events, SUPPORTED, and responses whose request needs it are taken whole and read.
//!
//! If one side does not read, the loop that writes to it stops, and with it the reading from the
//! other side. So back-pressure needs no queue.
//!
//! # How statements are recognised
//!
//! The cheapest test that can say "no" comes first: the opcode, then the first word of the text,
//! then whether the text holds a table's name at all (module `recognise`). Whether a SELECT reads
//! the cluster's own tables is known for certain from the metadata of its result, so this takes
//! neither a parser nor the connection's keyspace.
//!
//! A statement that is recognised is a value of a kind (module `statement`), and each kind has a
//! file that handles its requests and the node's responses to them (`connection::statements`).
//!
//! A prepared statement is recognised when it is prepared, and its id is remembered with that value
//! (module `prepared`). An EXECUTE of an unknown id is answered UNPREPARED, upon which every driver
//! prepares again. So no statement passes unseen, not even after a restart of the gateway. The same
//! holds for the ids in a BATCH, which passes without a look while no table has an index. A
//! statement is forgotten when the facts that it depends on change (module `dependencies`).
//!
//! # Writes to tables with an index
//!
//! Such a write goes to the node in another form, together with the rows of the table's change log
//! (module `writes`). It is recognised by the table's name, which is among its first words. It may
//! take several requests, one after another. They are sent on the stream of the client's own
//! request, which is free on the node's side meanwhile, and so with the client's user and keyspace.
//! The loop that reads the node's answers decides the next request, and the loop that writes to the
//! node sends it.
//!
//! # Vector indexes
//!
//! The definitions of vector indexes are stored in the cluster (module `catalog`), and each gateway
//! follows them by a session of its own. Every request is decided by one snapshot of them. Module
//! `overlay` adds what Cassandra's own answers lack: a statement goes to the node, changed if need
//! be, and the gateway adds to the answer. A definition is carried out in the background once the
//! node has confirmed that the client may make it.
//!
//! # Queries for neighbours
//!
//! A query with `ANN OF` on an indexed column (module `ann`) runs in a task of its own, next to the
//! two loops, so that nothing waits for a search. The task reads rows from the node by their keys
//! (module `key_read`) on the client's connection (module `node_requests`), on streams that the
//! client does not use (`connection::own_streams`). So the cluster sees the client's own user and
//! consistency level, and several reads are on their way at once. The answer goes to the client
//! between two responses.
//!
//! # Maintenance
//!
//! During maintenance statements are refused when their way is decided (`connection::decide`), and
//! those under way go on. The requests in progress are those that connections owe an answer (module
//! `clients`). Searches and definitions, which go on after their streams are free, are counted by
//! themselves.
//!
//! # Protocol versions
//!
//! The gateway speaks versions 4 and 5, to both sides the one that the client has begun with
//! (module `dialect`). A client that begins with another gets the error that drivers look for when
//! they go down to a lower one. SUPPORTED names only these versions, and only the compressions that
//! the gateway can read.

#![warn(clippy::unwrap_used)]

mod answer_cache;
mod catalog;
mod clients;
mod connection;
mod dependencies;
mod dialect;
mod error_frame;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http_routes;
mod key_read;
mod listener;
mod log_clock;
mod metrics;
mod node_requests;
mod options;
mod overlay;
mod prepared;
mod recognise;
mod ring;
mod running_gateway;
mod shared;
mod statement;
mod stream_set;
mod vector_search;
mod writes;

pub use catalog::InternalSessionOptions;
pub use metrics::described as described_metrics;
pub use net::listener::BindError;
pub use options::{FreshnessOptions, GatewayOptions, WhenBehind};
pub use ring::{Ring, RingError};
pub use running_gateway::Gateway;
