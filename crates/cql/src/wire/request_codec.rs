//! Reading requests from frames, and writing them as a client does.
//!
//! Bytes after the end of a request are ignored, as in Cassandra.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

use super::bound_value::BoundValue;
use super::compression::Compression;
use super::consistency::Consistency;
use super::event::EventKind;
use super::frame::Frame;
use super::frame_body::{FrameStart, plain_body};
use super::header::{FrameFlags, Opcode, ProtocolVersion};
use super::reader::{BodyReader, DecodeError};
use super::request::{
    BatchKind, BatchRequest, BatchStatement, BatchedStatement, MarkerValues, QueryParameters,
    Request, Startup,
};
use super::writer::BodyWriter;

/// Flags of the query parameters.
pub(super) mod flag {
    pub(in super::super) const VALUES: u32 = 0x01;
    pub(in super::super) const SKIP_METADATA: u32 = 0x02;
    pub(in super::super) const PAGE_SIZE: u32 = 0x04;
    pub(in super::super) const PAGING_STATE: u32 = 0x08;
    pub(in super::super) const SERIAL_CONSISTENCY: u32 = 0x10;
    pub(in super::super) const TIMESTAMP: u32 = 0x20;
    pub(in super::super) const NAMES: u32 = 0x40;
    /// Version 5.
    pub(in super::super) const KEYSPACE: u32 = 0x80;
    /// Version 5.
    pub(in super::super) const NOW_IN_SECONDS: u32 = 0x100;
    /// The bits that version 4 defines, of the 8 that it has.
    pub(in super::super) const OF_V4: u32 = 0x7F;
    /// The bits that version 5 defines.
    pub(in super::super) const OF_V5: u32 = 0x1FF;
    /// In a PREPARE of version 5: a keyspace follows.
    pub(in super::super) const PREPARE_KEYSPACE: u32 = 0x01;
}

/// The fewest bytes of a bound value: those of its length.
const VALUE_BYTES_MIN: usize = 4;

/// The fewest bytes of a statement in a batch: its kind, the length of an id, the number of values.
const BATCH_STATEMENT_BYTES_MIN: usize = 5;

impl Request {
    /// Reads the request that a frame holds. `compression` is the algorithm that STARTUP chose. A
    /// custom payload is skipped.
    ///
    /// Values, ids and tokens share the frame's memory. Copy one to keep it for long, or the whole
    /// frame stays in memory.
    ///
    /// # Errors
    /// If the body is malformed or would be longer than `body_limit` bytes when decompressed. The
    /// connection can go on, as the end of the frame is known.
    pub fn decode(
        frame: &Frame,
        compression: Option<Compression>,
        body_limit: usize,
    ) -> Result<Request, DecodeError> {
        let version = frame.header.version;
        let mut reader = BodyReader::new(plain_body(frame, compression, body_limit)?);
        if frame.header.flags.contains(FrameFlags::CUSTOM_PAYLOAD) {
            reader.skip_bytes_map("the custom payload")?;
        }
        match frame.header.opcode {
            Opcode::Startup => Ok(Request::Startup(read_startup(&mut reader)?)),
            Opcode::Options => Ok(Request::Options),
            Opcode::Query => Ok(Request::Query {
                statement: reader.long_string("the statement")?,
                parameters: read_parameters(&mut reader, version)?,
            }),
            Opcode::Prepare => Ok(Request::Prepare {
                statement: reader.long_string("the statement")?,
                keyspace: read_prepare_keyspace(&mut reader, version)?,
            }),
            Opcode::Execute => Ok(Request::Execute {
                id: reader.short_bytes("the id of the prepared statement")?,
                result_metadata_id: match version {
                    ProtocolVersion::V4 => None,
                    ProtocolVersion::V5 => Some(reader.short_bytes("the id of the columns")?),
                },
                parameters: read_parameters(&mut reader, version)?,
            }),
            Opcode::Batch => Ok(Request::Batch(read_batch(&mut reader, version)?)),
            Opcode::Register => Ok(Request::Register {
                events: read_event_kinds(&mut reader)?,
            }),
            Opcode::AuthResponse => Ok(Request::AuthResponse {
                token: reader.bytes("the token")?.into(),
            }),
            opcode => Err(DecodeError::Invalid(format!(
                "opcode {:#04x} is no request",
                opcode.code()
            ))),
        }
    }

    /// Appends the request as a frame of version 4, as a client does.
    pub fn encode(&self, stream: i16, compression: Option<Compression>, out: &mut BytesMut) {
        self.encode_in(ProtocolVersion::V4, stream, compression, out);
    }

