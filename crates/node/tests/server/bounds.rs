//! Bounds on what a client may ask for at once, and the answers beyond them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cql::error::ErrorKind;
use cql::wire::Response;
use test_support::steady;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::client::{Client, echoed, error, query};
use crate::echo::{start, until};

#[tokio::test]
async fn requests_beyond_a_connections_limit_are_overloaded_at_once() {
    let server = start(|options| options.connection.requests_max = 2).await;
    let mut client = Client::open(server.address).await;
    let mut other = Client::open(server.address).await;
    client.query(1, "wait").await;
    client.query(2, "wait").await;
    client.query(3, "more").await;
    let (context, response) = client.receive().await;
    assert_eq!(context.stream, 3);
    assert_eq!(error(response).kind, ErrorKind::Overloaded);
    other.assert_alive().await;
    server.echo.release.add_permits(2);
    client.receive().await;
    client.receive().await;
    client.assert_alive().await;
    assert_eq!(server.server.counters()[0].1.requests_overloaded, 1);
}

#[tokio::test]
async fn requests_beyond_the_listeners_limit_are_overloaded_for_everyone() {
    let server = start(|options| options.requests_max = 1).await;
    let mut client = Client::open(server.address).await;
    let mut other = Client::open(server.address).await;
    client.query(1, "wait").await;
    until("the first request", || {
        server.echo.waiting.load(Ordering::SeqCst) == 1
    })
    .await;
    let refused = error(other.ask("more").await);
    assert_eq!(refused.kind, ErrorKind::Overloaded);
    // The connection still answers OPTIONS, so that a driver does not take the node for dead.
    other.send(2, &cql::wire::Request::Options).await;
    assert!(matches!(other.receive().await.1, Response::Supported(_)));
    server.echo.release.add_permits(1);
    assert_eq!(client.receive().await.1, echoed("wait"));
    until("room", || server.echo.answered.load(Ordering::SeqCst) == 1).await;
    other.assert_alive().await;
}

#[tokio::test]
async fn a_frame_beyond_the_limit_is_refused_without_being_kept() {
    let server = start(|options| options.connection.frame_body_max = 10_000).await;
    let mut client = Client::open(server.address).await;
    client.query(3, &"x".repeat(20_000)).await;
    let (context, response) = client.receive().await;
    assert_eq!(context.stream, 3);
    let refused = error(response);
    assert_eq!(refused.kind, ErrorKind::Invalid);
    assert!(refused.message.contains("10000"), "{refused}");
    client.assert_alive().await;
    let fits = "x".repeat(9_900);
    assert_eq!(client.ask(&fits).await, echoed(&fits));
}

