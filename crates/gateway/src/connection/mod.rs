//! One client connection and its own connection to the node, from beginning to end.
//!
//! Both directions run in one task, so that a request and its response wake no other thread. How a
//! connection ends depends on the side that ends it:
//!
//! - *The client sends no more requests* (it has closed its sending side, it broke the rules and
//!   got an error, the gateway stops, or clients need other certificates now): requests in flight
//!   are still answered, within the drain timeout, then both sides close. The node's side is not
//!   closed before, as Cassandra throws answers away once a client has closed.
//! - *The client has disconnected*: the node's side closes at once.
//! - *The node closes, or has died*: the client gets all bytes that the node had sent, even a part
//!   of a response, then its side closes, too. Drivers rightly take this to mean that the node of
//!   this address is down.
//! - *The node cannot be reached*: the client's first request is answered with an error that says
//!   so.

mod background_requests;
mod context;
mod decide;
mod ends;
mod errors;
mod frame_reader;
mod frame_writer;
mod own_requests;
mod own_streams;
mod pending_response;
#[cfg(test)]
mod pipelining_tests;
mod reply;
mod requests;
mod responses;
#[cfg(test)]
mod retry_tests;
mod route;
mod session;
mod statements;
#[cfg(test)]
mod test_connection;
#[cfg(test)]
mod vector_search_tests;
#[cfg(test)]
mod without_rows_tests;
#[cfg(test)]
mod write_tests;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use client_memory::MemoryAccount;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{FrameDirection, FrameHeader, HeaderRefusal, ProtocolVersion};
use net::pending_connections::ConnectionAdmission;
use net::sockets::{linger, prepare};
use net::stream::ConnectedSocket;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::background_requests::BackgroundRequests;
use self::context::DecisionContext;
use self::ends::{RequestsEnd, ResponsesEnd};
use self::frame_reader::ClientFrameReader;
use self::frame_writer::ClientFrameWriter;
use self::requests::{RequestLoop, write_memory};
use self::responses::ResponseLoop;
use self::session::ProxySession;
use crate::clients::ConnectionHandle;
use crate::error_frame::error_frame;
use crate::node_requests::NodeRequestSender;
use crate::shared::ServingState;
use crate::vector_search::FreshSearches;

/// Answers made by the gateway that may wait for the client to read; with more, the client's
/// requests wait, too.
const ANSWERS_MAX: usize = 16;

/// The time for which a client waits until the definitions of vector indexes are known. It is
/// shorter than drivers wait for a connection (5 s), so that they get the reason why it is refused.
const KNOWN_WITHIN: Duration = Duration::from_secs(4);

/// Serves a connection to its end. It is dropped if it has to give way to another.
pub(crate) async fn serve(
    client: TcpStream,
    shared: Arc<ServingState>,
    guest: ConnectionAdmission,
) {
    let account = guest.find_room(|| shared.options.memory.client().ok());
    let Some(account) = account.await else {
        tracing::warn!("clients hold all the memory that they may: a connection is refused");
        return;
    };
    let end = CancellationToken::clone(&shared.connections.load());
    let tls = shared.client_tls.load_full();
    let accepting = ConnectedSocket::of_client(client, tls);
    let client = match timeout(shared.options.handshake_timeout, accepting).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => {
            tracing::info!(%error, "a client's TLS handshake failed");
            return;
        }
        Err(_) => {
            tracing::debug!("a client did not begin with a TLS handshake in time");
            return;
        }
    };
    // Until the gateway knows which tables are logged, nothing may pass.
    let ready = timeout(KNOWN_WITHIN, shared.catalog.ready()).await;
    let node = match ready {
        Ok(()) => Some(connect(&shared).await),
        Err(_) => None,
    };
    let served = match node {
        Some(Ok(node)) => pass((client, node), (account, guest), end, &shared).await,
        None => {
            let trouble = shared.catalog.trouble();
            let trouble = trouble
                .as_deref()
                .unwrap_or("the cluster has not answered yet");
            if let Some(clients) = shared.refused.is_due() {
                tracing::warn!(
                    trouble,
                    clients,
                    "the definitions of vector indexes are not known: clients are refused"
                );
            }
            let message = format!(
                "the gateway does not know yet which tables have vector indexes ({trouble}): try another node"
            );
            refuse(client, away(message), &shared).await
        }
        Some(Err(error)) => {
            let cassandra = &shared.options.cassandra;
            if let Some(clients) = shared.refused.is_due() {
                tracing::warn!(%cassandra, %error, clients, "Cassandra cannot be reached: clients are refused");
            }
            let message = format!(
                "the gateway cannot reach Cassandra at {cassandra} ({error}): try another node"
            );
            refuse(client, away(message), &shared).await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a client is gone");
    }
}

/// An error upon which drivers try another gateway. Upon other errors of a server some drivers fail
/// the request.
fn away(message: String) -> CqlError {
    CqlError::new(ErrorKind::IsBootstrapping, message)
}

/// An address as nodes and drivers know it: 10.0.0.1 instead of ::ffff:10.0.0.1, which a socket for
/// both IPv6 and IPv4 reports.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

async fn connect(shared: &ServingState) -> io::Result<ConnectedSocket> {
    let address = shared.options.cassandra.as_str();
    let connecting = async {
        let node = TcpStream::connect(address).await?;
        prepare(&node)?;
        ConnectedSocket::of_server(node, address, shared.options.cassandra_tls.clone()).await
    };
    timeout(shared.options.connect_timeout, connecting).await?
}

