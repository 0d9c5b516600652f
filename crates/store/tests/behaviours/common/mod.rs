//! A database and an index service in one process, with a client for each. The service reaches the
//! database by sockets or by calls.

pub mod guard;
pub mod refusing;
mod unfollowed;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use embedded::Embedded;
use node::{Node, NodeOptions};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::serialize::row::SerializeRow;
use scylla::value::Row;
use serde_json::Value;
use storage::{Durability, Storage, StorageOptions};
use store::{
    ApiListeners, Consistency, DatabaseOptions, IndexesOptions, ReaderOptions, Store, StoreHandle,
    StoreOptions,
};
use store_api::types::{AnnRequest, IndexState, IndexStatus, RepairRequest, TaskState};
use store_api::{ClientError, ClientOptions, IndexServices, KeyValue, NearestRows, StoreClient};
pub use test_support::eventually;
use unfollowed::Deaf;

/// The longest time that a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The way by which the index service reaches the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By CQL, as it reaches a cluster.
    Cql,
    /// By calls, as in `annulus serve`.
    InProcess,
}

/// Makes two tests of each of these functions, one for each [`Way`].
macro_rules! both_ways {
    ($($name:ident),* $(,)?) => {
        mod by_cql {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::common::Way::Cql).await;
            })*
        }

        mod in_process {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::common::Way::InProcess).await;
            })*
        }
    };
}
pub(crate) use both_ways;

/// Options of a service that is a client of a database on this machine, and follows its log with
/// little delay.
pub fn client_options(cql: SocketAddr, http: SocketAddr, indexes: IndexesOptions) -> StoreOptions {
    let mut options = StoreOptions::embedded(http, indexes);
    options.database = DatabaseOptions {
        contact_points: vec![cql.to_string()],
        consistency: Consistency::One,
        connections: NonZeroUsize::new(4),
        reconnect_interval: Duration::from_millis(100),
        ..DatabaseOptions::default()
    };
    options.discovery_interval = Duration::from_millis(50);
    options.cdc.readers = vec![ReaderOptions {
        name: "fine".to_owned(),
        safety_interval: Duration::from_millis(5),
        sleep_interval: Duration::from_millis(10),
    }];
    options
}

/// A database and an index service, with a session and an HTTP client for the test.
pub struct World {
    pub session: Arc<Session>,
    pub client: StoreClient,
    pub store: StoreHandle,
    pub node: Node,
    pub storage: Storage,
    pub cql: SocketAddr,
    /// The index service for a node in this process.
    pub local: IndexServices,
    way: Way,
    options: StoreOptions,
    _directory: tempfile::TempDir,
}

/// A database without its index service, and the files that the service left.
pub struct Database {
    pub session: Arc<Session>,
    /// The directory of the snapshots of indexes.
    pub snapshots: PathBuf,
}

impl Database {
    pub async fn cql(&self, statement: &str) {
        let done = self.session.query_unpaged(statement, ()).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    pub async fn rows(&self, statement: &str) -> Vec<Row> {
        rows(&self.session, statement).await
    }

    /// Returns the directory of the only snapshot. Panics if there is not exactly one.
    pub fn snapshot(&self) -> PathBuf {
        let [path] = &self.all_snapshots()[..] else {
            panic!("not one snapshot: {:?}", self.all_snapshots());
        };
        path.clone()
    }

    pub fn all_snapshots(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.snapshots).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.is_dir()).collect()
    }
}

/// Starts a node on a storage, with one listener for all clients.
pub async fn start_node(storage: Storage, address: SocketAddr) -> Node {
    start_node_with(storage, address, StoreClient::disabled().into()).await
}

/// Starts a node on a storage that asks these index services.
pub async fn start_node_with(storage: Storage, address: SocketAddr, stores: IndexServices) -> Node {
    let listener = node::CqlListenerOptions {
        address,
        ..node::CqlListenerOptions::default()
    };
    let options = NodeOptions {
        listeners: vec![listener],
        ..NodeOptions::default()
    };
    Node::start(storage, stores, options)
        .await
        .expect("a free port")
}

