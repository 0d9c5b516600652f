//! The native protocol v4: frames, requests, responses.
//!
//! The way of a request through this module: [`FrameDecoder`] cuts the bytes of a socket into
//! [`Frame`]s, [`Request::decode`] reads one, and the answer goes back through [`Response::encode`].
//! The other direction ([`Request::encode`], [`Response::decode`]) is here for tests and for the
//! gateway, which mostly takes a [`glance`] at what it passes on.
//!
//! What comes from outside is held against its own length before anything is allocated for it: the memory
//! taken for a message is a small multiple of the bytes that came, whatever the counts and lengths in it say.

mod compression;
mod consistency;
mod error_codec;
mod event;
mod frame;
mod frame_body;
pub mod glance;
mod header;
mod marshal;
mod metadata;
mod reader;
mod request;
mod request_codec;
mod response;
mod response_codec;
mod rows;
mod type_option;
mod writer;

pub use compression::Compression;
pub use consistency::{Consistency, UnknownConsistency};
pub use event::{
    Event, EventKind, SchemaChange, SchemaChangeKind, SchemaTarget, StatusChange, TopologyChange,
};
pub use frame::{DEFAULT_BODY_LIMIT, Frame, FrameDecoder, FrameError, Refusal};
pub use header::{Direction, Flags, FrameHeader, HEADER_LENGTH, Opcode, VERSION};
pub use marshal::{marshal_name, parse_marshal_name};
pub use metadata::{ColumnSpec, Metadata, Prepared};
pub use reader::DecodeError;
pub use request::{
    Batch, BatchKind, BatchStatement, BatchedStatement, BoundValue, QueryParameters, Request,
    Startup, Values,
};
pub use response::{EVENT_STREAM, Response, ResponseContext};
pub use rows::{DecodedRows, Rows, RowsEncoder};
