//! The backups of a server: what is backed up by `annulus serve`, and by an index service before a
//! cluster.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use backup::{PointKind, ServerIdentity};
use backup_tasks::{
    BackedUpState, BackupRunner, BackupRunnerOptions, BackupTaskError, CapturedState, ClientWork,
    DatabaseState, RequestBounds, SnapshotLinker,
};
use clock::{Clock as _, SystemClock};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use storage::Storage;
use store::{OwnIndexState, StoreHandle};
use store_api::types::IndexInfo;
use tasks::TaskRegistry;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::settings::ResolvedSettings;

/// The file with the identity of an index service, in its directory.
const IDENTITY_FILE: &str = "server.json";

/// The file of a point with the definitions of the indexes.
const STATE_FILE: &str = "gateway-state.json";

/// The words of what backups of an index service leave out.
const LEFT_OUT: &str = "this backup has the definitions and the snapshots of the indexes, with their positions in the \
     change logs. Rows, schema, roles, change logs and the keyspace of a gateway's definitions are tables of the \
     cluster: back them up with its own means, at about the same time (nodetool snapshot, Medusa, or sctool: all \
     keyspaces, system_schema and system_auth too)";

/// The indexes of a service that starts after its routes are there.
#[derive(Clone, Default)]
struct LateIndexes(Arc<OnceLock<OwnIndexState>>);

impl SnapshotLinker for LateIndexes {
    fn link<'a>(
        &'a self,
        directory: &'a Path,
    ) -> BoxFuture<'a, Result<(u64, u64), BackupTaskError>> {
        async move {
            let Some(state) = self.0.get() else {
                return Ok((0, 0));
            };
            let linked = state.link_snapshots(directory).await;
            let linked = linked.map_err(|source| BackupTaskError::File {
                path: directory.to_owned(),
                source,
            })?;
            Ok((linked.files, linked.bytes))
        }
        .boxed()
    }
}

/// The backups of a process, whose schedule runs once its index service does.
pub struct ProcessBackups {
    tasks: BackupRunner,
    indexes: LateIndexes,
    schedule: Option<JoinHandle<()>>,
}

impl ProcessBackups {
    /// The backups of a database. What an interrupted restore has left in it is removed.
    ///
    /// # Errors
    /// If the data directory can't be used.
    pub async fn of_database(
        settings: &ResolvedSettings,
        storage: &Storage,
        tasks: &TaskRegistry,
        clients: ClientWork,
    ) -> anyhow::Result<ProcessBackups> {
        let indexes = LateIndexes::default();
        let state = DatabaseState {
            storage: storage.clone(),
            indexes: Box::new(indexes.clone()),
        };
        let bounds = RequestBounds {
            clients_log_in: settings.login,
            locations: settings.backup_locations.clone(),
        };
        let directories = (settings.data_dir.clone(), settings.index_dir.clone());
        let parts = (tasks.clone(), clients);
        let backups = ProcessBackups::open(directories, bounds, Arc::new(state), indexes, parts);
        let backups = backups.context("opening the schedules of backups")?;
        let undone = backups.tasks.undo_restores().await;
        undone.context("undoing a restore that was interrupted")?;
        Ok(backups)
    }

    /// The backups of an index service with this directory for indexes.
    ///
    /// # Errors
    /// If the directory can't be used.
    pub fn of_index_service(
        directory: PathBuf,
        tasks: TaskRegistry,
        clients: ClientWork,
    ) -> Result<ProcessBackups, BackupTaskError> {
        let indexes = LateIndexes::default();
        let state = GatewayState {
            identity: identity(&directory)?,
            indexes: indexes.clone(),
        };
        // Beyond a loopback address it admits requests by tokens alone.
        let bounds = RequestBounds {
            clients_log_in: true,
            ..RequestBounds::default()
        };
        let directories = (directory.clone(), directory);
        ProcessBackups::open(
            directories,
            bounds,
            Arc::new(state),
            indexes,
            (tasks, clients),
        )
    }

    fn open(
        (data_dir, index_dir): (PathBuf, PathBuf),
        bounds: RequestBounds,
        state: Arc<dyn BackedUpState>,
        indexes: LateIndexes,
        (tasks, clients): (TaskRegistry, ClientWork),
    ) -> Result<ProcessBackups, BackupTaskError> {
        let tasks = BackupRunner::open(BackupRunnerOptions {
            data_dir,
            index_dir,
            bounds,
            state,
            tasks,
            clients,
            version: env!("ANNULUS_VERSION").to_owned(),
        })?;
        Ok(ProcessBackups {
            tasks,
            indexes,
            schedule: None,
        })
    }