/// Options of indexes that keep their vectors in files below the data directory of a database.
pub fn in_files(data_dir: &Path) -> IndexesOptions {
    IndexesOptions {
        directory: data_dir.join("indexes"),
        ..IndexesOptions::default()
    }
}

pub fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

impl World {
    pub async fn start(way: Way) -> World {
        World::start_with(way, |_| {}).await
    }

    pub async fn start_with(way: Way, change: impl FnOnce(&mut StoreOptions)) -> World {
        // The log is shown when a test fails; `RUST_LOG` sets its level.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_test_writer()
            .try_init();
        let directory = tempfile::tempdir().expect("a directory");
        let options = StorageOptions {
            durability: Durability::Buffered {
                sync_interval: Duration::from_secs(1),
            },
            ..StorageOptions::default()
        };
        let storage = Storage::open(directory.path(), options).expect("a storage");
        let node = start_node(storage.clone(), loopback()).await;
        let cql = node.addresses()[0];
        let mut options = client_options(cql, loopback(), in_files(directory.path()));
        change(&mut options);
        let (store, client, local) = start_store(&options, way, &storage).await;
        let session = SessionBuilder::new()
            .known_node_addr(cql)
            // There is only one node, so nothing has to agree.
            .auto_await_schema_agreement(false)
            .build()
            .await
            .expect("a session");
        let world = World {
            session: Arc::new(session),
            client,
            store,
            node,
            storage,
            cql,
            local,
            way,
            options,
            _directory: directory,
        };
        world
            .cql(
                "CREATE KEYSPACE ks WITH replication = \
                 {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
            )
            .await;
        world
    }

    /// Returns the parts that exist without the index service.
    pub fn database(&self) -> Database {
        Database {
            session: self.session.clone(),
            snapshots: self.options.indexes.directory.join("snapshots"),
        }
    }

    /// Stops the index service, calls `while_away`, and starts the service again.
    pub async fn restart(self, while_away: impl AsyncFnOnce(Database)) -> World {
        self.restart_with(while_away, |_| {}).await
    }

    /// Stops the index service, calls `while_away`, and starts the service with changed options.
    pub async fn restart_with(
        self,
        while_away: impl AsyncFnOnce(Database),
        change: impl FnOnce(&mut StoreOptions),
    ) -> World {
        let database = self.database();
        let World {
            session,
            client: _,
            store,
            node,
            storage,
            cql,
            local: _,
            way,
            mut options,
            _directory,
        } = self;
        store.shutdown().await;
        while_away(database).await;
        // The list of tasks ends with the process.
        options.tasks = tasks::TaskRegistry::default();
        change(&mut options);
        let (store, client, local) = start_store(&options, way, &storage).await;
        World {
            session,
            client,
            store,
            node,
            storage,
            cql,
            local,
            way,
            options,
            _directory,
        }
    }

