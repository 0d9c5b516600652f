//! TRUNCATE of a logged table. The gateway notes it with the definitions, passes it on, and answers
//! the client once it is settled that the table's indexes are rebuilt.
//!
//! They are rebuilt unless it is certain that nothing was truncated: an index that is built in
//! vain costs time, but one that holds deleted rows is wrong. If this gateway dies, the connection
//! breaks or the definitions cannot be changed any more, another gateway finds the note and has the
//! indexes rebuilt (`catalog::truncation`).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cql::wire::{Compression, FrameHeader};
use tokio::sync::mpsc;

use crate::catalog::LoggedTable;
use crate::connection::context::DecisionContext;
use crate::connection::pending_response::{PendingResponse, TruncateUnderWay};
use crate::connection::reply::ResponseAction;
use crate::error_frame::error_frame;
use crate::writes::nothing_was_written;

/// Notes a TRUNCATE in a task, which then sends it to the node. Later requests of the
/// connection do not wait for that.
pub(in crate::connection) fn send(
    context: &DecisionContext,
    to_node: &mpsc::WeakUnboundedSender<Bytes>,
    stream: i16,
    request: Bytes,
    table: Arc<LoggedTable>,
) {
    let (Some(answers), Some(to_node)) = (context.session.client.answers(), to_node.upgrade())
    else {
        // The other loop has ended.
        return;
    };
    let (session, catalog) = (context.session.clone(), context.catalog.clone());
    tokio::spawn(async move {
        match catalog.note_truncate(&table).await {
            Ok(note) => {
                let truncate = TruncateUnderWay {
                    table,
                    note,
                    answers,
                };
                session.await_response(stream, PendingResponse::Truncated(Box::new(truncate)));
                // If the connection has ended, a gateway finds the note later.
                let _ = to_node.send(request);
            }
            Err(error) => {
                session.client_is_answered(stream);
                let _ = answers
                    .send(error_frame(session.version(), stream, error))
                    .await;
            }
        }
    });
}

/// Decides the reply upon the node's answer to a TRUNCATE.
pub(super) fn reply(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    truncate: TruncateUnderWay,
) -> ResponseAction {
    let TruncateUnderWay {
        table,
        note,
        answers,
    } = truncate;
    let read = context.decode(header, body);
    let catalog = context.catalog.clone();
    if read
        .as_ref()
        .is_ok_and(|(_, response)| nothing_was_written(response))
    {
        tokio::spawn(async move { catalog.forget_truncate(&table, note).await });
        return ResponseAction::Keep;
    }
    // One node may answer with an error, mostly a timeout, when others have emptied the table.
    let as_it_came = Bytes::from([&header.to_bytes()[..], body].concat());
    let counted = context.maintenance.go_on();
    tokio::spawn(async move {
        let answer = match (catalog.finish_truncate(&table, note).await, read) {
            (Err(error), Ok((mut context, response))) => {
                const PLAIN: Option<Compression> = None;
                let LoggedTable { keyspace, name, .. } = &*table;
                tracing::warn!(
                    keyspace,
                    name,
                    %error,
                    "a table is truncated, or may be, but its vector indexes are not built anew yet"
                );
                context.warnings.push(format!(
                    "{keyspace}.{name} is truncated, or may be, but its vector indexes are not built anew yet \
                     ({error}): they will be once the definitions can be changed again"
                ));
                let mut frame = BytesMut::new();
                response.encode(&context, PLAIN, &mut frame);
                frame.freeze()
            }
            _ => as_it_came,
        };
        // If the other loop has ended, the client has disconnected.
        let _ = answers.send(answer).await;
        drop(counted);
    });
    // The task answers the client, so the node's answer is not passed on.
    ResponseAction::Replace(Bytes::new())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cql::error::{CqlError, ErrorKind};
    use cql::wire::{Frame, FrameDirection, HEADER_LENGTH, Response, ResponseContext};
    use uuid::Uuid;

    use super::*;
    use crate::connection::test_connection::{SharedFixture, query, snapshot, soon};

    #[tokio::test]
    async fn one_that_cannot_be_noted_does_not_reach_the_node() {
        let shared = SharedFixture::new(snapshot());
        let (mut client, mut node) = shared.connect();
        client.ask(&query("TRUNCATE shop.products"), 1).await;
        // There is no cluster here in which it could be noted.
        let (stream, refusal) = client.response().await;
        assert_eq!(stream, 1);
        assert!(
            matches!(&refusal, Response::Error(error) if error.message.contains("nothing was truncated")),
            "{refusal:?}"
        );
        node.receives_nothing().await;
        client.ask(&query("SELECT * FROM shop.products"), 1).await;
        assert_eq!(node.request().await.0, 1, "its stream is free again");
    }

    #[tokio::test]
    async fn one_that_may_have_done_something_has_indexes_rebuilt() {
        let failed = |kind| Response::Error(CqlError::new(kind, "late"));
        for (answer, may_be_truncated) in [
            (Response::Void, true),
            (failed(ErrorKind::TruncateError), true),
            (failed(ErrorKind::ServerError), true),
            (failed(ErrorKind::Unauthorized), false),
            (failed(ErrorKind::Invalid), false),
        ] {
            let context = SharedFixture::new(snapshot()).context();
            let mut frame = BytesMut::new();
            answer.encode(&ResponseContext::new(1), None, &mut frame);
            let header = FrameHeader::read(&frame, FrameDirection::Response, 1 << 20);
            let header = header.unwrap().unwrap();
            let (answers, mut told) = mpsc::channel(1);
            let truncate = TruncateUnderWay {
                table: Arc::new(crate::writes::test_tables::products()),
                note: Uuid::nil(),
                answers,
            };
            let reply = reply(&context, &header, &frame[HEADER_LENGTH..], truncate);
            if !may_be_truncated {
                assert!(matches!(reply, ResponseAction::Keep), "{answer:?}");
                let nothing = tokio::time::timeout(Duration::from_secs(5), told.recv()).await;
                assert_eq!(nothing, Ok(None), "{answer:?}");
                continue;
            }
            assert!(
                matches!(&reply, ResponseAction::Replace(now) if now.is_empty()),
                "{answer:?}"
            );
            // There is no cluster here in which it could be done, so the client gets a warning.
            let told = soon(told.recv()).await.unwrap();
            let told = Frame {
                header: FrameHeader::read(&told, FrameDirection::Response, 1 << 20)
                    .unwrap()
                    .unwrap(),
                body: told.slice(HEADER_LENGTH..),
            };
            let (context, response) = Response::decode(&told, None, 1 << 20).unwrap();
            assert_eq!(response, answer);
            let [warning] = &context.warnings[..] else {
                panic!("{answer:?} {:?}", context.warnings);
            };
            assert!(warning.contains("not built anew yet"), "{warning}");
        }
    }
}
