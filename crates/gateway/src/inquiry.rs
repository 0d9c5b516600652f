//! What the gateway itself asks the node, on a client's connection: as the client's own user, and at its wish alone.
//!
//! The connection's loop takes inquiries from a channel, writes them between the client's requests, on streams
//! that the client does not use, and hands each its answer. So nobody needs to log in anew, permissions are those of
//! the client, and any number of inquiries are on their way at once.

mod memory;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{Compression, Flags, Frame, Opcode, Request, Response, ResponseContext};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};

pub(crate) use self::memory::{AnswerMemory, Held, holding};

/// Inquiries of one connection on their way at once; more wait.
pub(crate) const IN_FLIGHT_MAX: usize = 512;

/// Inquiries that wait to be written.
const WAITING_MAX: usize = 64;

/// The byte of a frame that holds its flags.
const FLAGS_AT: usize = 1;

/// A request of the gateway's own.
#[derive(Debug)]
pub(crate) struct Inquiry {
    /// A whole frame, on any stream: whoever writes it puts the stream in.
    pub(crate) frame: BytesMut,
    /// Where its answer goes. Dropped if there will be none.
    pub(crate) answer: AnswerSender,
}

/// An answer, with the memory that it takes.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) frame: Frame,
    pub(crate) held: Held,
}

/// Where an answer goes; `None` if there was no memory for it.
pub(crate) type AnswerSender = oneshot::Sender<Option<Answer>>;

/// Asks the node on a client's connection. Clones ask on the same connection.
#[derive(Clone, Debug)]
pub(crate) struct Inquirer {
    sender: mpsc::Sender<Inquiry>,
    in_flight: Arc<Semaphore>,
    /// What the client agreed on with the node; answers come so.
    compression: Option<Compression>,
    /// The memory of the answers so far.
    held: Arc<Mutex<Vec<Held>>>,
}

/// Why a client is not answered what it asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something that the gateway says.
    Cql(CqlError),
    /// Something that the node says, or has said before: its response, as it came.
    Node(Frame),
}

impl From<CqlError> for Failure {
    fn from(error: CqlError) -> Failure {
        Failure::Cql(error)
    }
}

impl Failure {
    /// Whether the node says that it does not know a prepared statement.
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
    /// An inquirer, and where its inquiries come out.
    pub(crate) fn new() -> (Inquirer, mpsc::Receiver<Inquiry>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let inquirer = Inquirer {
            sender,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            compression: None,
            held: Arc::default(),
        };
        (inquirer, receiver)
    }

    /// The same for one piece of work: it comes to know its own answers' memory, and the compression that the client has
    /// agreed on.
    pub(crate) fn for_work(&self, compression: Option<Compression>) -> Inquirer {
        Inquirer {
            compression,
            held: Arc::default(),
            ..self.clone()
        }
    }

    /// The memory of all answers so far, for whoever holds what was made of them.
    pub(crate) fn take_held(&self) -> Vec<Held> {
        std::mem::take(&mut self.held.lock())
    }

    /// What the client has agreed on.
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Asks, and waits for the answer. `traced` has the node write a trace, whose id is in the answer's context.
    ///
    /// # Errors
    /// If the node answers with an error, or not at all.
    pub(crate) async fn ask(
        &self,
        request: &Request,
        traced: bool,
    ) -> Result<(ResponseContext, Response), Failure> {
        let mut frame = BytesMut::new();
        request.encode(0, None, &mut frame);
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
        self.held.lock().push(held);
        if frame.header.opcode == Opcode::Error {
            return Err(Failure::Node(frame));
        }
        Response::decode(&frame, self.compression, usize::MAX).map_err(|error| {
            Failure::Cql(CqlError::server(format!(
                "the gateway cannot read what Cassandra answered: {error}"
            )))
        })
    }
}

/// Either nobody is there any more to read this, or the client uses every stream there is.
fn gone() -> Failure {
    let message = "the connection to Cassandra is closed, or has no room for more requests: use another connection";
    Failure::Cql(CqlError::new(ErrorKind::Overloaded, message))
}

/// What the rows of searches may take is taken.
fn no_memory() -> Failure {
    let message = "the rows of the vector queries that are under way take all the memory there is for them: try again later, or ask for fewer rows or columns at once";
    Failure::Cql(CqlError::new(ErrorKind::Overloaded, message))
}

/// An error response of the node's, as the answer to another stream.
pub(crate) fn on_stream(frame: &Frame, stream: i16) -> Bytes {
    let mut header = frame.header;
    header.stream = stream;
    let mut out = BytesMut::with_capacity(cql::wire::HEADER_LENGTH + frame.body.len());
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(&frame.body);
    out.freeze()
}