    /// Returns the value of a metric of an index. `None` if there is no such series.
    pub async fn metric(&self, name: &str, index: &str) -> Option<f64> {
        let text = self.get("/metrics").await;
        let begin = format!(r#"{name}{{index_name="{index}","#);
        let line = text.lines().find(|line| line.starts_with(&begin))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Sends a GET request to the HTTP API and returns the body of the answer.
    pub async fn get(&self, path: &str) -> String {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(self.store.addresses()[0])
            .await
            .expect("a connection");
        let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("UTF-8");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        body.to_owned()
    }

    pub async fn cql(&self, statement: &str) {
        self.execute(statement, ()).await;
    }

    pub async fn execute(&self, statement: &str, values: impl SerializeRow) {
        if let Err(error) = self.session.query_unpaged(statement, values).await {
            panic!("{statement}: {error}");
        }
    }

    pub async fn rows(&self, statement: &str) -> Vec<Row> {
        rows(&self.session, statement).await
    }

    /// Creates the index `ks.<index>` on `ks.<table> (v)`.
    pub async fn create_index(&self, index: &str, table: &str) {
        self.cql(&format!(
            "CREATE CUSTOM INDEX {index} ON ks.{table} (v) USING 'vector_index' \
             WITH OPTIONS = {{'similarity_function': 'euclidean'}}"
        ))
        .await;
    }

    pub async fn status(&self, index: &str) -> Result<IndexStatus, ClientError> {
        self.client.index_status("ks", index).await
    }

    pub async fn wait_serving(&self, index: &str) {
        eventually(&format!("{index} serves"), async || {
            self.status(index)
                .await
                .is_ok_and(|status| status.status == IndexState::Serving)
        })
        .await;
    }

    /// Repairs an index and checks that nothing differs; with `at_once`, not even at the first
    /// look.
    pub async fn assert_repair_finds_nothing(&self, index: &str, at_once: bool) {
        let request = RepairRequest {
            intensity: 4,
            ..RepairRequest::default()
        };
        let task = self.client.repair("ks", index, request).await;
        let task = task.expect("it begins").id;
        eventually("the repair ends", async || {
            let task = self.client.task(&task).await.expect("it is kept");
            task.state != TaskState::Running
        })
        .await;
        let tree = self.client.task_tree(&task).await.expect("it is kept");
        assert_eq!(tree.status.state, TaskState::Done, "{index}: {tree:?}");
        for (name, count) in &tree.status.counters {
            let differs = !name.ends_with("_compared");
            assert!(!differs || *count == 0, "{index}: {name} is {count}");
        }
        let suspected = tree.children.iter().any(|part| part.status.kind == "mend");
        assert!(!at_once || !suspected, "{index}: {tree:?}");
    }

    /// Returns all rows of an index: their keys as JSON text, and their scores for a query.
    pub async fn indexed(
        &self,
        index: &str,
        query: &[f32],
        columns: &[&str],
    ) -> BTreeMap<String, f32> {
        let found = self
            .client
            .ann(
                "ks",
                index,
                &AnnRequest::new(query.to_vec(), 1_000_000),
                columns,
            )
            .await
            .expect("an answer");
        let mut rows = BTreeMap::new();
        let scores = found.similarity_scores.clone();
        for (key, score) in keys(found).into_iter().zip(scores) {
            let key = Value::from(key).to_string();
            assert!(rows.insert(key.clone(), score).is_none(), "{key} twice");
        }
        rows
    }
}

async fn start_store(
    options: &StoreOptions,
    way: Way,
    storage: &Storage,
) -> (StoreHandle, StoreClient, IndexServices) {
    let listeners = ApiListeners::bind(&options.listeners).await;
    let listeners = listeners.expect("free ports");
    let local = listeners.local().into();
    let store = match way {
        Way::Cql => Store::start_on(listeners, options.clone()),
        Way::InProcess => {
            let database = Embedded::new(storage.clone());
            if options.cdc.readers.is_empty() {
                Store::start_with(listeners, Arc::new(Deaf(database)), options.clone())
            } else {
                Store::start_with(listeners, Arc::new(database), options.clone())
            }
        }
    };
    let store = store.expect("it starts");
    let client = StoreClient::new(ClientOptions {
        base_uris: vec![format!("http://{}", store.addresses()[0])],
        // JSON answers are readable in the messages of failed tests.
        binary: false,
        ..ClientOptions::default()
    });
    (store, client.expect("a URI"), local)
}

/// Returns the keys of an answer, which must be in JSON.
pub fn keys(found: NearestRows) -> Vec<Vec<Value>> {
    let value = |value| match value {
        KeyValue::Json(value) => value,
        KeyValue::Cql(bytes) => panic!("{bytes:?} was asked for in JSON"),
    };
    let rows = found.keys.into_iter();
    rows.map(|row| row.into_iter().map(value).collect())
        .collect()
}

/// Returns the rows of a query.
pub async fn rows(session: &Session, statement: &str) -> Vec<Row> {
    let result = session.query_unpaged(statement, ()).await;
    let result = result.unwrap_or_else(|error| panic!("{statement}: {error}"));
    let rows = result.into_rows_result().expect("rows");
    rows.rows::<Row>()
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("rows")
}

/// Returns the score of two vectors in an index with Euclidean similarity.
pub fn euclidean_score(a: &[f32], b: &[f32]) -> f32 {
    let distance: f32 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    1.0 / (1.0 + distance)
}
