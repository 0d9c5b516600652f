//! A whole connection whose client and node are both scripted by a test.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use client_memory::MemoryAccount;
use cql::wire::{
    BoundValue, ColumnsMetadata, Compression, Frame, FrameDirection, FrameHeader, HEADER_LENGTH,
    MarkerValues, PreparedResponse, QueryParameters, Request, Response, ResponseContext, Startup,
};
use http_server::MaintenanceMode;
use net::pending_connections::ConnectionAdmission;
use slow_statements::{SlowQueries, SlowQueryOptions};
use store_api::IndexServices;
pub(super) use test_support::soon;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::background_requests::BackgroundRequests;
use super::context::DecisionContext;
use super::requests::{RequestLoop, write_memory};
use super::responses::ResponseLoop;
use super::session::ProxySession;
use crate::catalog::{IndexCatalog, IndexCatalogSnapshot};
use crate::clients::ConnectionHandle;
use crate::node_requests::{AnswerMemory, NodeRequestSender};
use crate::options::FreshnessOptions;
use crate::prepared::StatementsById;
use crate::ring::Ring;
use crate::vector_search::FreshSearches;
use crate::writes::ChangeLog;
use crate::writes::test_tables::{events, products};

pub(super) const BODY_MAX: usize = 64 << 20;
const PIPE: usize = 64 << 10;

/// The state that the connections of a gateway share, with a snapshot of logged tables.
pub(super) struct SharedFixture {
    pub(super) catalog: Arc<IndexCatalog>,
    pub(super) prepared: Arc<StatementsById>,
    pub(super) maintenance: MaintenanceMode,
    /// The log of slow statements, for which each is slow.
    pub(super) slow_queries: Arc<SlowQueries>,
    log: Arc<ChangeLog>,
}

impl SharedFixture {
    pub(super) fn new(snapshot: IndexCatalogSnapshot) -> SharedFixture {
        SharedFixture {
            catalog: Arc::new(IndexCatalog::new(snapshot)),
            prepared: Arc::new(StatementsById::new(1 << 20)),
            maintenance: MaintenanceMode::default(),
            slow_queries: each_is_slow(),
            log: Arc::new(ChangeLog::new(
                5 << 10,
                Duration::MAX,
                Arc::default(),
                Arc::default(),
            )),
        }
    }

    /// Connects, and lets the client and the node agree on a compression in a handshake.
    pub(super) async fn connect_with(
        &self,
        compression: Option<Compression>,
    ) -> (FramedPeer, FramedPeer) {
        let (mut client, mut node) = self.connect();
        let chosen = compression.map(|chosen| ("COMPRESSION".to_owned(), chosen.name().to_owned()));
        let options = chosen.into_iter().collect();
        client.ask(&Request::Startup(Startup { options }), 0).await;
        node.request().await;
        node.answer(&Response::Ready, 0).await;
        client.response().await;
        client.compression = compression;
        node.compression = compression;
        (client, node)
    }

    /// The two loops of a connection whose client the node has let in.
    fn loops(&self) -> (RequestLoop, ResponseLoop) {
        let own_address = "127.0.0.1:9043".parse().unwrap();
        let client_address = "127.0.0.1:7".parse().unwrap();
        let (answers_sender, answers) = mpsc::channel(16);
        let known_as = Arc::new(ConnectionHandle::new(answers_sender.downgrade()));
        let session = Arc::new(ProxySession::new(
            (own_address, client_address),
            BODY_MAX,
            known_as,
            ConnectionAdmission::default(),
        ));
        session.let_in();
        let (inquirer, inquiries) = NodeRequestSender::new();
        #[expect(clippy::disallowed_methods, reason = "as in a connection")]
        let (steps_sender, steps) = mpsc::unbounded_channel();
        let context = DecisionContext {
            session,
            prepared: self.prepared.clone(),
            catalog: self.catalog.clone(),
            log: self.log.clone(),
            answer_cache: Arc::default(),
            ring: Arc::new(Ring::default()),
            stores: IndexServices::disabled(),
            maintenance: self.maintenance.clone(),
            slow_queries: self.slow_queries.clone(),
        };
        let requests = RequestLoop {
            charge: MemoryAccount::default().charge(),
            has_passed: false,
            frame_timeout: Duration::from_secs(120),
            context: context.clone(),
            steps,
            steps_sender: steps_sender.downgrade(),
            write_memory: write_memory(),
            background: BackgroundRequests::new(
                inquirer,
                FreshSearches::new(
                    IndexServices::disabled(),
                    self.log.clone(),
                    FreshnessOptions::default(),
                ),
                &context,
                answers_sender,
                CancellationToken::new(),
            ),
            node_requests: inquiries,
            stop: CancellationToken::new(),
            handshake_timeout: Duration::from_secs(20),
            drain_timeout: Duration::from_secs(20),
        };
        let responses = ResponseLoop {
            context,
            answers,
            answer_memory: AnswerMemory::new(64 << 20),
            steps: steps_sender,
            drain_timeout: Duration::from_secs(20),
        };
        (requests, responses)
    }

