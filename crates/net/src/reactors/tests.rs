#![expect(clippy::disallowed_methods, reason = "a test sends few values")]

use std::collections::HashSet;
use std::thread::ThreadId;
use std::time::Duration;

use test_support::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

const LONG: Duration = Duration::from_secs(20);

/// Both ends of a connection over loopback.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

/// Echoes, and reports on which thread each byte was read.
async fn echo(mut stream: TcpStream, told: mpsc::UnboundedSender<ThreadId>) {
    let mut byte = [0];
    while stream.read_exact(&mut byte).await.is_ok() {
        told.send(thread::current().id()).unwrap();
        stream.write_all(&byte).await.unwrap();
    }
}

async fn ask(client: &mut TcpStream) {
    client.write_all(b"x").await.unwrap();
    let mut byte = [0];
    client.read_exact(&mut byte).await.unwrap();
}

#[tokio::test]
async fn connections_spread_over_the_threads_and_stay_there() {
    let reactors = ReactorPool::start(2).unwrap();
    let mut threads = HashSet::new();
    let mut clients = Vec::new();
    for _ in 0..2 {
        let (mut client, server) = connection().await;
        let (tell, mut told) = mpsc::unbounded_channel();
        reactors.serve(server, |stream| echo(stream, tell)).unwrap();
        let mut own = HashSet::new();
        for _ in 0..5 {
            ask(&mut client).await;
            own.insert(told.recv().await.unwrap());
        }
        assert_eq!(own.len(), 1, "it stays");
        threads.extend(own);
        clients.push(client);
    }
    assert_eq!(threads.len(), 2, "a thread each");
    assert!(!threads.contains(&thread::current().id()));
}

#[tokio::test]
async fn a_place_is_free_again_when_its_connection_has_ended() {
    let reactors = ReactorPool::start(2).unwrap();
    let open = |reactors: &ReactorPool| -> Vec<usize> {
        let each = reactors.threads.iter();
        each.map(|reactor| reactor.connections.load(Ordering::Relaxed))
            .collect()
    };
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let (client, server) = connection().await;
        clients.push(client);
        servers.push(server);
    }
    for server in servers {
        let (tell, _told) = mpsc::unbounded_channel();
        reactors.serve(server, |stream| echo(stream, tell)).unwrap();
    }
    assert_eq!(open(&reactors), [2, 2]);
    // The first and the third are on the same thread.
    drop((clients.remove(2), clients.remove(0)));
    let is_free = async || open(&reactors) == [0, 2];
    eventually("one thread has no connection", is_free).await;
}

#[tokio::test]
async fn without_threads_connections_are_tasks_of_the_runtime() {
    let (mut client, server) = connection().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let reactors = ReactorPool::of_the_runtime();
    reactors.serve(server, |stream| echo(stream, tell)).unwrap();
    ask(&mut client).await;
    assert_eq!(told.recv().await, Some(thread::current().id()));
}

#[tokio::test]
async fn connections_are_closed_with_the_last_clone() {
    let reactors = ReactorPool::start(1).unwrap();
    let (mut client, server) = connection().await;
    let (tell, _told) = mpsc::unbounded_channel();
    reactors.serve(server, |stream| echo(stream, tell)).unwrap();
    ask(&mut client).await;
    drop(reactors);
    let mut byte = [0];
    let end = tokio::time::timeout(LONG, client.read(&mut byte));
    assert_eq!(end.await.expect("in time").unwrap_or(0), 0);
}

#[tokio::test]
async fn each_reactor_has_one_of_its_own() {
    let made = Arc::new(PerReactor::new(|| AtomicUsize::new(0)));
    let reactors = ReactorPool::start(2).unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    made.here().store(7, Ordering::Relaxed);
    let mut clients = Vec::new();
    for _ in 0..2 {
        let (client, server) = connection().await;
        let (made, tell) = (made.clone(), tell.clone());
        let count = async move |stream: TcpStream| {
            tell.send(made.here().fetch_add(1, Ordering::Relaxed))
                .unwrap();
            // The connection keeps its place, so that the next goes to the other thread.
            let _ = stream.readable().await;
        };
        reactors.serve(server, count).unwrap();
        clients.push(client);
        let before = told.recv().await.unwrap();
        assert!(before < 7, "not that of this thread");
    }
    assert_eq!(made.here().load(Ordering::Relaxed), 7);
}
