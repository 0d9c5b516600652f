//! The state of a connection that its two directions share.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use cql::wire::{Compression, DecodeError, Flags, FrameHeader};
use parking_lot::Mutex;

use super::awaited::Awaited;
use super::own_streams::OwnStreams;
use crate::clients::Client;

/// The largest body of a request before the node has let the client in. Such requests hold options,
/// names and passwords, and the tokens of single sign-on, which are the largest. Bytes.
const STRANGERS_BODY_MAX: usize = 256 << 10;

/// The state of a connection that both directions use.
pub(super) struct Session {
    /// The address at which the client reached the gateway.
    pub(super) own_address: SocketAddr,
    /// Bytes above which bodies of frames are not read by the gateway.
    body_max: usize,
    /// The compression that STARTUP asked for.
    compression: Mutex<Option<Compression>>,
    /// The keyspace of the last USE that the node has confirmed.
    keyspace: Mutex<Option<Arc<str>>>,
    /// The responses that must be read, by the streams of the client's requests.
    awaited: Mutex<HashMap<i16, Awaited>>,
    /// The connection as other parts of the gateway see it.
    pub(super) client: Arc<Client>,
    /// Whether the node has let the client in.
    let_in: AtomicBool,
    /// The streams that the gateway uses for its own requests.
    pub(super) own_streams: OwnStreams,
}

impl Session {
    /// Makes the state of a new connection, whose client is not let in yet.
    pub(super) fn new(own_address: SocketAddr, body_max: usize, client: Arc<Client>) -> Self {
        Session {
            own_address,
            body_max,
            compression: Mutex::new(None),
            keyspace: Mutex::new(None),
            awaited: Mutex::default(),
            client,
            let_in: AtomicBool::new(false),
            own_streams: OwnStreams::default(),
        }
    }

    /// The largest body that is read by the gateway, compressed or not. Bytes.
    pub(super) fn body_max(&self) -> usize {
        self.body_max
    }

    /// The largest body of a request that the gateway takes: less while the node has not let the
    /// client in, so that strangers take little memory. Bytes.
    pub(super) fn request_body_max(&self) -> usize {
        match self.is_let_in() {
            true => self.body_max,
            false => self.body_max.min(STRANGERS_BODY_MAX),
        }
    }

    /// Whether the node has let the client in.
    pub(super) fn is_let_in(&self) -> bool {
        self.let_in.load(Ordering::Acquire)
    }

    /// Notes that the node has let the client in. Must be called before the client is told.
    pub(super) fn let_in(&self) {
        self.let_in.store(true, Ordering::Release);
    }

    /// The compression that STARTUP asked for.
    pub(super) fn compression(&self) -> Option<Compression> {
        *self.compression.lock()
    }

    /// Notes the compression that STARTUP asks for. If the node refuses it, no frame will be
    /// compressed.
    pub(super) fn agree_on(&self, compression: Option<Compression>) {
        *self.compression.lock() = compression;
    }

    /// The keyspace of names without one: that of the last USE that the node has confirmed.
    pub(super) fn keyspace(&self) -> Option<Arc<str>> {
        self.keyspace.lock().clone()
    }

    /// Notes that the node has confirmed a USE. Must be called before the client is told.
    pub(super) fn use_keyspace(&self, keyspace: &str) {
        *self.keyspace.lock() = Some(keyspace.into());
    }

    /// Waits until the client's request may go to the node on its stream. No answer may be due to
    /// the client on this stream.
    pub(super) async fn client_asks(&self, stream: i16) {
        self.own_streams.client_asks(stream).await;
    }

    /// Notes that a request of the client has its answer. Called when the answer is decided on,
    /// perhaps before its bytes are written.
    pub(super) fn client_is_answered(&self, stream: i16) {
        self.client.answered(stream);
        self.own_streams.answered(stream);
    }

    /// Has the response of a stream read when it comes. Must be called before the request goes on.
    pub(super) fn await_response(&self, stream: i16, awaited: Awaited) {
        self.awaited.lock().insert(stream, awaited);
    }

    /// Whether the response of a stream must be read.
    pub(super) fn is_awaited(&self, stream: i16) -> bool {
        self.awaited.lock().contains_key(&stream)
    }

    /// Takes the statement by which the response of a stream must be read.
    pub(super) fn take_awaited(&self, stream: i16) -> Option<Awaited> {
        self.awaited.lock().remove(&stream)
    }

    /// The body of a frame, decompressed into `scratch` if it is compressed.
    ///
    /// # Errors
    /// If the body cannot be decompressed, or would be too large.
    pub(super) fn plain<'a>(
        &self,
        header: &FrameHeader,
        body: &'a [u8],
        scratch: &'a mut Bytes,
    ) -> Result<&'a [u8], DecodeError> {
        if !header.flags.contains(Flags::COMPRESSION) {
            return Ok(body);
        }
        let compression = self.compression().ok_or_else(|| {
            DecodeError::Invalid(
                "the frame is compressed, but STARTUP agreed on no compression".to_owned(),
            )
        })?;
        *scratch = compression.decompress(body, self.request_body_max())?;
        Ok(scratch)
    }
}
