//! A CQL server before a node of Apache Cassandra: what needs no help passes through, frame by frame.
//!
//! Drivers connect to gateways only and go on knowing the cluster's nodes and tokens: one gateway stands beside each
//! node and tells drivers the addresses of the other gateways where Cassandra would tell those of the nodes.
//!
//! # One connection for one connection
//!
//! Each client connection has a connection of its own to the node, and stream ids stay as they are. A protocol
//! connection *is* the session: who is logged in, the keyspace of USE, the agreed compression, registered events
//! and the 32,768 streams belong to it. With connections shared among clients all of that would have to be kept
//! here and said again; with one for one it is kept by whom it concerns, and nothing can be mixed up. It costs a second
//! socket and two buffers a client. Drivers open one to a few connections a node, so it adds up to what the
//! cluster would have without a gateway.
//!
//! # The way of a frame
//!
//! Each direction has one buffer, bounded, read from one socket and written to the other from the same memory: the kernel's two
//! copies are the only ones.
//!
//! - **Requests** are taken whole, since what they say decides where they go: the text of QUERY and PREPARE is looked at,
//!   EXECUTE has its id looked up. They are then passed on as they came.
//! - **Responses** are passed on as they come, byte for byte, without waiting for their end; only those that were
//!   expected when their request went by, and events, are taken whole and read.
//!
//! A side that does not read stops the loop that writes to it, and with it the reading from the other side: back-pressure
//! needs no queue.
//!
//! # How statements are recognised
//!
//! By the cheapest question that can be answered "no": the opcode, then the first word of the text, then whether it
//! holds a table's name at all (module `recognise`). Whether a SELECT did read the cluster's own tables is told for certain by the
//! metadata of its result, so neither a parser nor the connection's keyspace is needed for it.
//!
//! A prepared statement is recognised when it is prepared, and its id remembered with what it means here
//! (module `prepared`). An EXECUTE of an id that is not remembered is answered UNPREPARED, upon which every driver
//! prepares again: thus none gets by unseen, not even after the gateway was restarted. The same holds for the ids in a
//! BATCH, which passes without a look while no table has an index. What an id means is forgotten when what it was understood by
//! is no longer so (module `grounds`).
//!
//! # Writes to tables with an index
//!
//! They go to the node in another form, with the rows of the table's change log (module `writes`). A write is recognised by the
//! table's name, which stands among its first words. What it takes may be several requests, one after another: they are made
//! on the stream of the client's own request, which is free on the node's side meanwhile, so as the client's user and in its keyspace. The
//! loop that reads the node's answers decides what is asked next, and the loop that writes to the node sends it.
//!
//! # Vector indexes
//!
//! Their definitions lie in the cluster (module `catalog`), which each gateway follows by a session of its own. Every request is decided
//! by one snapshot of them. What Cassandra's own answers lack is laid over them (module `overlay`): a statement goes to the node, changed if need
//! be, and its answer is added to. A definition is carried out in the background once the node has told that the client may.
//!
//! # Queries for neighbours
//!
//! `ANN OF` an index of ours (module `ann`) is worked on in a task of its own, beside the two loops, so that nothing waits behind a search. What
//! it asks the node it asks on the client's connection (module `inquiry`), on streams that the client does not use
//! (`connection::own_streams`): so the cluster sees the client's own user and consistency level, and several reads are on their way at
//! once. Its answers go to the client between two responses.
//!
//! # Protocol versions
//!
//! Version 4 is spoken to both sides. A client that begins with another is told so in the words that drivers look
//! for when they go down to 4; SUPPORTED names version 4 alone, and only the compressions that can be read here.

mod ann;
mod catalog;
mod clients;
mod connection;
mod gateway;
mod grounds;
mod inquiry;
mod kept_answers;
mod listener;
mod log_clock;
mod options;
mod overlay;
mod prepared;
mod recognise;
mod ring;
mod seldom;
mod stream_set;
mod writes;

pub use catalog::CatalogOptions;
pub use gateway::{BindError, Gateway};
pub use options::GatewayOptions;
pub use ring::{Ring, RingError};
