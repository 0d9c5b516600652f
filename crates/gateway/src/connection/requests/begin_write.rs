//! Begins writes to logged tables: waits for memory and for the marks of their logs, and sends the
//! first request of each.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use cql::error::CqlError;
use cql::wire::FrameHeader;
use tokio::io::AsyncWrite;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::RequestLoop;
use crate::catalog::MarkedWrite;
use crate::connection::ends::RequestsEnd;
use crate::connection::frame_writer::ClientFrameWriter;
use crate::connection::pending_response::{PendingResponse, WriteUnderWay};
use crate::writes::WriteExecution;

/// The memory that the writes under way of one connection may hold. With more, the connection's
/// requests wait. A larger write goes by itself. Bytes.
const MEMORY_MAX: usize = 16 << 20;

/// The number of copies of a write that are held: as it came, and as a batch.
const COPIES: usize = 2;

/// The memory for the writes of a new connection.
pub(in crate::connection) fn write_memory() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MEMORY_MAX))
}

impl RequestLoop {
    /// Sends the first request of a write to the node. `length` is the length of the client's
    /// request. Bytes.
    pub(super) async fn begin(
        &mut self,
        header: &FrameHeader,
        execution: WriteExecution,
        length: usize,
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<(), RequestsEnd> {
        let since = Instant::now();
        let bytes = length * COPIES + execution.bytes();
        let memory = self.memory(bytes, node).await?;
        let entered = match self.enter(&execution, node).await? {
            Ok(entered) => entered,
            Err(error) => {
                self.context.session.client_is_answered(header.stream);
                self.answer(header.stream, error).await;
                return Ok(());
            }
        };
        let (request, execution) = execution.begin();
        let write = WriteUnderWay {
            execution,
            since,
            retries: 0,
            entered,
            memory,
        };
        let awaited = PendingResponse::Write(Box::new(write));
        self.context.session.await_response(header.stream, awaited);
        node.send(&request).await.map_err(RequestsEnd::Node)
    }

    /// Waits until it is noted in the cluster that the logs of the write's tables may get rows.
    /// Writes under way go on meanwhile.
    async fn enter(
        &mut self,
        execution: &WriteExecution,
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<Result<MarkedWrite, CqlError>, RequestsEnd> {
        let mut entered = pin!(self.context.catalog.enter(execution.tables()));
        loop {
            tokio::select! {
                biased;
                entered = &mut entered => return Ok(entered),
                Some(step) = self.steps.recv() => {
                    node.send(&step).await.map_err(RequestsEnd::Node)?;
                }
            }
        }
    }

    /// Waits until `bytes` more bytes may be held. Writes under way go on meanwhile.
    async fn memory(
        &mut self,
        bytes: usize,
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<OwnedSemaphorePermit, RequestsEnd> {
        // A write that takes more waits until it has all of the memory.
        let bytes = u32::try_from(bytes.min(MEMORY_MAX)).expect("bug: the limit is beyond 4 GiB");
        loop {
            // Begun again after each step, which loses no place: no other task waits here.
            let permit = self.write_memory.clone().acquire_many_owned(bytes);
            tokio::select! {
                biased;
                permit = permit => return Ok(permit.expect("bug: the semaphore is closed")),
                Some(step) = self.steps.recv() => {
                    node.send(&step).await.map_err(RequestsEnd::Node)?;
                }
            }
        }
    }
}
