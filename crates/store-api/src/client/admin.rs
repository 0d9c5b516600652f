//! What operators ask.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Client;
use super::ask::Question;
use super::index_path;
use super::uri::segment;
use crate::ClientError;
use crate::types::{
    ClockStatus, Info, RepairRequest, RepairSchedule, RepairScheduleUpdate, RepairSpeed,
    RepairStatus, ScrubRequest, TaskStatus, TaskTree,
};

impl Client {
    /// What the service is.
    pub async fn info(&self) -> Result<Info, ClientError> {
        self.fetch(Method::GET, "/api/v1/info".to_owned(), &())
            .await
    }

    /// How far the time of its database is from the machine's clock.
    pub async fn clock(&self) -> Result<ClockStatus, ClientError> {
        self.fetch(Method::GET, "/api/v1/clock".to_owned(), &())
            .await
    }

    /// The tasks of a service that are no part of another, or all.
    pub async fn tasks(&self, with_parts: bool) -> Result<Vec<TaskStatus>, ClientError> {
        let path = format!("/api/v1/tasks?parts={with_parts}");
        self.fetch(Method::GET, path, &()).await
    }

    /// A task.
    pub async fn task(&self, id: &str) -> Result<TaskStatus, ClientError> {
        self.fetch(Method::GET, task_path(id), &()).await
    }

    /// A task and its parts.
    pub async fn task_tree(&self, id: &str) -> Result<TaskTree, ClientError> {
        let path = format!("{}/tree", task_path(id));
        self.fetch(Method::GET, path, &()).await
    }

    /// A task once it has ended, or as it is after `timeout`, by which the request may take longer than
    /// others.
    pub async fn wait_for_task(
        &self,
        id: &str,
        timeout: Duration,
    ) -> Result<TaskStatus, ClientError> {
        let path = format!("{}/wait?timeout={}", task_path(id), timeout.as_secs());
        let answer = self.ask_longer(path, Question::Read, timeout).await?;
        serde_json::from_slice(&answer.body).map_err(|_| ClientError::InvalidJson)
    }

    /// Asks a task to stop.
    pub async fn abort_task(&self, id: &str) -> Result<TaskStatus, ClientError> {
        self.fetch(Method::DELETE, task_path(id), &()).await
    }

    /// Begins to repair an index: the task to follow it by.
    pub async fn repair(
        &self,
        keyspace: &str,
        index: &str,
        request: RepairRequest,
    ) -> Result<TaskStatus, ClientError> {
        let path = index_path(keyspace, index, "repair");
        self.fetch(Method::POST, path, &request).await
    }

    /// Changes the speed of the repair that runs.
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

    /// Changes the schedule of an index for good.
    pub async fn update_repair(
        &self,
        keyspace: &str,
        index: &str,
        update: RepairScheduleUpdate,
    ) -> Result<Option<RepairSchedule>, ClientError> {
        let path = index_path(keyspace, index, "repair/schedule");
        self.fetch(Method::PUT, path, &update).await
    }

    /// Begins to read all files and to check their checksums: the task to follow it by.
    pub async fn scrub(&self, request: ScrubRequest) -> Result<TaskStatus, ClientError> {
        let path = "/api/v1/scrub".to_owned();
        self.fetch(Method::POST, path, &request).await
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
            Method::GET => Question::Read,
            Method::DELETE => Question::Change {
                method,
                body: Bytes::new(),
            },
            _ => Question::Change {
                method,
                body: body(),
            },
        };
        let answer = self.ask(path, question).await?;
        serde_json::from_slice(&answer.body).map_err(|_| ClientError::InvalidJson)
    }
}

fn task_path(id: &str) -> String {
    format!("/api/v1/tasks/{}", segment(id))
}
