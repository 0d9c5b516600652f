//! A client that sends and receives single frames.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BoundValue, Compression, FrameDirection, MarkerValues, PreparedResponse, ProtocolVersion,
    QueryParameters, Request, Response, ResponseContext, SEGMENT_PAYLOAD_MAX, SegmentForm, Startup,
    StreamDecoder, put_segment, segments_of,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use value::Value;

/// The longest time to wait for an answer before the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

const BODY_LIMIT: usize = 1 << 30;

pub struct Client {
    pub socket: TcpStream,
    input: BytesMut,
    decoder: StreamDecoder,
    pub version: ProtocolVersion,
    /// The compression of frames.
    pub compression: Option<Compression>,
    /// The form of segments behind the handshake of version 5.
    pub segments: Option<SegmentForm>,
}

impl Client {
    /// Connects and sends nothing.
    pub async fn connect(address: SocketAddr) -> Client {
        Client {
            socket: TcpStream::connect(address).await.unwrap(),
            input: BytesMut::new(),
            decoder: StreamDecoder::new(FrameDirection::Response, BODY_LIMIT),
            version: ProtocolVersion::V4,
            compression: None,
            segments: None,
        }
    }

    /// Connects and completes the handshake.
    pub async fn open(address: SocketAddr) -> Client {
        let mut client = Client::connect(address).await;
        client.start(None).await;
        client
    }

    /// Connects and completes the handshake of version 5.
    pub async fn open_v5(address: SocketAddr, compression: Option<Compression>) -> Client {
        let mut client = Client::connect(address).await;
        client.version = ProtocolVersion::V5;
        client.start(compression).await;
        client
    }

    pub async fn start(&mut self, compression: Option<Compression>) {
        self.send(0, &startup(compression)).await;
        assert_eq!(self.receive().await.1, Response::Ready);
        match self.version {
            ProtocolVersion::V4 => self.compression = compression,
            ProtocolVersion::V5 => {
                let form = SegmentForm::of(compression);
                self.segments = Some(form);
                self.decoder.agree_on(self.version);
                self.decoder.begin_segments(form);
            }
        }
    }

    pub async fn send(&mut self, stream: i16, request: &Request) {
        self.send_together(&[(stream, request)]).await;
    }

    /// Sends requests in one write, and in one segment if there are segments and they fit.
    pub async fn send_together(&mut self, requests: &[(i16, &Request)]) {
        let mut frames = BytesMut::new();
        for (stream, request) in requests {
            request.encode_in(self.version, *stream, self.compression, &mut frames);
        }
        let mut out = BytesMut::new();
        match self.segments {
            None => out = frames,
            Some(form) if frames.len() <= SEGMENT_PAYLOAD_MAX => {
                put_segment(form, &frames, true, &mut out);
            }
            Some(form) => {
                let parts = segments_of(form, &frames.freeze(), &Bytes::new());
                out.extend_from_slice(&parts.concat());
            }
        }
        self.send_bytes(&out).await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    pub async fn query(&mut self, stream: i16, text: &str) {
        self.send(stream, &query(text)).await;
    }

    /// Receives the next frame; `None` if the server has closed the connection.
    pub async fn try_receive(&mut self) -> Option<(ResponseContext, Response)> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.input).unwrap() {
                return Some(Response::decode(&frame, self.compression, BODY_LIMIT).unwrap());
            }
            let read = timeout(PATIENCE, self.socket.read_buf(&mut self.input))
                .await
                .expect("an answer in time");
            if !matches!(read, Ok(1..)) {
                return None;
            }
        }
    }

    pub async fn receive(&mut self) -> (ResponseContext, Response) {
        self.try_receive().await.expect("the connection is open")
    }

    /// Sends a text and returns the echo service's answer.
    pub async fn ask(&mut self, text: &str) -> Response {
        self.query(7, text).await;
        let (context, response) = self.receive().await;
        assert_eq!(context.stream, 7);
        response
    }

    pub async fn assert_alive(&mut self) {
        assert_eq!(self.ask("alive").await, echoed("alive"));
    }

    pub async fn assert_closed(&mut self) {
        let answer = self.try_receive().await;
        assert!(answer.is_none(), "{answer:?}");
    }
}

