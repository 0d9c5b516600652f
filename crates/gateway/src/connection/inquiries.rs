//! Inquiries of the gateway's own, on their way to the node.

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;

use super::requests::RequestsEnd;
use super::session::Session;
use super::socket::send;
use crate::inquiry::Inquiry;

/// Where in a frame its stream lies: two bytes.
const STREAM_AT: usize = 2;

/// Writes an inquiry, and those that wait behind it, in one go.
pub(super) async fn write_inquiries(
    first: Inquiry,
    waiting: &mut mpsc::Receiver<Inquiry>,
    session: &Session,
    node: &mut (impl AsyncWrite + Unpin),
) -> Result<(), RequestsEnd> {
    let mut frames = BytesMut::new();
    let mut next = Some(first);
    while let Some(Inquiry { mut frame, answer }) = next {
        // Without a free stream the answer is dropped, which tells whoever waits for it.
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
    send(node, &frames).await.map_err(RequestsEnd::Node)
}
