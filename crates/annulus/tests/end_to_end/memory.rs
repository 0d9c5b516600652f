//! Clients that pin memory in every way at the same time. The process stays within its limit, and
//! serves others meanwhile and afterwards.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use scylla::statement::batch::{Batch, BatchType};
use test_support::blocking::eventually;

use crate::server::Server;

const LIMIT_BYTES: u64 = 512 << 20;

/// The time after which an attacker gives up on a socket that takes nothing.
const STALL: Duration = Duration::from_millis(200);

const STARTUP: u8 = 1;
const QUERY: u8 = 7;
const PREPARE: u8 = 9;

fn frame(opcode: u8, stream: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![4, 0];
    frame.extend(stream.to_be_bytes());
    frame.push(opcode);
    frame.extend((body.len() as u32).to_be_bytes());
    frame.extend(body);
    frame
}

fn text(text: &str) -> Vec<u8> {
    let mut body = (text.len() as u32).to_be_bytes().to_vec();
    body.extend(text.as_bytes());
    body
}

/// A query without pages, at consistency ONE.
fn query(statement: &str) -> Vec<u8> {
    let mut body = text(statement);
    body.extend([0, 1, 0]);
    body
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("it listens");
    socket.set_write_timeout(Some(STALL)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    socket
}

/// Reads the next frame: its opcode and its body.
fn receive(socket: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut header = [0; 9];
    socket.read_exact(&mut header).expect("an answer");
    let length = u32::from_be_bytes(header[5..9].try_into().unwrap());
    let mut body = vec![0; length as usize];
    socket.read_exact(&mut body).expect("an answer");
    (header[4], body)
}

fn open(address: SocketAddr) -> TcpStream {
    let mut socket = connect(address);
    let mut body = vec![0, 1, 0, 11];
    body.extend(b"CQL_VERSION");
    body.extend([0, 5]);
    body.extend(b"3.0.0");
    socket.write_all(&frame(STARTUP, 0, &body)).unwrap();
    assert_eq!(receive(&mut socket).0, 2, "READY");
    socket
}

/// Sends a query and returns the opcode of the answer; 8 is a result.
fn ask(socket: &mut TcpStream, statement: &str) -> u8 {
    socket
        .write_all(&frame(QUERY, 1, &query(statement)))
        .unwrap();
    receive(socket).0
}

/// The status line of an answer, with as much of the rest as comes at once.
fn get(http: SocketAddr, path: &str) -> String {
    let mut socket = connect(http);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 64];
    let read = socket.read(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// The memory of a process that the system can't take back, in bytes.
pub fn anonymous_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.expect("a number").parse::<u64>().expect("a number") << 10
}

/// Looks at the memory of a process again and again.
pub struct Watch {
    /// Ends the looks when it is dropped.
    over: mpsc::SyncSender<()>,
    looking: thread::JoinHandle<u64>,
}

impl Watch {
    pub fn start(process: u32) -> Watch {
        const EVERY: Duration = Duration::from_millis(10);
        let (over, is_over) = mpsc::sync_channel(1);
        let looking = thread::spawn(move || {
            let mut peak = 0;
            while is_over.recv_timeout(EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                peak = peak.max(anonymous_bytes(process));
            }
            peak
        });
        Watch { over, looking }
    }

    /// The most memory at any look, in bytes.
    pub fn peak(self) -> u64 {
        drop(self.over);
        self.looking.join().expect("the process runs")
    }
}

/// Prepares many statements with many markers.
fn prepare_many(cql: SocketAddr, from: u32) -> TcpStream {
    let mut socket = open(cql);
    let markers = vec!["?"; 1_500].join(",");
    for number in from..from + 60 {
        let statement = format!("SELECT c FROM ks.large WHERE p IN ({markers},{number})");
        socket
            .write_all(&frame(PREPARE, 1, &text(&statement)))
            .unwrap();
        receive(&mut socket);
    }
    socket
}

/// Opens connections and attacks through them. Returns the connections, which stay open.
fn attack(cql: SocketAddr, http: SocketAddr) -> Vec<thread::JoinHandle<Vec<TcpStream>>> {
    let unread = thread::spawn(move || {
        let mut sockets: Vec<TcpStream> = (0..10).map(|_| open(cql)).collect();
        for socket in &mut sockets {
            for stream in 0..12 {
                let _ = socket.write_all(&frame(QUERY, stream, &query("SELECT * FROM ks.large")));
            }
        }
        sockets
    });
    let slow_frames = thread::spawn(move || {
        let half = vec![b'x'; 4 << 20];
        let mut sockets: Vec<TcpStream> = (0..40).map(|_| open(cql)).collect();
        for socket in &mut sockets {
            let mut begun = frame(QUERY, 1, &[]);
            begun[5..9].copy_from_slice(&(8u32 << 20).to_be_bytes());
            let _ = socket
                .write_all(&begun)
                .and_then(|()| socket.write_all(&half));
        }
        sockets
    });
    let bodies = thread::spawn(move || {
        let part = vec![b' '; 1_900_000];
        let mut sockets: Vec<TcpStream> = (0..150).map(|_| connect(http)).collect();
        for socket in &mut sockets {
            let head = format!(
                "POST /api/v1/indexes/ks/i/ann HTTP/1.1\r\nHost: {http}\r\nContent-Type: application/json\r\n\
                 Content-Length: 2000000\r\n\r\n"
            );
            let _ = socket
                .write_all(head.as_bytes())
                .and_then(|()| socket.write_all(&part));
        }
        sockets
    });
    let prepared = thread::spawn(move || vec![prepare_many(cql, 60)]);
    vec![unread, slow_frames, bodies, prepared]
}

/// Makes a partition of 10 MB.
fn fill(client: &mut TcpStream) {
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.large (p int, c int, b text, PRIMARY KEY (p, c))",
    ] {
        assert_eq!(ask(client, statement), 8);
    }
    let value = "x".repeat(250_000);
    for c in 0..40 {
        let insert = format!("INSERT INTO ks.large (p, c, b) VALUES (1, {c}, '{value}')");
        assert_eq!(ask(client, &insert), 8);
    }
}