    /// Appends the request as a frame of a version, as a client does. `compression` is that of
    /// frames, which version 5 has none of. Fields that the version has no place for are left out.
    pub fn encode_in(
        &self,
        version: ProtocolVersion,
        stream: i16,
        compression: Option<Compression>,
        out: &mut BytesMut,
    ) {
        let start = FrameStart::new(version, self.opcode(), stream, out);
        match self {
            Request::Startup(startup) => {
                out.put_short_count(startup.options.len());
                for (name, value) in &startup.options {
                    out.put_string(name);
                    out.put_string(value);
                }
            }
            Request::Options => {}
            Request::Query {
                statement,
                parameters,
            } => {
                out.put_long_string(statement);
                put_parameters(out, parameters, version);
            }
            Request::Prepare {
                statement,
                keyspace,
            } => {
                out.put_long_string(statement);
                put_prepare_keyspace(out, keyspace.as_deref(), version);
            }
            Request::Execute {
                id,
                result_metadata_id,
                parameters,
            } => {
                out.put_short_bytes(id);
                if version == ProtocolVersion::V5 {
                    out.put_short_bytes(result_metadata_id.as_deref().unwrap_or_default());
                }
                put_parameters(out, parameters, version);
            }
            Request::Batch(batch) => put_batch(out, batch, version),
            Request::Register { events } => {
                out.put_short_count(events.len());
                for event in events {
                    out.put_string(event.name());
                }
            }
            Request::AuthResponse { token } => out.put_nullable_bytes(token.expose().as_deref()),
        }
        // STARTUP chooses the compression, so it is never compressed itself.
        let compression = compression.filter(|_| self.opcode() != Opcode::Startup);
        start.finish(FrameFlags::default(), compression, out);
    }
}

fn read_startup(reader: &mut BodyReader) -> Result<Startup, DecodeError> {
    const WHAT: &str = "the startup options";
    let count = usize::from(reader.u16(WHAT)?);
    let mut options = Vec::with_capacity(reader.capacity(count, 4));
    for _ in 0..count {
        options.push((reader.string(WHAT)?, reader.string(WHAT)?));
    }
    Ok(Startup { options })
}

fn read_event_kinds(reader: &mut BodyReader) -> Result<Vec<EventKind>, DecodeError> {
    reader
        .string_list("the event types")?
        .into_iter()
        .map(|name| {
            EventKind::from_name(&name)
                .ok_or_else(|| DecodeError::Invalid(format!("Invalid event type '{name}'")))
        })
        .collect()
}

/// Reads the end of a PREPARE: `flags u32, [keyspace string]` in version 5, nothing in version 4.
fn read_prepare_keyspace(
    reader: &mut BodyReader,
    version: ProtocolVersion,
) -> Result<Option<String>, DecodeError> {
    if version == ProtocolVersion::V4 {
        return Ok(None);
    }
    let flags = reader.u32("the flags")?;
    check_flags(flags, flag::PREPARE_KEYSPACE, version)?;
    match flags & flag::PREPARE_KEYSPACE {
        0 => Ok(None),
        _ => reader.string("the keyspace").map(Some),
    }
}

fn put_prepare_keyspace(out: &mut BytesMut, keyspace: Option<&str>, version: ProtocolVersion) {
    if version == ProtocolVersion::V4 {
        return;
    }
    out.put_u32(keyspace.map_or(0, |_| flag::PREPARE_KEYSPACE));
    if let Some(keyspace) = keyspace {
        out.put_string(keyspace);
    }
}

/// The fields at the end of both a query and a batch.
struct ParametersTail<'a> {
    serial_consistency: Option<Consistency>,
    timestamp: Option<i64>,
    keyspace: Option<Cow<'a, str>>,
    now_in_seconds: Option<u32>,
}

impl ParametersTail<'_> {
    fn read(reader: &mut BodyReader, flags: u32) -> Result<ParametersTail<'static>, DecodeError> {
        let has = |bit| flags & bit != 0;
        let serial_consistency = match has(flag::SERIAL_CONSISTENCY) {
            true => Some(reader.consistency()?),
            false => None,
        };
        let timestamp = match has(flag::TIMESTAMP) {
            true => Some(reader.i64("the timestamp")?),
            false => None,
        };
        if timestamp == Some(i64::MIN) {
            return Err(DecodeError::Invalid(format!(
                "Out of bound timestamp, must be in [{}, {}] (got {})",
                i64::MIN + 1,
                i64::MAX,
                i64::MIN
            )));
        }
        let keyspace = match has(flag::KEYSPACE) {
            true => Some(Cow::Owned(reader.string("the keyspace")?)),
            false => None,
        };
        let now_in_seconds = match has(flag::NOW_IN_SECONDS) {
            true => Some(reader.u32("the present in seconds")?),
            false => None,
        };
        Ok(ParametersTail {
            serial_consistency,
            timestamp,
            keyspace,
            now_in_seconds,
        })
    }

    /// These fields without those that the version has no place for.
    fn within(mut self, version: ProtocolVersion) -> Self {
        if version == ProtocolVersion::V4 {
            self.keyspace = None;
            self.now_in_seconds = None;
        }
        self
    }

    fn flags(&self) -> u32 {
        let bit = |is_there, bit| if is_there { bit } else { 0 };
        bit(self.serial_consistency.is_some(), flag::SERIAL_CONSISTENCY)
            | bit(self.timestamp.is_some(), flag::TIMESTAMP)
            | bit(self.keyspace.is_some(), flag::KEYSPACE)
            | bit(self.now_in_seconds.is_some(), flag::NOW_IN_SECONDS)
    }

    fn put(&self, out: &mut BytesMut) {
        if let Some(level) = self.serial_consistency {
            out.put_consistency(level);
        }
        if let Some(timestamp) = self.timestamp {
            out.put_i64(timestamp);
        }
        if let Some(keyspace) = &self.keyspace {
            out.put_string(keyspace);
        }
        if let Some(seconds) = self.now_in_seconds {
            out.put_u32(seconds);
        }
    }
}

