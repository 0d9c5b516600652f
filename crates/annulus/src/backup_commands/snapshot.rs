//! `annulus snapshot`: a local copy of hard links.

use std::path::PathBuf;

use clap::Args;
use store_api::types::LocalSnapshotRequest;

use super::location::absolute;
use crate::operator::task_commands::follow;
use crate::operator::{ServiceArguments, block_on};

pub const EXAMPLES: &str = "\
Examples:
  annulus snapshot --to /var/lib/annulus-before-upgrade
  annulus serve --data-dir /var/lib/annulus-before-upgrade";

#[derive(Args, Debug)]
pub struct SnapshotArguments {
    /// Directory that is made, on the file system of the server's data; it must not exist
    #[arg(long, value_name = "DIR")]
    to: PathBuf,

    /// Return at once with the task, without waiting for its end
    #[arg(long)]
    detach: bool,

    #[command(flatten)]
    asking: ServiceArguments,
}

/// Runs `annulus snapshot`.
pub fn run(arguments: SnapshotArguments) -> anyhow::Result<()> {
    block_on(async {
        let asking = &arguments.asking;
        let request = LocalSnapshotRequest {
            directory: absolute(&arguments.to)?,
        };
        let client = asking.client().await?;
        let task = client.local_snapshot(&request).await;
        let task = task.map_err(|error| asking.explain(error))?;
        follow(asking, &client, task, arguments.detach).await
    })
}
