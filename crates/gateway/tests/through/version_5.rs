//! Tests of version 5 of the protocol: both sides have segments, and what is in them passes or is
//! answered as in version 4.

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    ColumnsMetadata, Compression, Frame, FrameDirection, PreparedResponse, ProtocolVersion,
    QueryParameters, Request, Response, ResponseContext, SegmentForm, Startup, StreamDecoder,
    put_segment, segments_of,
};
use tokio::io::AsyncReadExt;

use crate::peer::{BODY_LIMIT, Peer, Setup, execute, query, soon};

const V5: ProtocolVersion = ProtocolVersion::V5;
const FORMS: [Option<Compression>; 2] = [None, Some(Compression::Lz4)];
const ID: &[u8] = b"0123456789abcdef";

/// One end of a connection to the gateway, in version 5.
struct End {
    peer: Peer,
    input: BytesMut,
    decoder: StreamDecoder,
    form: Option<SegmentForm>,
}

impl End {
    /// An end before the handshake, which reads what comes in `direction`.
    fn new(peer: Peer, direction: FrameDirection) -> End {
        let mut decoder = StreamDecoder::new(direction, BODY_LIMIT);
        decoder.agree_on(V5);
        End {
            peer,
            input: BytesMut::new(),
            decoder,
            form: None,
        }
    }

    fn begin_segments(&mut self, compression: Option<Compression>) {
        let form = SegmentForm::of(compression);
        self.decoder.begin_segments(form);
        self.form = Some(form);
    }

    async fn send(&mut self, frame: BytesMut) {
        let bytes = match self.form {
            None => frame.freeze(),
            Some(form) => segments_of(form, &frame.freeze(), &Bytes::new())
                .concat()
                .into(),
        };
        self.peer.send(&bytes).await;
    }

    async fn ask(&mut self, request: &Request, stream: i16) {
        let mut frame = BytesMut::new();
        request.encode_in(V5, stream, None, &mut frame);
        self.send(frame).await;
    }

    async fn answer(&mut self, response: &Response, stream: i16) {
        let mut frame = BytesMut::new();
        response.encode(&ResponseContext::new(stream).at(V5), None, &mut frame);
        self.send(frame).await;
    }

    /// The next frame; `None` once the gateway has closed the connection.
    async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.input).unwrap() {
                return Some(frame);
            }
            let read = soon(self.peer.socket.read_buf(&mut self.input)).await;
            if !matches!(read, Ok(1..)) {
                return None;
            }
        }
    }

    async fn request(&mut self) -> (i16, Request) {
        let frame = self.frame().await.expect("a request");
        let request = Request::decode(&frame, None, BODY_LIMIT).unwrap();
        (frame.header.stream, request)
    }

    async fn response(&mut self) -> (i16, Response) {
        let frame = self.frame().await.expect("a response");
        let (context, response) = Response::decode(&frame, None, BODY_LIMIT).unwrap();
        (context.stream, response)
    }
}

/// A client and the node behind the gateway, before their handshake.
async fn connect_without_handshake(setup: &Setup) -> (End, End) {
    let (client, node) = setup.connect_unauthenticated().await;
    let client = End::new(client, FrameDirection::Response);
    (client, End::new(node, FrameDirection::Request))
}

/// A client that the node has let in, and the node.
async fn connect(setup: &Setup, compression: Option<Compression>) -> (End, End) {
    let (mut client, mut node) = connect_without_handshake(setup).await;
    let names = compression.map(|of| ("COMPRESSION".to_owned(), of.name().to_owned()));
    let options = names.into_iter().collect();
    let startup = Request::Startup(Startup { options });
    client.ask(&startup, 0).await;
    assert_eq!(node.request().await, (0, startup));
    node.answer(&Response::Ready, 0).await;
    assert_eq!(client.response().await, (0, Response::Ready));
    client.begin_segments(compression);
    node.begin_segments(compression);
    (client, node)
}

fn in_keyspace(statement: &str, keyspace: &str) -> Request {
    Request::Query {
        statement: statement.to_owned(),
        parameters: QueryParameters {
            keyspace: Some(keyspace.to_owned()),
            now_in_seconds: Some(7),
            ..QueryParameters::default()
        },
    }
}

#[tokio::test]
async fn both_sides_have_segments_behind_the_handshake() {
    let setup = Setup::new().await;
    for compression in FORMS {
        let (mut client, mut node) = connect(&setup, compression).await;
        for (stream, request) in [
            (1, query("SELECT a FROM b")),
            (2, in_keyspace("SELECT a FROM b", "shop")),
            (3, query(&"SELECT long FROM b".repeat(50_000))),
        ] {
            client.ask(&request, stream).await;
            assert_eq!(node.request().await, (stream, request));
            let answer = Response::SetKeyspace("k".repeat(300));
            node.answer(&answer, stream).await;
            assert_eq!(client.response().await, (stream, answer));
        }
    }
}

#[tokio::test]
async fn long_responses_pass_in_pieces() {
    let setup = Setup::with(|options| options.frame_body_max = 100_000).await;
    for compression in FORMS {
        let (mut client, mut node) = connect(&setup, compression).await;
        client.ask(&query("SELECT a FROM b"), 5).await;
        node.request().await;
        let answer = Response::AuthSuccess {
            token: Some(Bytes::from(vec![9; 3_000_000])).into(),
        };
        node.answer(&answer, 5).await;
        node.answer(&Response::Void, 6).await;
        assert_eq!(client.response().await, (5, answer));
        assert_eq!(client.response().await, (6, Response::Void));
    }
}