    /// The tasks, whose routes are served.
    pub fn tasks(&self) -> &BackupRunner {
        &self.tasks
    }

    /// Begins to run by the schedules, now that the index service runs, and shows the results among
    /// its metrics.
    pub fn begin(&mut self, store: &StoreHandle) {
        // There is one service in a process.
        let _ = self.indexes.0.set(store.own_state());
        self.tasks.show_metrics(store.metrics());
        self.schedule = Some(tokio::spawn(self.tasks.clone().run_by_schedule()));
    }

    /// Stops what runs. It goes on after the next start.
    pub async fn stop(self) {
        self.tasks.stop().await;
        if let Some(schedule) = self.schedule {
            schedule.abort();
        }
    }
}

/// The state that an index service before a cluster has of its own.
struct GatewayState {
    identity: ServerIdentity,
    indexes: LateIndexes,
}

/// The contents of [`STATE_FILE`].
#[derive(Serialize)]
struct GatewayStateFile {
    format: u32,
    indexes: Vec<IndexInfo>,
    leaves_out: &'static str,
}

impl BackedUpState for GatewayState {
    fn identity(&self) -> ServerIdentity {
        self.identity.clone()
    }

    fn kind(&self) -> PointKind {
        PointKind::GatewayState
    }

    fn capture<'a>(
        &'a self,
        target: &'a Path,
    ) -> BoxFuture<'a, Result<CapturedState, BackupTaskError>> {
        async move {
            let failed = |source| BackupTaskError::File {
                path: target.to_owned(),
                source,
            };
            // Others than its owner have no access.
            let made = fs::DirBuilder::new().mode(0o700).create(target);
            made.map_err(failed)?;
            let (files, bytes) = self.indexes.link(target).await?;
            let state = self.indexes.0.get();
            let text = serde_json::to_vec_pretty(&GatewayStateFile {
                format: 1,
                indexes: state.map(OwnIndexState::indexes).unwrap_or_default(),
                leaves_out: LEFT_OUT,
            });
            let text = text.map_err(|error| BackupTaskError::Internal(error.to_string()))?;
            fs::write(target.join(STATE_FILE), &text).map_err(failed)?;
            Ok(CapturedState {
                taken_at_micros: SystemClock.now_micros(),
                files: files + 1,
                bytes: bytes + text.len() as u64,
                writers_waited: Duration::ZERO,
                ..CapturedState::default()
            })
        }
        .boxed()
    }

    fn storage(&self) -> Option<&Storage> {
        None
    }

    fn leaves_out(&self) -> Option<String> {
        Some(LEFT_OUT.to_owned())
    }
}

#[derive(Serialize, Deserialize)]
struct StoredIdentity {
    id: Uuid,
}

/// The identity of an index service, which is made at its first start.
fn identity(directory: &Path) -> Result<ServerIdentity, BackupTaskError> {
    let folder = directory.join("backups");
    let path = folder.join(IDENTITY_FILE);
    let failed = |source| BackupTaskError::File {
        path: path.clone(),
        source,
    };
    let id = match fs::read(&path) {
        Ok(bytes) => {
            let stored = serde_json::from_slice::<StoredIdentity>(&bytes);
            stored.map_err(|error| failed(error.into()))?.id
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let stored = StoredIdentity { id: Uuid::new_v4() };
            let bytes = serde_json::to_vec(&stored).map_err(|error| failed(error.into()))?;
            fs::create_dir_all(&folder).map_err(failed)?;
            let new = path.with_extension("new");
            fs::write(&new, bytes).map_err(failed)?;
            fs::rename(&new, &path).map_err(failed)?;
            stored.id
        }
        Err(error) => return Err(failed(error)),
    };
    Ok(ServerIdentity {
        id,
        name: "index service".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn the_state_of_an_index_service_is_captured_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let state = GatewayState {
            identity: identity(directory.path()).unwrap(),
            indexes: LateIndexes::default(),
        };
        let target = directory.path().join("captured");
        let captured = state.capture(&target).await.unwrap();
        assert_eq!(captured.files, 1);
        let mode = target.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn an_index_service_has_one_identity_for_good() {
        let directory = tempfile::tempdir().unwrap();
        let first = identity(directory.path()).unwrap();
        assert_eq!(identity(directory.path()).unwrap(), first);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(identity(other.path()).unwrap().id, first.id);
        fs::write(directory.path().join("backups").join(IDENTITY_FILE), "{").unwrap();
        assert!(identity(directory.path()).is_err());
    }
}
