//! Reading the front of a message without decoding all of it. The gateway uses this for the frames
//! that it passes on.
//!
//! Bodies must be plain: the caller decompresses them. No function copies or allocates anything.

use super::header::{FrameFlags, FrameHeader, Opcode, ProtocolVersion};
use super::reader::DecodeError;
use super::request_codec::flag;

/// The kind of a RESULT that answers PREPARE.
const KIND_PREPARED: i32 = 4;

/// The length of a trace's id, in bytes.
const TRACE_ID_LENGTH: usize = 16;

/// Finds the text of a QUERY or PREPARE. The bytes may be no UTF-8.
///
/// # Errors
/// If the body ends before the text does.
pub fn statement_text(flags: FrameFlags, body: &[u8]) -> Result<&[u8], DecodeError> {
    let mut front = UnreadBody(body);
    front.skip_request_prefix(flags)?;
    front.long_bytes("the statement")
}

/// Finds the id of the prepared statement in an EXECUTE.
///
/// # Errors
/// If the body ends before the id does.
pub fn executed_id(flags: FrameFlags, body: &[u8]) -> Result<&[u8], DecodeError> {
    let mut front = UnreadBody(body);
    front.skip_request_prefix(flags)?;
    front.short_bytes("the id of the prepared statement")
}

/// Finds the keyspace that a QUERY, PREPARE or BATCH of version 5 gives for names without one;
/// `None` if it gives none. The bytes may be no UTF-8.
///
/// # Errors
/// If the body ends before the keyspace would.
pub fn keyspace<'a>(header: &FrameHeader, body: &'a [u8]) -> Result<Option<&'a [u8]>, DecodeError> {
    let mut front = UnreadBody(body);
    if header.version == ProtocolVersion::V4 {
        return Ok(None);
    }
    front.skip_request_prefix(header.flags)?;
    let flags = match header.opcode {
        Opcode::Prepare => {
            front.long_bytes("the statement")?;
            let flags = front.i32("the flags")? as u32;
            let has_keyspace = flags & flag::PREPARE_KEYSPACE != 0;
            return has_keyspace
                .then(|| front.short_bytes("the keyspace"))
                .transpose();
        }
        Opcode::Query => {
            front.long_bytes("the statement")?;
            front.u16("the consistency level")?;
            let flags = front.i32("the flags")? as u32;
            // Few requests give a keyspace, so the rest is seldom walked over.
            if flags & flag::KEYSPACE != 0 {
                front.skip_parameters(flags)?;
            }
            flags
        }
        Opcode::Batch => {
            front.take(1, "the type of the batch")?;
            for _ in 0..front.u16("the number of statements")? {
                front.batched()?;
            }
            front.u16("the consistency level")?;
            front.i32("the flags")? as u32
        }
        _ => return Ok(None),
    };
    if flags & flag::KEYSPACE == 0 {
        return Ok(None);
    }
    if flags & flag::SERIAL_CONSISTENCY != 0 {
        front.u16("the serial consistency level")?;
    }
    if flags & flag::TIMESTAMP != 0 {
        front.take(size_of::<i64>(), "the timestamp")?;
    }
    front.short_bytes("the keyspace").map(Some)
}

/// Finds the custom payload of a request, in the form that it has in the body, with its count in
/// front. It is empty if there is none.
///
/// # Errors
/// If the body ends before the payload does.
pub fn custom_payload(flags: FrameFlags, body: &[u8]) -> Result<&[u8], DecodeError> {
    let mut front = UnreadBody(body);
    front.skip_request_prefix(flags)?;
    Ok(&body[..body.len() - front.0.len()])
}

/// A statement of a BATCH, without its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchedRef<'a> {
    /// The text of the statement. The bytes may be no UTF-8.
    Text(&'a [u8]),
    /// The id of a prepared statement.
    Prepared(&'a [u8]),
}

/// Iterates over the statements of a BATCH, in order, without their values.
///
/// # Errors
/// If the body ends before the number of statements does. The iterator ends with an error at a
/// statement that is malformed or cut short.
pub fn batched(
    flags: FrameFlags,
    body: &[u8],
) -> Result<impl Iterator<Item = Result<BatchedRef<'_>, DecodeError>>, DecodeError> {
    let mut front = UnreadBody(body);
    front.skip_request_prefix(flags)?;
    front.take(1, "the type of the batch")?;
    let mut left = front.u16("the number of statements")?;
    Ok(std::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        let read = front.batched();
        if read.is_err() {
            left = 0;
        }
        Some(read)
    }))
}

/// Finds the id of the prepared statement in the RESULT that answers a PREPARE. `None` for any
/// other RESULT.
///
/// # Errors
/// If the body ends before the id does.
pub fn prepared_id(flags: FrameFlags, body: &[u8]) -> Result<Option<&[u8]>, DecodeError> {
    let mut front = UnreadBody(body);
    if flags.contains(FrameFlags::TRACING) {
        front.take(TRACE_ID_LENGTH, "the id of the trace")?;
    }
    if flags.contains(FrameFlags::WARNING) {
        for _ in 0..front.u16("the warnings")? {
            front.short_bytes("the warnings")?;
        }
    }
    if flags.contains(FrameFlags::CUSTOM_PAYLOAD) {
        front.skip_custom_payload()?;
    }
    if front.i32("the kind of a result")? != KIND_PREPARED {
        return Ok(None);
    }
    front
        .short_bytes("the id of the prepared statement")
        .map(Some)
}

