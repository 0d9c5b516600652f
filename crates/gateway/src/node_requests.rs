//! Requests that the gateway itself sends to the node on a client's connection, to carry out what
//! the client requested.
//!
//! The connection's loop takes them from a channel and writes them between the client's requests,
//! on streams that the client does not use. Each gets its own answer. So the gateway need not log
//! in again, the client's own permissions apply, and many requests are on their way at once.

mod memory;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    Compression, Frame, FrameFlags, Opcode, ProtocolVersion, Request, Response, ResponseContext,
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};

pub(crate) use self::memory::{AnswerMemory, ReservedMemory, holding};
use crate::dialect::FrameFormat;

/// Own requests of one connection that are on their way at once; more wait.
pub(crate) const IN_FLIGHT_MAX: usize = 512;

/// Own requests of one connection that may wait to be written.
const WAITING_MAX: usize = 64;

/// The position of the flags in a frame.
const FLAGS_AT: usize = 1;

/// A request that the gateway itself sends to the node.
#[derive(Debug)]
pub(crate) struct NodeRequest {
    /// A whole frame on any stream: its writer sets the stream.
    pub(crate) frame: BytesMut,
    /// The sender for the answer. It is dropped if there will be none.
    pub(crate) answer: AnswerSender,
}

/// An answer of the node to such a request, with the memory that it takes.
#[derive(Debug)]
pub(crate) struct NodeResponse {
    /// The answer's frame as it came.
    pub(crate) frame: Frame,
    /// The memory for the frame.
    pub(crate) held: ReservedMemory,
}

/// The sender for the answer to a request; `None` is sent if there was no memory for the answer.
pub(crate) type AnswerSender = oneshot::Sender<Option<NodeResponse>>;

/// Sends requests on a client's connection. Clones send on the same connection.
#[derive(Clone, Debug)]
pub(crate) struct NodeRequestSender {
    sender: mpsc::Sender<NodeRequest>,
    in_flight: Arc<Semaphore>,
    /// The form of frames that the client agreed on with the node.
    dialect: FrameFormat,
    /// The memory of the answers that have come so far.
    held: Arc<Mutex<Vec<ReservedMemory>>>,
}

/// A failed request of a client: the error that the client gets.
#[derive(Debug)]
pub(crate) enum ClientRequestError {
    /// An error that the gateway makes.
    Cql(CqlError),
    /// A response of the node, as it came, for this request or an earlier one.
    Node(Frame),
}

impl From<CqlError> for ClientRequestError {
    fn from(error: CqlError) -> ClientRequestError {
        ClientRequestError::Cql(error)
    }
}

impl ClientRequestError {
    /// Whether the node answers that it does not know a prepared statement.
    pub(crate) fn is_unprepared(&self, compression: Option<Compression>) -> bool {
        match self {
            ClientRequestError::Cql(_) => false,
            ClientRequestError::Node(frame) => matches!(
                Response::decode(frame, compression, usize::MAX),
                Ok((
                    _,
                    Response::Error(CqlError {
                        kind: ErrorKind::Unprepared { .. },
                        ..
                    })
                ))
            ),
        }
    }
}

impl NodeRequestSender {
    /// Makes a sender, and the receiver of its requests.
    pub(crate) fn new() -> (NodeRequestSender, mpsc::Receiver<NodeRequest>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let inquirer = NodeRequestSender {
            sender,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            dialect: FrameFormat::default(),
            held: Arc::default(),
        };
        (inquirer, receiver)
    }

    /// A clone for one request of the client. It collects the memory of its own answers, and uses
    /// the form of frames that the client has agreed on.
    pub(crate) fn for_request(&self, dialect: FrameFormat) -> NodeRequestSender {
        NodeRequestSender {
            dialect,
            held: Arc::default(),
            ..self.clone()
        }
    }

    /// Takes the memory of all answers so far, to be held for as long as the data made of them.
    pub(crate) fn take_reserved_memory(&self) -> Vec<ReservedMemory> {
        std::mem::take(&mut self.held.lock())
    }

    /// Holds memory in addition to that of the answers.
    pub(crate) fn add_reserved_memory(&self, held: ReservedMemory) {
        self.held.lock().push(held);
    }

    /// The compression that the client has agreed on.
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.dialect.compression()
    }

    /// The version of the protocol that the client has agreed on.
    pub(crate) fn version(&self) -> ProtocolVersion {
        self.dialect.version
    }

    /// Sends a request and waits for the answer. With `traced` the node writes a trace, whose id is
    /// in the answer's context.
    ///
    /// # Errors
    /// If the node answers with an error or not at all, if there is no memory for the answer, or if
    /// the answer cannot be read.
    pub(crate) async fn ask(
        &self,
        request: &Request,
        traced: bool,
    ) -> Result<(ResponseContext, Response), ClientRequestError> {
        let mut frame = BytesMut::new();
        request.encode_in(self.version(), 0, None, &mut frame);
        if traced {
            frame[FLAGS_AT] |= FrameFlags::TRACING.0;
        }
        let (sender, receiver) = oneshot::channel();
        let inquiry = NodeRequest {
            frame,
            answer: sender,
        };
        let permit = self
            .in_flight
            .acquire()
            .await
            .map_err(|_| connection_closed())?;
        self.sender
            .send(inquiry)
            .await
            .map_err(|_| connection_closed())?;
        let answer = receiver.await.map_err(|_| connection_closed())?;
        drop(permit);
        let NodeResponse { frame, held } = answer.ok_or_else(no_memory)?;
        self.add_reserved_memory(held);
        if frame.header.opcode == Opcode::Error {
            return Err(ClientRequestError::Node(frame));
        }
        Response::decode(&frame, self.compression(), usize::MAX).map_err(|error| {
            ClientRequestError::Cql(CqlError::server(format!(
                "the gateway cannot read what Cassandra answered: {error}"
            )))
        })
    }
}

/// The error if the connection is closed, or if the client uses all streams that the gateway may
/// use.
fn connection_closed() -> ClientRequestError {
    let message = "the connection to Cassandra is closed, or has no room for more requests: use another connection";
    ClientRequestError::Cql(CqlError::new(ErrorKind::Overloaded, message))
}

/// The error if the rows of searches take all the memory that they may.
pub(crate) fn no_memory() -> ClientRequestError {
    let message = "the rows of the vector queries that are under way take all the memory there is for them: try again later, or ask for fewer rows or columns at once";
    ClientRequestError::Cql(CqlError::new(ErrorKind::Overloaded, message))
}

/// Encodes an error response of the node as the answer on another stream.
pub(crate) fn on_stream(frame: &Frame, stream: i16) -> Bytes {
    let mut header = frame.header;
    header.stream = stream;
    let mut out = BytesMut::with_capacity(cql::wire::HEADER_LENGTH + frame.body.len());
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(&frame.body);
    out.freeze()
}
