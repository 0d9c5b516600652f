//! USE, which goes to the node while it is the only request of its client.
//!
//! The node carries out the requests of a connection side by side, in no order. A statement that is
//! sent before the answer to a USE may be understood in the old keyspace or in the new one, and no
//! one can know in which. Then a write to a logged table could be taken for one to another table,
//! and its prepared id be remembered so for every client. So a USE waits until all earlier requests
//! are answered, and later requests wait for its answer.

use cql::wire::FrameHeader;
use tokio::io::AsyncWrite;

use super::RequestLoop;
use crate::connection::ends::RequestsEnd;
use crate::connection::frame_writer::ClientFrameWriter;
use crate::connection::own_requests::write_node_requests;
use crate::connection::pending_response::PendingResponse;

impl RequestLoop {
    /// Passes on a USE, and waits for its answer.
    pub(super) async fn use_keyspace(
        &mut self,
        header: &FrameHeader,
        frame: &[u8],
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<(), RequestsEnd> {
        self.others_answered(Some(header.stream), node).await?;
        self.context.session.reserve_stream(header.stream).await;
        self.context
            .session
            .await_response(header.stream, PendingResponse::Keyspace);
        node.send(frame).await.map_err(RequestsEnd::Node)?;
        self.others_answered(None, node).await
    }

    /// Waits until no answer is due to the client except on the stream `but`. Requests of searches
    /// and writes under way still go to the node.
    pub(super) async fn others_answered(
        &mut self,
        but: Option<i16>,
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<(), RequestsEnd> {
        let session = self.context.session.clone();
        loop {
            tokio::select! {
                biased;
                () = session.client.others_answered(but) => return Ok(()),
                Some(step) = self.steps.recv() => {
                    node.send(&step).await.map_err(RequestsEnd::Node)?;
                }
                Some(inquiry) = self.node_requests.recv() => {
                    write_node_requests(inquiry, &mut self.node_requests, &session, node).await?;
                }
                () = self.stop.cancelled() => return Err(RequestsEnd::Stopping),
            }
        }
    }
}
