//! Writing responses into frames, and reading them as a client does.
//!
//! A body consists of the trace's id, the warnings, the custom payload and the response, in this
//! order. The parts before the response are there only if a flag of the header says so.

use bytes::{BufMut, Bytes, BytesMut};

use super::compression::Compression;
use super::error_codec::{put_error, read_error};
use super::event::{SchemaChange, ServerEvent};
use super::frame::{DEFAULT_BODY_LIMIT, Frame};
use super::frame_body::{FrameStart, plain_body};
use super::header::{FrameFlags, Opcode, ProtocolVersion};
use super::metadata::PreparedResponse;
use super::reader::{BodyReader, DecodeError};
use super::response::{Response, ResponseContext};
use super::rows::EncodedRows;
use super::writer::BodyWriter;
use crate::error::CqlError;

/// The kinds of a RESULT.
mod kind {
    pub(super) const VOID: i32 = 1;
    pub(super) const ROWS: i32 = 2;
    pub(super) const SET_KEYSPACE: i32 = 3;
    pub(super) const PREPARED: i32 = 4;
    pub(super) const SCHEMA_CHANGE: i32 = 5;
}

impl Response {
    /// Appends the response as a frame of the context's version. `compression` is the
    /// algorithm that STARTUP chose; the body is compressed if that makes it shorter, but never in
    /// version 5.
    ///
    /// A response whose body would exceed the protocol's limit of 256 MiB is replaced by an error
    /// that says so.
    pub fn encode(
        &self,
        context: &ResponseContext,
        compression: Option<Compression>,
        out: &mut BytesMut,
    ) {
        let rest = self.encode_parts(context, compression, out);
        out.extend_from_slice(&rest);
    }

    /// As [`Response::encode`], but does not copy the bulk of an uncompressed result set. The bytes
    /// returned must be sent right after those appended to `out`. They are empty for every other
    /// response.
    #[must_use = "the frame is incomplete without these bytes"]
    pub fn encode_parts(
        &self,
        context: &ResponseContext,
        compression: Option<Compression>,
        out: &mut BytesMut,
    ) -> Bytes {
        let frame = FrameStart::new(context.version, self.opcode(), context.stream, out);
        let flags = put_context(out, context);
        let content = self.put(out, context.version);
        let length = frame.body_length(out) + content.len();
        if length > DEFAULT_BODY_LIMIT {
            frame.abandon(out);
            let context = ResponseContext::new(context.stream).at(context.version);
            too_large(length).encode(&context, None, out);
            return Bytes::new();
        }
        if compression.is_some() && context.version == ProtocolVersion::V4 {
            out.extend_from_slice(&content);
            frame.finish(flags, compression, out);
            Bytes::new()
        } else {
            frame.finish_parts(flags, content.len(), out);
            content
        }
    }

    /// Appends the response itself. Returns the content of a result set instead of appending it.
    fn put(&self, out: &mut BytesMut, version: ProtocolVersion) -> Bytes {
        match self {
            Response::Error(error) => put_error(out, error, version),
            Response::Ready => {}
            Response::Authenticate { authenticator } => out.put_string(authenticator),
            Response::AuthChallenge { token } | Response::AuthSuccess { token } => {
                out.put_nullable_bytes(token.expose().as_deref());
            }
            Response::Supported(options) => {
                out.put_short_count(options.len());
                for (name, values) in options {
                    out.put_string(name);
                    out.put_string_list(values);
                }
            }
            Response::Void => out.put_i32(kind::VOID),
            Response::Rows(rows) => {
                out.put_i32(kind::ROWS);
                return rows.put(out, version);
            }
            Response::SetKeyspace(keyspace) => {
                out.put_i32(kind::SET_KEYSPACE);
                out.put_string(keyspace);
            }
            Response::Prepared(prepared) => {
                out.put_i32(kind::PREPARED);
                prepared.put(out, version);
            }
            Response::SchemaChange(change) => {
                out.put_i32(kind::SCHEMA_CHANGE);
                change.put(out);
            }
            Response::Event(event) => event.put(out),
        }
        Bytes::new()
    }

