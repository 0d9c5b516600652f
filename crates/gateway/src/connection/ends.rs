//! The ends of the two directions of a connection.

use std::io;

use cql::wire::FrameError;

/// The reasons why no more requests are read.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestsEnd {
    /// The client has closed its sending side.
    #[error("the client asks nothing more")]
    Eof,
    /// The gateway stops, or the rules for certificates of clients have changed.
    #[error("the gateway stops, or clients need other certificates now")]
    Stopping,
    /// The client broke the rules of the protocol, and has got an error.
    #[error("the client broke the rules of the protocol")]
    Refused,
    /// The client's socket failed, or the client was too slow: with a request, with its login, or
    /// while there was no memory for its request. Or its STARTUP was not answered.
    #[error("the connection to the client failed: {0}")]
    Client(io::Error),
    /// The node's socket failed.
    #[error("the connection to the node failed: {0}")]
    Node(io::Error),
}

/// The reasons why no more responses are written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResponsesEnd {
    /// The node has closed the connection.
    #[error("the node has closed the connection")]
    Eof,
    /// The client sends no more requests, and all of them are answered.
    #[error("there are no more requests, and all are answered")]
    Done,
    /// The client sends no more requests, and so many were not answered within the drain timeout.
    #[error("there are no more requests, but {0} of them were not answered in time")]
    Unanswered(usize),
    /// The node sent bytes that are no response.
    #[error("the node sent bytes that are no response: {0}")]
    Senseless(FrameError),
    /// The client's socket failed.
    #[error("the connection to the client failed: {0}")]
    Client(io::Error),
    /// The node's socket failed.
    #[error("the connection to the node failed: {0}")]
    Node(io::Error),
}
