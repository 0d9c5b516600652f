//! Reading requests from frames, and writing them as a client does.
//!
//! Bytes behind the end of a request are ignored, as in Cassandra.

use bytes::{BufMut, BytesMut};

use super::bound_value::BoundValue;
use super::compression::Compression;
use super::consistency::Consistency;
use super::event::EventKind;
use super::frame::Frame;
use super::frame_body::{FrameStart, plain_body};
use super::header::{Flags, Opcode};
use super::reader::{DecodeError, Reader};
use super::request::{
    Batch, BatchKind, BatchStatement, BatchedStatement, QueryParameters, Request, Startup, Values,
};
use super::writer::Writer;

/// Flags of the query parameters.
mod flag {
    pub(super) const VALUES: u8 = 0x01;
    pub(super) const SKIP_METADATA: u8 = 0x02;
    pub(super) const PAGE_SIZE: u8 = 0x04;
    pub(super) const PAGING_STATE: u8 = 0x08;
    pub(super) const SERIAL_CONSISTENCY: u8 = 0x10;
    pub(super) const TIMESTAMP: u8 = 0x20;
    pub(super) const NAMES: u8 = 0x40;
    /// A bit that v4 does not define. It could announce fields that can't be read here.
    pub(super) const UNDEFINED: u8 = 0x80;
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
        let mut reader = Reader::new(plain_body(frame, compression, body_limit)?);
        if frame.header.flags.contains(Flags::CUSTOM_PAYLOAD) {
            reader.skip_bytes_map("the custom payload")?;
        }
        match frame.header.opcode {
            Opcode::Startup => Ok(Request::Startup(read_startup(&mut reader)?)),
            Opcode::Options => Ok(Request::Options),
            Opcode::Query => Ok(Request::Query {
                statement: reader.long_string("the statement")?,
                parameters: read_parameters(&mut reader)?,
            }),
            Opcode::Prepare => Ok(Request::Prepare {
                statement: reader.long_string("the statement")?,
            }),
            Opcode::Execute => Ok(Request::Execute {
                id: reader.short_bytes("the id of the prepared statement")?,
                parameters: read_parameters(&mut reader)?,
            }),
            Opcode::Batch => Ok(Request::Batch(read_batch(&mut reader)?)),
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

    /// Appends the request as a frame, as a client does.
    pub fn encode(&self, stream: i16, compression: Option<Compression>, out: &mut BytesMut) {
        let start = FrameStart::new(self.opcode(), stream, out);
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
                put_parameters(out, parameters);
            }
            Request::Prepare { statement } => out.put_long_string(statement),
            Request::Execute { id, parameters } => {
                out.put_short_bytes(id);
                put_parameters(out, parameters);
            }
            Request::Batch(batch) => put_batch(out, batch),
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
        start.finish(Flags::default(), compression, out);
    }
}

fn read_startup(reader: &mut Reader) -> Result<Startup, DecodeError> {
    const WHAT: &str = "the startup options";
    let count = usize::from(reader.u16(WHAT)?);
    let mut options = Vec::with_capacity(reader.capacity(count, 4));
    for _ in 0..count {
        options.push((reader.string(WHAT)?, reader.string(WHAT)?));
    }
    Ok(Startup { options })
}

fn read_event_kinds(reader: &mut Reader) -> Result<Vec<EventKind>, DecodeError> {
    reader
        .string_list("the event types")?
        .into_iter()
        .map(|name| {
            EventKind::from_name(&name)
                .ok_or_else(|| DecodeError::Invalid(format!("Invalid event type '{name}'")))
        })
        .collect()
}

/// The fields at the end of both a query and a batch.
struct Tail {
    serial_consistency: Option<Consistency>,
    timestamp: Option<i64>,
}

fn read_tail(reader: &mut Reader, flags: u8) -> Result<Tail, DecodeError> {
    let serial_consistency = match flags & flag::SERIAL_CONSISTENCY {
        0 => None,
        _ => Some(reader.consistency()?),
    };
    let timestamp = match flags & flag::TIMESTAMP {
        0 => None,
        _ => Some(reader.i64("the timestamp")?),
    };
    if timestamp == Some(i64::MIN) {
        return Err(DecodeError::Invalid(format!(
            "Out of bound timestamp, must be in [{}, {}] (got {})",
            i64::MIN + 1,
            i64::MAX,
            i64::MIN
        )));
    }
    Ok(Tail {
        serial_consistency,
        timestamp,
    })
}

