//! `annulus tasks`: the long work of an index service.

use std::time::Duration;

use clap::{Args, Subcommand};
use store_api::types::{TaskState, TaskStatus, TaskTree};
use store_api::{ClientError, StoreClient};

use super::indexes::table;
use super::progress::TerminalBar;
use super::text_table::aligned;
use super::{ServiceArguments, block_on};
use crate::exit::ProcessFailure;

/// The longest time of one request to wait. Then the service answers, and gets the request again.
const WAIT_AT_A_TIME: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
pub struct TasksArguments {
    #[command(flatten)]
    asking: ServiceArguments,

    #[command(subcommand)]
    command: TasksCommand,
}

#[derive(Debug, Subcommand)]
enum TasksCommand {
    /// List the tasks that run or ended lately, and how far each index is behind its table
    List {
        /// List parts of other tasks too
        #[arg(long)]
        parts: bool,
    },
    /// Show one task in full
    Status {
        #[arg(value_name = "TASK")]
        id: String,
    },
    /// Show a task and its parts; without TASK, all tasks and their parts
    Tree {
        #[arg(value_name = "TASK")]
        id: Option<String>,
    },
    /// Wait until a task has ended; exit code 0 if it is done, 1 if it failed or was aborted, 124
    /// if it still runs
    Wait {
        #[arg(value_name = "TASK")]
        id: String,
        /// Longest time to wait in seconds [default: no limit]
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
    },
    /// Request that a task stops, and return at once; `wait` returns when it has stopped
    Abort {
        #[arg(value_name = "TASK")]
        id: String,
    },
}

/// Runs `annulus tasks`.
pub fn run(arguments: TasksArguments) -> anyhow::Result<()> {
    let TasksArguments { asking, command } = arguments;
    block_on(async {
        match command {
            TasksCommand::List { parts } => list(&asking, parts).await,
            TasksCommand::Status { id } => {
                let task = asking.client().await?.task(&id).await;
                let task = task.map_err(|error| asking.explain(error))?;
                asking.print(&task, details)
            }
            TasksCommand::Tree { id } => tree(&asking, id).await,
            TasksCommand::Wait { id, timeout } => {
                let client = asking.client().await?;
                let task = wait(&client, &id, timeout.map(Duration::from_secs)).await;
                let task = task.map_err(|error| asking.explain(error))?;
                asking.print(&task, details)?;
                ended_well(&task)
            }
            TasksCommand::Abort { id } => {
                let task = asking.client().await?.abort_task(&id).await;
                let task = task.map_err(|error| asking.explain(error))?;
                asking.print(&task, details)
            }
        }
    })
}

/// Prints the tasks, and for people the indexes too: following the log is work that never ends.
async fn list(asking: &ServiceArguments, parts: bool) -> anyhow::Result<()> {
    let client = asking.client().await?;
    let explained = |error| asking.explain(error);
    let tasks = client.tasks(parts).await.map_err(explained)?;
    let indexes = client.indexes().await.map_err(explained)?;
    asking.print(&tasks, |tasks| {
        let lines: Vec<_> = tasks.iter().map(|task| line(task, 0)).collect();
        let mut text = aligned(HEADING, &lines);
        if !indexes.is_empty() {
            text.push('\n');
            text.push_str(&table(&indexes));
        }
        text
    })
}

async fn tree(asking: &ServiceArguments, id: Option<String>) -> anyhow::Result<()> {
    let client = asking.client().await?;
    let roots = match id {
        Some(id) => vec![id],
        None => {
            let tasks = client.tasks(false).await;
            let tasks = tasks.map_err(|error| asking.explain(error))?;
            tasks.into_iter().map(|task| task.id).collect()
        }
    };
    let mut trees = Vec::new();
    for root in roots {
        let tree = client.task_tree(&root).await;
        trees.push(tree.map_err(|error| asking.explain(error))?);
    }
    asking.print(&trees, |trees| {
        let mut lines = Vec::new();
        for tree in trees {
            lines_of(tree, 0, &mut lines);
        }
        aligned(HEADING, &lines)
    })
}

