//! Tests of TLS towards clients and towards the node, with certificates asked for on either side.

use std::sync::Arc;

use bytes::Bytes;
use cql::wire::{FrameDirection, Opcode, Request, Response};
use gateway::GatewayOptions;
use net::tls::{self, TlsClients, TlsOptions, authority};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::peer::{Peer, Setup, query, raw_frame, soon};

/// An authority that signs certificates, with the settings of peers that have them.
struct Authority(authority::TestAuthority);

impl Authority {
    fn new() -> Authority {
        Authority(authority::TestAuthority::new())
    }

    /// The settings of a server with a certificate of this authority.
    fn server(&self, clients: TlsClients) -> Arc<ServerConfig> {
        let (certificates, key) = self.0.sign();
        let options = TlsOptions {
            certificates,
            key,
            clients,
        };
        tls::server(&options, &[]).unwrap()
    }

    /// The settings of a client that trusts this authority. `own` signs the client's certificate.
    fn client(&self, own: Option<&Authority>) -> Arc<ClientConfig> {
        let own = own.map(|own| own.0.sign());
        let own = own.as_ref().map(|(certificate, key)| (certificate, key));
        tls::client(&self.0.pem(), own).unwrap()
    }
}

type TlsPeer = Peer<TlsStream<TcpStream>>;

/// Connects a client to the gateway and does the TLS handshake.
async fn client(setup: &Setup, config: Arc<ClientConfig>) -> std::io::Result<TlsPeer> {
    let socket = soon(TcpStream::connect(setup.gateway.address())).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connected = soon(TlsConnector::from(config).connect(name, socket)).await?;
    Ok(Peer::of(connected.into()))
}

/// Accepts the gateway's next connection as the node and does the TLS handshake.
async fn node(setup: &Setup, config: Arc<ServerConfig>) -> std::io::Result<TlsPeer> {
    let socket = setup.node.accept().await.socket;
    let accepted = soon(TlsAcceptor::from(config).accept(socket)).await?;
    Ok(Peer::of(accepted.into()))
}

/// A gateway that connects to its node under TLS and trusts `authority`. `own` signs the gateway's
/// own certificate.
async fn before_node(authority: &Authority, own: Option<&Authority>) -> Setup {
    let config = authority.client(own);
    Setup::with(|options: &mut GatewayOptions| options.cassandra_tls = Some(config)).await
}

#[tokio::test]
async fn frames_of_any_size_pass_under_tls_on_both_sides() {
    let (clients, nodes) = (Authority::new(), Authority::new());
    let setup = Setup::with(|options| {
        options.client_tls = Some(clients.server(TlsClients::Anyone));
        options.cassandra_tls = Some(nodes.client(None));
    })
    .await;
    let connecting = client(&setup, clients.client(None));
    let accepting = node(&setup, nodes.server(TlsClients::Anyone));
    let (client, node) = tokio::join!(connecting, accepting);
    let (mut client, mut node) = (client.unwrap(), node.unwrap());
    // A client may only send little before the node has let it in.
    node.answer(&Response::Ready, 0, None).await;
    assert_eq!(client.response(None).await, (0, Response::Ready));
    // A small frame must not wait for more bytes. A large one exceeds the buffers of sockets and
    // TLS.
    for size in [0, 1, 20_000, 3_000_000] {
        let text = "x".repeat(size);
        let question = query(&text);
        let ((), request) = tokio::join!(client.ask(&question, 3, None), node.request(None));
        assert_eq!(request, (3, query(&text)));
        let body = Bytes::from(vec![7; size]);
        let answer = raw_frame(0x84, 0, 3, 0x08, &body);
        let sending = node.send(&answer);
        let receiving = client.frame(FrameDirection::Response);
        let ((), frame) = tokio::join!(sending, receiving);
        assert_eq!((frame.header.opcode, frame.body), (Opcode::Result, body));
    }
}