fn put_tail(out: &mut BytesMut, serial_consistency: Option<Consistency>, timestamp: Option<i64>) {
    if let Some(level) = serial_consistency {
        out.put_consistency(level);
    }
    if let Some(timestamp) = timestamp {
        out.put_i64(timestamp);
    }
}

fn tail_flags(serial_consistency: Option<Consistency>, timestamp: Option<i64>) -> u8 {
    let serial = serial_consistency.map_or(0, |_| flag::SERIAL_CONSISTENCY);
    serial | timestamp.map_or(0, |_| flag::TIMESTAMP)
}

fn read_flags(reader: &mut Reader) -> Result<u8, DecodeError> {
    let flags = reader.u8("the flags")?;
    if flags & flag::UNDEFINED != 0 {
        return Err(DecodeError::Invalid(format!(
            "query flags {flags:#04x} are not defined in protocol version 4"
        )));
    }
    Ok(flags)
}

/// Reads the parameters of a query, which follow the statement:
///
/// ```text
/// consistency u16, flags u8, [count u16, values (each after its name, if named)],
/// [page size i32], [paging state bytes], [serial consistency u16], [timestamp i64]
/// ```
fn read_parameters(reader: &mut Reader) -> Result<QueryParameters, DecodeError> {
    let consistency = reader.consistency()?;
    let flags = read_flags(reader)?;
    let has = |bit| flags & bit != 0;
    let values = match (has(flag::VALUES), has(flag::NAMES)) {
        (false, _) => Values::Positional(Vec::new()),
        (true, false) => Values::Positional(read_values(reader)?),
        (true, true) => Values::Named(read_named_values(reader)?),
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
    let tail = read_tail(reader, flags)?;
    Ok(QueryParameters {
        consistency,
        values,
        skip_metadata: has(flag::SKIP_METADATA),
        page_size,
        paging_state,
        serial_consistency: tail.serial_consistency,
        timestamp: tail.timestamp,
    })
}

fn read_values(reader: &mut Reader) -> Result<Vec<BoundValue>, DecodeError> {
    let count = usize::from(reader.u16("the number of values")?);
    let mut values = Vec::with_capacity(reader.capacity(count, VALUE_BYTES_MIN));
    for _ in 0..count {
        values.push(reader.bound_value()?);
    }
    Ok(values)
}

fn read_named_values(reader: &mut Reader) -> Result<Vec<(String, BoundValue)>, DecodeError> {
    let count = usize::from(reader.u16("the number of values")?);
    let mut values = Vec::with_capacity(reader.capacity(count, 2 + VALUE_BYTES_MIN));
    for _ in 0..count {
        values.push((reader.string("the name of a value")?, reader.bound_value()?));
    }
    Ok(values)
}

fn put_parameters(out: &mut BytesMut, parameters: &QueryParameters) {
    let mut flags = tail_flags(parameters.serial_consistency, parameters.timestamp);
    if !parameters.values.is_empty() {
        flags |= flag::VALUES;
        if matches!(parameters.values, Values::Named(_)) {
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
    out.put_u8(flags);
    match &parameters.values {
        values if values.is_empty() => {}
        Values::Positional(values) => put_values(out, values),
        Values::Named(values) => {
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
    put_tail(out, parameters.serial_consistency, parameters.timestamp);
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
/// kind u8, count u16, statements, consistency u16, flags u8,
/// [serial consistency u16], [timestamp i64]
/// a statement: 0 u8, text long string  or  1 u8, id short bytes; then count u16, values
/// ```
fn read_batch(reader: &mut Reader) -> Result<Batch, DecodeError> {
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
    let flags = read_flags(reader)?;
    if flags & flag::NAMES != 0 {
        // The flag says that values have names, but it comes after the values, so no server can
        // obey it (CASSANDRA-10246).
        return Err(DecodeError::invalid(
            "values with names are not possible in BATCH messages: send them by position",
        ));
    }
    let tail = read_tail(reader, flags)?;
    Ok(Batch {
        kind,
        statements,
        consistency,
        serial_consistency: tail.serial_consistency,
        timestamp: tail.timestamp,
    })
}

fn put_batch(out: &mut BytesMut, batch: &Batch) {
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
    out.put_u8(tail_flags(batch.serial_consistency, batch.timestamp));
    put_tail(out, batch.serial_consistency, batch.timestamp);
}
