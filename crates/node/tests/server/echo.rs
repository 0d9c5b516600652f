//! A service that answers a text with the text itself, except for a few commands.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use client_memory::MemoryAccount;
use cql::error::{CqlError, ErrorKind};
use cql::secret::Secret;
use cql::wire::{
    ColumnSpec, ColumnsMetadata, Request, Response, RowsEncoder, SchemaChange, SchemaChangeKind,
    SchemaTarget, ServerEvent,
};
use node::CqlListenerOptions;
use node::server::{BoundListener, ConnectionInfo, CqlServer, CqlService, StatementReply, serve};
use test_support::eventually;
use tokio::sync::{Semaphore, broadcast};
use value::CqlType;

use crate::client::echoed;

/// The token of a login that is refused.
pub const WRONG_TOKEN: &[u8] = b"wrong";
/// The token of a login for which there is no place.
pub const CROWDED_TOKEN: &[u8] = b"crowded";

/// Obeys `panic`, `wait` (until [`Echo::release`]), `big <bytes>`, `warn`, `change <keyspace>`.
pub struct Echo {
    pub release: Semaphore,
    pub waiting: AtomicUsize,
    pub answered: AtomicUsize,
    /// The connections whose clients have hung up.
    pub hung_up: AtomicUsize,
    /// Whether clients have to log in, which they do with any token but the two above.
    pub asks_for_login: AtomicBool,
    /// The peers of all connections so far.
    pub peers: Mutex<Vec<ConnectionInfo>>,
    events: broadcast::Sender<ServerEvent>,
}

impl Echo {
    pub fn new() -> Arc<Echo> {
        Arc::new(Echo {
            release: Semaphore::new(0),
            waiting: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            hung_up: AtomicUsize::new(0),
            asks_for_login: AtomicBool::new(false),
            peers: Mutex::default(),
            events: broadcast::Sender::new(4),
        })
    }

    async fn obey(&self, text: &str) -> Result<StatementReply, CqlError> {
        let (command, argument) = text.split_once(' ').unwrap_or((text, ""));
        match command {
            "panic" => panic!("as asked"),
            "wait" => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                self.release.acquire().await.unwrap().forget();
                Ok(echoed(text).into())
            }
            "big" => Ok(rows(argument.parse().unwrap()).into()),
            "warn" => Ok(StatementReply {
                response: Response::Void,
                warnings: vec!["careful".to_owned()],
                charge: None,
            }),
            "change" => {
                let change = change(argument);
                let _ = self.events.send(ServerEvent::SchemaChange(change.clone()));
                Ok(Response::SchemaChange(change).into())
            }
            _ => Ok(echoed(text).into()),
        }
    }
}

impl CqlService for Echo {
    /// Whether the client has logged in.
    type Session = AtomicBool;

    async fn open_session(&self, peer: ConnectionInfo) -> AtomicBool {
        self.peers.lock().unwrap().push(peer);
        AtomicBool::new(false)
    }

    fn must_log_in(&self, has_logged_in: &AtomicBool) -> bool {
        self.asks_for_login.load(Ordering::SeqCst) && !has_logged_in.load(Ordering::SeqCst)
    }

    async fn log_in(
        &self,
        has_logged_in: &AtomicBool,
        token: Secret<Option<Bytes>>,
    ) -> Result<(), CqlError> {
        if token.expose().as_deref() == Some(WRONG_TOKEN) {
            return Err(CqlError::new(ErrorKind::BadCredentials, "wrong"));
        }
        if token.expose().as_deref() == Some(CROWDED_TOKEN) {
            return Err(CqlError::new(ErrorKind::Overloaded, "crowded"));
        }
        has_logged_in.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn hung_up(&self, _: &AtomicBool) {
        self.hung_up.fetch_add(1, Ordering::SeqCst);
    }

    fn supported(&self) -> Vec<(String, Vec<String>)> {
        vec![("COMPRESSION".to_owned(), vec!["lz4".to_owned()])]
    }

    async fn answer(
        &self,
        _: &AtomicBool,
        request: Request,
        _: &MemoryAccount,
    ) -> Result<StatementReply, CqlError> {
        let answer = match request {
            Request::Query { statement, .. } | Request::Prepare { statement, .. } => {
                self.obey(&statement).await
            }
            Request::Execute { .. } | Request::Batch(_) => Ok(Response::Void.into()),
            other => Err(CqlError::server(format!("not for a service: {other:?}"))),
        };
        self.answered.fetch_add(1, Ordering::SeqCst);
        answer
    }

    fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.events.subscribe()
    }
}

pub fn change(keyspace: &str) -> SchemaChange {
    SchemaChange {
        change: SchemaChangeKind::Created,
        keyspace: keyspace.to_owned(),
        target: SchemaTarget::Keyspace,
    }
}

/// A result set with one blob of this many bytes.
fn rows(bytes: usize) -> Response {
    let metadata = ColumnsMetadata {
        columns: vec![ColumnSpec {
            keyspace: "k".into(),
            table: "t".into(),
            name: "b".into(),
            cql_type: CqlType::Blob,
        }],
    };
    let mut encoder = RowsEncoder::new(&metadata, false);
    encoder.cell(Some(&vec![0; bytes]));
    encoder.end_row();
    Response::Rows(encoder.finish(None))
}

pub struct TestServer {
    pub server: CqlServer<Echo>,
    pub echo: Arc<Echo>,
    pub address: SocketAddr,
}

/// Starts a server with the echo service on a free port.
pub async fn start(adjust: impl FnOnce(&mut CqlListenerOptions)) -> TestServer {
    let mut options = CqlListenerOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        ..CqlListenerOptions::default()
    };
    adjust(&mut options);
    let listener = BoundListener::bind(options).await.unwrap();
    let address = listener.address();
    let echo = Echo::new();
    TestServer {
        server: serve(vec![listener], echo.clone()),
        echo,
        address,
    }
}

/// Waits until a condition holds; the test fails if it never does.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    eventually(what, async || condition()).await;
}
