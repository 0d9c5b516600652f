//! Decides who may do what. A database in the same process knows its users; an index service of its
//! own and a gateway know tokens ([`crate::TokenAuthorizer`]).

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;

/// Checks requests before they reach a handler.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Lets a request in or refuses it.
    fn admit<'a>(
        &'a self,
        origin: RequestOrigin<'a>,
        operation: RequestedOperation<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), AuthorizationRefusal>> + Send + 'a>>;

    /// Says how a request's client logs in, and whether it has. A wrong login is as none.
    ///
    /// # Errors
    /// [`AuthorizationRefusal::Busy`] if the login can't be checked now.
    fn identify<'a>(
        &'a self,
        origin: RequestOrigin<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ClientLogin, AuthorizationRefusal>> + Send + 'a>>;
}

/// The login of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLogin {
    /// The login that is needed.
    pub kind: LoginKind,
    /// Whether the client has logged in; never where it need not.
    pub is_logged_in: bool,
    /// The role that it has logged in as; `None` where there are no roles.
    pub role: Option<String>,
    /// Whether that role may do everything; `None` without a role.
    pub is_superuser: Option<bool>,
}

/// The login that a listener needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginKind {
    /// None.
    Nothing,
    /// That of a role, by its password or its certificate.
    Password,
    /// A token.
    Token,
}

impl ClientLogin {
    /// The login of a client that need not log in.
    pub const NOT_NEEDED: ClientLogin = ClientLogin {
        kind: LoginKind::Nothing,
        is_logged_in: false,
        role: None,
        is_superuser: None,
    };

    /// The login of a client that has to log in so, and has not.
    pub fn missing(kind: LoginKind) -> ClientLogin {
        ClientLogin {
            kind,
            ..ClientLogin::NOT_NEEDED
        }
    }
}

/// The origin of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestOrigin<'a> {
    /// The value of its header `Authorization`.
    pub authorization: Option<&'a str>,
    /// The identity that its client has proved by a certificate.
    pub identity: Option<&'a str>,
    /// The address of its client.
    pub client: IpAddr,
    /// The address of the listener that it came to.
    pub listener: IpAddr,
}

/// An operation that a request would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedOperation<'a> {
    /// To see the state of one index, as databases do that have a login for nothing.
    SeeState,
    /// To see states, tasks and metrics, none of which tell of rows.
    See,
    /// To see the settings of the process.
    SeeSettings,
    /// To search an index, which reveals rows.
    Search {
        /// The keyspace of the index.
        keyspace: &'a str,
        /// The index.
        index: &'a str,
    },
    /// To have many rows of an index shown at once, as on its map, which no database requests.
    SampleRows {
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

/// The right that a route needs, without the index in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredRight {
    /// None: a load balancer sends this without a login.
    Nothing,
    /// See [`RequestedOperation::SeeState`].
    SeeState,
    /// See [`RequestedOperation::See`].
    See,
    /// See [`RequestedOperation::SeeSettings`].
    SeeSettings,
    /// See [`RequestedOperation::Search`].
    Search,
    /// See [`RequestedOperation::SampleRows`].
    SampleRows,
    /// See [`RequestedOperation::Change`].
    Change,
    /// See [`RequestedOperation::Operate`].
    Operate,
}

impl RequiredRight {
    /// The operation of a request whose path names this index. `None`: it needs no right.
    pub(crate) fn operation<'a>(
        self,
        keyspace: &'a str,
        index: &'a str,
    ) -> Option<RequestedOperation<'a>> {
        match self {
            RequiredRight::Nothing => None,
            RequiredRight::SeeState => Some(RequestedOperation::SeeState),
            RequiredRight::See => Some(RequestedOperation::See),
            RequiredRight::SeeSettings => Some(RequestedOperation::SeeSettings),
            RequiredRight::Search => Some(RequestedOperation::Search { keyspace, index }),
            RequiredRight::SampleRows => Some(RequestedOperation::SampleRows { keyspace, index }),
            RequiredRight::Change => Some(RequestedOperation::Change { keyspace, index }),
            RequiredRight::Operate => Some(RequestedOperation::Operate),
        }
    }
}

/// The reason why a request is refused. The texts are for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizationRefusal {
    /// No one has logged in, or the login was wrong.
    Login(String),
    /// The request bears no token, or a wrong one.
    Token(String),
    /// The client has no right to this.
    Right(String),
    /// The login can't be checked now.
    Busy(String),
}
