//! The cost of the way through a gateway: `cargo bench -p gateway`.
//!
//! A node that answers at once is asked directly and through a gateway, in turns, over loopback.
//! The difference is the cost of the gateway, two more hops over sockets included. Machines are
//! noisy, so the result is the median of the rounds. Everything runs in one process; with fewer
//! than three idle cores the hops wait for one another.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use cql::wire::{
    BoundValue, ColumnsMetadata, FrameDirection, FrameHeader, HEADER_LENGTH, MarkerValues, Opcode,
    PreparedResponse, QueryParameters, Request, Response, ResponseContext, Startup,
};
use gateway::{Gateway, GatewayOptions};

const ID: &[u8] = b"0123456789abcdef";
const ROUNDS: usize = 21;
const ROUND_TRIPS: usize = 1_000;
const IN_FLIGHT: usize = 32;

/// The request of a benchmark, and the size of its answer.
struct Workload {
    name: &'static str,
    request: Request,
    answer_bytes: usize,
}

fn main() {
    let workloads = [
        execute("EXECUTE, 16 bytes bound, 100 back", 16, 100),
        execute("EXECUTE, 1,536 floats bound, 4 back", 6_144, 4),
        execute("EXECUTE, 16 bytes bound, 64 KiB back", 16, 64 << 10),
        Workload {
            name: "QUERY, 60 bytes of text, 100 back",
            request: Request::Query {
                statement: "SELECT name, price FROM shop.products WHERE id = 1234567890".to_owned(),
                parameters: QueryParameters::default(),
            },
            answer_bytes: 100,
        },
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    println!(
        "{ROUNDS} rounds of {ROUND_TRIPS} round trips each way; microseconds a request, median of the rounds' medians\n"
    );
    println!(
        "| request | direct | through | added | direct, {IN_FLIGHT} in flight | through | added |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    for workload in workloads {
        let node = start_node(workload.answer_bytes);
        let gateway = runtime.block_on(start_gateway(node));
        measure(&workload, node, gateway.address());
    }
}

fn execute(name: &'static str, bound_bytes: usize, answer_bytes: usize) -> Workload {
    let value = BoundValue::Value(Bytes::from(vec![7; bound_bytes]));
    Workload {
        name,
        request: Request::Execute {
            id: Bytes::from_static(ID),
            result_metadata_id: None,
            parameters: QueryParameters {
                values: MarkerValues::Positional(vec![value]),
                ..QueryParameters::default()
            },
        },
        answer_bytes,
    }
}

async fn start_gateway(node: SocketAddr) -> Gateway {
    let options = GatewayOptions {
        address: "127.0.0.1:0".parse().expect("an address"),
        cassandra: node.to_string(),
        ..GatewayOptions::default()
    };
    Gateway::start(options).await.expect("a free port")
}

/// Starts a node that answers PREPARE with an id, and any other request with `answer_bytes` bytes.
fn start_node(answer_bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.expect("a connection");
            // The thread ends when the client does.
            std::thread::spawn(move || answer(socket, answer_bytes));
        }
    });
    address
}

fn answer(mut socket: TcpStream, answer_bytes: usize) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let prepared = Response::Prepared(PreparedResponse {
        id: Bytes::from_static(ID),
        result_metadata_id: None,
        bind: ColumnsMetadata::default(),
        partition_key_indexes: Vec::new(),
        result: None,
    });
    let mut input = vec![0; 1 << 20];
    let (mut filled, mut out) = (0, BytesMut::new());
    loop {
        filled += match socket.read(&mut input[filled..])? {
            0 => return Ok(()),
            read => read,
        };
        let mut at = 0;
        while let Some(header) = whole_frame(&input[at..filled], FrameDirection::Request) {
            at += HEADER_LENGTH + header.length as usize;
            let context = ResponseContext::new(header.stream);
            match header.opcode {
                Opcode::Startup => Response::Ready.encode(&context, None, &mut out),
                Opcode::Prepare => prepared.encode(&context, None, &mut out),
                _ => {
                    let answer = FrameHeader {
                        version: Default::default(),
                        flags: Default::default(),
                        stream: header.stream,
                        opcode: Opcode::Result,
                        length: answer_bytes as u32,
                    };
                    out.extend_from_slice(&answer.to_bytes());
                    out.resize(out.len() + answer_bytes, 0);
                }
            }
        }
        input.copy_within(at..filled, 0);
        filled -= at;
        socket.write_all(&out)?;
        out.clear();
    }
}

/// The header of the first frame in `bytes`; `None` if the frame is not whole.
fn whole_frame(bytes: &[u8], direction: FrameDirection) -> Option<FrameHeader> {
    let header = FrameHeader::read(bytes, direction, usize::MAX).expect("a frame")?;
    (bytes.len() >= HEADER_LENGTH + header.length as usize).then_some(header)
}

struct Client {
    socket: TcpStream,
    /// The request, as a frame.
    request: Vec<u8>,
    input: Vec<u8>,
}

/// The position of the stream in a frame. The stream has two bytes.
const STREAM_AT: usize = 2;

impl Client {
    fn connect(address: SocketAddr, workload: &Workload) -> Client {
        let socket = TcpStream::connect(address).expect("a connection");
        socket.set_nodelay(true).expect("an option");
        let encoded = |request: &Request| {
            let mut out = BytesMut::new();
            request.encode(1, None, &mut out);
            out.to_vec()
        };
        let mut client = Client {
            socket,
            request: encoded(&Request::Startup(Startup::default())),
            input: vec![0; 4 << 20],
        };
        client.round_trip(1);
        client.request = encoded(&Request::Prepare {
            statement: "INSERT INTO t (id) VALUES (?)".to_owned(),
            keyspace: None,
        });
        client.round_trip(1);
        client.request = encoded(&workload.request);
        client
    }

    /// Sends the request `requests` times at once, and receives all answers.
    fn round_trip(&mut self, requests: usize) {
        for stream in 1..=requests {
            // Each request has a stream of its own while its answer is due.
            let stream = (stream as u16).to_be_bytes();
            self.request[STREAM_AT..STREAM_AT + 2].copy_from_slice(&stream);
            self.socket.write_all(&self.request).expect("sent");
        }
        let (mut filled, mut at, mut answers) = (0, 0, 0);
        while answers < requests {
            let read = self.socket.read(&mut self.input[filled..]).expect("read");
            assert!(read > 0, "closed");
            filled += read;
            while let Some(header) = whole_frame(&self.input[at..filled], FrameDirection::Response)
            {
                assert!(matches!(header.opcode, Opcode::Ready | Opcode::Result));
                at += HEADER_LENGTH + header.length as usize;
                answers += 1;
            }
        }
    }

    /// The microseconds for each request: the median of many round trips.
    fn median(&mut self, requests: usize) -> f64 {
        let times = (0..ROUND_TRIPS / requests).map(|_| {
            let start = Instant::now();
            self.round_trip(requests);
            micros(start.elapsed()) / requests as f64
        });
        median(times.collect())
    }
}

fn measure(workload: &Workload, node: SocketAddr, gateway: SocketAddr) {
    let mut clients = [node, gateway].map(|address| Client::connect(address, workload));
    print!("| {}", workload.name);
    for requests in [1, IN_FLIGHT] {
        let mut rounds: [Vec<f64>; 2] = Default::default();
        for _ in 0..ROUNDS {
            for (client, medians) in clients.iter_mut().zip(&mut rounds) {
                medians.push(client.median(requests));
            }
        }
        let [direct, through] = rounds.map(median);
        print!(" | {direct:.1} | {through:.1} | {:.1}", through - direct);
    }
    println!(" |");
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
