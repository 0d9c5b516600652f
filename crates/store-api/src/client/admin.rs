//! The requests of operators.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreClient;
use super::index_path;
use super::outgoing::RequestContent;
use super::uri::segment;
use crate::ClientError;
use crate::types::{
    BackupPreview, BackupRequest, BackupScheduleStatus, BackupsStatus, ClockStatus, DrillRequest,
    IndexInfo, Info, LocalSnapshotRequest, MaintenanceRequest, MaintenanceStatus, MeasuredRecall,
    RecallRequest, RepairRequest, RepairSchedule, RepairScheduleUpdate, RepairSpeed, RepairStatus,
    RestoreRequest, ScrubRequest, TableSize, TaskStatus, TaskTree,
};

impl StoreClient {
    /// The program, version and engine of the service.
    pub async fn info(&self) -> Result<Info, ClientError> {
        self.fetch(Method::GET, "/api/v1/info".to_owned(), &())
            .await
    }

    /// The lead of the database's time over the machine's clock.
    pub async fn clock(&self) -> Result<ClockStatus, ClientError> {
        self.fetch(Method::GET, "/api/v1/clock".to_owned(), &())
            .await
    }

    /// All indexes of the service, with their state and their lag.
    pub async fn indexes(&self) -> Result<Vec<IndexInfo>, ClientError> {
        self.fetch(Method::GET, "/api/v1/indexes".to_owned(), &())
            .await
    }

    /// The tasks of the service. Tasks that are a part of another are returned only if
    /// `with_parts` is set.
    pub async fn tasks(&self, with_parts: bool) -> Result<Vec<TaskStatus>, ClientError> {
        let path = format!("/api/v1/tasks?parts={with_parts}");
        self.fetch(Method::GET, path, &()).await
    }

    /// The task with this id.
    pub async fn task(&self, id: &str) -> Result<TaskStatus, ClientError> {
        self.fetch(Method::GET, task_path(id), &()).await
    }

    /// The task with this id and its parts.
    pub async fn task_tree(&self, id: &str) -> Result<TaskTree, ClientError> {
        let path = format!("{}/tree", task_path(id));
        self.fetch(Method::GET, path, &()).await
    }

    /// Waits until a task has ended, for `timeout` at most, and returns its status. The request may
    /// take longer than others by `timeout`.
    pub async fn wait_for_task(
        &self,
        id: &str,
        timeout: Duration,
    ) -> Result<TaskStatus, ClientError> {
        let path = format!("{}/wait?timeout={}", task_path(id), timeout.as_secs());
        let answer = self
            .request_with_extra_time(path, RequestContent::Read, timeout)
            .await?;
        serde_json::from_slice(&answer.body).map_err(|_| ClientError::InvalidJson)
    }

    /// Requests that a task stop, and returns its status.
    pub async fn abort_task(&self, id: &str) -> Result<TaskStatus, ClientError> {
        self.fetch(Method::DELETE, task_path(id), &()).await
    }

    /// Begins a repair of an index, and returns its task.
    pub async fn repair(
        &self,
        keyspace: &str,
        index: &str,
        request: RepairRequest,
    ) -> Result<TaskStatus, ClientError> {
        let path = index_path(keyspace, index, "repair");
        self.fetch(Method::POST, path, &request).await
    }

    /// Changes the speed of the running repair, and returns the new speed.
    pub async fn control_repair(
        &self,
        keyspace: &str,
        index: &str,
        speed: RepairSpeed,
    ) -> Result<RepairSpeed, ClientError> {
        let path = index_path(keyspace, index, "repair");
        self.fetch(Method::PATCH, path, &speed).await
    }

    /// The last repair of an index, and its schedule.
    pub async fn repair_status(
        &self,
        keyspace: &str,
        index: &str,
    ) -> Result<RepairStatus, ClientError> {
        let path = index_path(keyspace, index, "repair");
        self.fetch(Method::GET, path, &()).await
    }

    /// Changes the repair schedule of an index for good, and returns the new one.
    pub async fn update_repair(
        &self,
        keyspace: &str,
        index: &str,
        update: RepairScheduleUpdate,
    ) -> Result<Option<RepairSchedule>, ClientError> {
        let path = index_path(keyspace, index, "repair/schedule");
        self.fetch(Method::PUT, path, &update).await
    }