/// The part of a body that is not read yet.
struct UnreadBody<'a>(&'a [u8]);

impl<'a> UnreadBody<'a> {
    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(DecodeError::Truncated(what))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self
            .0
            .split_first_chunk()
            .ok_or(DecodeError::Truncated(what))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.number(what).map(u16::from_be_bytes)
    }

    fn i32(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        self.number(what).map(i32::from_be_bytes)
    }

    /// Reads a `[short bytes]` or `[string]`.
    fn short_bytes(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.u16(what)?;
        self.take(usize::from(length), what)
    }

    /// Reads a `[long string]`.
    fn long_bytes(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.i32(what)?;
        let length = usize::try_from(length)
            .map_err(|_| DecodeError::Invalid(format!("negative count {length} of {what}")))?;
        self.take(length, what)
    }

    /// Reads a statement of a BATCH and skips its values.
    fn batched(&mut self) -> Result<BatchedRef<'a>, DecodeError> {
        const KIND: &str = "the kind of a statement";
        let [kind] = self.number(KIND)?;
        let statement = match kind {
            0 => BatchedRef::Text(self.long_bytes("a statement")?),
            1 => BatchedRef::Prepared(self.short_bytes("the id of a prepared statement")?),
            other => return Err(DecodeError::Invalid(format!("{KIND} is {other}"))),
        };
        self.skip_values(false)?;
        Ok(statement)
    }

    /// Skips values with their count, each after its name if they have names.
    fn skip_values(&mut self, have_names: bool) -> Result<(), DecodeError> {
        for _ in 0..self.u16("the number of values")? {
            if have_names {
                self.short_bytes("the name of a value")?;
            }
            self.skip_bytes("a bound value")?;
        }
        Ok(())
    }

    /// Skips a `[bytes]` or `[value]`: any negative length is null or unset.
    fn skip_bytes(&mut self, what: &'static str) -> Result<(), DecodeError> {
        if let Ok(length) = usize::try_from(self.i32(what)?) {
            self.take(length, what)?;
        }
        Ok(())
    }

    /// Skips the parameters of a query between the flags and the serial consistency level.
    fn skip_parameters(&mut self, flags: u32) -> Result<(), DecodeError> {
        if flags & flag::VALUES != 0 {
            self.skip_values(flags & flag::NAMES != 0)?;
        }
        if flags & flag::PAGE_SIZE != 0 {
            self.i32("the page size")?;
        }
        if flags & flag::PAGING_STATE != 0 {
            self.skip_bytes("the paging state")?;
        }
        Ok(())
    }

    fn skip_request_prefix(&mut self, flags: FrameFlags) -> Result<(), DecodeError> {
        if flags.contains(FrameFlags::CUSTOM_PAYLOAD) {
            self.skip_custom_payload()?;
        }
        Ok(())
    }

    fn skip_custom_payload(&mut self) -> Result<(), DecodeError> {
        const WHAT: &str = "the custom payload";
        for _ in 0..self.u16(WHAT)? {
            self.short_bytes(WHAT)?;
            self.skip_bytes(WHAT)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use uuid::Uuid;

    use super::super::{
        BatchKind, BatchRequest, BatchStatement, BatchedStatement, BoundValue, ColumnsMetadata,
        Consistency, HEADER_LENGTH, MarkerValues, PreparedResponse, QueryParameters, Request,
        Response, ResponseContext,
    };
    use super::*;

    /// A map of two entries, one of them null.
    const PAYLOAD: &[u8] = b"\0\x02\0\x01a\0\0\0\x02xy\0\x01b\xFF\xFF\xFF\xFF";

    fn request_body(request: &Request) -> Bytes {
        let mut out = BytesMut::new();
        request.encode(1, None, &mut out);
        out.freeze().slice(HEADER_LENGTH..)
    }

    #[test]
    fn the_text_and_the_id_of_requests_are_found_behind_a_custom_payload_too() {
        let parameters = QueryParameters::default();
        let query = request_body(&Request::Query {
            statement: "SELECT 1".to_owned(),
            parameters: parameters.clone(),
        });
        let execute = request_body(&Request::Execute {
            id: Bytes::from_static(b"sixteen bytes id"),
            result_metadata_id: None,
            parameters,
        });
        for (flags, prefix) in [
            (FrameFlags::default(), &b""[..]),
            (FrameFlags::CUSTOM_PAYLOAD, PAYLOAD),
        ] {
            let behind = |body: &[u8]| [prefix, body].concat();
            assert_eq!(statement_text(flags, &behind(&query)), Ok(&b"SELECT 1"[..]));
            assert_eq!(
                executed_id(flags, &behind(&execute)),
                Ok(&b"sixteen bytes id"[..])
            );
        }
    }

    #[test]
    fn the_statements_of_a_batch_are_found_behind_a_custom_payload_too() {
        let statement = |statement, values| BatchStatement { statement, values };
        let body = request_body(&Request::Batch(BatchRequest {
            kind: BatchKind::Unlogged,
            statements: vec![
                statement(
                    BatchedStatement::Text("INSERT".to_owned()),
                    vec![
                        BoundValue::Null,
                        BoundValue::Unset,
                        BoundValue::Value(Bytes::from_static(b"value")),
                    ],
                ),
                statement(
                    BatchedStatement::Prepared(Bytes::from_static(b"id")),
                    vec![],
                ),
            ],
            consistency: Consistency::One,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        }));
        for (flags, prefix) in [
            (FrameFlags::default(), &b""[..]),
            (FrameFlags::CUSTOM_PAYLOAD, PAYLOAD),
        ] {
            let body = [prefix, &body].concat();
            let found: Result<Vec<_>, _> = batched(flags, &body).unwrap().collect();
            let expected = vec![BatchedRef::Text(b"INSERT"), BatchedRef::Prepared(b"id")];
            assert_eq!(found, Ok(expected));
            assert_eq!(custom_payload(flags, &body), Ok(prefix));
            let cut = &body[..body.len() - 6];
            let found: Vec<_> = batched(flags, cut).unwrap().collect();
            assert_eq!(found.len(), 2);
            assert!(found[0].is_ok() && found[1].is_err());
        }
    }

    #[test]
    fn the_id_of_a_prepared_statement_is_found_behind_whatever_goes_before_it() {
        let prepared = Response::Prepared(PreparedResponse {
            id: Bytes::from_static(b"the id"),
            result_metadata_id: None,
            bind: ColumnsMetadata::default(),
            partition_key_indexes: Vec::new(),
            result: None,
        });
        let context = ResponseContext {
            version: ProtocolVersion::V4,
            stream: 1,
            tracing_id: Some(Uuid::from_u128(7)),
            warnings: vec!["one".to_owned(), "two".to_owned()],
            custom_payload: vec![("a".to_owned(), None)],
        };
        for (response, found) in [(prepared, Some(&b"the id"[..])), (Response::Void, None)] {
            let mut out = BytesMut::new();
            response.encode(&context, None, &mut out);
            let header = FrameHeader::read(&out, super::super::FrameDirection::Response, 1 << 20);
            let flags = header.unwrap().unwrap().flags;
            assert_eq!(prepared_id(flags, &out[HEADER_LENGTH..]), Ok(found));
        }
    }

    #[test]
    fn the_keyspace_of_a_request_is_found_wherever_it_is() {
        let parameters = |keyspace: Option<&str>| QueryParameters {
            values: MarkerValues::Named(vec![("a".to_owned(), BoundValue::Null)]),
            page_size: Some(5),
            paging_state: Some(Bytes::from_static(b"page")),
            serial_consistency: Some(Consistency::Serial),
            timestamp: Some(7),
            keyspace: keyspace.map(str::to_owned),
            now_in_seconds: Some(9),
            ..QueryParameters::default()
        };
        let statement = || "SELECT 1".to_owned();
        for given in [None, Some("shop")] {
            let keyspace_given = given.map(str::to_owned);
            let requests = [
                Request::Query {
                    statement: statement(),
                    parameters: parameters(given),
                },
                Request::Prepare {
                    statement: statement(),
                    keyspace: keyspace_given.clone(),
                },
                Request::Batch(BatchRequest {
                    kind: BatchKind::Logged,
                    statements: vec![BatchStatement {
                        statement: BatchedStatement::Text(statement()),
                        values: vec![BoundValue::Unset],
                    }],
                    consistency: Consistency::One,
                    serial_consistency: Some(Consistency::Serial),
                    timestamp: Some(7),
                    keyspace: keyspace_given,
                    now_in_seconds: Some(9),
                }),
            ];
            for request in requests {
                for version in ProtocolVersion::EVERY {
                    let mut out = BytesMut::new();
                    request.encode_in(version, 1, None, &mut out);
                    let header =
                        FrameHeader::read(&out, super::super::FrameDirection::Request, 1 << 20);
                    let header = header.unwrap().unwrap();
                    let expected = given.filter(|_| version == ProtocolVersion::V5);
                    assert_eq!(
                        keyspace(&header, &out[HEADER_LENGTH..]),
                        Ok(expected.map(str::as_bytes)),
                        "{request:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_truncated_body_has_no_text_and_no_id() {
        let plain = FrameFlags::default();
        assert!(statement_text(plain, b"\0\0\0\x05four").is_err());
        assert!(statement_text(plain, &[0xFF; 4]).is_err());
        assert!(executed_id(plain, b"\0\x10short").is_err());
        assert!(executed_id(FrameFlags::CUSTOM_PAYLOAD, b"\xFF\xFF").is_err());
        assert!(prepared_id(FrameFlags::TRACING, b"\0\0\0\x04").is_err());
        assert!(prepared_id(FrameFlags::WARNING, b"\xFF\xFF\0\0").is_err());
    }
}
