//! The native protocol, versions 4 and 5: frames, segments of frames, requests, responses.
//!
//! A server uses this module in three steps: [`FrameDecoder`] cuts the bytes of a socket into
//! [`Frame`]s, [`Request::decode`] reads a frame, and [`Response::encode`] writes the answer. In
//! version 5 a [`SegmentDecoder`] comes before the first step. The client's side
//! ([`Request::encode`], [`Response::decode`]) is here for tests and for the gateway, which reads
//! only the front of most messages ([`glance`]).
//!
//! Counts and lengths in a message are checked against the bytes that came before anything is
//! allocated for them. So the memory taken for a message is a small multiple of its bytes, whatever
//! the counts and lengths say.

mod bound_value;
mod buffer;
mod compression;
mod consistency;
mod crc24;
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
mod segment;
mod stream;
mod type_option;
mod writer;

pub use bound_value::BoundValue;
pub use buffer::BufferMemory;
pub use compression::Compression;
pub use consistency::{Consistency, UnknownConsistency};
pub use event::{
    EventKind, SchemaChange, SchemaChangeKind, SchemaTarget, ServerEvent, StatusChange,
    TopologyChange,
};
pub use frame::{DEFAULT_BODY_LIMIT, Frame, FrameDecoder, FrameError, HeaderRefusal};
pub use header::{FrameDirection, FrameFlags, FrameHeader, HEADER_LENGTH, Opcode, ProtocolVersion};
pub use marshal::{marshal_name, parse_marshal_name};
pub use metadata::{ColumnSpec, ColumnsMetadata, PreparedResponse};
pub use reader::DecodeError;
pub use request::{
    BatchKind, BatchRequest, BatchStatement, BatchedStatement, MarkerValues, QueryParameters,
    Request, Startup,
};
pub use response::{EVENT_STREAM, Response, ResponseContext};
pub use rows::{DecodedRows, EncodedRows, RowsEncoder};
pub use segment::{
    DecodedSegment, SEGMENT_PAYLOAD_MAX, SegmentDecoder, SegmentError, SegmentForm, put_segment,
    segments_of,
};
pub use stream::{StreamDecoder, StreamError};
pub use type_option::type_code;