#[tokio::test]
async fn the_end_of_either_side_is_the_end_of_the_other() {
    let authority = Authority::new();
    let setup = Setup::with(|options| {
        options.client_tls = Some(authority.server(TlsClients::Anyone));
        options.cassandra_tls = Some(authority.client(None));
    })
    .await;
    for client_goes in [true, false] {
        let connecting = client(&setup, authority.client(None));
        let accepting = node(&setup, authority.server(TlsClients::Anyone));
        let (client, node) = tokio::join!(connecting, accepting);
        // A dropped socket closes without the closing message of TLS.
        let mut left = match client_goes {
            true => {
                drop(client.unwrap());
                node.unwrap()
            }
            false => {
                drop(node.unwrap());
                client.unwrap()
            }
        };
        assert_eq!(left.rest().await, Bytes::new());
    }
}

#[tokio::test]
async fn a_node_with_an_untrusted_certificate_is_refused() {
    let setup = before_node(&Authority::new(), None).await;
    let mut client = Peer::connect(setup.gateway.address()).await;
    let stranger = node(&setup, Authority::new().server(TlsClients::Anyone)).await;
    assert!(stranger.is_err());
    client.ask(&Request::Options, 5, None).await;
    let (5, Response::Error(error)) = client.response(None).await else {
        panic!("no error");
    };
    let message = error.message;
    assert!(
        message.contains("cannot reach Cassandra at 127.0.0.1:"),
        "{message}"
    );
    assert!(message.contains("invalid peer certificate"), "{message}");
}

