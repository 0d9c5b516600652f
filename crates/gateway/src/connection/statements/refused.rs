//! Changes of the schema that the gateway refuses, as they conflict with a vector index. A probe of
//! the node shows whether the client may make the change. If it may not, the node's answer says so.

use std::sync::Arc;

use cql::error::CqlError;
use cql::wire::{Compression, DecodeError, FrameHeader, Response, ResponseContext};

use super::bound_values;
use super::probe::{self, is_of_the_statement};
use crate::connection::context::DecisionContext;
use crate::connection::pending_response::{PendingResponse, ToClient};
use crate::connection::reply::ResponseAction;
use crate::connection::route::RequestAction;
use crate::overlay::refusal::TableChangeRefusal;
use crate::writes::ClientRequest;

/// Decides the way of a statement that is refused: the node gets a probe.
///
/// # Errors
/// If the body is malformed.
pub(super) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    refusal: Arc<TableChangeRefusal>,
) -> Result<RequestAction, CqlError> {
    bound_values(request)?;
    let probe = refusal.probe();
    let awaited = |to_client| PendingResponse::Refused(refusal, to_client);
    Ok(probe::route(context, request, probe, awaited))
}

/// Decides the reply upon the response to the probe.
///
/// # Errors
/// If the response cannot be read.
pub(super) fn reply(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    refusal: &TableChangeRefusal,
    to_client: ToClient,
) -> Result<ResponseAction, DecodeError> {
    let (_, response) = context.decode(header, body)?;
    // The client is answered now.
    drop(to_client);
    if let Response::Error(error) = response
        && !is_of_the_statement(&error)
    {
        return Ok(ResponseAction::Keep);
    }
    const PLAIN: Option<Compression> = None;
    let of_answer = ResponseContext::new(header.stream).at(header.version);
    Ok(ResponseAction::with(&refusal.answer, &of_answer, PLAIN))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use cql::error::ErrorKind;
    use cql::wire::{FrameDirection, HEADER_LENGTH, ProtocolVersion};

    use super::*;
    use crate::connection::test_connection::{SharedFixture, snapshot};
    use crate::error_frame::error_frame;

    #[tokio::test]
    async fn a_change_is_refused_unless_the_client_may_not_make_it() {
        let shared = SharedFixture::new(snapshot());
        let told = |answer: CqlError| {
            let error = CqlError::invalid("Cannot drop column name");
            let refusal = TableChangeRefusal::new("shop", "products", error);
            let mut frame = BytesMut::new();
            Response::Error(answer).encode(&ResponseContext::new(5), None, &mut frame);
            let header = FrameHeader::read(&frame, FrameDirection::Response, 1 << 20);
            let header = header.unwrap().unwrap();
            let context = shared.context();
            let reply = reply(&context, &header, &frame[HEADER_LENGTH..], &refusal, None);
            match reply.unwrap() {
                ResponseAction::Keep => None,
                ResponseAction::Replace(told) => Some(told),
                _ => panic!("the client is not answered"),
            }
        };
        // Cassandra's answer to the probe if the client may change the table.
        let no_class = CqlError::new(
            ErrorKind::ConfigError,
            "Unable to find custom indexer class",
        );
        let refused = CqlError::invalid("Cannot drop column name");
        assert_eq!(
            told(no_class),
            Some(error_frame(ProtocolVersion::V4, 5, refused))
        );
        let may_not = CqlError::new(ErrorKind::Unauthorized, "no ALTER permission");
        assert_eq!(told(may_not), None);
    }
}