#[tokio::test]
async fn segments_begin_with_a_request_to_log_in() {
    let setup = Setup::new().await;
    let (mut client, mut node) = connect_without_handshake(&setup).await;
    let startup = Request::Startup(Startup::default());
    client.ask(&startup, 0).await;
    node.request().await;
    let authenticator = "of the node".to_owned();
    let authenticate = Response::Authenticate { authenticator };
    let mut frame = BytesMut::new();
    authenticate.encode(&ResponseContext::new(0).at(V5), None, &mut frame);
    // The answer comes in two pieces.
    let rest = frame.split_off(12);
    node.peer.send(&frame).await;
    node.peer.send(&rest).await;
    assert_eq!(client.response().await, (0, authenticate));
    client.begin_segments(None);
    node.begin_segments(None);
    let token = Request::AuthResponse {
        token: Some(Bytes::from_static(b"secret")).into(),
    };
    client.ask(&token, 1).await;
    assert_eq!(node.request().await, (1, token));
    // Who is not let in yet gets no statement through.
    client.ask(&query("SELECT a FROM b"), 2).await;
    let (stream, refused) = client.response().await;
    assert!(matches!(refused, Response::Error(_)) && stream == 2);
    let success = Response::AuthSuccess { token: None.into() };
    node.answer(&success, 1).await;
    assert_eq!(client.response().await, (1, success));
}

#[tokio::test]
async fn ids_of_statements_and_columns_pass() {
    let setup = Setup::new().await;
    let (mut client, mut node) = connect(&setup, Some(Compression::Lz4)).await;
    client.ask(&execute(ID), 1).await;
    let (stream, response) = client.response().await;
    let id = Bytes::from_static(ID);
    assert!(
        matches!(&response, Response::Error(CqlError { kind, .. })
            if *kind == ErrorKind::Unprepared { id: id.clone() }),
        "{response:?}"
    );
    assert_eq!(stream, 1);

    let prepare = Request::Prepare {
        statement: "SELECT * FROM t".to_owned(),
        keyspace: Some("shop".to_owned()),
    };
    client.ask(&prepare, 2).await;
    assert_eq!(node.request().await, (2, prepare));
    let prepared = Response::Prepared(PreparedResponse {
        id: id.clone(),
        result_metadata_id: Some(Bytes::from_static(b"of columns")),
        bind: ColumnsMetadata::default(),
        partition_key_indexes: Vec::new(),
        result: None,
    });
    node.answer(&prepared, 2).await;
    assert_eq!(client.response().await, (2, prepared));
    let request = Request::Execute {
        id,
        result_metadata_id: Some(Bytes::from_static(b"of columns")),
        parameters: QueryParameters::default(),
    };
    client.ask(&request, 3).await;
    assert_eq!(node.request().await, (3, request));
}

#[tokio::test]
async fn a_damaged_segment_of_the_client_ends_its_connection() {
    let setup = Setup::new().await;
    for compression in FORMS {
        let (mut client, _node) = connect(&setup, compression).await;
        let mut frame = BytesMut::new();
        query("SELECT a FROM b").encode_in(V5, 1, None, &mut frame);
        let mut segment = BytesMut::new();
        put_segment(SegmentForm::of(compression), &frame, true, &mut segment);
        let last = segment.len() - 1;
        segment[last] ^= 1;
        client.peer.send(&segment).await;
        let (stream, response) = client.response().await;
        let Response::Error(error) = response else {
            panic!("{response:?}");
        };
        assert_eq!((stream, error.kind), (0, ErrorKind::ProtocolError));
        assert!(error.message.contains("CRC mismatch"), "{}", error.message);
        assert!(client.frame().await.is_none(), "then it is closed");
    }
}

#[tokio::test]
async fn a_connection_keeps_its_version() {
    let setup = Setup::new().await;
    let (mut client, _node) = connect(&setup, None).await;
    let mut frame = BytesMut::new();
    query("SELECT a FROM b").encode(4, None, &mut frame);
    client.send(frame).await;
    let (stream, response) = client.response().await;
    let Response::Error(error) = response else {
        panic!("{response:?}");
    };
    assert_eq!((stream, error.kind), (4, ErrorKind::ProtocolError));
    assert!(error.message.contains("Got 4/v4"), "{}", error.message);
    assert!(client.frame().await.is_none());
}

#[tokio::test]
async fn a_damaged_segment_of_the_node_ends_the_connection() {
    let setup = Setup::new().await;
    let (mut client, mut node) = connect(&setup, None).await;
    node.peer.send(b"these bytes are no segment").await;
    assert!(client.frame().await.is_none());
}

/// The version of the connection is that of STARTUP, whatever the client sends behind it.
#[tokio::test]
async fn frames_behind_startup_come_within_segments() {
    let setup = Setup::new().await;
    let (mut client, mut node) = connect_without_handshake(&setup).await;
    let startup = Request::Startup(Startup::default());
    let mut sent = BytesMut::new();
    startup.encode_in(V5, 0, None, &mut sent);
    // A frame of version 4 and then one of version 5 that are not in segments.
    query("INSERT INTO t").encode(1, None, &mut sent);
    query("INSERT INTO t").encode_in(V5, 2, None, &mut sent);
    client.peer.send(&sent).await;
    assert_eq!(node.request().await, (0, startup));
    node.peer.stays_silent().await;
    node.answer(&Response::Ready, 0).await;
    assert_eq!(client.response().await, (0, Response::Ready));
    client.begin_segments(None);
    let (stream, refused) = client.response().await;
    assert!(
        matches!(&refused, Response::Error(error) if error.message.contains("CRC mismatch")),
        "{refused:?}"
    );
    assert_eq!(stream, 0);
    assert_eq!(client.frame().await, None);
    node.begin_segments(None);
    assert_eq!(node.frame().await, None);
}