#[tokio::test]
async fn a_node_that_asks_for_a_certificate_gets_one() {
    let (nodes, gateways) = (Authority::new(), Authority::new());
    let asking = || nodes.server(TlsClients::SignedBy(gateways.0.pem()));
    for (own, is_let_in) in [(Some(&gateways), true), (None, false)] {
        let setup = before_node(&nodes, own).await;
        let mut client = Peer::connect(setup.gateway.address()).await;
        let node = node(&setup, asking()).await;
        assert_eq!(node.is_ok(), is_let_in);
        if let Ok(mut node) = node {
            client.ask(&Request::Options, 5, None).await;
            assert_eq!(node.request(None).await.0, 5);
        }
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_used_for_new_connections_to_the_node() {
    let (before, after) = (Authority::new(), Authority::new());
    let nodes = |of: &Authority| of.server(TlsClients::SignedBy(of.0.pem()));
    let (certificate, key) = before.0.sign();
    let own = tls::RenewableClient::new(&before.0.pem(), Some((&certificate, &key))).unwrap();
    let config = own.config();
    let setup = Setup::with(|options| options.cassandra_tls = Some(config)).await;
    let mut first = Peer::connect(setup.gateway.address()).await;
    let mut first_node = node(&setup, nodes(&before)).await.unwrap();

    // A certificate that cannot be used changes nothing.
    assert!(own.renew(&authority::pem("test", "nothing"), None).is_err());
    let _second = Peer::connect(setup.gateway.address()).await;
    node(&setup, nodes(&before)).await.unwrap();

    let (certificate, key) = after.0.sign();
    own.renew(&after.0.pem(), Some((&certificate, &key)))
        .unwrap();
    let _third = Peer::connect(setup.gateway.address()).await;
    assert!(node(&setup, nodes(&before)).await.is_err());
    let mut fourth = Peer::connect(setup.gateway.address()).await;
    let mut fourth_node = node(&setup, nodes(&after)).await.unwrap();
    for (client, node) in [
        (&mut first, &mut first_node),
        (&mut fourth, &mut fourth_node),
    ] {
        client.ask(&Request::Options, 5, None).await;
        assert_eq!(node.request(None).await.0, 5);
    }
}

#[tokio::test]
async fn clients_are_let_in_under_tls_alone_and_with_a_certificate_where_one_is_required() {
    let (gateways, clients) = (Authority::new(), Authority::new());
    let setup = Setup::with(|options| {
        options.client_tls = Some(gateways.server(TlsClients::SignedBy(clients.0.pem())));
    })
    .await;
    // A client without TLS gets no bytes that it could take for an answer.
    let mut in_clear = Peer::connect(setup.gateway.address()).await;
    in_clear.ask(&Request::Options, 5, None).await;
    assert!(!in_clear.rest().await.starts_with(&[0x84]));
    // A client without a certificate, or with one of another authority, learns of its refusal when
    // it reads.
    for own in [None, Some(&gateways)] {
        if let Ok(mut refused) = client(&setup, gateways.client(own)).await {
            assert_eq!(refused.rest().await, Bytes::new());
        }
    }
    let mut let_in = client(&setup, gateways.client(Some(&clients)))
        .await
        .unwrap();
    let mut node = setup.node.accept().await;
    let_in.ask(&Request::Options, 5, None).await;
    // The node has heard from none of the clients that were refused.
    assert_eq!(node.request(None).await, (5, Request::Options));
}

#[tokio::test]
async fn sessions_are_resumed_only_where_no_certificate_is_required() {
    let authority = Authority::new();
    for (clients, expected) in [
        (TlsClients::Anyone, HandshakeKind::Resumed),
        (TlsClients::SignedBy(authority.0.pem()), HandshakeKind::Full),
    ] {
        let tls = authority.server(clients);
        let setup = Setup::with(|options| options.client_tls = Some(tls)).await;
        let config = authority.client(Some(&authority));
        for kind in [HandshakeKind::Full, expected] {
            let mut client = client(&setup, config.clone()).await.unwrap();
            let mut node = setup.node.accept().await;
            // What the server sends of sessions is read with its first answer.
            client.ask(&Request::Options, 5, None).await;
            assert_eq!(node.request(None).await.0, 5);
            node.answer(&Response::Ready, 5, None).await;
            assert_eq!(client.response(None).await, (5, Response::Ready));
            let TlsStream::Client(stream) = &client.socket else {
                panic!("the client's side");
            };
            assert_eq!(stream.get_ref().1.handshake_kind(), Some(kind));
        }
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_who_comes_after_it() {
    let (before, after) = (Authority::new(), Authority::new());
    let setup = Setup::with(|options| {
        options.client_tls = Some(before.server(TlsClients::Anyone));
    })
    .await;
    let mut first = client(&setup, before.client(None)).await.unwrap();
    let mut node = setup.node.accept().await;
    setup
        .gateway
        .renew_client_tls(after.server(TlsClients::Anyone), false);
    assert!(client(&setup, before.client(None)).await.is_err());
    client(&setup, after.client(None)).await.unwrap();
    first.ask(&Request::Options, 5, None).await;
    assert_eq!(node.request(None).await.0, 5);
}

#[tokio::test]
async fn where_other_authorities_sign_clients_those_that_are_here_end_with_their_answers() {
    let (gateways, before, after) = (Authority::new(), Authority::new(), Authority::new());
    let letting_in = |clients: &Authority| {
        let clients = TlsClients::SignedBy(clients.0.pem());
        gateways.server(clients)
    };
    let setup = Setup::with(|options| options.client_tls = Some(letting_in(&before))).await;
    let own = |of: &Authority| gateways.client(Some(of));
    let mut first = client(&setup, own(&before)).await.unwrap();
    let mut node = setup.node.accept().await;
    first.ask(&Request::Options, 5, None).await;
    assert_eq!(node.request(None).await.0, 5);
    setup.gateway.renew_client_tls(letting_in(&after), true);
    // What was asked before is still answered.
    node.answer(&Response::Ready, 5, None).await;
    assert_eq!(first.response(None).await, (5, Response::Ready));
    assert_eq!(first.rest().await, Bytes::new());
    if let Ok(mut refused) = client(&setup, own(&before)).await {
        assert_eq!(refused.rest().await, Bytes::new());
    }
    let mut let_in = client(&setup, own(&after)).await.unwrap();
    let mut node = setup.node.accept().await;
    let_in.ask(&Request::Options, 6, None).await;
    assert_eq!(node.request(None).await.0, 6);
}
