//! The responses that must be read before they go on, each by the kind of the statement that it
//! answers.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use cql::wire::ColumnsMetadata;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use uuid::Uuid;

use crate::answer_cache::RequestCacheKey;
use crate::catalog::{IndexStatement, LoggedTable, MarkedWrite};
use crate::dependencies::StatementDependencies;
use crate::overlay::describe::ParsedDescribe;
use crate::overlay::indexes::IndexRows;
use crate::overlay::refusal::TableChangeRefusal;
use crate::statement::ClassifiedStatement;
use crate::writes::WriteExecution;

/// A statement whose response must be read, with everything that the response is handled by.
#[derive(Debug)]
pub(super) enum PendingResponse {
    /// PREPARE of a statement.
    Prepared {
        /// The facts that the statement is understood by.
        dependencies: StatementDependencies,
        /// The statement, as its text shows it.
        statement: ClassifiedStatement,
        /// The length of the text. Bytes.
        text_bytes: usize,
    },
    /// USE.
    Keyspace,
    /// A question that many clients send. Its answer is cached for them.
    Kept(RequestCacheKey),
    /// A read that may return rows of a table that describes nodes. The columns are those of the
    /// prepared statement, if one was executed.
    RingRows(Option<Arc<ColumnsMetadata>>),
    /// The probe of a definition, which is carried out unless the response says that the client may
    /// not make it.
    Definition(Arc<IndexStatement>, ToClient),
    /// The probe of a statement that is refused. If the node says that the client may not make the
    /// change, the client gets the node's answer.
    Refused(Arc<TableChangeRefusal>, ToClient),
    /// A read to whose rows those of vector indexes are added.
    IndexRows(Box<IndexRows>),
    /// A DESCRIBE, to whose rows descriptions of vector indexes are added.
    Description(Arc<ParsedDescribe>),
    /// TRUNCATE of a logged table.
    Truncated(Box<TruncateUnderWay>),
    /// A step of a write to logged tables.
    Write(Box<WriteUnderWay>),
}

/// The way to the client of a probe. It is held until the node answers, so that the other loop does
/// not take the client for one that is due no more answers. `None` if the connection is at its end.
pub(super) type ToClient = Option<mpsc::Sender<Bytes>>;

/// A write to logged tables, between a request to the node and its answer.
#[derive(Debug)]
pub(super) struct WriteUnderWay {
    /// The steps of the write that are still to be taken.
    pub(super) execution: WriteExecution,
    /// The time at which the write began.
    pub(super) since: Instant,
    /// The number of times that the write was retried because it was decided by outdated
    /// definitions.
    pub(super) retries: u32,
    /// The note that the logs of the write's tables may get rows.
    pub(super) entered: MarkedWrite,
    /// The write's share of the memory that the connection's writes may hold.
    pub(super) memory: OwnedSemaphorePermit,
}

/// A TRUNCATE of a logged table, between the request to the node and its answer.
#[derive(Debug)]
pub(super) struct TruncateUnderWay {
    /// The table that is truncated.
    pub(super) table: Arc<LoggedTable>,
    /// The id of the note about the TRUNCATE that is stored with the definitions.
    pub(super) note: Uuid,
    /// The way to the client. It is held until the client is answered, so that the other loop does
    /// not take the client for one that is due no more answers.
    pub(super) answers: mpsc::Sender<Bytes>,
}
