//! A proxy before a database. It refuses statements that contain a given text, for a while, with
//! the error that the database is overloaded.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::guard::{ERROR, answer, read_frame, string};

const OVERLOADED: i32 = 0x1001;

/// The proxy.
pub struct Refusing {
    /// The address at which it listens.
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    words: &'static [u8],
    refuses: AtomicBool,
    refused: AtomicUsize,
}

impl Refusing {
    /// Starts the proxy. It refuses statements with the text `words` until [`Refusing::stop`] is
    /// called.
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
                // The result is ignored, as either side may end its connection.
                tokio::spawn(pass(client, database, of_connections.clone()));
            }
        });
        Refusing { address, state }
    }

    /// Returns the number of refused statements.
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
    // Answers of the database and refusals go to the client one whole frame at a time.
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