/// Reads flags, of 8 bits in version 4 and of 32 in version 5.
fn read_flags(reader: &mut BodyReader, version: ProtocolVersion) -> Result<u32, DecodeError> {
    let (flags, defined) = match version {
        ProtocolVersion::V4 => (u32::from(reader.u8("the flags")?), flag::OF_V4),
        ProtocolVersion::V5 => (reader.u32("the flags")?, flag::OF_V5),
    };
    check_flags(flags, defined, version)?;
    Ok(flags)
}

/// Refuses bits that are not defined. They could announce fields that can't be read here.
fn check_flags(flags: u32, defined: u32, version: ProtocolVersion) -> Result<(), DecodeError> {
    match flags & !defined {
        0 => Ok(()),
        _ => Err(DecodeError::Invalid(format!(
            "query flags {flags:#04x} are not defined in protocol version {}",
            version.number()
        ))),
    }
}

fn put_flags(out: &mut BytesMut, flags: u32, version: ProtocolVersion) {
    match version {
        // All bits that version 4 has are within these 8.
        ProtocolVersion::V4 => out.put_u8((flags & flag::OF_V4) as u8),
        ProtocolVersion::V5 => out.put_u32(flags),
    }
}

/// Reads the parameters of a query, which follow the statement:
///
/// ```text
/// consistency u16, flags u8 (version 5: u32),
/// [count u16, values (each after its name, if named)],
/// [page size i32], [paging state bytes], [serial consistency u16], [timestamp i64],
/// [keyspace string], [now in seconds u32]
/// ```
fn read_parameters(
    reader: &mut BodyReader,
    version: ProtocolVersion,
) -> Result<QueryParameters, DecodeError> {
    let consistency = reader.consistency()?;
    let flags = read_flags(reader, version)?;
    let has = |bit| flags & bit != 0;
    let values = match (has(flag::VALUES), has(flag::NAMES)) {
        (false, _) => MarkerValues::Positional(Vec::new()),
        (true, false) => MarkerValues::Positional(read_values(reader)?),
        (true, true) => MarkerValues::Named(read_named_values(reader)?),
    };
    let page_size = match has(flag::PAGE_SIZE) {
        // Drivers send zero or a negative size for "no paging".
        true => u32::try_from(reader.i32("the page size")?)
            .ok()
            .filter(|&size| size > 0),
        false => None,
    };
    let paging_state = match has(flag::PAGING_STATE) {
        true => reader.bytes("the paging state")?,
        false => None,
    };
    let tail = ParametersTail::read(reader, flags)?;
    Ok(QueryParameters {
        consistency,
        values,
        skip_metadata: has(flag::SKIP_METADATA),
        page_size,
        paging_state,
        serial_consistency: tail.serial_consistency,
        timestamp: tail.timestamp,
        keyspace: tail.keyspace.map(Cow::into_owned),
        now_in_seconds: tail.now_in_seconds,
    })
}

fn read_values(reader: &mut BodyReader) -> Result<Vec<BoundValue>, DecodeError> {
    let count = usize::from(reader.u16("the number of values")?);
    let mut values = Vec::with_capacity(reader.capacity(count, VALUE_BYTES_MIN));
    for _ in 0..count {
        values.push(reader.bound_value()?);
    }
    Ok(values)
}

fn read_named_values(reader: &mut BodyReader) -> Result<Vec<(String, BoundValue)>, DecodeError> {
    let count = usize::from(reader.u16("the number of values")?);
    let mut values = Vec::with_capacity(reader.capacity(count, 2 + VALUE_BYTES_MIN));
    for _ in 0..count {
        values.push((reader.string("the name of a value")?, reader.bound_value()?));
    }
    Ok(values)
}