#[test]
fn clients_that_pin_memory_do_not_fill_it() {
    let directory = tempfile::tempdir().unwrap();
    let limit = LIMIT_BYTES.to_string();
    let server = Server::start_with(directory.path(), &["--memory-limit", &limit]);
    let (process, cql, http) = (server.process_id(), server.cql, server.http);
    let mut client = open(cql);
    fill(&mut client);
    // The measurement comes after the largest answer and many prepared statements, as in a server
    // that has run for a while.
    assert_eq!(ask(&mut client, "SELECT * FROM ks.large"), 8);
    drop(prepare_many(cql, 0));
    let before = anonymous_bytes(process);

    let watch = Watch::start(process);
    let attackers = attack(cql, http);
    // Other clients of CQL and HTTP are served meanwhile.
    while !attackers.iter().all(thread::JoinHandle::is_finished) {
        let row = "SELECT c FROM ks.large WHERE p = 1 AND c = 7";
        assert_eq!(ask(&mut client, row), 8);
        for path in ["/api/v1/status", "/metrics"] {
            let answer = get(http, path);
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }
    let held: Vec<_> = attackers
        .into_iter()
        .map(|attacker| attacker.join().expect("an attacker"))
        .collect();
    let peak = watch.peak();
    eprintln!(
        "{} MiB before, {} MiB at the peak",
        before >> 20,
        peak >> 20
    );
    assert!(
        peak <= LIMIT_BYTES / 10 * 11,
        "{} MiB of {} MiB",
        peak >> 20,
        LIMIT_BYTES >> 20
    );

    drop(held);
    // The server goes on, and so does the client from before, once the pinned memory is free.
    eventually("pinned memory is free", || {
        ask(&mut client, "SELECT * FROM ks.large") == 8
    });
    // The system also gets the memory back.
    eventually("there is little more memory than before", || {
        anonymous_bytes(process) <= before / 2 * 3
    });
}

/// The largest write that is taken, in bytes of keys and values.
const WRITE_BYTES_MAX: usize = 64 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_batch_is_taken_at_a_limit_of_a_gibibyte() {
    const VALUE_BYTES: usize = 1 << 20;
    // The keys and what else counts of a row, generously.
    const ROW_BYTES: usize = VALUE_BYTES + 512;
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_with(directory.path(), &["--memory-limit", "1GiB"]);
    let session = server.connect().await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.large (k int PRIMARY KEY, v blob)",
    ] {
        session.query_unpaged(statement, ()).await.unwrap();
    }
    let insert = session.prepare("INSERT INTO ks.large (k, v) VALUES (?, ?)");
    let insert = insert.await.unwrap();
    let rows = WRITE_BYTES_MAX / ROW_BYTES;
    let rest = WRITE_BYTES_MAX - rows * ROW_BYTES - 512;
    let mut values: Vec<(i32, Vec<u8>)> = Vec::new();
    for k in 0..rows as i32 {
        values.push((k, vec![k as u8; VALUE_BYTES]));
    }
    values.push((rows as i32, vec![1; rest]));
    let mut batch = Batch::new(BatchType::Unlogged);
    for _ in &values {
        batch.append_statement(insert.clone());
    }
    session.batch(&batch, &values).await.expect("it is taken");
    let counted = session.query_unpaged("SELECT count(*) FROM ks.large", ());
    let counted = counted.await.unwrap().into_rows_result().unwrap();
    let (count,) = counted.single_row::<(i64,)>().unwrap();
    assert_eq!(count, values.len() as i64);
    // One byte too many for a batch, not for the memory.
    values[0].1.resize(VALUE_BYTES + rows * 512 + 1024, 0);
    let refused = session.batch(&batch, &values).await.unwrap_err();
    assert!(refused.to_string().contains("67108864"), "{refused}");
    server.stop();
}
