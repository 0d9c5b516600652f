//! A proxy before a database. It asks for a password, speaks TLS if it has a certificate, and then
//! passes everything through.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use net::tls::{self, Pem, TlsClients, TlsOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

const STARTUP: u8 = 0x01;
const AUTH_RESPONSE: u8 = 0x0f;
pub(super) const ERROR: u8 = 0x00;
const AUTHENTICATE: u8 = 0x03;
const AUTH_SUCCESS: u8 = 0x10;

/// The length of a frame's header, bytes.
const HEADER: usize = 9;

/// The proxy. It stands for a database with a password.
pub struct Guard {
    /// The address at which it listens.
    pub address: SocketAddr,
    refused: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    tls: Arc<Mutex<Option<TlsAcceptor>>>,
}

impl Guard {
    /// Starts the proxy. It lets in only the user and password of `login`.
    pub async fn start(database: SocketAddr, login: (&str, &str)) -> Guard {
        let listener = TcpListener::bind(super::loopback()).await.expect("a port");
        let token = format!("\0{}\0{}", login.0, login.1).into_bytes();
        let guard = Guard {
            address: listener.local_addr().expect("bound"),
            refused: Arc::default(),
            open: Arc::default(),
            tls: Arc::default(),
        };
        let (refused, tls) = (guard.refused.clone(), guard.tls.clone());
        let open = guard.open.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (refused, token) = (refused.clone(), token.clone());
                let open = open.clone();
                let tls = tls.lock().expect("no panic").clone();
                tokio::spawn(async move {
                    open.fetch_add(1, Ordering::SeqCst);
                    let let_in = match tls {
                        None => pass(client, database, &token).await,
                        Some(tls) => match tls.accept(client).await {
                            Ok(client) => pass(client, database, &token).await,
                            Err(error) => Err(error),
                        },
                    };
                    open.fetch_sub(1, Ordering::SeqCst);
                    if let_in.is_err() {
                        refused.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        guard
    }

    /// Returns the number of connections that were not let in.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    /// Returns the number of connections that are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Makes new connections speak TLS with a certificate and its key from now on.
    pub fn set_certificate(&self, (certificates, key): (Pem, Pem)) {
        let options = TlsOptions {
            certificates,
            key,
            clients: TlsClients::Anyone,
        };
        let config = tls::server(&options, &[]).expect("a certificate and its key");
        *self.tls.lock().expect("no panic") = Some(TlsAcceptor::from(config));
    }
}

/// Serves a connection. Fails if the client is not let in.
async fn pass<C>(mut client: C, database: SocketAddr, token: &[u8]) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let mut server = TcpStream::connect(database).await?;
    loop {
        let frame = read_frame(&mut client).await?;
        let opcode = frame[4];
        if opcode == AUTH_RESPONSE {
            let given = &frame[HEADER + 4..];
            if given != token {
                let mut body = 0x0100_i32.to_be_bytes().to_vec();
                body.extend(string("Username and/or password are incorrect"));
                client.write_all(&answer(&frame, ERROR, &body)).await?;
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            let nothing = (-1_i32).to_be_bytes();
            let success = answer(&frame, AUTH_SUCCESS, &nothing);
            client.write_all(&success).await?;
            // However the connection ends, the client was let in.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            return Ok(());
        }
        server.write_all(&frame).await?;
        let reply = read_frame(&mut server).await?;
        if opcode == STARTUP {
            let body = string("org.apache.cassandra.auth.PasswordAuthenticator");
            client
                .write_all(&answer(&frame, AUTHENTICATE, &body))
                .await?;
        } else {
            client.write_all(&reply).await?;
        }
    }
}

pub(super) async fn read_frame<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER];
    stream.read_exact(&mut frame).await?;
    let length = u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]);
    frame.resize(HEADER + length as usize, 0);
    stream.read_exact(&mut frame[HEADER..]).await?;
    Ok(frame)
}

/// Makes a frame on the stream of the request.
pub(super) fn answer(request: &[u8], opcode: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a short body");
    let mut frame = vec![0x84, 0, request[2], request[3], opcode];
    frame.extend(length.to_be_bytes());
    frame.extend(body);
    frame
}

pub(super) fn string(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("a short text");
    [&length.to_be_bytes(), text.as_bytes()].concat()
}
