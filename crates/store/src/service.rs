//! Starting and stopping the whole.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use store_api::types::{Info, NodeStatus};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::compute::Compute;
use crate::engine::Engine;
use crate::httpd::{Api, Bound};
use crate::metrics::Metrics;
use crate::monitor_indexes::MonitorIndexes;
use crate::options::{IndexesOptions, ListenerOptions, Placement, StoreOptions};
use crate::table::TableContext;

/// The index service.
pub struct Store;

/// Why the service can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener's address is in use, or not ours.
    #[error("the HTTP API can't listen on {address}: {source}")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// The directory for the files of indexes can't be made or written to.
    #[error("indexes can't keep vectors in files in {}: {source}", directory.display())]
    IndexDirectory {
        /// As configured.
        directory: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

/// A running service. Dropping it stops the service without waiting.
pub struct StoreHandle {
    addresses: Vec<SocketAddr>,
    engine: Arc<Engine>,
    /// Closes the listeners.
    stop_listening: CancellationToken,
    /// Ends everything else.
    cancel: CancellationToken,
    listeners: TaskTracker,
    tasks: TaskTracker,
    shutdown_timeout: Duration,
}

/// Bound sockets of the HTTP API. Whoever embeds the service can tell others its addresses before
/// it starts.
pub struct Listeners {
    bound: Vec<Bound>,
    addresses: Vec<SocketAddr>,
}

impl Listeners {
    /// Binds all of them, or none.
    pub async fn bind(listeners: &[ListenerOptions]) -> Result<Listeners, StartError> {
        let mut bound = Vec::new();
        let mut addresses = Vec::new();
        for options in listeners {
            let failed = |source| StartError::Listen {
                address: options.address,
                source,
            };
            let listener = Bound::bind(options.clone()).await.map_err(failed)?;
            addresses.push(listener.address().map_err(failed)?);
            bound.push(listener);
        }
        Ok(Listeners { bound, addresses })
    }

    /// Where they listen, in their order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Store {
    /// Binds the listeners of the options and starts. The database need not be there yet: the
    /// service waits for it and says so in its status.
    pub async fn start(options: StoreOptions) -> Result<StoreHandle, StartError> {
        let listeners = Listeners::bind(&options.listeners).await?;
        Store::start_on(listeners, options)
    }

    /// Starts on listeners that are bound already; those of the options are not looked at.
    pub fn start_on(bound: Listeners, options: StoreOptions) -> Result<StoreHandle, StartError> {
        prepare(&options.indexes)?;
        let Listeners { bound, addresses } = bound;
        let readers = &options.cdc.readers;
        let readers = readers.iter().map(|reader| reader.name.clone()).collect();
        let engine = Arc::new(Engine::new(Metrics::new(), readers));
        let compute = Compute::new(options.compute_threads);
        let cancel = CancellationToken::new();
        let tasks = TaskTracker::new();

        let stop_listening = CancellationToken::new();
        let listeners = TaskTracker::new();
        let api = Api {
            engine: engine.clone(),
            compute: compute.clone(),
            info: Arc::new(Info {
                service: options.service,
                version: options.version,
                engine: concat!("annulus-", env!("CARGO_PKG_VERSION")).to_owned(),
            }),
        };
        for listener in bound {
            let (api, stop) = (api.clone(), stop_listening.clone());
            listeners.spawn(async move {
                if let Err(error) = listener.serve(api, stop).await {
                    tracing::error!(%error, "the HTTP API ended");
                }
            });
        }
        listeners.close();

        let (db, keep_open) = crate::db::start(options.database, engine.clone(), cancel.clone());
        tasks.spawn(keep_open);
        let monitor = MonitorIndexes::new(
            TableContext {
                db,
                engine: engine.clone(),
                compute,
                cdc: options.cdc,
                scan: options.scan,
                indexes: options.indexes,
                tasks: tasks.clone(),
            },
            options.discovery_interval,
            cancel.clone(),
        );
        tasks.spawn({
            let cancel = cancel.clone();
            async move {
                cancel.run_until_cancelled(monitor.run()).await;
            }
        });
        Ok(StoreHandle {
            addresses,
            engine,
            stop_listening,
            cancel,
            listeners,
            tasks,
            shutdown_timeout: options.shutdown_timeout,
        })
    }
}

/// Makes the directory for the files of indexes, if they are to have any, and tries it with a file:
/// that it can't be used should show now, not when the first row comes.
fn prepare(indexes: &IndexesOptions) -> Result<(), StartError> {
    if indexes.vectors == Placement::Memory {
        return Ok(());
    }
    let directory = &indexes.directory;
    fs::create_dir_all(directory)
        .and_then(|()| tempfile::tempfile_in(directory))
        .map(drop)
        .map_err(|source| StartError::IndexDirectory {
            directory: directory.clone(),
            source,
        })
}

impl StoreHandle {
    /// Where the API is served, one for each listener of the options, in their order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The status of the service, and every change of it.
    pub fn status(&self) -> watch::Receiver<NodeStatus> {
        self.engine.watch_status()
    }

    /// Closes the listeners, answers what is in flight, ends everything; within the time that the
    /// options allow.
    pub async fn shutdown(self) {
        self.stop_listening.cancel();
        self.cancel.cancel();
        self.tasks.close();
        let all = async {
            self.listeners.wait().await;
            self.tasks.wait().await;
        };
        if tokio::time::timeout(self.shutdown_timeout, all)
            .await
            .is_err()
        {
            tracing::warn!("requests in flight were cut off");
        }
    }
}

impl Drop for StoreHandle {
    fn drop(&mut self) {
        self.stop_listening.cancel();
        self.cancel.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_for_indexes_is_made_or_refused() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let in_files = |directory| IndexesOptions {
            directory,
            vectors: Placement::File,
        };
        let directory = parent.path().join("made").join("indexes");
        prepare(&in_files(directory.clone())).unwrap();
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0);

        let refused = in_files(file.join("indexes"));
        let error = prepare(&refused).unwrap_err().to_string();
        assert!(error.contains(&*file.to_string_lossy()), "{error}");
        let in_memory = IndexesOptions {
            vectors: Placement::Memory,
            ..refused
        };
        prepare(&in_memory).unwrap();
    }
}
