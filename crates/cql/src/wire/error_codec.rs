//! The body of an ERROR: `code i32, message string`, and then the fields of the code.

use bytes::{BufMut, BytesMut};

use super::header::ProtocolVersion;
use super::reader::{BodyReader, DecodeError};
use super::writer::BodyWriter;
use crate::error::{CqlError, ErrorKind, ReplicaFailures};

/// The kinds of write that a write timeout can name.
const WRITE_TYPES: [&str; 8] = [
    "SIMPLE",
    "BATCH",
    "UNLOGGED_BATCH",
    "COUNTER",
    "BATCH_LOG",
    "CAS",
    "VIEW",
    "CDC",
];

/// The conditional write's kind, whose timeout reports contentions since version 5.
const CAS: &str = "CAS";

/// The fewest bytes of a replica that failed: an address of no bytes, and a code.
const FAILURE_BYTES_MIN: usize = 3;

/// Appends an error.
pub(super) fn put_error(out: &mut BytesMut, error: &CqlError, version: ProtocolVersion) {
    out.put_i32(match (&error.kind, version) {
        // Version 4 has no code for it, and drivers of that version take it for a timeout.
        (ErrorKind::CasWriteUnknown { .. }, ProtocolVersion::V4) => 0x1100,
        (kind, _) => kind.code(),
    });
    out.put_string(&error.message);
    put_fields(out, &error.kind, version);
}

/// Appends the fields of an error's code.
#[expect(
    clippy::too_many_lines,
    reason = "one match, with an arm for each code"
)]
fn put_fields(out: &mut BytesMut, kind: &ErrorKind, version: ProtocolVersion) {
    match kind {
        ErrorKind::Unavailable {
            consistency,
            required,
            alive,
        } => {
            out.put_u16(*consistency);
            out.put_i32(*required);
            out.put_i32(*alive);
        }
        ErrorKind::WriteTimeout {
            consistency,
            received,
            block_for,
            write_type,
            contentions,
        } => {
            out.put_u16(*consistency);
            out.put_i32(*received);
            out.put_i32(*block_for);
            out.put_string(write_type);
            if let (Some(contentions), &CAS, ProtocolVersion::V5) =
                (contentions, write_type, version)
            {
                out.put_u16(*contentions);
            }
        }
        ErrorKind::ReadTimeout {
            consistency,
            received,
            block_for,
            data_present,
        } => {
            out.put_u16(*consistency);
            out.put_i32(*received);
            out.put_i32(*block_for);
            out.put_u8(u8::from(*data_present));
        }
        ErrorKind::ReadFailure {
            consistency,
            received,
            block_for,
            failures,
            data_present,
        } => {
            out.put_u16(*consistency);
            out.put_i32(*received);
            out.put_i32(*block_for);
            put_failures(out, failures, version);
            out.put_u8(u8::from(*data_present));
        }
        ErrorKind::WriteFailure {
            consistency,
            received,
            block_for,
            failures,
            write_type,
        } => {
            out.put_u16(*consistency);
            out.put_i32(*received);
            out.put_i32(*block_for);
            put_failures(out, failures, version);
            out.put_string(write_type);
        }
        ErrorKind::CasWriteUnknown {
            consistency,
            received,
            block_for,
        } => {
            out.put_u16(*consistency);
            out.put_i32(*received);
            out.put_i32(*block_for);
            if version == ProtocolVersion::V4 {
                out.put_string(CAS);
            }
        }
        ErrorKind::FunctionFailure {
            keyspace,
            function,
            argument_types,
        } => {
            out.put_string(keyspace);
            out.put_string(function);
            out.put_string_list(argument_types);
        }
        ErrorKind::AlreadyExists { keyspace, table } => {
            out.put_string(keyspace);
            out.put_string(table);
        }
        ErrorKind::Unprepared { id } => out.put_short_bytes(id),
        ErrorKind::ServerError
        | ErrorKind::ProtocolError
        | ErrorKind::BadCredentials
        | ErrorKind::Overloaded
        | ErrorKind::IsBootstrapping
        | ErrorKind::TruncateError
        | ErrorKind::SyntaxError
        | ErrorKind::Unauthorized
        | ErrorKind::Invalid
        | ErrorKind::ConfigError => {}
    }
}

/// Appends the replicas that failed:
///
/// ```text
/// version 4: count i32
/// version 5: count i32, replicas, each an address of a length u8 and that many bytes, code u16
/// ```
fn put_failures(out: &mut BytesMut, failures: &ReplicaFailures, version: ProtocolVersion) {
    match (failures, version) {
        (failures, ProtocolVersion::V4) => out.put_i32(failures.count()),
        // Nothing but a count is known of them.
        (ReplicaFailures::Count(_), ProtocolVersion::V5) => out.put_i32(0),
        (ReplicaFailures::Reasons(reasons), ProtocolVersion::V5) => {
            out.put_i32(failures.count());
            for (address, code) in reasons {
                out.put_address(*address);
                out.put_u16(*code);
            }
        }
    }
}

