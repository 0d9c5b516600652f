//! A way to a database on which statements with some words in them get no answer for a while: the database
//! is said to be overloaded.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::guard::{ERROR, answer, read_frame, string};

const OVERLOADED: i32 = 0x1001;

pub struct Refusing {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    words: &'static [u8],
    refuses: AtomicBool,
    refused: AtomicUsize,
}

impl Refusing {
    /// Refuses statements with these words until it is told to stop.
    pub async fn start(database: SocketAddr, words: &'static str) -> Refusing {
        let listener = TcpListener::bind(super::loopback()).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let state = Arc::new(State {
            words: words.as_bytes(),
            refuses: AtomicBool::new(true),
            refused: AtomicUsize::new(0),
        });
        let of_connections = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // Either side may end its connection.
                tokio::spawn(pass(client, database, of_connections.clone()));
            }
        });
        Refusing { address, state }
    }

    /// How often.
    pub fn refused(&self) -> usize {
        self.state.refused.load(Ordering::SeqCst)
    }

    /// Lets everything through.
    pub fn stop(&self) {
        self.state.refuses.store(false, Ordering::SeqCst);
    }
}

async fn pass(client: TcpStream, database: SocketAddr, state: Arc<State>) -> io::Result<()> {
    let (mut from_client, to_client) = client.into_split();
    let (mut from_database, mut to_database) = TcpStream::connect(database).await?.into_split();
    // Frames go whole, whoever they are of.
    let to_client = Mutex::new(to_client);
    let requests = async {
        loop {
            let frame = read_frame(&mut from_client).await?;
            let has_words = frame
                .windows(state.words.len())
                .any(|some| some == state.words);
            if has_words && state.refuses.load(Ordering::SeqCst) {
                state.refused.fetch_add(1, Ordering::SeqCst);
                let body = [&OVERLOADED.to_be_bytes()[..], &string("not now")].concat();
                let refusal = answer(&frame, ERROR, &body);
                to_client.lock().await.write_all(&refusal).await?;
            } else {
                to_database.write_all(&frame).await?;
            }
        }
    };
    let answers = async {
        loop {
            let frame = read_frame(&mut from_database).await?;
            to_client.lock().await.write_all(&frame).await?;
        }
    };
    tokio::select! {
        ended = requests => ended,
        ended = answers => ended,
    }
}
