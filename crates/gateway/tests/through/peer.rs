//! The two ends of a gateway, scripted by the test. They send and take frames as bytes, and every
//! wait has a limit.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cql::wire::{
    Compression, Frame, FrameDirection, FrameHeader, HEADER_LENGTH, Request, Response,
    ResponseContext, Startup,
};
use gateway::{Gateway, GatewayOptions};
pub use test_support::soon;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const BODY_LIMIT: usize = 256 << 20;

/// A node that the test plays. It accepts the connections that the gateway makes.
pub struct Node {
    listener: TcpListener,
}

impl Node {
    pub async fn listen() -> Node {
        Node {
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub async fn accept(&self) -> Peer {
        Peer::in_clear(soon(self.listener.accept()).await.unwrap().0)
    }
}

/// A gateway, and the node behind it that the test plays.
pub struct Setup {
    pub gateway: Gateway,
    pub node: Node,
}

impl Setup {
    pub async fn new() -> Setup {
        Setup::with(|_| ()).await
    }

    pub async fn with(change: impl FnOnce(&mut GatewayOptions)) -> Setup {
        let node = Node::listen().await;
        let mut options = GatewayOptions {
            address: "127.0.0.1:0".parse().unwrap(),
            cassandra: node.address().to_string(),
            ..GatewayOptions::default()
        };
        change(&mut options);
        let gateway = Gateway::start(options).await.unwrap();
        Setup { gateway, node }
    }

    /// Connects a client, before its handshake. Returns its end and the node's.
    pub async fn connect_unauthenticated(&self) -> (Peer, Peer) {
        let client = Peer::connect(self.gateway.address()).await;
        (client, self.node.accept().await)
    }

    /// Connects a client and does the handshake. Returns its end and the node's.
    pub async fn connect(&self) -> (Peer, Peer) {
        self.connect_with_options(Vec::new()).await
    }

    /// Connects a client and does the handshake, in which a compression is agreed on.
    pub async fn connect_compressed(&self, compression: Compression) -> (Peer, Peer) {
        let options = vec![("COMPRESSION".to_owned(), compression.name().to_owned())];
        self.connect_with_options(options).await
    }

    async fn connect_with_options(&self, options: Vec<(String, String)>) -> (Peer, Peer) {
        let (mut client, mut node) = self.connect_unauthenticated().await;
        let startup = Request::Startup(Startup { options });
        client.ask(&startup, 0, None).await;
        node.frame(FrameDirection::Request).await;
        node.answer(&Response::Ready, 0, None).await;
        client.frame(FrameDirection::Response).await;
        (client, node)
    }
}

/// One end of a connection to the gateway.
pub struct Peer<S = TcpStream> {
    pub socket: S,
    input: BytesMut,
}

impl Peer {
    pub async fn connect(address: SocketAddr) -> Peer {
        Peer::in_clear(soon(TcpStream::connect(address)).await.unwrap())
    }

    fn in_clear(socket: TcpStream) -> Peer {
        socket.set_nodelay(true).unwrap();
        Peer::of(socket)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub fn of(socket: S) -> Peer<S> {
        Peer {
            socket,
            input: BytesMut::new(),
        }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        soon(self.socket.write_all(bytes)).await.unwrap();
        soon(self.socket.flush()).await.unwrap();
    }

    pub async fn ask(&mut self, request: &Request, stream: i16, compression: Option<Compression>) {
        self.send(&request_bytes(request, stream, compression))
            .await;
    }

    pub async fn answer(
        &mut self,
        response: &Response,
        stream: i16,
        compression: Option<Compression>,
    ) {
        self.send(&response_bytes(response, stream, compression))
            .await;
    }

    /// Takes the next `count` bytes.
    pub async fn exactly(&mut self, count: usize) -> Bytes {
        while self.input.len() < count {
            let read = soon(self.socket.read_buf(&mut self.input)).await.unwrap();
            assert!(read > 0, "closed after {} bytes", self.input.len());
        }
        self.input.split_to(count).freeze()
    }

    /// Fails the test if bytes come within 100 ms.
    pub async fn stays_silent(&mut self) {
        let early = self.socket.read_buf(&mut self.input);
        let early = tokio::time::timeout(Duration::from_millis(100), early).await;
        assert!(early.is_err(), "{early:?}");
    }

    /// Takes the next frame.
    pub async fn frame(&mut self, direction: FrameDirection) -> Frame {
        let head = self.exactly(HEADER_LENGTH).await;
        let header = FrameHeader::read(&head, direction, BODY_LIMIT)
            .unwrap()
            .unwrap();
        let body = self.exactly(header.length as usize).await;
        Frame { header, body }
    }

    /// Takes the next response. Returns its stream, too.
    pub async fn response(&mut self, compression: Option<Compression>) -> (i16, Response) {
        let frame = self.frame(FrameDirection::Response).await;
        let (context, response) = Response::decode(&frame, compression, BODY_LIMIT).unwrap();
        (context.stream, response)
    }

    /// Takes the next request. Returns its stream, too.
    pub async fn request(&mut self, compression: Option<Compression>) -> (i16, Request) {
        let frame = self.frame(FrameDirection::Request).await;
        let request = Request::decode(&frame, compression, BODY_LIMIT).unwrap();
        (frame.header.stream, request)
    }

    /// Waits until the other side has closed. Returns the bytes that it had sent before.
    pub async fn rest(&mut self) -> Bytes {
        while let Ok(1..) = soon(self.socket.read_buf(&mut self.input)).await {}
        self.input.split().freeze()
    }

    /// Closes the direction in which this end sends.
    pub async fn finish(&mut self) {
        self.socket.shutdown().await.unwrap();
    }
}

pub fn request_bytes(request: &Request, stream: i16, compression: Option<Compression>) -> Bytes {
    let mut out = BytesMut::new();
    request.encode(stream, compression, &mut out);
    out.freeze()
}

pub fn response_bytes(response: &Response, stream: i16, compression: Option<Compression>) -> Bytes {
    let mut out = BytesMut::new();
    response.encode(&ResponseContext::new(stream), compression, &mut out);
    out.freeze()
}

pub fn query(statement: &str) -> Request {
    Request::Query {
        statement: statement.to_owned(),
        parameters: Default::default(),
    }
}

pub fn prepare(statement: &str) -> Request {
    Request::Prepare {
        statement: statement.to_owned(),
        keyspace: None,
    }
}

pub fn execute(id: &'static [u8]) -> Request {
    Request::Execute {
        id: Bytes::from_static(id),
        result_metadata_id: None,
        parameters: Default::default(),
    }
}

/// A frame with any content. In responses `version` has its top bit set.
pub fn raw_frame(version: u8, flags: u8, stream: i16, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![version, flags];
    frame.extend(stream.to_be_bytes());
    frame.push(opcode);
    frame.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    frame.extend(body);
    frame
}