fn read_failures(
    reader: &mut BodyReader,
    version: ProtocolVersion,
) -> Result<ReplicaFailures, DecodeError> {
    const WHAT: &str = "the replicas that failed";
    if version == ProtocolVersion::V4 {
        return reader.i32(WHAT).map(ReplicaFailures::Count);
    }
    let count = reader.count(WHAT)?;
    let mut reasons = Vec::with_capacity(reader.capacity(count, FAILURE_BYTES_MIN));
    for _ in 0..count {
        reasons.push((reader.address(WHAT)?, reader.u16(WHAT)?));
    }
    Ok(ReplicaFailures::Reasons(reasons))
}

/// Reads an error. An error with an unknown code becomes a server error that names the code.
pub(super) fn read_error(
    reader: &mut BodyReader,
    version: ProtocolVersion,
) -> Result<CqlError, DecodeError> {
    const WHAT: &str = "an error";
    let code = reader.i32(WHAT)?;
    let message = reader.string(WHAT)?;
    let kind = match code {
        0x0000 => ErrorKind::ServerError,
        0x000A => ErrorKind::ProtocolError,
        0x0100 => ErrorKind::BadCredentials,
        0x1000 => ErrorKind::Unavailable {
            consistency: reader.u16(WHAT)?,
            required: reader.i32(WHAT)?,
            alive: reader.i32(WHAT)?,
        },
        0x1001 => ErrorKind::Overloaded,
        0x1002 => ErrorKind::IsBootstrapping,
        0x1003 => ErrorKind::TruncateError,
        0x1100 => read_write_timeout(reader, version)?,
        0x1200 => ErrorKind::ReadTimeout {
            consistency: reader.u16(WHAT)?,
            received: reader.i32(WHAT)?,
            block_for: reader.i32(WHAT)?,
            data_present: reader.u8(WHAT)? != 0,
        },
        0x1300 => ErrorKind::ReadFailure {
            consistency: reader.u16(WHAT)?,
            received: reader.i32(WHAT)?,
            block_for: reader.i32(WHAT)?,
            failures: read_failures(reader, version)?,
            data_present: reader.u8(WHAT)? != 0,
        },
        0x1400 => ErrorKind::FunctionFailure {
            keyspace: reader.string(WHAT)?,
            function: reader.string(WHAT)?,
            argument_types: reader.string_list(WHAT)?,
        },
        0x1500 => ErrorKind::WriteFailure {
            consistency: reader.u16(WHAT)?,
            received: reader.i32(WHAT)?,
            block_for: reader.i32(WHAT)?,
            failures: read_failures(reader, version)?,
            write_type: read_write_type(reader)?,
        },
        0x1700 => ErrorKind::CasWriteUnknown {
            consistency: reader.u16(WHAT)?,
            received: reader.i32(WHAT)?,
            block_for: reader.i32(WHAT)?,
        },
        0x2000 => ErrorKind::SyntaxError,
        0x2100 => ErrorKind::Unauthorized,
        0x2200 => ErrorKind::Invalid,
        0x2300 => ErrorKind::ConfigError,
        0x2400 => ErrorKind::AlreadyExists {
            keyspace: reader.string(WHAT)?,
            table: reader.string(WHAT)?,
        },
        0x2500 => ErrorKind::Unprepared {
            id: reader.short_bytes(WHAT)?,
        },
        unknown => {
            return Ok(CqlError::server(format!("error {unknown:#06x}: {message}")));
        }
    };
    Ok(CqlError { kind, message })
}

fn read_write_timeout(
    reader: &mut BodyReader,
    version: ProtocolVersion,
) -> Result<ErrorKind, DecodeError> {
    const WHAT: &str = "an error";
    let (consistency, received) = (reader.u16(WHAT)?, reader.i32(WHAT)?);
    let (block_for, write_type) = (reader.i32(WHAT)?, read_write_type(reader)?);
    // A timeout that waits for the commit of a conditional write has no count of contentions.
    let has_contentions =
        version == ProtocolVersion::V5 && write_type == CAS && !reader.is_at_end();
    let contentions = match has_contentions {
        true => Some(reader.u16(WHAT)?),
        false => None,
    };
    Ok(ErrorKind::WriteTimeout {
        consistency,
        received,
        block_for,
        write_type,
        contentions,
    })
}

fn read_write_type(reader: &mut BodyReader) -> Result<&'static str, DecodeError> {
    let name = reader.string("an error")?;
    WRITE_TYPES
        .into_iter()
        .find(|known| *known == name)
        .ok_or_else(|| DecodeError::Invalid(format!("unknown write type '{name}'")))
}
