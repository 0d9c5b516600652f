//! The body of an ERROR: `code i32, message string`, and then the fields of the code.

use bytes::{BufMut, BytesMut};

use super::reader::{DecodeError, Reader};
use super::writer::Writer;
use crate::error::{CqlError, ErrorKind};

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

/// Appends an error.
pub(super) fn put_error(out: &mut BytesMut, error: &CqlError) {
    out.put_i32(error.kind.code());
    out.put_string(&error.message);
    put_fields(out, &error.kind);
}

/// Appends the fields of an error's code.
fn put_fields(out: &mut BytesMut, kind: &ErrorKind) {
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
        } => {
            out.put_u16(*consistency);
            out.put_i32(*received);
            out.put_i32(*block_for);
            out.put_string(write_type);
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
            out.put_i32(*failures);
            out.put_u8(u8::from(*data_present));
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

/// Reads an error. An error with an unknown code becomes a server error that names the code.
pub(super) fn read_error(reader: &mut Reader) -> Result<CqlError, DecodeError> {
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
        0x1100 => ErrorKind::WriteTimeout {
            consistency: reader.u16(WHAT)?,
            received: reader.i32(WHAT)?,
            block_for: reader.i32(WHAT)?,
            write_type: read_write_type(reader)?,
        },
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
            failures: reader.i32(WHAT)?,
            data_present: reader.u8(WHAT)? != 0,
        },
        0x1400 => ErrorKind::FunctionFailure {
            keyspace: reader.string(WHAT)?,
            function: reader.string(WHAT)?,
            argument_types: reader.string_list(WHAT)?,
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

fn read_write_type(reader: &mut Reader) -> Result<&'static str, DecodeError> {
    let name = reader.string("an error")?;
    WRITE_TYPES
        .into_iter()
        .find(|known| *known == name)
        .ok_or_else(|| DecodeError::Invalid(format!("unknown write type '{name}'")))
}
