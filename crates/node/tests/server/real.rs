//! A node on a database of its own.

use std::net::SocketAddr;
use std::time::Duration;

use node::{ListenerOptions, Node, NodeOptions};
use storage::{Durability, Storage, StorageOptions};
use tempfile::TempDir;

use crate::client::Client;

pub struct RealNode {
    pub node: Node,
    pub address: SocketAddr,
    // The directory is removed when the node is gone.
    _directory: TempDir,
}

pub async fn start() -> RealNode {
    let directory = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        durability: Durability::Buffered {
            sync_interval: Duration::from_secs(60),
        },
        ..StorageOptions::default()
    };
    let storage = Storage::open(directory.path(), options).unwrap();
    let listener = ListenerOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        ..ListenerOptions::default()
    };
    let options = NodeOptions {
        listeners: vec![listener],
        ..NodeOptions::default()
    };
    let node = Node::start(storage, store_api::Client::disabled(), options)
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
    let node = start().await;
    let mut client = Client::open(node.address).await;
    client
        .run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .await;
    client.run("USE k").await;
    (node, client)
}
