//! A node on a database of its own.

use std::net::SocketAddr;
use std::time::Duration;

use client_memory::MemoryBudget;
use node::{CqlListenerOptions, Node, NodeOptions};
use storage::{Durability, Storage, StorageOptions};
use tempfile::TempDir;

use crate::client::Client;

pub struct RealNode {
    pub node: Node,
    pub address: SocketAddr,
    // The directory is removed when the node is dropped.
    _directory: TempDir,
}

pub async fn start() -> RealNode {
    start_on(CqlListenerOptions::default().memory).await
}

async fn start_on(memory: MemoryBudget) -> RealNode {
    let directory = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        durability: Durability::Buffered {
            sync_interval: Duration::from_secs(60),
        },
        ..StorageOptions::default()
    };
    let storage = Storage::open(directory.path(), options).unwrap();
    let listener = CqlListenerOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        memory,
        ..CqlListenerOptions::default()
    };
    let options = NodeOptions {
        listeners: vec![listener],
        ..NodeOptions::default()
    };
    let node = Node::start(storage, store_api::StoreClient::disabled(), options)
        .await
        .unwrap();
    RealNode {
        address: node.addresses()[0],
        node,
        _directory: directory,
    }
}

/// A node with keyspace `k`, and a connection that uses it.
pub async fn start_with_keyspace() -> (RealNode, Client) {
    start_with_memory(CqlListenerOptions::default().memory).await
}

/// A node with keyspace `k` whose clients may hold this much memory, and a connection that uses
/// `k`.
pub async fn start_with_memory(memory: MemoryBudget) -> (RealNode, Client) {
    let node = start_on(memory).await;
    let mut client = Client::open(node.address).await;
    client
        .run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .await;
    client.run("USE k").await;
    (node, client)
}
