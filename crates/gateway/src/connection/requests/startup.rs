//! STARTUP, after which nothing goes to the node until it is answered.
//!
//! The answer settles the form of all frames after it. In version 5 they come within segments. If
//! the gateway passed frames on before it knows of the answer, the node could read other frames out
//! of the same bytes: statements that the gateway did not look at.

use std::io;

use cql::wire::FrameHeader;
use tokio::io::AsyncWrite;
use tokio::time::timeout;

use super::RequestLoop;
use crate::connection::ends::RequestsEnd;
use crate::connection::frame_reader::ClientFrameReader;
use crate::connection::frame_writer::ClientFrameWriter;

impl RequestLoop {
    /// Passes on a STARTUP, which is the first `length` bytes of the buffer, and waits for its
    /// answer. What the client has sent after it is in the form that the answer settles.
    ///
    /// Meanwhile the client is not read, so it can disconnect unnoticed. The connection ends if the
    /// node takes longer than the client may take for its login.
    pub(super) async fn start(
        &mut self,
        header: &FrameHeader,
        intake: &mut ClientFrameReader,
        length: usize,
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<(), RequestsEnd> {
        let within = self.handshake_timeout;
        let started = timeout(
            within,
            self.start_before_timeout(header, intake, length, node),
        )
        .await;
        started.unwrap_or_else(|_| {
            let why = format!("the node has not answered STARTUP within {within:?}");
            let error = io::Error::new(io::ErrorKind::TimedOut, why);
            Err(RequestsEnd::Client(error))
        })
    }

    async fn start_before_timeout(
        &mut self,
        header: &FrameHeader,
        intake: &mut ClientFrameReader,
        length: usize,
        node: &mut ClientFrameWriter<'_, impl AsyncWrite + Unpin>,
    ) -> Result<(), RequestsEnd> {
        self.others_answered(Some(header.stream), node).await?;
        self.context.session.reserve_stream(header.stream).await;
        let sent = node.send(&intake.bytes()[..length]).await;
        sent.map_err(RequestsEnd::Node)?;
        intake.advance(length);
        self.others_answered(None, node).await?;
        if let Some(form) = self.context.session.segments() {
            intake.begin_segments(form);
            node.begin_segments(form);
        }
        Ok(())
    }
}