fn put_parameters(out: &mut BytesMut, parameters: &QueryParameters, version: ProtocolVersion) {
    let tail = ParametersTail {
        serial_consistency: parameters.serial_consistency,
        timestamp: parameters.timestamp,
        keyspace: parameters.keyspace.as_deref().map(Cow::Borrowed),
        now_in_seconds: parameters.now_in_seconds,
    }
    .within(version);
    let mut flags = tail.flags();
    if !parameters.values.is_empty() {
        flags |= flag::VALUES;
        if matches!(parameters.values, MarkerValues::Named(_)) {
            flags |= flag::NAMES;
        }
    }
    if parameters.skip_metadata {
        flags |= flag::SKIP_METADATA;
    }
    if parameters.page_size.is_some() {
        flags |= flag::PAGE_SIZE;
    }
    if parameters.paging_state.is_some() {
        flags |= flag::PAGING_STATE;
    }
    out.put_consistency(parameters.consistency);
    put_flags(out, flags, version);
    match &parameters.values {
        values if values.is_empty() => {}
        MarkerValues::Positional(values) => put_values(out, values),
        MarkerValues::Named(values) => {
            out.put_short_count(values.len());
            for (name, value) in values {
                out.put_string(name);
                out.put_bound_value(value);
            }
        }
    }
    if let Some(size) = parameters.page_size {
        out.put_u32(size);
    }
    if let Some(state) = &parameters.paging_state {
        out.put_nullable_bytes(Some(state));
    }
    tail.put(out);
}

fn put_values(out: &mut BytesMut, values: &[BoundValue]) {
    out.put_short_count(values.len());
    for value in values {
        out.put_bound_value(value);
    }
}

/// Reads a batch:
///
/// ```text
/// kind u8, count u16, statements, consistency u16, flags u8 (version 5: u32),
/// [serial consistency u16], [timestamp i64], [keyspace string], [now in seconds u32]
/// a statement: 0 u8, text long string  or  1 u8, id short bytes; then count u16, values
/// ```
fn read_batch(
    reader: &mut BodyReader,
    version: ProtocolVersion,
) -> Result<BatchRequest, DecodeError> {
    let kind = match reader.u8("the type of the batch")? {
        0 => BatchKind::Logged,
        1 => BatchKind::Unlogged,
        2 => BatchKind::Counter,
        other => return Err(DecodeError::Invalid(format!("Invalid BATCH type {other}"))),
    };
    let count = usize::from(reader.u16("the number of statements")?);
    let mut statements = Vec::with_capacity(reader.capacity(count, BATCH_STATEMENT_BYTES_MIN));
    for _ in 0..count {
        let statement = match reader.u8("the kind of a statement")? {
            0 => BatchedStatement::Text(reader.long_string("a statement")?),
            1 => BatchedStatement::Prepared(reader.short_bytes("the id of a prepared statement")?),
            other => {
                return Err(DecodeError::Invalid(format!(
                    "Invalid query kind in BATCH messages. Must be 0 or 1 but got {other}"
                )));
            }
        };
        let values = read_values(reader)?;
        statements.push(BatchStatement { statement, values });
    }
    let consistency = reader.consistency()?;
    let flags = read_flags(reader, version)?;
    if flags & flag::NAMES != 0 {
        // The flag says that values have names, but it comes after the values, so no server can
        // obey it (CASSANDRA-10246).
        return Err(DecodeError::invalid(
            "values with names are not possible in BATCH messages: send them by position",
        ));
    }
    let tail = ParametersTail::read(reader, flags)?;
    Ok(BatchRequest {
        kind,
        statements,
        consistency,
        serial_consistency: tail.serial_consistency,
        timestamp: tail.timestamp,
        keyspace: tail.keyspace.map(Cow::into_owned),
        now_in_seconds: tail.now_in_seconds,
    })
}

fn put_batch(out: &mut BytesMut, batch: &BatchRequest, version: ProtocolVersion) {
    out.put_u8(match batch.kind {
        BatchKind::Logged => 0,
        BatchKind::Unlogged => 1,
        BatchKind::Counter => 2,
    });
    out.put_short_count(batch.statements.len());
    for BatchStatement { statement, values } in &batch.statements {
        match statement {
            BatchedStatement::Text(text) => {
                out.put_u8(0);
                out.put_long_string(text);
            }
            BatchedStatement::Prepared(id) => {
                out.put_u8(1);
                out.put_short_bytes(id);
            }
        }
        put_values(out, values);
    }
    out.put_consistency(batch.consistency);
    let tail = ParametersTail {
        serial_consistency: batch.serial_consistency,
        timestamp: batch.timestamp,
        keyspace: batch.keyspace.as_deref().map(Cow::Borrowed),
        now_in_seconds: batch.now_in_seconds,
    }
    .within(version);
    put_flags(out, tail.flags(), version);
    tail.put(out);
}