/// The longest time of one request to wait while somebody sees how far the task is. The service
/// counts in seconds.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// Waits until a task has ended, or until the timeout, and shows on a terminal how far it is.
/// Returns its last status.
async fn wait(
    client: &StoreClient,
    id: &str,
    timeout: Option<Duration>,
) -> Result<TaskStatus, ClientError> {
    let began = std::time::Instant::now();
    let bar = TerminalBar::of_task();
    let at_a_time = match bar.is_seen() {
        true => SHOWN_EVERY,
        false => WAIT_AT_A_TIME,
    };
    loop {
        let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
        let now = left.map_or(at_a_time, |left| left.min(at_a_time));
        // The service counts in seconds, and less than one is not worth another request.
        let task = client.wait_for_task(id, now).await?;
        let out_of_time = left.is_some_and(|left| left < now + Duration::from_secs(1));
        if task.state != TaskState::Running || out_of_time {
            bar.clear();
            return Ok(task);
        }
        bar.show(&task, progress(&task));
    }
}

/// Prints a task that has begun, once it has ended or, with `detach`, at once.
///
/// # Errors
/// If the service cannot be reached, or if the task ended before it was done.
pub async fn follow(
    asking: &ServiceArguments,
    client: &StoreClient,
    task: TaskStatus,
    detach: bool,
) -> anyhow::Result<()> {
    if detach {
        return asking.print(&task, details);
    }
    let ended = wait(client, &task.id, None).await;
    let ended = ended.map_err(|error| asking.explain(error))?;
    asking.print(&ended, details)?;
    ended_well(&ended)
}

/// The result that decides the exit code: an error unless the task is done.
fn ended_well(task: &TaskStatus) -> anyhow::Result<()> {
    match task.state {
        TaskState::Done => Ok(()),
        TaskState::Running => {
            Err(ProcessFailure::TimedOut(format!("task {} still runs", task.id)).into())
        }
        TaskState::Failed | TaskState::Aborted => {
            let why = task.error.as_deref().unwrap_or("as it was asked to");
            anyhow::bail!("task {} was {}: {why}", task.id, task.state.name())
        }
    }
}

const HEADING: [&str; 6] = ["ID", "KIND", "OF", "STATE", "PROGRESS", "BEGAN"];

fn lines_of(tree: &TaskTree, depth: usize, lines: &mut Vec<[String; 6]>) {
    lines.push(line(&tree.status, depth));
    for child in &tree.children {
        lines_of(child, depth + 1, lines);
    }
}

fn line(task: &TaskStatus, depth: usize) -> [String; 6] {
    [
        format!("{}{}", "  ".repeat(depth), task.id),
        task.kind.clone(),
        target(task),
        task.state.name().to_owned(),
        progress(task),
        task.start_time.clone(),
    ]
}

/// The object of a task: keyspace, index or table, token range, and entity.
fn target(task: &TaskStatus) -> String {
    let keyspace = task.keyspace.as_deref().unwrap_or("-");
    let named = task.index.as_ref().or(task.table.as_ref());
    let mut target = match named {
        Some(name) => format!("{keyspace}.{name}"),
        None => keyspace.to_owned(),
    };
    if let Some(range) = &task.token_range {
        target.push_str(&format!(" [{}, {}]", range.start, range.end));
    }
    if let Some(entity) = &task.entity {
        target.push_str(&format!(" ({entity})"));
    }
    target
}

fn progress(task: &TaskStatus) -> String {
    let units = task.progress_units.replace('_', " ");
    match task.progress_total {
        Some(total) => format!("{}/{total} {units}", task.progress_completed),
        None => format!("{} {units}", task.progress_completed),
    }
}

/// Describes a task, with a line for each fact.
pub fn details(task: &TaskStatus) -> String {
    let mut lines = vec![
        ("id", task.id.clone()),
        ("kind", task.kind.clone()),
        ("scope", task.scope.clone()),
        ("of", target(task)),
        ("state", task.state.name().to_owned()),
        ("progress", progress(task)),
        ("began", task.start_time.clone()),
    ];
    let known = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    lines.extend(known("ended", &task.end_time));
    lines.extend(known("error", &task.error));
    lines.extend(known("part of", &task.parent_id));
    if task.abort_requested {
        lines.push(("abort", "requested".to_owned()));
    }
    for (name, count) in &task.counters {
        lines.push((name, count.to_string()));
    }
    if !task.children_ids.is_empty() {
        let mut parts = task.children_ids.len().to_string();
        if task.children_left_out > 0 {
            parts.push_str(&format!(", and {} before them", task.children_left_out));
        }
        lines.push(("parts", parts));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = lines
        .iter()
        .map(|(name, value)| format!("{:width$}  {value}\n", name.replace('_', " ")));
    lines.collect()
}