impl Client {
    /// Executes a statement that must succeed.
    pub async fn run(&mut self, text: &str) -> Response {
        match self.ask(text).await {
            Response::Error(error) => panic!("{text}: {error}"),
            response => response,
        }
    }

    /// Executes a statement that must fail.
    pub async fn fail(&mut self, text: &str) -> CqlError {
        match self.ask(text).await {
            Response::Error(error) => error,
            response => panic!("{text}: {response:?}"),
        }
    }

    /// The rows of a statement that must succeed, as CQL literals.
    pub async fn rows(&mut self, text: &str) -> Vec<Vec<String>> {
        literals(self.run(text).await).1
    }

    pub async fn request(&mut self, request: &Request) -> Response {
        self.send(7, request).await;
        self.receive().await.1
    }

    pub async fn prepare(&mut self, text: &str) -> PreparedResponse {
        let statement = text.to_owned();
        let keyspace = None;
        let request = Request::Prepare {
            statement,
            keyspace,
        };
        match self.request(&request).await {
            Response::Prepared(prepared) => prepared,
            response => panic!("{text}: {response:?}"),
        }
    }

    pub async fn execute(&mut self, id: &Bytes, parameters: QueryParameters) -> Response {
        let id = id.clone();
        let request = Request::Execute {
            id,
            result_metadata_id: None,
            parameters,
        };
        self.request(&request).await
    }

    /// Executes a prepared statement and checks that the answer is UNPREPARED.
    pub async fn assert_unprepared(&mut self, id: &Bytes, parameters: QueryParameters) {
        let refused = error(self.execute(id, parameters).await);
        assert_eq!(refused.kind, ErrorKind::Unprepared { id: id.clone() });
    }
}

/// The column names of a result set, and its cells as CQL literals. The result set must have its
/// metadata.
pub fn literals(response: Response) -> (Vec<String>, Vec<Vec<String>>) {
    let Response::Rows(rows) = response else {
        panic!("rows, not {response:?}");
    };
    let decoded = rows.decode().unwrap();
    let columns = decoded.metadata.expect("metadata").columns;
    let cells = |row: Vec<Option<Bytes>>| {
        let cells = row.into_iter().zip(&columns);
        cells
            .map(|(cell, column)| match cell {
                None => "null".to_owned(),
                Some(bytes) => Value::deserialize(&column.cql_type, &bytes)
                    .unwrap()
                    .to_literal(),
            })
            .collect()
    };
    let rows = decoded.rows.into_iter().map(cells).collect();
    let names = columns.iter().map(|column| column.name.to_string());
    (names.collect(), rows)
}

/// Values for markers in their order.
pub fn positional<const N: usize>(values: [BoundValue; N]) -> QueryParameters {
    QueryParameters {
        values: MarkerValues::Positional(values.into()),
        ..QueryParameters::default()
    }
}

pub fn int(value: i32) -> BoundValue {
    BoundValue::Value(Value::Int(value).serialize())
}

pub fn text(value: &str) -> BoundValue {
    BoundValue::Value(Value::Text(value.to_owned()).serialize())
}

pub fn startup(compression: Option<Compression>) -> Request {
    let mut options = vec![("CQL_VERSION".to_owned(), "3.0.0".to_owned())];
    options.extend(compression.map(|c| ("COMPRESSION".to_owned(), c.name().to_owned())));
    Request::Startup(Startup { options })
}

pub fn query(text: &str) -> Request {
    Request::Query {
        statement: text.to_owned(),
        parameters: QueryParameters::default(),
    }
}

/// The answer of the echo service to a text that is no command.
pub fn echoed(text: &str) -> Response {
    Response::SetKeyspace(text.to_owned())
}

pub fn error(response: Response) -> CqlError {
    match response {
        Response::Error(error) => error,
        other => panic!("an error, not {other:?}"),
    }
}

/// A frame with this header and body.
pub fn raw_frame(version: u8, flags: u8, stream: i16, opcode: u8, body: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    out.put_u8(version);
    out.put_u8(flags);
    out.put_i16(stream);
    out.put_u8(opcode);
    out.put_u32(body.len() as u32);
    out.put_slice(body);
    out
}