    /// Measures the recall of an index. The request may take longer than others by `longer`. If
    /// this future is dropped, the service stops measuring.
    pub async fn measure_recall(
        &self,
        keyspace: &str,
        index: &str,
        request: RecallRequest,
        longer: Duration,
    ) -> Result<MeasuredRecall, ClientError> {
        let path = index_path(keyspace, index, "recall");
        let body = serde_json::to_vec(&request);
        let question = RequestContent::Change {
            method: Method::POST,
            body: body.expect("a number always serialises").into(),
        };
        let answer = self.request_with_extra_time(path, question, longer).await?;
        serde_json::from_slice(&answer.body).map_err(|_| ClientError::InvalidJson)
    }

    /// Begins to read all files and to check their checksums, and returns the task.
    pub async fn scrub(&self, request: ScrubRequest) -> Result<TaskStatus, ClientError> {
        let path = "/api/v1/scrub".to_owned();
        self.fetch(Method::POST, path, &request).await
    }

    /// The tables of the database in the process of the service, with their sizes.
    pub async fn tables(&self) -> Result<Vec<TableSize>, ClientError> {
        let path = "/api/v1/tables".to_owned();
        self.fetch(Method::GET, path, &()).await
    }

    /// Whether the service is in maintenance.
    pub async fn maintenance(&self) -> Result<MaintenanceStatus, ClientError> {
        let path = "/api/v1/maintenance".to_owned();
        self.fetch(Method::GET, path, &()).await
    }

    /// Begins or ends maintenance.
    pub async fn set_maintenance(
        &self,
        request: MaintenanceRequest,
    ) -> Result<MaintenanceStatus, ClientError> {
        let path = "/api/v1/maintenance".to_owned();
        self.fetch(Method::PUT, path, &request).await
    }

    /// Begins a backup, and returns its task.
    pub async fn back_up(&self, request: &BackupRequest) -> Result<TaskStatus, ClientError> {
        let path = "/api/v1/backups".to_owned();
        self.fetch(Method::POST, path, request).await
    }

    /// The plan of a backup by a request with `dry_run`. Its answer may take longer than others by
    /// `extra`.
    pub async fn preview_backup(
        &self,
        request: &BackupRequest,
        extra: Duration,
    ) -> Result<BackupPreview, ClientError> {
        let body = serde_json::to_vec(request).map_err(|_| ClientError::InvalidJson)?;
        let content = RequestContent::Change {
            method: Method::POST,
            body: body.into(),
        };
        let path = "/api/v1/backups".to_owned();
        let answer = self.request_with_extra_time(path, content, extra).await?;
        serde_json::from_slice(&answer.body).map_err(|_| ClientError::InvalidJson)
    }

    /// The schedules of backups, and their last results.
    pub async fn backups(&self) -> Result<BackupsStatus, ClientError> {
        let path = "/api/v1/backups".to_owned();
        self.fetch(Method::GET, path, &()).await
    }

    /// Removes a schedule of backups, and returns it.
    pub async fn remove_backup_schedule(
        &self,
        id: &str,
    ) -> Result<BackupScheduleStatus, ClientError> {
        let path = format!("/api/v1/backups/schedules/{}", segment(id));
        self.fetch(Method::DELETE, path, &()).await
    }

    /// Begins a restore, and returns its task.
    pub async fn restore(&self, request: &RestoreRequest) -> Result<TaskStatus, ClientError> {
        let path = "/api/v1/restores".to_owned();
        self.fetch(Method::POST, path, request).await
    }

    /// Begins a drill, and returns its task.
    pub async fn drill(&self, request: &DrillRequest) -> Result<TaskStatus, ClientError> {
        let path = "/api/v1/drills".to_owned();
        self.fetch(Method::POST, path, request).await
    }

    /// Begins a local snapshot, and returns its task.
    pub async fn local_snapshot(
        &self,
        request: &LocalSnapshotRequest,
    ) -> Result<TaskStatus, ClientError> {
        let path = "/api/v1/snapshots".to_owned();
        self.fetch(Method::POST, path, request).await
    }

    async fn fetch<T: DeserializeOwned>(
        &self,
        method: Method,
        path: String,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = || {
            let body = serde_json::to_vec(body);
            body.expect("numbers and names always serialise").into()
        };
        let question = match method {
            Method::GET => RequestContent::Read,
            Method::DELETE => RequestContent::Change {
                method,
                body: Bytes::new(),
            },
            _ => RequestContent::Change {
                method,
                body: body(),
            },
        };
        let answer = self.request(path, question).await?;
        serde_json::from_slice(&answer.body).map_err(|_| ClientError::InvalidJson)
    }
}

fn task_path(id: &str) -> String {
    format!("/api/v1/tasks/{}", segment(id))
}
