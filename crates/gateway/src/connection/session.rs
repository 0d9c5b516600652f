//! The state of a connection that its two directions share.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use cql::wire::{Compression, DecodeError, Flags, FrameHeader, Metadata};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use uuid::Uuid;

use super::own_streams::OwnStreams;
use crate::catalog::{Entered, LoggedTable};
use crate::clients::Client;
use crate::grounds::Grounds;
use crate::kept_answers::Question;
use crate::overlay::log_read::LogRead;
use crate::overlay::{Answering, Concern};
use crate::writes::{Errand, PreparedWrite};

/// The largest body of a request before the node has let the client in. Such requests hold options,
/// names and passwords, and the tokens of single sign-on, which are the largest. Bytes.
const STRANGERS_BODY_MAX: usize = 256 << 10;

/// The request that a response answers, if the response must be read before it goes on.
#[derive(Debug)]
pub(super) enum Expected {
    /// PREPARE.
    Prepared {
        /// The facts that the statement is understood by.
        grounds: Grounds,
        /// The kind of statement, as its text shows.
        seen: Seen,
        /// The length of the text. Bytes.
        text_bytes: usize,
    },
    /// USE.
    Keyspace,
    /// A question that many clients ask. Its answer is kept for them.
    Kept(Question),
    /// A read that may return rows of a table that tells of nodes. The columns are those of the
    /// prepared statement, if one was executed.
    RingRows(Option<Arc<Metadata>>),
    /// A statement that concerns vector indexes. The response is added to, or decides what the
    /// gateway does. The sender is the way to the client, if the answer may come later.
    Answering(Box<(Answering, Option<mpsc::Sender<Bytes>>)>),
    /// TRUNCATE of a logged table.
    Truncated(Box<TruncateUnderWay>),
    /// A step of a write to logged tables.
    Write(Box<WriteUnderWay>),
}

/// A write to logged tables, between a request to the node and its answer.
#[derive(Debug)]
pub(super) struct WriteUnderWay {
    /// The steps of the write that are still to be taken.
    pub(super) errand: Errand,
    /// The time at which the write began.
    pub(super) since: Instant,
    /// The number of times that the write was begun anew because it was decided by outdated
    /// definitions.
    pub(super) begun_anew: u32,
    /// The note that the logs of the write's tables may get rows.
    pub(super) entered: Entered,
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

/// The kind of a statement that is prepared, as its text shows. It is needed when the answer to
/// PREPARE comes.
#[derive(Debug)]
pub(super) enum Seen {
    /// A statement that the gateway does nothing about.
    Nothing,
    /// A USE.
    Use,
    /// A statement that may read a table that tells of nodes.
    RingTable,
    /// A poll of a change log.
    LogRead(LogRead),
    /// A question which generations of streams there are.
    Generations,
    /// A statement that concerns vector indexes.
    Concern(Concern),
    /// A TRUNCATE of a logged table.
    Truncate(Arc<LoggedTable>),
    /// A write to logged tables.
    Write(Box<PreparedWrite>),
}

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
    /// For streams of the client's requests, why their responses must be read.
    expected: Mutex<HashMap<i16, Expected>>,
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
            expected: Mutex::default(),
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

    /// Notes why the response of a stream must be read when it comes. Must be called before the
    /// request goes on.
    pub(super) fn expect(&self, stream: i16, expected: Expected) {
        self.expected.lock().insert(stream, expected);
    }

    /// Whether the response of a stream must be read.
    pub(super) fn is_expected(&self, stream: i16) -> bool {
        self.expected.lock().contains_key(&stream)
    }

    /// Takes the reason why the response of a stream must be read.
    pub(super) fn take_expected(&self, stream: i16) -> Option<Expected> {
        self.expected.lock().remove(&stream)
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
