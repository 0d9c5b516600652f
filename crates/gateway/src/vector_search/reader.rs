//! The reader of answers that Cassandra has no part in: whether the client may read the table, and
//! the memory for what it reads.
//!
//! The gateway sends Cassandra a read of no partition, on the client's own connection and at its
//! consistency level. Cassandra checks the user's permissions and its own limits, and reads
//! nothing. Its answer holds for [`VALID_FOR`], which is how long Cassandra by default keeps
//! permissions itself.
//!
//! ```text
//! SELECT "id" FROM "shop"."films" WHERE "id" IN ()
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cql::quote::quoted;
use cql::wire::{Consistency, QueryParameters, Request};
use tokio::sync::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use crate::catalog::LoggedTable;
use crate::metrics::RequestCounters;
use crate::node_requests::{AnswerMemory, ClientRequestError, NodeRequestSender, no_memory};

/// The time for which a permission counts without being checked again.
const VALID_FOR: Duration = Duration::from_secs(2);

/// The client of a connection as a reader of tables, where Cassandra reads none for it.
#[derive(Debug)]
pub(super) struct ReadPermissionCache {
    /// The time at which Cassandra last checked a permission, by the table's id and the level of
    /// the read. The check holds the lock, so that many searches at once send one read.
    permitted: Mutex<HashMap<(Uuid, Consistency), Instant>>,
    /// The memory for the values of answers.
    memory: AnswerMemory,
    /// The counters that metrics show.
    metrics: Arc<RequestCounters>,
}

impl ReadPermissionCache {
    pub(super) fn new(memory: AnswerMemory, metrics: Arc<RequestCounters>) -> ReadPermissionCache {
        ReadPermissionCache {
            permitted: Mutex::default(),
            memory,
            metrics,
        }
    }

    /// Checks that the client may read a table at a consistency level.
    ///
    /// # Errors
    /// Cassandra's own error if the client may not, or if Cassandra does not answer.
    pub(super) async fn check(
        &self,
        table: &LoggedTable,
        consistency: Consistency,
        node: &NodeRequestSender,
    ) -> Result<(), ClientRequestError> {
        let mut permitted = self.permitted.lock().await;
        permitted.retain(|_, asked| asked.elapsed() < VALID_FOR);
        if permitted.contains_key(&(table.id, consistency)) {
            return Ok(());
        }
        let asked = Instant::now();
        let request = Request::Query {
            statement: read_of_nothing(table),
            parameters: QueryParameters {
                consistency,
                ..QueryParameters::default()
            },
        };
        node.ask(&request, false).await?;
        permitted.insert((table.id, consistency), asked);
        Ok(())
    }

    /// Notes an answer of the index service that replaces the rows, whose values take so many
    /// bytes. `node` holds the memory until the client has the answer.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn answered(
        &self,
        bytes: usize,
        node: &NodeRequestSender,
    ) -> Result<(), ClientRequestError> {
        node.add_reserved_memory(self.memory.hold(bytes).ok_or_else(no_memory)?);
        self.metrics.answered_without_rows();
        Ok(())
    }
}

/// The statement that reads no partition of a table.
fn read_of_nothing(table: &LoggedTable) -> String {
    let key: Vec<String> = table
        .partition_key()
        .iter()
        .map(|column| quoted(&column.name))
        .collect();
    let restrictions: Vec<String> = key.iter().map(|name| format!("{name} IN ()")).collect();
    format!(
        "SELECT {} FROM {}.{} WHERE {}",
        key.join(", "),
        quoted(&table.keyspace),
        quoted(&table.name),
        restrictions.join(" AND ")
    )
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use cql::error::{CqlError, ErrorKind};
    use cql::wire::{Frame, FrameDirection, FrameHeader, HEADER_LENGTH, Response, ResponseContext};
    use tokio::time::advance;

    use super::super::fixtures::table;
    use super::*;
    use crate::node_requests::{NodeRequest, NodeResponse};

    /// The answer of a node to a request.
    fn answer(memory: &AnswerMemory, response: &Response) -> NodeResponse {
        let mut out = BytesMut::new();
        response.encode(&ResponseContext::new(0), None, &mut out);
        let header = FrameHeader::read(&out, FrameDirection::Response, out.len()).unwrap();
        NodeResponse {
            frame: Frame {
                header: header.unwrap(),
                body: out.freeze().slice(HEADER_LENGTH..),
            },
            held: memory.hold(1).unwrap(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_permission_holds_for_two_seconds_and_a_refusal_not_at_all() {
        let memory = AnswerMemory::new(1 << 20);
        let reader = ReadPermissionCache::new(memory.clone(), Arc::default());
        let (node, mut inquiries) = NodeRequestSender::new();
        let films = table(&["id"], &[]);
        let mut other = films.clone();
        other.id = Uuid::from_u128(2);
        let unauthorized = || Response::Error(CqlError::new(ErrorKind::Unauthorized, "no"));
        for (table, waits, response) in [
            (&films, 0, Some(unauthorized())),
            (&films, 0, Some(Response::Void)),
            (&films, 1_999, None),
            (&other, 0, Some(Response::Void)),
            (&films, 1, Some(Response::Void)),
            (&films, 1_999, None),
        ] {
            advance(Duration::from_millis(waits)).await;
            let is_refused = matches!(response, Some(Response::Error(_)));
            let asked = async {
                if let Some(response) = &response {
                    let NodeRequest { answer: sender, .. } = inquiries.recv().await.unwrap();
                    sender.send(Some(answer(&memory, response))).unwrap();
                }
            };
            let checked = reader.check(table, Consistency::One, &node);
            let (checked, ()) = tokio::join!(checked, asked);
            assert_eq!(checked.is_err(), is_refused);
            assert!(inquiries.try_recv().is_err());
        }
    }

    #[test]
    fn an_answer_needs_memory_until_it_is_taken() {
        let reader = ReadPermissionCache::new(AnswerMemory::new(1 << 10), Arc::default());
        let (node, _inquiries) = NodeRequestSender::new();
        assert!(reader.answered(500, &node).is_ok());
        assert!(reader.answered(500, &node).is_err());
        drop(node.take_reserved_memory());
        assert!(reader.answered(500, &node).is_ok());
    }

    #[test]
    fn no_partition_is_read() {
        assert_eq!(
            read_of_nothing(&table(&["id"], &[])),
            "SELECT \"id\" FROM \"shop\".\"films\" WHERE \"id\" IN ()"
        );
        assert_eq!(
            read_of_nothing(&table(&["p", "q"], &["c"])),
            "SELECT \"p\", \"q\" FROM \"shop\".\"films\" WHERE \"p\" IN () AND \"q\" IN ()"
        );
    }
}
