//! TRUNCATE of a logged table: passed on, and answered once the table's indexes are to be built anew.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cql::ast::TableName;
use cql::parser::{Changed, changed};
use cql::wire::{Compression, DecodeError, FrameHeader, Opcode};
use tokio::sync::mpsc;

use super::requests::Requests;
use super::responses::{self, Responses};
use super::session::Expected;
use crate::catalog::{LoggedTable, Snapshot};

impl Requests {
    /// The logged table that a TRUNCATE is of.
    pub(super) fn truncated_table(
        &self,
        text: &[u8],
        snapshot: &Snapshot,
    ) -> Option<Arc<LoggedTable>> {
        let Some(Changed::All(TableName { keyspace, name })) = changed(str::from_utf8(text).ok()?)
        else {
            return None;
        };
        let in_use = self.session.keyspace();
        snapshot.logged_table(keyspace.as_deref().or(in_use.as_deref())?, &name)
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
    ) -> Result<responses::Decision, DecodeError> {
        if header.opcode != Opcode::Result {
            return Ok(responses::Decision::Keep);
        }
        let (mut context, response) = self.decode(header, body)?;
        let catalog = self.catalog.clone();
        tokio::spawn(async move {
            if let Err(error) = catalog.renew(&table.keyspace, &table.name).await {
                context.warnings.push(format!(
                    "{}.{} is truncated, but its vector indexes are not built anew ({error}): drop and create them",
                    table.keyspace, table.name
                ));
            }
            const PLAIN: Option<Compression> = None;
            let mut frame = BytesMut::new();
            response.encode(&context, PLAIN, &mut frame);
            // If the other loop has ended, the client is gone.
            let _ = answers.send(frame.freeze()).await;
        });
        Ok(responses::Decision::Replace(Bytes::new()))
    }
}
