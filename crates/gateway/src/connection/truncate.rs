//! TRUNCATE of a logged table: passed on, and answered once the table's indexes are to be built anew.
//!
//! They are, unless it is certain that nothing was carried out: an index that is built once too often costs time, and
//! one that holds what is gone is wrong.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cql::ast::TableName;
use cql::error::CqlError;
use cql::parser::{Changed, changed};
use cql::wire::{Compression, FrameHeader};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::requests::Requests;
use super::responses::{self, Responses};
use super::session::{Expected, Session};
use crate::catalog::{Catalog, LoggedTable, Snapshot};
use crate::writes::{self, nothing_was_written};

/// How long nodes may be at a TRUNCATE: Cassandra's `truncate_request_timeout`.
const TRUNCATE_TIMEOUT: Duration = Duration::from_secs(60);

impl Requests {
    /// The logged table that a TRUNCATE is of, if it is of one.
    ///
    /// # Errors
    /// If it names a logged table, and it cannot be told which one it is of.
    pub(super) fn truncated_table(
        &self,
        text: &[u8],
        snapshot: &Snapshot,
    ) -> Result<Option<Arc<LoggedTable>>, CqlError> {
        // What is no UTF-8 is refused by Cassandra.
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

    /// Has the answer to a TRUNCATE read when it comes.
    pub(super) fn expect_truncated(&self, header: &FrameHeader, table: Arc<LoggedTable>) {
        // Held until then: the other loop must not take the client for one that is due no more answers.
        if let Some(answers) = self.session.client.answers() {
            self.session
                .expect(header.stream, Expected::Truncated(table, answers));
        }
    }
}

impl Responses {
    /// The node has answered a TRUNCATE.
    pub(super) fn truncated(
        &self,
        header: &FrameHeader,
        body: &[u8],
        table: Arc<LoggedTable>,
        answers: mpsc::Sender<Bytes>,
    ) -> responses::Decision {
        let read = self.decode(header, body);
        if read
            .as_ref()
            .is_ok_and(|(_, response)| nothing_was_written(response))
        {
            return responses::Decision::Keep;
        }
        // An error, a timeout above all, may come from one node when others have emptied the table.
        let as_it_came = Bytes::from([&header.to_bytes()[..], body].concat());
        let catalog = self.catalog.clone();
        tokio::spawn(async move {
            let renewed = renew(&catalog, &table).await;
            let answer = match (renewed, read) {
                (Err(warning), Ok((mut context, response))) => {
                    const PLAIN: Option<Compression> = None;
                    context.warnings.push(warning);
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

/// A connection has ended: what the node did about the TRUNCATEs on their way is not known, and it may still be at it.
pub(super) fn renew_unanswered(session: &Session, catalog: &Arc<Catalog>) {
    for table in session.take_truncated() {
        let catalog = catalog.clone();
        tokio::spawn(async move {
            sleep(TRUNCATE_TIMEOUT).await;
            // It is logged.
            let _ = renew(&catalog, &table).await;
        });
    }
}

/// Has the indexes of a table built anew.
///
/// # Errors
/// What the client is told if that cannot be.
async fn renew(catalog: &Catalog, table: &LoggedTable) -> Result<(), String> {
    let LoggedTable { keyspace, name, .. } = table;
    catalog.renew(keyspace, name).await.map_err(|error| {
        tracing::warn!(
            keyspace,
            name,
            %error,
            "a table is truncated, or may be, but its vector indexes are not built anew"
        );
        format!(
            "{keyspace}.{name} is truncated, or may be, but its vector indexes are not built anew ({error}): drop and \
             create them"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Client;
    use crate::writes::test_tables::products;

    #[test]
    fn what_is_not_answered_when_a_connection_ends_is_known() {
        let (sender, _receiver) = mpsc::channel(1);
        let client = Arc::new(Client::new(sender.downgrade()));
        let session = Session::new("127.0.0.1:9043".parse().unwrap(), 1 << 20, client);
        let table = Arc::new(products());
        for stream in [1, 2] {
            let truncated = Expected::Truncated(table.clone(), sender.clone());
            session.expect(stream, truncated);
        }
        session.expect(3, Expected::Keyspace);
        session.take_expected(1);
        assert_eq!(session.take_truncated().len(), 1);
        assert!(session.take_truncated().is_empty());
    }
}
