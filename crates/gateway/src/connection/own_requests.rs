//! Writes the gateway's own requests to the node.

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

use super::ends::RequestsEnd;
use super::frame_writer::ClientFrameWriter;
use super::session::ProxySession;
use crate::node_requests::NodeRequest;

/// The position of the stream in a frame. The stream has two bytes.
const STREAM_AT: usize = 2;

/// Writes a request and all that wait after it, in one write.
pub(super) async fn write_node_requests(
    first: NodeRequest,
    waiting: &mut mpsc::Receiver<NodeRequest>,
    session: &ProxySession,
    node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
) -> Result<(), RequestsEnd> {
    let mut frames = BytesMut::new();
    let mut next = Some(first);
    while let Some(NodeRequest { mut frame, answer }) = next {
        // Without a free stream the answer's sender is dropped, which ends the wait for the answer.
        if let Some(stream) = session.own_streams.take(answer) {
            frame[STREAM_AT..STREAM_AT + 2].copy_from_slice(&stream.to_be_bytes());
            session.client.inquired();
            if frames.is_empty() {
                frames = frame;
            } else {
                frames.extend_from_slice(&frame);
            }
        }
        next = waiting.try_recv().ok();
    }
    node.send(&frames).await.map_err(RequestsEnd::Node)
}
