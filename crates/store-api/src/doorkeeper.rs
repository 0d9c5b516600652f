//! Decides who may do what at the HTTP API. A database in the same process knows its users; an
//! index service alone knows tokens ([`crate::Tokens`]).

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;

/// Checks requests before they reach a handler.
pub trait Doorkeeper: fmt::Debug + Send + Sync {
    /// Lets a request in or refuses it.
    fn admit<'a>(
        &'a self,
        visit: Visit<'a>,
        wish: Wish<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send + 'a>>;
}

/// The origin of a request.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// The value of its header `Authorization`.
    pub authorization: Option<&'a str>,
    /// The identity that its client has proved by a certificate.
    pub identity: Option<&'a str>,
    /// The address of its client.
    pub client: IpAddr,
    /// The address of the listener that it came to.
    pub listener: IpAddr,
}

/// The right that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish<'a> {
    /// To see the state of one index, as databases do that have a login for nothing.
    SeeState,
    /// To see states, tasks and metrics, none of which tell of rows.
    See,
    /// To search an index, which tells of rows.
    Search {
        /// The keyspace of the index.
        keyspace: &'a str,
        /// The index.
        index: &'a str,
    },
    /// To repair an index.
    Change {
        /// The keyspace of the index.
        keyspace: &'a str,
        /// The index.
        index: &'a str,
    },
    /// To start and stop work of the service as a whole.
    Operate,
}

/// The reason why a request is refused. The texts are for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody has logged in, or not rightly.
    Login(String),
    /// The request bears no token, or a wrong one.
    Token(String),
    /// The client has no right to this.
    Right(String),
    /// The login can't be checked now.
    Busy(String),
}
