//! Inquiries: requests that the gateway itself sends to the node on a client's connection, to carry
//! out what the client requested.
//!
//! The connection's loop takes inquiries from a channel and writes them between the client's
//! requests, on streams that the client does not use. Each gets its own answer. So the gateway need
//! not log in again, the client's own permissions apply, and many inquiries are on their way at
//! once.

mod memory;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    Compression, Flags, Frame, Opcode, ProtocolVersion, Request, Response, ResponseContext,
};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};

pub(crate) use self::memory::{AnswerMemory, Held, holding};
use crate::dialect::Dialect;

/// Inquiries of one connection that are on their way at once; more wait.
pub(crate) const IN_FLIGHT_MAX: usize = 512;

/// Inquiries of one connection that may wait to be written.
const WAITING_MAX: usize = 64;

/// The position of the flags in a frame.
const FLAGS_AT: usize = 1;

/// A request that the gateway itself sends to the node.
#[derive(Debug)]
pub(crate) struct Inquiry {
    /// A whole frame on any stream: whoever writes it sets the stream.
    pub(crate) frame: BytesMut,
    /// The sender for the answer. It is dropped if there will be none.
    pub(crate) answer: AnswerSender,
}

/// An answer of the node to an inquiry, with the memory that it takes.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The answer's frame as it came.
    pub(crate) frame: Frame,
    /// The memory for the frame.
    pub(crate) held: Held,
}

/// The sender for the answer to an inquiry; `None` is sent if there was no memory for the answer.
pub(crate) type AnswerSender = oneshot::Sender<Option<Answer>>;

/// Sends inquiries on a client's connection. Clones send on the same connection.
#[derive(Clone, Debug)]
pub(crate) struct Inquirer {
    sender: mpsc::Sender<Inquiry>,
    in_flight: Arc<Semaphore>,
    /// The form of frames that the client agreed on with the node.
    dialect: Dialect,
    /// The memory of the answers that have come so far.
    held: Arc<Mutex<Vec<Held>>>,
}

/// A failed request of a client: the error that the client gets.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error that the gateway makes.
    Cql(CqlError),
    /// A response of the node, as it came, for this request or an earlier one.
    Node(Frame),
}

impl From<CqlError> for Failure {
    fn from(error: CqlError) -> Failure {
        Failure::Cql(error)
    }
}

impl Failure {
    /// Whether the node answers that it does not know a prepared statement.
    pub(crate) fn is_unprepared(&self, compression: Option<Compression>) -> bool {
        match self {
            Failure::Cql(_) => false,
            Failure::Node(frame) => matches!(
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

impl Inquirer {
    /// Makes an inquirer, and the receiver of its inquiries.
    pub(crate) fn new() -> (Inquirer, mpsc::Receiver<Inquiry>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let inquirer = Inquirer {
            sender,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            dialect: Dialect::default(),
            held: Arc::default(),
        };
        (inquirer, receiver)
    }

    /// A clone for one request of the client. It collects the memory of its own answers, and uses
    /// the form of frames that the client has agreed on.
    pub(crate) fn for_work(&self, dialect: Dialect) -> Inquirer {
        Inquirer {
            dialect,
            held: Arc::default(),
            ..self.clone()
        }
    }

    /// Takes the memory of all answers so far, to be held for as long as the data made of them.
    pub(crate) fn take_held(&self) -> Vec<Held> {
        std::mem::take(&mut self.held.lock())
    }

    /// Holds memory in addition to that of the answers.
    pub(crate) fn keep(&self, held: Held) {
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
    ) -> Result<(ResponseContext, Response), Failure> {
        let mut frame = BytesMut::new();
        request.encode_in(self.version(), 0, None, &mut frame);
        if traced {
            frame[FLAGS_AT] |= Flags::TRACING.0;
        }
        let (sender, receiver) = oneshot::channel();
        let inquiry = Inquiry {
            frame,
            answer: sender,
        };
        let permit = self.in_flight.acquire().await.map_err(|_| gone())?;
        self.sender.send(inquiry).await.map_err(|_| gone())?;
        let answer = receiver.await.map_err(|_| gone())?;
        drop(permit);
        let Answer { frame, held } = answer.ok_or_else(no_memory)?;
        self.keep(held);
        if frame.header.opcode == Opcode::Error {
            return Err(Failure::Node(frame));
        }
        Response::decode(&frame, self.compression(), usize::MAX).map_err(|error| {
            Failure::Cql(CqlError::server(format!(
                "the gateway cannot read what Cassandra answered: {error}"
            )))
        })
    }
}

/// The error if the connection is closed, or if the client uses all streams that the gateway may
/// use.
fn gone() -> Failure {
    let message = "the connection to Cassandra is closed, or has no room for more requests: use another connection";
    Failure::Cql(CqlError::new(ErrorKind::Overloaded, message))
}

/// The error if the rows of searches take all the memory that they may.
pub(crate) fn no_memory() -> Failure {
    let message = "the rows of the vector queries that are under way take all the memory there is for them: try again later, or ask for fewer rows or columns at once";
    Failure::Cql(CqlError::new(ErrorKind::Overloaded, message))
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
