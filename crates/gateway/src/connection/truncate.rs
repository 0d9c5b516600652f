//! TRUNCATE of a logged table. The gateway notes it with the definitions, passes it on, and answers
//! the client once it is settled that the table's indexes are rebuilt.
//!
//! They are rebuilt unless it is certain that nothing was truncated: an index that is built in
//! vain costs time, but one that holds deleted rows is wrong. If this gateway dies, the connection
//! breaks or the definitions cannot be changed any more, another gateway finds the note and has the
//! indexes rebuilt (`catalog::truncation`).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cql::ast::TableName;
use cql::error::CqlError;
use cql::parser::{Changed, changed};
use cql::wire::{Compression, FrameHeader};

use super::decide::encode_error;
use super::requests::Requests;
use super::responses::{self, Responses};
use super::session::{Expected, TruncateUnderWay};
use crate::catalog::{LoggedTable, Snapshot};
use crate::writes::{self, nothing_was_written};

impl Requests {
    /// The logged table that a TRUNCATE empties; `None` if it empties another one.
    ///
    /// # Errors
    /// If the text names a logged table, but it cannot be told which table is truncated.
    pub(super) fn truncated_table(
        &self,
        text: &[u8],
        snapshot: &Snapshot,
    ) -> Result<Option<Arc<LoggedTable>>, CqlError> {
        // Cassandra refuses a text that is no UTF-8.
        let Ok(text) = str::from_utf8(text) else {
            return Ok(None);
        };
        let Some(Changed::All(TableName { keyspace, name })) = changed(text) else {
            return match snapshot.names_logged_table(text) {
                true => Err(writes::of_no_table()),
                false => Ok(None),
            };
        };
        let in_use = self.session.keyspace();
        let keyspace = keyspace.as_deref().or(in_use.as_deref());
        Ok(keyspace.and_then(|keyspace| snapshot.logged_table(keyspace, &name)))
    }

    /// Notes a TRUNCATE in a task, which then sends it to the node. Later requests of the
    /// connection do not wait for that.
    pub(super) fn truncate(&self, header: &FrameHeader, request: Bytes, table: Arc<LoggedTable>) {
        let stream = header.stream;
        let (Some(answers), Some(to_node)) =
            (self.session.client.answers(), self.steps_sender.upgrade())
        else {
            // The other loop has ended.
            return;
        };
        let (session, catalog) = (self.session.clone(), self.catalog.clone());
        tokio::spawn(async move {
            match catalog.note_truncate(&table).await {
                Ok(note) => {
                    let truncate = TruncateUnderWay {
                        table,
                        note,
                        answers,
                    };
                    session.expect(stream, Expected::Truncated(Box::new(truncate)));
                    // If the connection has ended, a gateway finds the note later.
                    let _ = to_node.send(request);
                }
                Err(error) => {
                    session.client_is_answered(stream);
                    let _ = answers.send(encode_error(stream, error)).await;
                }
            }
        });
    }
}

impl Responses {
    /// Decides about the node's answer to a TRUNCATE.
    pub(super) fn truncated(
        &self,
        header: &FrameHeader,
        body: &[u8],
        truncate: TruncateUnderWay,
    ) -> responses::Decision {
        let TruncateUnderWay {
            table,
            note,
            answers,
        } = truncate;
        let read = self.decode(header, body);
        let catalog = self.catalog.clone();
        if read
            .as_ref()
            .is_ok_and(|(_, response)| nothing_was_written(response))
        {
            tokio::spawn(async move { catalog.forget_truncate(&table, note).await });
            return responses::Decision::Keep;
        }
        // One node may answer with an error, mostly a timeout, when others have emptied the table.
        let as_it_came = Bytes::from([&header.to_bytes()[..], body].concat());
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
            // If the other loop has ended, the client is gone.
            let _ = answers.send(answer).await;
        });
        responses::Decision::Replace(Bytes::new())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cql::error::ErrorKind;
    use cql::wire::{Direction, Frame, HEADER_LENGTH, Response, ResponseContext};
    use tokio::sync::mpsc;
    use uuid::Uuid;

    use super::super::test_connection::{Shared, query, snapshot, soon};
    use super::*;

    #[tokio::test]
    async fn one_that_cannot_be_noted_does_not_reach_the_node() {
        let shared = Shared::new(snapshot());
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
            let responses = Shared::new(snapshot()).responses();
            let mut frame = BytesMut::new();
            answer.encode(&ResponseContext::new(1), None, &mut frame);
            let header = FrameHeader::read(&frame, Direction::Response, 1 << 20);
            let header = header.unwrap().unwrap();
            let (answers, mut told) = mpsc::channel(1);
            let truncate = TruncateUnderWay {
                table: Arc::new(crate::writes::test_tables::products()),
                note: Uuid::nil(),
                answers,
            };
            let decision = responses.truncated(&header, &frame[HEADER_LENGTH..], truncate);
            if !may_be_truncated {
                assert!(matches!(decision, responses::Decision::Keep), "{answer:?}");
                let nothing = tokio::time::timeout(Duration::from_secs(5), told.recv()).await;
                assert_eq!(nothing, Ok(None), "{answer:?}");
                continue;
            }
            assert!(
                matches!(&decision, responses::Decision::Replace(now) if now.is_empty()),
                "{answer:?}"
            );
            // There is no cluster here in which it could be done, so the client gets a warning.
            let told = soon(told.recv()).await.unwrap();
            let told = Frame {
                header: FrameHeader::read(&told, Direction::Response, 1 << 20)
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