    /// Reads the response that a frame holds, as a client does.
    ///
    /// # Errors
    /// If the body is malformed or would be longer than `body_limit` bytes when decompressed.
    pub fn decode(
        frame: &Frame,
        compression: Option<Compression>,
        body_limit: usize,
    ) -> Result<(ResponseContext, Response), DecodeError> {
        let version = frame.header.version;
        let mut reader = BodyReader::new(plain_body(frame, compression, body_limit)?);
        let context = read_context(&mut reader, frame)?;
        let response = match frame.header.opcode {
            Opcode::Error => Response::Error(read_error(&mut reader, version)?),
            Opcode::Ready => Response::Ready,
            Opcode::Authenticate => Response::Authenticate {
                authenticator: reader.string("the authenticator")?,
            },
            Opcode::AuthChallenge => Response::AuthChallenge {
                token: reader.bytes("the token")?.into(),
            },
            Opcode::AuthSuccess => Response::AuthSuccess {
                token: reader.bytes("the token")?.into(),
            },
            Opcode::Supported => Response::Supported(read_supported(&mut reader)?),
            Opcode::Result => read_result(reader, version)?,
            Opcode::Event => Response::Event(ServerEvent::read(&mut reader)?),
            opcode => {
                return Err(DecodeError::Invalid(format!(
                    "opcode {:#04x} is no response",
                    opcode.code()
                )));
            }
        };
        Ok((context, response))
    }
}

fn too_large(length: usize) -> Response {
    Response::Error(CqlError::server(format!(
        "the result takes {length} bytes, more than the {DEFAULT_BODY_LIMIT} of a frame: ask for smaller pages or fewer columns"
    )))
}

/// Appends the parts that come before the response. Returns the flags that announce them.
fn put_context(out: &mut BytesMut, context: &ResponseContext) -> FrameFlags {
    let mut flags = FrameFlags::default();
    if let Some(id) = context.tracing_id {
        flags = flags.with(FrameFlags::TRACING);
        out.put_slice(id.as_bytes());
    }
    if !context.warnings.is_empty() {
        flags = flags.with(FrameFlags::WARNING);
        out.put_string_list(&context.warnings);
    }
    if !context.custom_payload.is_empty() {
        flags = flags.with(FrameFlags::CUSTOM_PAYLOAD);
        out.put_bytes_map(&context.custom_payload);
    }
    flags
}

fn read_context(reader: &mut BodyReader, frame: &Frame) -> Result<ResponseContext, DecodeError> {
    let flags = frame.header.flags;
    let mut context = ResponseContext::new(frame.header.stream).at(frame.header.version);
    if flags.contains(FrameFlags::TRACING) {
        context.tracing_id = Some(reader.uuid("the id of the trace")?);
    }
    if flags.contains(FrameFlags::WARNING) {
        context.warnings = reader.string_list("the warnings")?;
    }
    if flags.contains(FrameFlags::CUSTOM_PAYLOAD) {
        context.custom_payload = reader.bytes_map("the custom payload")?;
    }
    Ok(context)
}

fn read_supported(reader: &mut BodyReader) -> Result<Vec<(String, Vec<String>)>, DecodeError> {
    const WHAT: &str = "the supported options";
    let count = usize::from(reader.u16(WHAT)?);
    let mut options = Vec::with_capacity(reader.capacity(count, 4));
    for _ in 0..count {
        options.push((reader.string(WHAT)?, reader.string_list(WHAT)?));
    }
    Ok(options)
}

fn read_result(mut reader: BodyReader, version: ProtocolVersion) -> Result<Response, DecodeError> {
    match reader.i32("the kind of a result")? {
        kind::VOID => Ok(Response::Void),
        kind::ROWS => EncodedRows::read(reader, version).map(Response::Rows),
        kind::SET_KEYSPACE => reader.string("a keyspace").map(Response::SetKeyspace),
        kind::PREPARED => PreparedResponse::read(&mut reader, version).map(Response::Prepared),
        kind::SCHEMA_CHANGE => SchemaChange::read(&mut reader).map(Response::SchemaChange),
        other => Err(DecodeError::Invalid(format!(
            "unknown kind {other} of a result"
        ))),
    }
}
