//! The state of a connection that its two directions share.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{
    Compression, DecodeError, FrameFlags, FrameHeader, ProtocolVersion, SegmentForm, glance,
};
use net::pending_connections::ConnectionAdmission;
use parking_lot::Mutex;

use super::errors::already_started;
use super::own_streams::OwnStreams;
use super::pending_response::PendingResponse;
use crate::clients::ConnectionHandle;
use crate::dialect::FrameFormat;

/// The largest body of a request before the node has let the client in. Such requests hold options,
/// names and passwords, and the tokens of single sign-on, which are the largest. Bytes.
const UNAUTHENTICATED_BODY_MAX: usize = 256 << 10;

/// The state of a connection that both directions use.
pub(super) struct ProxySession {
    /// The address at which the client reached the gateway.
    pub(super) own_address: SocketAddr,
    /// The address of the client.
    pub(super) client_address: SocketAddr,
    /// Bytes above which bodies of frames are not read by the gateway.
    body_max: usize,
    /// The form of frames that STARTUP requested.
    dialect: Mutex<FrameFormat>,
    /// Whether the node has taken a STARTUP, after which the form of frames does not change.
    has_begun: AtomicBool,
    /// The form of the segments that hold all frames, once the node has answered a STARTUP of
    /// version 5.
    segments: OnceLock<SegmentForm>,
    /// The keyspace of the last USE that the node has confirmed.
    keyspace: Mutex<Option<Arc<str>>>,
    /// The responses that must be read, by the streams of the client's requests.
    awaited: Mutex<HashMap<i16, PendingResponse>>,
    /// The connection as other parts of the gateway see it.
    pub(super) client: Arc<ConnectionHandle>,
    /// Whether the node has let the client in.
    let_in: AtomicBool,
    /// The connection as the listener sees it.
    guest: ConnectionAdmission,
    /// The streams that the gateway uses for its own requests.
    pub(super) own_streams: OwnStreams,
}

impl ProxySession {
    /// Makes the state of a new connection, whose client is not let in yet.
    pub(super) fn new(
        (own_address, client_address): (SocketAddr, SocketAddr),
        body_max: usize,
        client: Arc<ConnectionHandle>,
        guest: ConnectionAdmission,
    ) -> Self {
        ProxySession {
            own_address,
            client_address,
            body_max,
            dialect: Mutex::default(),
            has_begun: AtomicBool::new(false),
            segments: OnceLock::new(),
            keyspace: Mutex::new(None),
            awaited: Mutex::default(),
            client,
            let_in: AtomicBool::new(false),
            guest,
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
            false => self.body_max.min(UNAUTHENTICATED_BODY_MAX),
        }
    }

    /// Whether the node has let the client in.
    pub(super) fn is_let_in(&self) -> bool {
        self.let_in.load(Ordering::Acquire)
    }

    /// Notes that the node has let the client in. Must be called before the client gets the answer.
    pub(super) fn let_in(&self) {
        self.let_in.store(true, Ordering::Release);
        self.guest.admit();
    }

    /// The form of frames that STARTUP requested.
    pub(super) fn dialect(&self) -> FrameFormat {
        *self.dialect.lock()
    }

    /// The version of the protocol: that of STARTUP, or that of the last request before it.
    pub(super) fn version(&self) -> ProtocolVersion {
        self.dialect().version
    }

    /// The compression of each frame by itself.
    pub(super) fn compression(&self) -> Option<Compression> {
        self.dialect().compression()
    }

    /// Takes the version of a request. The error is the version of the connection if that is
    /// another: once the node has taken a STARTUP, there is only one.
    pub(super) fn check_version(&self, version: ProtocolVersion) -> Result<(), ProtocolVersion> {
        let mut dialect = self.dialect.lock();
        if !self.is_let_in() && !self.has_begun() {
            dialect.version = version;
        }
        match dialect.version == version {
            true => Ok(()),
            false => Err(dialect.version),
        }
    }

    /// Notes the version and the compression that STARTUP requests. If the node refuses it, no
    /// frame will be compressed.
    ///
    /// # Errors
    /// If the node has taken a STARTUP before. If the gateway and the node read the connection in
    /// different ways, statements would get through that the gateway did not look at.
    pub(super) fn set_frame_format(
        &self,
        version: ProtocolVersion,
        compression: Option<Compression>,
    ) -> Result<(), CqlError> {
        if self.has_begun() {
            return Err(already_started());
        }
        *self.dialect.lock() = FrameFormat::new(version, compression);
        Ok(())
    }

    /// Whether the node has taken a STARTUP.
    fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// Notes that the node has taken a STARTUP. Must be called before the client gets the answer.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::Release);
    }

    /// The form of the segments that hold all frames from now on, if the client and the node use
    /// segments.
    pub(super) fn segments(&self) -> Option<SegmentForm> {
        self.segments.get().copied()
    }

    /// Whether segments begin with the answer to STARTUP, which has not come yet.
    pub(super) fn will_have_segments(&self) -> bool {
        self.segments.get().is_none() && self.version() == ProtocolVersion::V5
    }

    /// Notes that segments begin after the node's answer to STARTUP, and returns their form. Must
    /// be called before the client gets the answer.
    pub(super) fn begin_segments(&self) -> SegmentForm {
        *self.segments.get_or_init(|| self.dialect().segments())
    }

    /// The keyspace of names without one: that of the last USE that the node has confirmed.
    pub(super) fn keyspace(&self) -> Option<Arc<str>> {
        self.keyspace.lock().clone()
    }

    /// The keyspace of names without one in a request: its own, or that of the connection.
    ///
    /// # Errors
    /// If the body is malformed.
    pub(super) fn keyspace_of(
        &self,
        header: &FrameHeader,
        plain: &[u8],
    ) -> Result<Option<Arc<str>>, DecodeError> {
        let Some(own) = glance::keyspace(header, plain)? else {
            return Ok(self.keyspace());
        };
        let own = str::from_utf8(own)
            .map_err(|_| DecodeError::Invalid("the keyspace is not UTF-8".to_owned()))?;
        Ok(Some(own.into()))
    }

    /// Notes that the node has confirmed a USE. Must be called before the client gets the answer.
    pub(super) fn use_keyspace(&self, keyspace: &str) {
        *self.keyspace.lock() = Some(keyspace.into());
    }

    /// Waits until the client's request may go to the node on its stream. No answer may be due to
    /// the client on this stream.
    pub(super) async fn reserve_stream(&self, stream: i16) {
        self.own_streams.reserve_for_client(stream).await;
    }

    /// Notes that a request of the client has its answer. Called when the answer is decided on,
    /// perhaps before its bytes are written.
    pub(super) fn client_is_answered(&self, stream: i16) {
        self.client.answered(stream);
        self.own_streams.answered(stream);
    }

    /// Has the response of a stream read when it comes. Must be called before the request goes on.
    pub(super) fn await_response(&self, stream: i16, awaited: PendingResponse) {
        self.awaited.lock().insert(stream, awaited);
    }

    /// Whether the response of a stream must be read.
    pub(super) fn is_awaited(&self, stream: i16) -> bool {
        self.awaited.lock().contains_key(&stream)
    }

    /// Takes the statement by which the response of a stream must be read.
    pub(super) fn take_awaited(&self, stream: i16) -> Option<PendingResponse> {
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
        // In version 5 segments are compressed, and no frame by itself.
        let may_be_compressed = header.version == ProtocolVersion::V4;
        if !may_be_compressed || !header.flags.contains(FrameFlags::COMPRESSION) {
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