#[tokio::test]
async fn a_body_that_grows_beyond_the_limit_is_refused() {
    let server = start(|options| options.connection.frame_body_max = 100_000).await;
    for compression in cql::wire::Compression::EVERY {
        let mut client = Client::connect(server.address).await;
        client.start(Some(compression)).await;
        client.query(3, &"x".repeat(1_000_000)).await;
        let refused = error(client.receive().await.1);
        assert_eq!(refused.kind, ErrorKind::Invalid, "{refused}");
        client.assert_alive().await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_either() {
    let server = start(|options| options.connection.unread_bytes_max = 1 << 20).await;
    let mut client = Client::open(server.address).await;
    let mut other = Client::open(server.address).await;
    // Each answer takes a megabyte. After a few answers, beside those in the sockets' buffers, the
    // service gets no more requests.
    const REQUESTS: usize = 200;
    let mut out = bytes::BytesMut::new();
    for stream in 0..REQUESTS {
        query("big 1000000").encode(stream as i16, None, &mut out);
    }
    // The sockets' buffers may not hold all of the requests.
    let _ = timeout(Duration::from_secs(5), client.socket.write_all(&out)).await;
    // Waits until no more requests are answered. A pause of the machine may look like the end, and
    // then less is tested.
    let answers = || server.echo.answered.load(Ordering::SeqCst);
    until("an answer", || answers() > 0).await;
    let period = Duration::from_millis(200);
    let answered = steady("answers", period, async || answers()).await;
    assert!(
        answered < REQUESTS,
        "{answered} were answered into the void"
    );
    other.assert_alive().await;
    // Once the client reads, it gets all answers.
    for _ in 0..REQUESTS {
        assert!(matches!(client.receive().await.1, Response::Rows(_)));
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed() {
    let server = start(|options| options.connections_max = 1).await;
    let mut client = Client::open(server.address).await;
    let mut refused = Client::connect(server.address).await;
    refused.assert_closed().await;
    client.assert_alive().await;
    drop(client);
    until("the place to be free", || {
        server.server.counters()[0].1.connections_open == 0
    })
    .await;
    Client::open(server.address).await.assert_alive().await;
}

#[tokio::test]
async fn only_connections_that_have_not_begun_give_way_at_the_limit() {
    let server = start(|options| options.connections_max = 3).await;
    let counters = || server.server.counters()[0].1;
    let mut begun = vec![Client::open(server.address).await];
    let mut silent = Vec::new();
    for number in 0..2 {
        let mut stranger = Client::connect(server.address).await;
        // A stranger that says something is one all the same.
        stranger.send(1, &cql::wire::Request::Options).await;
        assert!(matches!(stranger.receive().await.1, Response::Supported(_)));
        silent.push(stranger);
        until("the stranger", || counters().connections_open == 2 + number).await;
    }
    for stranger in &mut silent {
        begun.push(Client::open(server.address).await);
        stranger.assert_closed().await;
    }
    for client in &mut begun {
        client.assert_alive().await;
    }
    assert_eq!(counters().connections_refused, 0);
    assert_eq!(counters().connections_given_way, 2);
    let mut refused = Client::connect(server.address).await;
    refused.assert_closed().await;
    assert_eq!(counters().connections_refused, 1);
}

#[tokio::test]
async fn hundreds_of_silent_connections_shut_out_no_client() {
    let server = start(|options| options.connections_max = 20).await;
    let mut begun = Client::open(server.address).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        for _ in 0..30 {
            silent.push(Client::connect(server.address).await);
        }
        Client::open(server.address).await.assert_alive().await;
        begun.assert_alive().await;
    }
    assert_eq!(server.server.counters()[0].1.connections_refused, 0);
}

#[tokio::test]
async fn a_connection_that_has_not_begun_gives_its_memory_to_a_new_one() {
    let memory = client_memory::MemoryBudget::new(5 * client_memory::FLOOR_BYTES);
    let server = start(|options| options.memory = memory.clone()).await;
    let mut begun = Vec::new();
    for _ in 0..4 {
        begun.push(Client::open(server.address).await);
    }
    let mut stranger = Client::connect(server.address).await;
    until("all the memory is held", || {
        memory.used() == memory.bytes_max()
    })
    .await;
    begun.push(Client::open(server.address).await);
    stranger.assert_closed().await;
    for client in &mut begun {
        client.assert_alive().await;
    }
    let mut refused = Client::connect(server.address).await;
    refused.assert_closed().await;
    assert_eq!(server.server.counters()[0].1.connections_refused, 1);
}

#[tokio::test]
async fn listeners_have_budgets_of_their_own() {
    use node::CqlListenerOptions;
    use node::server::{BoundListener, serve};

    let mut listeners = Vec::new();
    for name in ["public", "internal"] {
        let options = CqlListenerOptions {
            name,
            address: "127.0.0.1:0".parse().unwrap(),
            requests_max: 1,
            ..CqlListenerOptions::default()
        };
        listeners.push(BoundListener::bind(options).await.unwrap());
    }
    let echo = crate::echo::Echo::new();
    let server = serve(listeners, echo.clone());
    let [public, internal] = server.addresses()[..] else {
        panic!("two listeners");
    };
    let mut user = Client::open(public).await;
    user.query(1, "wait").await;
    until("the request", || echo.waiting.load(Ordering::SeqCst) == 1).await;
    user.query(2, "more").await;
    let refused = error(user.receive().await.1);
    assert_eq!(refused.kind, ErrorKind::Overloaded);
    Client::open(internal).await.assert_alive().await;
    echo.release.add_permits(1);
}