    /// The state that a connection decides by.
    pub(super) fn context(&self) -> DecisionContext {
        self.loops().1.context
    }

    /// A client that the node has let in, and the node.
    pub(super) fn connect(&self) -> (FramedPeer, FramedPeer) {
        let (client, of_client) = duplex(PIPE);
        let (node, of_node) = duplex(PIPE);
        let (requests, responses) = self.loops();
        let (mut from_client, mut to_client) = split(of_client);
        let (mut from_node, mut to_node) = split(of_node);
        tokio::spawn(async move {
            tokio::join!(requests.run(&mut from_client, &mut to_node), async {
                responses.run(&mut from_node, &mut to_client).await;
                to_client.shutdown().await.unwrap();
            })
        });
        (FramedPeer::new(client), FramedPeer::new(node))
    }
}

/// A log for which each statement is slow.
pub(super) fn each_is_slow() -> Arc<SlowQueries> {
    Arc::new(SlowQueries::new(SlowQueryOptions {
        threshold: Some(Duration::ZERO),
        ..SlowQueryOptions::default()
    }))
}

/// A snapshot with `shop.products` and `shop.events` logged.
pub(super) fn snapshot() -> IndexCatalogSnapshot {
    IndexCatalogSnapshot::new([Arc::new(products()), Arc::new(events())], [])
}

/// One end of a connection.
pub(super) struct FramedPeer {
    pub(super) socket: DuplexStream,
    input: BytesMut,
    pub(super) compression: Option<Compression>,
}

impl FramedPeer {
    fn new(socket: DuplexStream) -> FramedPeer {
        FramedPeer {
            socket,
            input: BytesMut::new(),
            compression: None,
        }
    }

    pub(super) async fn ask(&mut self, request: &Request, stream: i16) -> Bytes {
        let mut out = BytesMut::new();
        request.encode(stream, self.compression, &mut out);
        self.socket.write_all(&out).await.unwrap();
        out.freeze()
    }

    pub(super) async fn answer(&mut self, response: &Response, stream: i16) {
        let mut out = BytesMut::new();
        response.encode(&ResponseContext::new(stream), self.compression, &mut out);
        self.socket.write_all(&out).await.unwrap();
    }

    pub(super) async fn frame(&mut self, direction: FrameDirection) -> Frame {
        loop {
            if let Some(header) = FrameHeader::read(&self.input, direction, BODY_MAX).unwrap() {
                let length = HEADER_LENGTH + header.length as usize;
                if self.input.len() >= length {
                    let body = self.input.split_to(length).freeze().slice(HEADER_LENGTH..);
                    return Frame { header, body };
                }
            }
            let read = soon(self.socket.read_buf(&mut self.input)).await.unwrap();
            assert!(read > 0, "closed");
        }
    }

    pub(super) async fn request(&mut self) -> (i16, Request) {
        let frame = self.frame(FrameDirection::Request).await;
        let request = Request::decode(&frame, self.compression, BODY_MAX).unwrap();
        (frame.header.stream, request)
    }

    /// Receives the next request, which must be a batch of `statements` statements, and returns its
    /// stream.
    pub(super) async fn batch(&mut self, statements: usize) -> i16 {
        let (stream, request) = self.request().await;
        let Request::Batch(batch) = request else {
            panic!("{request:?}");
        };
        assert_eq!(batch.statements.len(), statements);
        stream
    }

    /// Fails the test if a request comes within 100 ms.
    pub(super) async fn receives_nothing(&mut self) {
        let early = tokio::time::timeout(Duration::from_millis(100), self.request());
        assert!(early.await.is_err());
    }

    pub(super) async fn response(&mut self) -> (i16, Response) {
        let frame = self.frame(FrameDirection::Response).await;
        let (context, response) = Response::decode(&frame, self.compression, BODY_MAX).unwrap();
        (context.stream, response)
    }
}

pub(super) async fn rest(mut socket: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut rest = Vec::new();
    soon(socket.read_to_end(&mut rest)).await.unwrap();
    rest
}

pub(super) fn query(text: &str) -> Request {
    Request::Query {
        statement: text.to_owned(),
        parameters: QueryParameters::default(),
    }
}

pub(super) fn prepare(text: &str) -> Request {
    Request::Prepare {
        statement: text.to_owned(),
        keyspace: None,
    }
}

pub(super) fn execute(id: &'static [u8], values: Vec<BoundValue>) -> Request {
    Request::Execute {
        id: Bytes::from_static(id),
        result_metadata_id: None,
        parameters: QueryParameters {
            values: MarkerValues::Positional(values),
            ..QueryParameters::default()
        },
    }
}

pub(super) fn prepared_as(id: &'static [u8]) -> Response {
    Response::Prepared(PreparedResponse {
        id: Bytes::from_static(id),
        result_metadata_id: None,
        bind: ColumnsMetadata::default(),
        partition_key_indexes: Vec::new(),
        result: None,
    })
}

pub(super) fn is_prepare(request: &(i16, Request)) -> bool {
    matches!(request.1, Request::Prepare { .. })
}