/// Runs both directions of a connection until one ends it, or until `end` is cancelled.
async fn pass(
    (client, node): (ConnectedSocket, ConnectedSocket),
    (account, guest): (MemoryAccount, ConnectionAdmission),
    end: CancellationToken,
    shared: &ServingState,
) -> io::Result<()> {
    let addresses = (
        canonical(client.local_addr()?),
        canonical(client.peer_addr()?),
    );
    let gone = CancellationToken::new();
    let (requests, responses) = loops(addresses, (&account, guest), (gone.clone(), end), shared);
    let _gone = gone.drop_guard();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_node, mut to_node) = node.into_split();
    let end = {
        let mut requests = pin!(requests.run(&mut from_client, &mut to_node));
        let mut responses = pin!(responses.run(&mut from_node, &mut to_client));
        let mut asking = true;
        loop {
            tokio::select! {
                end = &mut requests, if asking => {
                    asking = false;
                    if let RequestsEnd::Client(error) = end {
                        break Some(ResponsesEnd::Client(error));
                    }
                }
                end = &mut responses => break Some(end),
                () = shared.kill.cancelled() => break None,
            }
        }
    };
    let Some(end) = end else { return Ok(()) };
    match end {
        ResponsesEnd::Client(error) => return Err(error),
        ResponsesEnd::Eof | ResponsesEnd::Done => tracing::debug!(%end, "a connection ends"),
        _ => tracing::warn!(%end, "a connection is closed"),
    }
    drop((from_node, to_node));
    to_client.shutdown().await?;
    linger(&mut from_client).await;
    Ok(())
}

/// The loops of both directions of a connection. The client reached the gateway at the first of the
/// addresses, and comes from the second. The closer of the connection cancels `gone`. Once `end` is
/// cancelled no more requests are taken.
fn loops(
    addresses: (SocketAddr, SocketAddr),
    (account, guest): (&MemoryAccount, ConnectionAdmission),
    (gone, end): (CancellationToken, CancellationToken),
    shared: &ServingState,
) -> (RequestLoop, ResponseLoop) {
    let (sender, receiver) = mpsc::channel(ANSWERS_MAX);
    let known_as = Arc::new(ConnectionHandle::new(sender.downgrade()));
    shared.clients.enter(&known_as);
    let session = Arc::new(ProxySession::new(
        addresses,
        shared.options.frame_body_max.min(account.bytes_max()),
        known_as,
        guest,
    ));
    let (inquirer, inquiries) = NodeRequestSender::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "a step waits for the answer before it, so each statement in flight has at most one"
    )]
    let (steps_sender, steps) = mpsc::unbounded_channel();
    let answer_memory = shared.answer_memory.of_connection();
    let options = &shared.options;
    let searches = FreshSearches::new(
        options.stores.clone(),
        shared.log.clone(),
        options.freshness,
    );
    let searches = match options.answer_from_index {
        true => searches.may_answer_without_rows(answer_memory.clone(), shared.metrics.clone()),
        false => searches,
    };
    let context = DecisionContext {
        session,
        prepared: shared.prepared.clone(),
        catalog: shared.catalog.clone(),
        log: shared.log.clone(),
        answer_cache: shared.answer_cache.clone(),
        ring: shared.ring.clone(),
        stores: options.stores.clone(),
        maintenance: options.maintenance.clone(),
        slow_queries: options.slow_queries.clone(),
    };
    let requests = RequestLoop {
        background: BackgroundRequests::new(inquirer, searches, &context, sender, gone),
        context: context.clone(),
        node_requests: inquiries,
        steps,
        steps_sender: steps_sender.downgrade(),
        write_memory: write_memory(),
        stop: end,
        charge: account.charge(),
        has_passed: false,
        frame_timeout: shared.options.frame_timeout,
        handshake_timeout: shared.options.handshake_timeout,
        drain_timeout: shared.options.drain_timeout,
    };
    let responses = ResponseLoop {
        context,
        answers: receiver,
        answer_memory,
        steps: steps_sender,
        drain_timeout: shared.options.drain_timeout,
    };
    (requests, responses)
}

/// Answers the first request of a client with an error, and closes the connection.
async fn refuse(client: ConnectedSocket, error: CqlError, shared: &ServingState) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let mut intake = ClientFrameReader::new();
    let first_request = async {
        loop {
            if intake.fill(&mut from_client).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            match FrameHeader::read(intake.bytes(), FrameDirection::Request, usize::MAX) {
                Ok(None) => {}
                Ok(Some(header)) => return Ok((header.version, header.stream, error)),
                Err(HeaderRefusal { error, .. }) => {
                    return Ok((ProtocolVersion::V4, error.stream(), error.into()));
                }
            }
        }
    };
    let (version, stream, error) =
        timeout(shared.options.handshake_timeout, first_request).await??;
    let answer = error_frame(version, stream, error);
    ClientFrameWriter::new(&mut to_client).send(&answer).await?;
    to_client.shutdown().await?;
    linger(&mut from_client).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_in_ipv6_is_ipv4() {
        for (address, known_as) in [
            ("[::ffff:10.0.0.1]:9043", "10.0.0.1:9043"),
            ("10.0.0.1:9043", "10.0.0.1:9043"),
            ("[2001:db8::1]:9043", "[2001:db8::1]:9043"),
        ] {
            let address = canonical(address.parse().unwrap());
            assert_eq!(address.to_string(), known_as);
        }
    }
}
