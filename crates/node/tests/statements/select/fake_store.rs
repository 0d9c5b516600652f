//! An index service over real HTTP that gives the answers set by a test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use store_api::types::EXACT_HEADER;
use store_api::{ClientOptions, StoreClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The next answers, and the requests received.
#[derive(Clone, Default)]
pub struct FakeStore {
    state: Arc<Mutex<State>>,
}

struct State {
    status: u16,
    /// Whether the service passes over `exact`, as those do that don't know it.
    is_old: bool,
    /// Makes the body of an answer from the body of its request.
    answer: Box<dyn Fn(&str) -> String + Send>,
    /// The path and body of each request.
    requests: Vec<(String, String)>,
}

impl Default for State {
    fn default() -> State {
        State {
            status: 0,
            is_old: false,
            answer: Box::new(|_| String::new()),
            requests: Vec::new(),
        }
    }
}

impl FakeStore {
    /// Starts the service on a thread of its own, and returns a client of it.
    pub fn start() -> (FakeStore, StoreClient) {
        let store = FakeStore::default();
        let served = store.clone();
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(stream, served.clone()));
                }
            });
        });
        let address = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        let client = StoreClient::new(ClientOptions {
            base_uris: vec![format!("http://{address}")],
            ..ClientOptions::default()
        })
        .unwrap();
        (store, client)
    }

    /// Sets the answer to the next requests.
    pub fn answer(&self, status: u16, body: &str) {
        let body = body.to_owned();
        self.answer_by(status, move |_| body.clone());
    }

    /// Sets the answers to the next requests, each made from the body of its request.
    pub fn answer_by(&self, status: u16, answer: impl Fn(&str) -> String + Send + 'static) {
        let mut state = self.state.lock().unwrap();
        state.status = status;
        state.answer = Box::new(answer);
    }

    /// Makes the service one that passes over `exact`.
    pub fn knows_no_exact_searches(&self) {
        self.state.lock().unwrap().is_old = true;
    }

    /// The number of requests received.
    pub fn requests(&self) -> usize {
        self.state.lock().unwrap().requests.len()
    }

    /// The path and body of the last request.
    pub fn last_request(&self) -> (String, String) {
        self.state.lock().unwrap().requests.last().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, store: FakeStore) {
    let mut buffer = Vec::new();
    while let Some((path, body)) = read_request(&mut stream, &mut buffer).await {
        let (status, exact, answer) = {
            let mut state = store.state.lock().unwrap();
            let answer = (state.answer)(&body);
            let is_exact = !state.is_old && body.contains(r#""exact":true"#);
            let exact = match is_exact {
                true => format!("{EXACT_HEADER}: true\r\n"),
                false => String::new(),
            };
            state.requests.push((path, body));
            (state.status, exact, answer)
        };
        let response = format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\n{exact}content-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads one request; `None` if the client has hung up.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        let text = String::from_utf8_lossy(buffer).into_owned();
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let length: usize = head
                .lines()
                .find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length")
                        .then(|| value.trim().parse().unwrap())
                })
                .unwrap_or(0);
            if rest.len() >= length {
                let path = head.split(' ').nth(1)?.to_owned();
                let body = rest[..length].to_owned();
                buffer.drain(..head.len() + 4 + length);
                return Some((path, body));
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
