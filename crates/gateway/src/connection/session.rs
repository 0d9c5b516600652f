//! What the two directions of a connection know together.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use cql::wire::{Compression, DecodeError, Flags, FrameHeader, Metadata};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use uuid::Uuid;

use crate::catalog::{Entered, LoggedTable};
use crate::clients::Client;
use crate::grounds::Grounds;
use crate::kept_answers::Question;
use crate::overlay::log_read::LogRead;
use crate::overlay::{Answering, Concern};
use crate::writes::{Errand, PreparedWrite};

use super::own_streams::OwnStreams;

/// Bodies of requests before the node has let the client in: options, names and passwords, and the tokens of
/// single sign-on, which are the largest.
const STRANGERS_BODY_MAX: usize = 256 << 10;

/// Why a response must be read before it goes on.
#[derive(Debug)]
pub(super) enum Expected {
    /// It answers PREPARE.
    Prepared {
        /// What that is understood by.
        grounds: Grounds,
        /// What was seen in its text.
        seen: Seen,
        /// How long that is.
        text_bytes: usize,
    },
    /// It answers USE.
    Keyspace,
    /// It answers what many ask, and is kept for them.
    Kept(Question),
    /// It may hold rows of a table that tells of nodes. The columns are those of the prepared statement, if one was
    /// executed.
    RingRows(Option<Arc<Metadata>>),
    /// It is added to, or decides about what is done here; then the client is answered this way.
    Answering(Box<(Answering, Option<mpsc::Sender<Bytes>>)>),
    /// It answers TRUNCATE of a logged table.
    Truncated(Box<TruncateUnderWay>),
    /// It answers a step of a write to logged tables.
    Write(Box<WriteUnderWay>),
}

/// A write to logged tables between a request to the node and its answer.
#[derive(Debug)]
pub(super) struct WriteUnderWay {
    pub(super) errand: Errand,
    /// How often it was begun anew, as what it was begun by was out of date.
    pub(super) begun_anew: u32,
    /// That its tables' logs may get rows.
    pub(super) entered: Entered,
    /// The memory that it holds, out of what the connection may hold.
    pub(super) memory: OwnedSemaphorePermit,
}

/// A TRUNCATE of a logged table between the request to the node and its answer.
#[derive(Debug)]
pub(super) struct TruncateUnderWay {
    pub(super) table: Arc<LoggedTable>,
    /// The note that the definitions have of it.
    pub(super) note: Uuid,
    /// The way to the client. Held until it is answered: the other loop must not take it for one that is due no more answers.
    pub(super) answers: mpsc::Sender<Bytes>,
}

/// What was seen in the text of a statement that is prepared, as far as it matters once its answer is here.
#[derive(Debug)]
pub(super) enum Seen {
    /// Nothing.
    Nothing,
    /// It is a USE.
    Use,
    /// It may read a table that tells of nodes.
    RingTable,
    /// It polls a change log.
    LogRead(LogRead),
    /// It asks which generations of streams there are.
    Generations,
    /// It concerns vector indexes.
    Concern(Concern),
    /// It truncates a logged table.
    Truncate(Arc<LoggedTable>),
    /// It writes to logged tables.
    Write(Box<PreparedWrite>),
}

/// The state of a connection that both directions use.
pub(super) struct Session {
    /// Where the client reached us.
    pub(super) own_address: SocketAddr,
    body_max: usize,
    compression: Mutex<Option<Compression>>,
    keyspace: Mutex<Option<Arc<str>>>,
    expected: Mutex<HashMap<i16, Expected>>,
    /// What others know of this connection.
    pub(super) client: Arc<Client>,
    let_in: AtomicBool,
    /// Streams that the gateway uses for itself.
    pub(super) own_streams: OwnStreams,
}

impl Session {
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

    /// Bodies above this many bytes, as they came or plain, are not read here.
    pub(super) fn body_max(&self) -> usize {
        self.body_max
    }

    /// The same for requests: whoever the node has not let in yet may not have much kept here.
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

    /// The node has let the client in. Must be called before the client is told.
    pub(super) fn let_in(&self) {
        self.let_in.store(true, Ordering::Release);
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        *self.compression.lock()
    }

    /// Takes note of what STARTUP asks for. Should the node refuse it, no frame will be compressed.
    pub(super) fn agree_on(&self, compression: Option<Compression>) {
        *self.compression.lock() = compression;
    }

    /// The keyspace that names without one are in: that of the last USE that the node has confirmed.
    pub(super) fn keyspace(&self) -> Option<Arc<str>> {
        self.keyspace.lock().clone()
    }

    /// The node has confirmed a USE. Must be called before the client is told.
    pub(super) fn use_keyspace(&self, keyspace: &str) {
        *self.keyspace.lock() = Some(keyspace.into());
    }

    /// Must be waited for before a request of the client's goes to the node. Nothing may be due on its stream.
    pub(super) async fn client_asks(&self, stream: i16) {
        self.own_streams.client_asks(stream).await;
    }

    /// The client has all that it is due on a stream, but for the bytes.
    pub(super) fn client_is_answered(&self, stream: i16) {
        self.client.answered(stream);
        self.own_streams.answered(stream);
    }

    /// Has the response of a stream read when it comes. Must be called before the request goes on.
    pub(super) fn expect(&self, stream: i16, expected: Expected) {
        self.expected.lock().insert(stream, expected);
    }

    pub(super) fn is_expected(&self, stream: i16) -> bool {
        self.expected.lock().contains_key(&stream)
    }

    /// What the response of a stream must be read for, now that it is here.
    pub(super) fn take_expected(&self, stream: i16) -> Option<Expected> {
        self.expected.lock().remove(&stream)
    }

    /// The body of a frame, decompressed into `scratch` if it is compressed.
    ///
    /// # Errors
    /// If it cannot be decompressed, or would be too large.
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
